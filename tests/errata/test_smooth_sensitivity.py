"""Errata about noise that follows the data: E13, E14 and E15 of docs/errata.md."""

import itertools
import math
from functools import cache

import numpy as np
import pytest

from noisette.audit.divergence import hockey_stick, largest_loss
from noisette.mechanisms import Laplace
from noisette.privacy import Neighbours, sensitivity

N, TOP = 5, 3  # all tables of five values in 0 .. 3, sorted
MIDDLE = (N + 1) // 2
TABLES = list(itertools.combinations_with_replacement(range(TOP + 1), N))


@cache
def replaced(x, top=TOP):
    """The tables that differ in one value."""
    return {tuple(sorted((*x[:i], v, *x[i + 1 :]))) for i in range(len(x)) for v in range(top + 1)}


def local_sensitivity(x, top=TOP):
    return max(abs(x[MIDDLE - 1] - y[MIDDLE - 1]) for y in replaced(x, top))


def at_distance(x):
    """The largest local sensitivity within 0, 1, 2, … replacements: by search."""
    ball = {x}
    for _ in range(N + 1):
        yield max(map(local_sensitivity, ball))
        ball = set().union(*map(replaced, ball))


def formula(x, k, last, top=TOP):
    """max over 0 <= j <= last of x_(m+j) - x_(m+j-k-1), with bounds beyond the ends."""
    padded = [0] * len(x) + sorted(x) + [top] * (len(x) + 1)
    m = len(x) + MIDDLE - 1
    return max(padded[m + j] - padded[m + j - k - 1] for j in range(last + 1))


def smooth(x, beta):
    return max(s * math.exp(-beta * k) for k, s in enumerate(at_distance(x)))


def test_e13_smooth_over_tables():
    beta = 0.3
    S = {x: smooth(x, beta) for x in TABLES}
    for x in TABLES:
        assert S[x] >= local_sensitivity(x)
        assert S[x] <= math.exp(beta) * min(S[y] for y in replaced(x)) * (1 + 1e-12)
    x, y = (0, 0, 0, 0, 3), (0, 0, 0, 3, 3)  # what local sensitivity lacks
    assert y in replaced(x)
    assert (local_sensitivity(x), local_sensitivity(y)) == (0, 3)


def test_e13_laplace_noise_of_a_varying_scale_has_no_epsilon():
    beta, y = 0.05, np.array([10.0, 100, 1000, 10_000])
    wider = math.exp(beta)
    laplace = np.log(wider) + y / wider - y  # ln of Lap(1) over Lap(e^beta), far out
    assert np.abs(laplace).max() > 400
    grid = np.concatenate([-np.logspace(-4, 6, 20_001), np.logspace(-4, 6, 20_001)])
    beta, s = 0.3, 0.7  # the answers differ by at most the smaller of S(x) = 1 and S(x') = r

    def cauchy(centre, scale):
        return scale / (scale**2 + (grid - centre) ** 2)

    widths = np.exp(np.linspace(-beta, beta, 7))
    losses = [np.abs(np.log(cauchy(0, 1 / s) / cauchy(part * min(1, r), r / s))).max()
              for part, r in itertools.product((0, 0.5, 1), widths)]  # fmt: skip
    assert max(losses) == pytest.approx(0.686, abs=5e-4)
    assert max(losses) <= beta + s  # Cauchy noise: pure, with beta + s = epsilon


def test_e13_laplace_noise_is_private_with_delta():
    epsilon, delta = 1, 1e-6
    s, beta = epsilon / 2, epsilon / (2 * math.log(2 / delta))
    z = np.linspace(-120, 120, 240_001)

    def law(centre, scale):
        return np.exp(-np.abs(z - centre) / scale) / (2 * scale) * (z[1] - z[0])

    widths = np.exp(np.linspace(-beta, beta, 5))
    found = [np.maximum(law(0, 1 / s) - math.exp(epsilon) * law(part * min(1, r), r / s), 0).sum()
             for part, r in itertools.product((0, 0.5, 1), widths)]  # fmt: skip
    assert max(found) == pytest.approx(4.06e-9, rel=0.01)


