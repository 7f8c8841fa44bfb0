"""Integer arrays agree with Python's integers, at the ends of int64 above all."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from noisette.exact import integers
from noisette.exact.integers import CHUNK, MOST
from noisette.exact.random import SYSTEM

ENDS = [0, 1, -1, MOST, -MOST, -MOST - 1, MOST - 1, 2**62, -(2**62), 2**53 + 1]
INT64 = st.sampled_from(ENDS) | st.integers(-MOST - 1, MOST)
WIDE = INT64 | st.integers(-(2**80), 2**80)


@given(st.lists(st.tuples(INT64, WIDE), max_size=5))
@example([(MOST, 1)])
@example([(-MOST, -1)])
@example([(2**62, 2**62)])
def test_added_is_exact(pairs):
    x = np.array([a for a, _ in pairs], np.int64)
    total = integers.added(x, integers.gathered([b for _, b in pairs], len(pairs)))
    assert total.tolist() == [a + b for a, b in pairs]


@given(st.lists(INT64, max_size=5), st.integers(-(2**65), 2**65) | st.integers(-9, 9))
@example([-MOST - 1], -1)
@example([MOST], 1)
def test_multiplied_is_exact(x, factor):
    assert integers.multiplied(np.array(x, np.int64), factor).tolist() == [a * factor for a in x]


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.uint8, np.uint32, np.uint64, np.bool_])
def test_other_integer_types_are_added_exactly(dtype):
    x = np.array([0, 1, np.iinfo(dtype).max if dtype != np.bool_ else 1], dtype)
    y = np.array([2**53 + 1, -1, 2**53 + 1])
    assert integers.added(x, y).tolist() == [int(a) + int(b) for a, b in zip(x, y, strict=True)]
    assert integers.added(x[:2], y[:2]).dtype == np.int64


def test_what_fits_stays_int64_and_what_does_not_becomes_python_integers():
    assert integers.added(np.array([MOST - 1]), np.array([1])).dtype == np.int64
    assert integers.added(np.array([MOST]), np.array([1])).dtype == object
    assert integers.gathered([MOST, -MOST], (2, 1)).dtype == np.int64
    assert integers.gathered([MOST + 1, 0], 2).dtype == object


@given(st.lists(WIDE, max_size=6))
def test_saturated_clamps(values):
    clamped = integers.saturated(integers.gathered(values, len(values)))
    assert clamped.dtype == np.int64
    assert clamped.tolist() == [max(-MOST, min(MOST, z)) for z in values]


@given(st.dictionaries(st.integers(0, 4), WIDE))
def test_placed_sets_some_entries(values):
    placed = integers.placed(np.arange(5), values)
    assert placed.tolist() == [values.get(i, i) for i in range(5)]


@given(st.lists(WIDE))
def test_magnitude(values):
    assert integers.magnitude(integers.gathered(values, len(values))) == max(map(abs, values), default=0)


@pytest.mark.parametrize("size", [0, 1, CHUNK, CHUNK + 1, 2 * CHUNK + 7])
def test_filled_puts_every_chunk_in_its_place(size):
    def fill(out, rng):
        out[:] = np.arange(len(out))
        return {0: 2**70}

    drawn = integers.filled(fill, size, SYSTEM)
    assert drawn.tolist() == [i % CHUNK or 2**70 for i in range(size)]
