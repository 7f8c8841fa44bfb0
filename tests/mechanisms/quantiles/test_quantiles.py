"""Many quantiles at once: the law from its definition, all neighbours of small tables, ties, and what breaks it."""

import itertools
import math
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.goodness import ALPHA, p_value
from tests.tapes import Script

import noisette as nz
from noisette.audit.contract import checks_of
from noisette.audit.finding import Effort
from noisette.errors import InputError, PrivacyError
from noisette.exact.random import SYSTEM
from noisette.mechanisms.quantiles.grid import Grid
from noisette.mechanisms.quantiles.quantiles import DECILES, Quantiles, examples
from noisette.mechanisms.quantiles.spread_ties import Side, TieSpread, choose_cell, choose_place

ADD_REMOVE, REPLACE = nz.Neighbours
HALF = Fraction(1, 2)
LOOK = Effort(array=1000, slow_array=1000, single=1500, vector=1000)


# The law, from the definition: values as they are, each spread over its cell


def below(values, point):
    """How much of the values lies below a point of the line; value v covers v .. v + 1."""
    return sum((min(max(point - v, Fraction(0)), Fraction(1)) for v in values), Fraction(0))


def softmax(distances, rate):
    weights = [math.exp(-float(rate * (d - min(distances)))) for d in distances]
    return [w / math.fsum(weights) for w in weights]


def by_definition(m, values):
    """P(cells), by recursion over lists of places; `values` are cells."""
    middles = [cell + Fraction(2 * j + 1, 2 * m.ties) for cell in range(m.cells) for j in range(m.ties)]
    levels = math.floor(math.log2(len(m.at))) + 1

    def part(at, low_q, high_q, places, low, high):
        """`at` and the ends have a quantile and its shift each."""
        if not at:
            return {(): 1.0}
        middle = (len(at) - 1) // 2
        q = (at[middle][0] - low_q[0]) / (high_q[0] - low_q[0])
        move = at[middle][1] - (1 - q) * low_q[1] - q * high_q[1]
        one_way = (q == 0 and move <= 0) or (q == 1 and move >= 0)
        rate = m.epsilon / levels / (1 if one_way else 2 * max(q, 1 - q))
        target = low + q * (high - low) + move
        if len(at) == 1:
            cells = sorted({math.floor(place) for place in places})
            spans = [(max(low, below(values, c)), min(high, below(values, c + 1))) for c in cells]
            chances = softmax([max(a - target, target - b) for a, b in spans], rate)
            return {(cell,): p for cell, p in zip(cells, chances, strict=True)}
        law = defaultdict(float)
        masses = [below(values, place) for place in places]
        chances = softmax([abs(mass - target) for mass in masses], rate)
        for i, (place, mass, p) in enumerate(zip(places, masses, chances, strict=True)):
            lows = part(at[:middle], low_q, at[middle], places[: i + 1], low, mass)
            highs = part(at[middle + 1 :], at[middle], high_q, places[i:], mass, high)
            for (a, pa), (b, pb) in itertools.product(lows.items(), highs.items()):
                law[*a, math.floor(place), *b] += p * pa * pb
        return law

    at = list(zip(m.at, m.shift, strict=True))
    return part(at, (Fraction(0), 0), (Fraction(1), 0), middles, Fraction(0), Fraction(len(values)))


def tables(cells, most):
    return [t for n in range(most + 1) for t in itertools.combinations_with_replacement(range(cells), n)]


def histogram(values, cells):
    return np.bincount(np.array(values, int), minlength=cells)


def loss(first, second):
    assert first.keys() == second.keys()
    return max(abs(math.log(first[y] / second[y])) for y in first)


SMALL = [
    Quantiles(3, at=("1/3", "2/3"), cells=3, ties=3),
    Quantiles(2, at=("1/4", "1/2", "3/4"), cells=3, ties=2),
    Quantiles(5, at=(0, "1/2", 1), cells=3, ties=2),
    Quantiles(4, at=("1/5", "2/5", "3/5", "4/5"), cells=2, ties=2),
    Quantiles(2, at=["2/3"], cells=4),
    Quantiles(1, at=(0, 1), cells=4, ties=1),
]
SHIFTED = [  # with targets within their parts, at their ends, beyond them and beyond the table
    Quantiles(3, at=("1/4", "1/2", "3/4"), cells=3, ties=2, shift=1),
    Quantiles(2, at=("1/3", "2/3"), cells=3, ties=3, shift=(-4, "3/2")),
    Quantiles(4, at=("1/5", "2/5", "3/5", "4/5"), cells=2, ties=2, shift=(2, "-1/3", 1, 0)),
    Quantiles(3, at=(0, "1/2", 1), cells=3, ties=2, shift=(1, "1/2", -2)),
    Quantiles(3, at=(0, 1), cells=4, ties=1, shift=(-1, 2)),
]