def test_e14_the_largest_gap_is_one_step_further():
    x = (0, 0, 0, 6, 6)
    assert local_sensitivity(x, 6) == 6
    assert formula(x, 0, last=0, top=6) == 0
    assert formula(x, 0, last=1, top=6) == 6
    cases = [(x, k, truth) for x in TABLES for k, truth in zip(range(3), at_distance(x), strict=False)]
    assert len(cases) == 168
    assert sum(formula(x, k, last=k) != truth for x, k, truth in cases) == 41
    assert all(formula(x, k, last=k) <= truth for x, k, truth in cases)  # the error is on the side that leaks
    assert all(formula(x, k, last=k + 1) == truth for x, k, truth in cases)


def quick(x, beta, top=TOP):
    """Smooth sensitivity by divide and conquer: the best right end moves right with the left end."""
    X, looks = [0, *sorted(x), top], [0]

    def solve(i_low, i_high, j_low, j_high):
        if i_low > i_high:
            return 0.0
        i = (i_low + i_high) // 2
        looks[0] += j_high - j_low + 1
        value, j = max(((X[j] - X[i]) * math.exp(-beta * (j - i - 1)), j) for j in range(j_low, j_high + 1) if j > i)
        return max(value, solve(i_low, i - 1, j_low, j), solve(i + 1, i_high, j, j_high))

    middle = (len(x) + 1) // 2
    return solve(0, middle, middle, len(x) + 1), looks[0]


def test_e14_n_log_n_steps_are_enough():
    for beta in (0.1, 0.5, 2):
        assert [quick(x, beta)[0] for x in TABLES] == pytest.approx([smooth(x, beta) for x in TABLES])
    n = 2001
    assert quick(np.arange(n) ** 2 % 1009, 0.01, 1009)[1] < 4 * n * math.log2(n) < n * n / 8


def test_e15_the_mean_of_blocks_moves_by_one_part_in_m():
    low, high, m = 0, 6, 4
    clamped = list(itertools.product((low, 2, high), repeat=m))  # what the m blocks say, snapped to [low, high]
    moves = [abs(sum(z) - sum(z[1:]) - v) / m for z in clamped for v in (low, 2, high)]
    assert max(moves) == (high - low) / m == sensitivity.mean((low, high), m, neighbours=Neighbours.REPLACE).l1
    as_printed, right = Laplace(high - low), Laplace((high - low) / m)  # epsilon 1
    assert as_printed.interval(0.95) == pytest.approx(m * right.interval(0.95))
    assert float(as_printed.guarantee(max(moves)).epsilon) == pytest.approx(1 / m)  # more noise than was paid for
    assert float(right.guarantee(max(moves)).epsilon) == pytest.approx(1)


def test_e15_bounds_from_the_data_leak():
    """Noise as wide as the blocks' own range: (0, 0, 0, 0) has none, its neighbour (0, 0, 0, 6) has some."""
    y = np.arange(-100, 101) / 2
    silent = np.where(y == 0, 1.0, 0.0)
    noisy = Laplace(6 / 4, grid="1/2").pmf(y, 6 / 4)
    assert largest_loss(silent, noisy) == math.inf


@pytest.mark.parametrize("m", [4, 20])
def test_e15_sampling_alone_is_not_private(m):
    """Publish one of m blocks at random: whoever is in it is seen, with probability 1/m whatever epsilon is."""
    without = np.array([1.0, 0.0])  # seen: no, yes
    with_person = np.array([1 - 1 / m, 1 / m])
    assert hockey_stick(with_person, without, 0.5) == pytest.approx(1 / m)
    assert hockey_stick(with_person, without, 50.0) == pytest.approx(1 / m)
