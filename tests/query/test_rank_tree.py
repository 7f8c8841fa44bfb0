"""Quantiles read off a tree of noisy counts: least squares, its variances in closed form, and bars that hold."""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tests.goodness import fewest

import noisette as nz
from noisette.exact.random import SYSTEM
from noisette.mechanisms import Gaussian, Geometric
from noisette.query import rank_tree as module
from noisette.query.measure import Measure
from noisette.query.rank_tree import rank_tree

ONE = nz.sensitivity.histogram(neighbours=nz.Neighbours.ADD_REMOVE)
QUARTILES = [Fraction(i, 4) for i in (1, 2, 3)]
DECILES = [Fraction(i, 10) for i in range(1, 10)]


def histogram(cells):
    return Measure("histogram", low=0, high=cells - 1)


def tree(cells, share, at=QUARTILES, level=0.95):
    return rank_tree(histogram(cells), at, share, ONE, level)


class Still:
    """Noise that is given, level by level."""

    def __init__(self, one, noise):
        self.left, self.own = list(noise), one.noise

    def __call__(self, counts, rng):
        return counts + self.left.pop(0)

    def variance(self):
        return self.own.variance()


@pytest.mark.parametrize(("cells", "children"), [(7, 2), (9, 3), (30, 4)])
def test_ranks_are_the_least_squares_estimates_and_have_the_stated_variances(cells, children):
    """Against the pseudo-inverse of the tree's matrix, for noise of one deviation."""
    one = replace(tree(cells, nz.ZCDP("1/2")), children=children)
    leaves = children**one.depth
    levels = [np.repeat(np.eye(children**i), leaves // children**i, axis=1) for i in range(1, one.depth + 1)]
    best = np.tril(np.ones((leaves, leaves))) @ np.linalg.pinv(np.concatenate(levels))
    noise = [np.random.default_rng(i).normal(0, 3, (1, len(level))) for i, level in enumerate(levels)]
    found = one._ranks([np.asarray(part) for part in noise])
    assert np.allclose(found[0, 1:], best @ np.concatenate(noise, axis=1)[0])
    for q in QUARTILES:
        rows = np.concatenate([np.zeros((1, best.shape[1])), best]) - float(q) * best[-1]
        stated = one._deviations(q) / np.sqrt(one.noise.variance())
        assert np.allclose(np.sqrt((rows**2).sum(axis=1))[: cells + 1], stated)


def test_without_noise_quantiles_are_those_of_the_rows():
    counts = np.array([[0, 3, 0, 0, 5, 1, 0], [0, 0, 0, 0, 0, 0, 4], [2, 0, 0, 0, 0, 0, 2]])
    one = tree(7, nz.Pure(1000))
    value, low, high = one.draw(counts, histogram(7), SYSTEM)
    assert value.tolist() == [[1, 6, 0], [4, 6, 0], [4, 6, 6]]
    assert (low[1, 2], high[1, 2]) == (0, 6)  # two rows below a gap and two above it: any cell may be the median


def test_a_unit_moves_a_count_of_each_level():
    one = tree(1000, nz.Pure(1))
    moved = one.moved(nz.sensitivity.histogram(neighbours=nz.Neighbours.REPLACE).scaled(3))
    assert (moved.l1, moved.l2_squared, moved.linf) == (6 * one.depth, 18 * one.depth, 3)
    rows = np.zeros((2, 1000), np.int64)
    rows[0, 17], rows[1, 900] = 3, 3
    levels = one._levels(rows)
    assert sum(np.abs(level[0] - level[1]).sum() for level in levels) == moved.l1
    assert sum(((level[0] - level[1]) ** 2).sum() for level in levels) == moved.l2_squared


@pytest.mark.parametrize("share", [nz.Pure(1), nz.ZCDP("1/2")], ids=str)
def test_noise_keeps_the_promise_and_no_less_would(share):
    one = tree(500, share)
    assert isinstance(one.noise, Gaussian if isinstance(share, nz.ZCDP) else Geometric)
    cost = one.noise.guarantee(one.moved(ONE))
    assert cost <= share
    assert not cost * 2 <= share


# Bars

CELLS, TIMES = 900, 1000
COLUMNS = {
    "even": np.arange(CELLS).repeat(2),
    "a spike": np.repeat([4, 450], [500, 900]),
    "two clusters": np.concatenate([np.arange(60).repeat(10), 800 + np.arange(60).repeat(10)]),
    "three rows": np.array([5, 400, 890]),
    "the ends": np.repeat([0, CELLS - 1], [300, 700]),
}


def held(one, values):
    """For each quantile, how often its bar holds the cell of the rows' quantile, in releases of the same values."""
    truth = np.quantile(values, [float(q) for q in one.at], method="inverted_cdf")[:, None]
    counts = np.repeat(np.bincount(values, minlength=CELLS)[None], TIMES, axis=0)
    value, low, high = one.draw(counts, histogram(CELLS), SYSTEM)
    assert ((low <= value) & (value <= high)).all()
    return ((low <= truth) & (truth <= high)).sum(axis=1)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("share", [nz.Pure("1/10"), nz.Pure(2), nz.ZCDP("1/200")], ids=str)
@pytest.mark.parametrize("name", COLUMNS)
def test_bars_hold_whatever_the_values_and_however_few(name, share):
    """Each of the nine with p < 1e-12 for a sound tree."""
    assert held(tree(CELLS, share, DECILES), COLUMNS[name]).min() >= fewest(TIMES, 0.95)


def test_bars_of_a_third_of_the_width_do_not(monkeypatch):
    monkeypatch.setattr(module, "_width", lambda level: 0.7)
    assert held(tree(CELLS, nz.Pure("1/10"), DECILES), COLUMNS["even"]).min() < fewest(TIMES, 0.95)


def test_nine_deciles_err_by_less_than_half_of_what_draws_of_their_own_would():
    """Rank errors at epsilon = 1/10 about 2,000 rows, where nine draws with their shares are off by hundreds."""
    one, values = tree(CELLS, nz.Pure("1/10"), DECILES), COLUMNS["even"]
    counts = np.repeat(np.bincount(values, minlength=CELLS)[None], 300, axis=0)
    value, _, _ = one.draw(counts, histogram(CELLS), SYSTEM)
    off = np.abs(2 * value - np.array([[float(q) * len(values)] for q in DECILES])).mean()
    assert off < 120


def tail_of_sums(noise, count, room):
    """The chance that a sum of so many noises is further off than `room`."""
    size = 2**13
    places = np.minimum(np.arange(size), size - np.arange(size))
    chances = np.fft.rfft([float(p) for p in noise.pmf(places, 0)])
    return np.fft.irfft(chances**count, size)[places > room].sum()


@pytest.mark.parametrize("scale", ["1/10", "1/5", "3/10", "1/2", 1, 3, 12])
@pytest.mark.parametrize("kind", [Geometric, Gaussian])
def test_sums_of_whole_noise_hardly_leave_their_room(kind, scale):
    noise = kind(scale) if kind is Geometric else kind(scale, grid=1)
    for count, level in itertools.product((1, 3, 8, 40), (0.5, 0.8, 0.95, 0.999)):
        room = module._room(level, np.sqrt(count * float(noise.variance())))
        assert tail_of_sums(noise, count, room + 1e-9) <= 1 - level


def test_without_a_row_more_sums_leave_it():
    noise, count = Geometric("29/100"), 3
    assert tail_of_sums(noise, count, module._width(0.95) * np.sqrt(count * float(noise.variance()))) > 0.15