@pytest.mark.parametrize("m", SMALL + SHIFTED, ids=repr)
def test_the_law_is_that_of_the_definition(m):
    for table in tables(m.cells, 3):
        law, true = m.outcomes(histogram(table, m.cells)), by_definition(replace(m, ties=min(m.ties, 3)), table)
        assert law.keys() == true.keys()
        assert [law[y] for y in true] == pytest.approx(list(true.values()), rel=1e-11)


@pytest.mark.slow_after(5)
@pytest.mark.parametrize("m", SMALL + SHIFTED, ids=repr)
def test_every_pair_of_small_tables_keeps_epsilon(m):
    laws = {t: m.outcomes(histogram(t, m.cells)) for t in tables(m.cells, 6)}
    one = {t: [(*t[:i], *t[i + 1 :]) for i in range(len(t))] for t in laws}
    worst = max(loss(laws[t], laws[less]) for t in laws for less in one[t])
    assert 0.2 * float(m.epsilon) < worst <= float(m.guarantee(1).epsilon) * (1 + 1e-12)
    replaced = nz.sensitivity.histogram(neighbours=REPLACE)
    moved = {t: {tuple(sorted((*less, v))) for less in one[t] for v in range(m.cells)} for t in laws if len(t) < 5}
    worst = max(loss(laws[t], laws[other]) for t in moved for other in moved[t])
    assert worst <= float(m.guarantee(replaced).epsilon) * (1 + 1e-12)
    assert m.guarantee(replaced) == nz.Pure(2 * m.epsilon, neighbours=REPLACE)


class LevelsForgotten(Quantiles):
    """A broken twin: spends all of epsilon on each level."""

    def _rate(self, part):
        return super()._rate(part) * self.levels


class HalfSensitive(Quantiles):
    """A broken twin: takes the range for half of what it is."""

    def _rate(self, part):
        return super()._rate(part) * 2


class OneWay(Quantiles):
    """A broken twin: takes the distances from a shifted minimum to move in one direction."""

    def _rate(self, part):
        return self.epsilon / self.levels if part.q == 0 else super()._rate(part)


def test_a_shifted_minimum_is_no_minimum():
    m = Quantiles(2, at=[0], cells=4, shift=2)
    broken = OneWay(m.epsilon, at=m.at, cells=m.cells, shift=m.shift)
    found = []
    for each in (m, broken):
        laws = {t: each.outcomes(histogram(t, m.cells)) for t in tables(m.cells, 5)}
        found.append(max(loss(laws[t], laws[t[1:]]) for t in laws if t))
    assert found[0] <= 2 * (1 + 1e-12) < 2.3 < found[1]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("twin", [LevelsForgotten, HalfSensitive])
def test_broken_twins_are_convicted(twin):
    m = examples[0]
    broken = twin(m.epsilon, at=m.at, cells=m.cells, ties=m.ties)
    assert not checks_of(broken)["private"](broken, LOOK).passed
    assert max(loss(broken.outcomes(x), broken.outcomes(y)) for x, y, _ in m.pairs()) > 1.4 * m.epsilon


def test_levels_compose_to_less_than_their_sum():
    m = Quantiles(4, cells=100)
    assert m.levels == 4
    assert m.guarantee(1).losses.parts[0][1] == 4
    assert m.guarantee(1) <= nz.ZCDP(Fraction(16, 8 * 4))
    assert not m.guarantee(1) <= nz.ZCDP(Fraction(15, 8 * 4))
    for count, levels in ((1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4), (15, 4), (16, 5)):
        assert Quantiles(1, at=[Fraction(i + 1, count + 1) for i in range(count)], cells=5).levels == levels


