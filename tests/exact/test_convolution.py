"""Exact convolutions: against plain sums of Python integers, where one transform in floats would be wrong too."""

import numpy as np
import pytest

from noisette.exact import convolution
from noisette.exact.convolution import convolved, transformed


def numbers(rng, n, bits):
    """Whole numbers of both signs, with that many bits."""
    parts = [rng.integers(0, 2**31, n).tolist() for _ in range(4)]
    return [
        (sum(p << 31 * i for i, p in enumerate(some)) % 2**bits) - 2 ** (bits - 1) for some in zip(*parts, strict=True)
    ]


def plain(a, b):
    return [sum(a[i] * b[k - i] for i in range(k + 1)) for k in range(len(a))]


@pytest.mark.parametrize("n", [1, 2, 10, 257, 600])
@pytest.mark.parametrize("bits", [(1, 1), (20, 10), (20, 40), (5, 62), (63, 63), (100, 3)])
def test_convolutions_are_exact(n, bits):
    rng = np.random.default_rng(n)
    a, b = (numbers(rng, n, size) for size in bits)
    assert convolved(np.array(a, object), np.array(b, object)).tolist() == plain(a, b)


def test_one_transform_would_be_wrong():
    rng = np.random.default_rng(1)
    a, b = numbers(rng, 600, 30), numbers(rng, 600, 30)
    assert np.rint(transformed(np.array(a, float), np.array(b, float))).tolist() != plain(a, b)


@pytest.mark.parametrize("n", [300, 5000])
def test_errors_of_transforms_are_within_their_bound(n):
    rng = np.random.default_rng(n)
    a, b = rng.integers(-(2**15), 2**15, n), rng.integers(-(2**15), 2**15, n)
    exact = np.convolve(a, b)[:n]
    off = np.abs(transformed(a.astype(float), b.astype(float)) - exact).max()
    assert 0 < off < convolution._error(a, b) / 5, "with room to spare"