def test_the_rho_of_small_tables_is_as_stated():
    m = SMALL[0]
    rho = float(m.epsilon**2 / (8 * m.levels))
    laws = {t: m.outcomes(histogram(t, m.cells)) for t in tables(m.cells, 4)}
    for table, law in laws.items():
        for i in range(len(table)):
            less = laws[(*table[:i], *table[i + 1 :])]
            for a, b in ((law, less), (less, law)):
                for order in (1.5, 2, 8):
                    moment = math.fsum(p**order * b[y] ** (1 - order) for y, p in a.items())
                    assert math.log(moment) / (order - 1) <= rho * order * (1 + 1e-9)


# Ties


def dropped(values, at, cells, places=()):
    """A broken twin without noise: as for distinct values, the halves leave out those equal to the middle."""
    if not at:
        return []
    middle, ordered = (len(at) - 1) // 2, sorted(values)
    y = ordered[min(len(ordered) - 1, int(at[middle] * len(ordered)))] if ordered else cells - 1
    q = at[middle]
    low = dropped([v for v in values if v < y], [a / q for a in at[:middle]], y + 1)
    high = dropped([v for v in values if v > y], [(a - q) / (1 - q) for a in at[middle + 1 :]], cells)
    return [*low, y, *high]


TIED = {
    "constant": [0] * 20 + [5000] + [0] * 43,
    "two values": [0] * 10 + [3000] + [0] * 30 + [2000] + [0] * 22,
    "a heavy value": [30] * 31 + [4000] + [30] * 32,
    "at the ends": [2500] + [0] * 62 + [2500],
}


@pytest.mark.parametrize("counts", TIED.values(), ids=TIED)
def test_heavy_ties_do_no_harm(counts):
    m = Quantiles(8, cells=64)
    for _ in range(10):
        y = m(counts)
        assert list(y) == sorted(y)
        assert m.error(y, counts) < 40  # of 5000 and more; exceeded with a probability of about e^-30


def test_without_ties_in_both_halves_quantiles_go_astray():
    counts = TIED["two values"]
    y = dropped(np.repeat(np.arange(64), counts).tolist(), list(DECILES), 64)
    assert Quantiles(8, cells=64).error(y, counts) > 400


@pytest.mark.slow
def test_what_is_released_does_not_decrease():
    m = Quantiles("1/2", at=[Fraction(i, 20) for i in range(21)], cells=30)
    for y in m.release(np.random.default_rng().integers(0, 3, (30, 30))):
        assert (np.diff(y) >= 0).all()


# The sampler


def exact_places(spread, side, q, rate):
    distances = [abs(spread.mass(place) - side.target(q)) for place in range(side.first, side.last + 1)]
    return np.array(softmax(distances, rate))


SIDES = {
    "all": ([3, 0, 40, 1], (0, 79), HALF),
    "within a cell": ([3, 0, 40, 1], (43, 57), Fraction(1, 3)),
    "from within": ([3, 0, 40, 1], (5, 51), Fraction(4, 5)),
    "empty": ([0, 0, 0, 0], (7, 70), HALF),
    "minimum": ([0, 2, 5, 3], (10, 79), Fraction(0)),
    "maximum": ([2, 5, 3, 0], (0, 66), Fraction(1)),
    "on an edge": ([4, 0, 0, 4], (0, 79), HALF),
    "one place": ([4, 1, 1, 4], (30, 30), HALF),
}


@pytest.mark.slow
@pytest.mark.parametrize("rate", [Fraction(1, 5), Fraction(3)])
@pytest.mark.parametrize("name", SIDES)
def test_places_follow_their_law(name, rate):
    counts, (first, last), q = SIDES[name]
    spread = TieSpread(np.array(counts), np.cumsum(counts), 20)
    low, high = Fraction(0) if first == 0 else spread.mass(first), spread.mass(last)
    side = Side(first, last, low, Fraction(sum(counts)) if last == 79 else high)
    draws = [choose_place(spread, side, side.target(q), rate, SYSTEM) - first for _ in range(1500)]
    assert p_value(np.bincount(draws, minlength=last - first + 1), exact_places(spread, side, q, rate)) > ALPHA


@pytest.mark.slow
def test_cells_follow_their_law():
    m = Quantiles("3/2", at=["1/3"], cells=6)
    for counts in ([2, 1, 3, 1, 2, 2], [0, 0, 9, 0, 0, 0], [0] * 6):
        draws = [m(counts)[0] for _ in range(1500)]
        law = m.outcomes(counts)
        assert p_value(np.bincount(draws, minlength=6), [law[(i,)] for i in range(6)]) > ALPHA
    spread = TieSpread(np.array([5, 9, 1]), np.cumsum([5, 9, 1]), 10)
    side = Side(12, 17, spread.mass(12), spread.mass(17))
    assert choose_cell(spread, side, side.target(HALF), Fraction(1), SYSTEM) == 1


@pytest.mark.slow
def test_draws_follow_the_law():
    m, counts = Quantiles(3, at=("1/2", "3/4"), cells=5, ties=6), [2, 5, 1, 3, 4]
    law, draws = m.outcomes(counts), [m(counts) for _ in range(3000)]
    assert p_value([draws.count(y) for y in law], list(law.values())) > ALPHA
    other = replace(m, epsilon=6).outcomes(counts)
    assert p_value([draws.count(y) for y in law], [other[y] for y in law]) < ALPHA


def test_large_tables_and_awkward_numbers():
    m = Quantiles("0.3", at=("0.123456789012345678", "0.9"), cells=1000)
    low, high = m(np.full(1000, 10**9))
    assert abs(low - 123) <= 1
    assert abs(high - 900) <= 1
    assert Quantiles(1000, at=("1/4", "3/4"), cells=3)([10**18, 0, 10**18 - 1]) == (0, 2)
    assert len(Quantiles("1e-9", cells=10)(np.arange(10))) == 9


def test_many_histograms():
    m = Quantiles(100, at=("1/4", "3/4"), cells=4)
    assert m.release([[99, 0, 0, 99], [0, 99, 0, 0]]).tolist() == [[0, 3], [1, 1]]
    assert m.release([0, 99, 0, 0]).tolist() == [[1, 1]]


# What to expect


@pytest.mark.parametrize("m", SMALL[:4] + SHIFTED[:4], ids=repr)
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_rank_errors_stay_within_the_interval(m, level):
    for table in tables(m.cells, m.ties):
        counts = histogram(table, m.cells)
        within = math.fsum(p for y, p in m.outcomes(counts).items() if m.error(y, counts) <= m.interval(level))
        assert within >= level - 1e-12


@pytest.mark.slow
def test_where_values_lie_evenly_ranks_err_like_sums_of_laplace_noise():
    """The error of each quantile, of a table with one value in each of 1,000 cells, in standard deviations."""
    m = Quantiles(2, at=("1/10", "1/2", "3/5", "9/10"), cells=1000, shift=(-30, 20, 0, 50))
    target = np.array([q * m.cells + shift for q, shift in zip(m.at, m.shift, strict=True)], float)
    errors = m.release(np.ones((2000, m.cells), np.int64)) + 0.5 - target
    variance = 2 * (m.scales() ** 2).sum(axis=1)
    size = 9 / math.sqrt(len(errors))  # nine standard deviations; a Laplace noise has a kurtosis of 6: p < 1e-12
    assert np.abs(errors.mean(axis=0) / np.sqrt(variance)).max() < size
    assert np.abs(errors.var(axis=0) / variance - 1).max() < size * math.sqrt(5)
    inherited = np.cov(errors.T) / (2 * m.scales() @ m.scales().T)
    assert inherited[1, 2] == pytest.approx(1, abs=size * math.sqrt(5))


def test_errors_are_distances_of_ranks():
    m = Quantiles(1, at=("1/4", "3/4"), cells=4)
    assert m.error((0, 2), [1, 2, 3, 2]) == 1  # the quarter is rank 2 of 8, and cell 0 has up to 1
    assert m.error((1, 2), [1, 2, 3, 2]) == 0
    assert m.error((0, 0), [1, 2, 3, 2]) == 5
    assert replace(m, shift=(-1, 2)).error((0, 2), [1, 2, 3, 2]) == 2  # ranks 1 and 8, and cell 2 has up to 6
    for level in (0, 1, math.nan):
        with pytest.raises(InputError, match="level"):
            m.interval(level)


# Calibration


epsilons = st.fractions("1/100", 20, max_denominator=1000)
relations = st.sampled_from(nz.Neighbours)
promises = st.one_of(
    st.builds(nz.Pure, epsilons, neighbours=relations),
    st.builds(nz.Approx, epsilons, st.fractions("1/1000000", "1/10", max_denominator=10**6), neighbours=relations),
    st.builds(nz.ZCDP, epsilons, neighbours=relations),
)


@pytest.mark.slow
@given(promises, st.integers(1, 9), st.integers(1, 20))
def test_what_is_asked_for_is_kept_and_not_wasted(promise, rows, count):
    at = [Fraction(i + 1, count + 1) for i in range(count)]
    size = nz.sensitivity.histogram(neighbours=promise.neighbours).scaled(rows)
    m = Quantiles.calibrated(promise, size, at=at, cells=50)
    assert m.guarantee(size) <= promise
    more = replace(m, epsilon=m.epsilon * Fraction(1001, 1000)).guarantee(size)
    assert isinstance(promise, nz.Approx) or not more <= promise


def test_relations_must_agree():
    with pytest.raises(PrivacyError):
        Quantiles.calibrated(nz.Pure(1, neighbours=ADD_REMOVE), nz.sensitivity.histogram(neighbours=REPLACE), cells=5)


# Refusals


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 0}, {"epsilon": math.nan}, {"cells": 1}, {"cells": "9"}, {"cells": 2**22}, {"ties": 0},
        {"ties": 2**41}, {"at": ()}, {"at": "1/2"}, {"at": 0.5}, {"at": ["1/2", "1/3"]}, {"at": ["1/2", 0.5]},
        {"at": ["3/2"]}, {"at": [-1]}, {"at": [None]}, {"shift": [1, 2]}, {"shift": ()}, {"shift": "x"},
        {"shift": math.inf},
    ],
    ids=str,
)  # fmt: skip
def test_bad_parameters_are_refused(options):
    with pytest.raises(InputError) as error:
        Quantiles(**{"epsilon": 1, "cells": 9, **options})
    assert str(error.value).endswith(".")


BAD = [
    None,
    "",
    "123",
    True,
    math.nan,
    [],
    [1, 2],
    [1, 2, -3],
    [1.0, 2.0, 3.0],
    [1, 2, math.nan],
    [[1, 2, 3]],
    [2**62, 0, 0],
]


@pytest.mark.parametrize("counts", BAD, ids=str)
def test_bad_counts_are_refused_before_anything_is_drawn(counts):
    with pytest.raises(InputError) as error:
        Quantiles(1, cells=3)(counts, Script())
    assert str(error.value).endswith(".")
    assert ". " not in str(error.value)


def test_laws_of_large_tables_are_refused():
    with pytest.raises(InputError, match="enumerated"):
        Quantiles(1, cells=100).outcomes([1] * 100)


# From values to cells


def test_values_go_to_the_nearest_cell():
    grid, rng = Grid((-3, "4.5"), cells=16), np.random.default_rng()
    values = rng.normal(0, 3, 5000)
    values[::50] = math.nan
    values[1], values[2] = math.inf, -math.inf
    cells = [round(15 * (min(max(v, -3), 4.5) + 3) / 7.5) for v in values if not math.isnan(v)]
    assert grid.count(values).tolist() == np.bincount(cells, minlength=16).tolist()
    assert grid.count(values.astype(np.float32)).sum() == 4900
    assert grid.count([1, 2, 2]).sum() == 3
    assert grid.count([]).tolist() == [0] * 16
    assert grid.values([0, 15]) == (-3.0, 4.5)
    assert grid.count(grid.values(range(16))).tolist() == [1] * 16


def test_large_values_do_not_overflow():
    grid = Grid(("-1e300", "1e300"), cells=3)
    assert grid.count([1e308, -1e308, 0.0, 4e299, 6e299]).tolist() == [1, 2, 2]


def test_blocks_are_counted_together():
    values = np.repeat([0.0, 1.0, math.nan], [150_000, 60_001, 5])
    assert Grid((0, 1), cells=2).count(values).tolist() == [150_000, 60_001]


@pytest.mark.parametrize("bounds", [None, 3, (1,), (1, 1), (2, 1), (0, math.inf), (math.nan, 1), "ab"], ids=str)
def test_bad_bounds_are_refused(bounds):
    with pytest.raises(InputError):
        Grid(bounds, cells=5)


@pytest.mark.parametrize("values", [None, 3, "abc", ["a"], [None], [[1, 2]], [[1], [2, 3]], [True], [1j]], ids=str)
def test_bad_values_are_refused(values):
    with pytest.raises(InputError):
        Grid((0, 1), cells=5).count(values)


def test_deciles_from_values():
    values = np.random.default_rng().normal(size=100_000)
    grid = Grid((-5, 5), cells=4096)
    found = grid.values(Quantiles(2, cells=4096)(grid.count(values)))
    assert found == pytest.approx(np.quantile(values, np.arange(1, 10) / 10), abs=0.02)
