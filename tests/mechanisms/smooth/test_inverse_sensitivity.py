"""Inverse sensitivity: its law by counting changes, its theorem on all small tables, its sampler, its refusals."""

import math
from fractions import Fraction

import numpy as np
import pytest
from tests.goodness import ALPHA, p_value
from tests.mechanisms.smooth.test_smooth_statistics import changes, graphs, neighbours, rank, tables
from tests.tapes import Script

import noisette as nz
from noisette.audit.divergence import largest_loss
from noisette.errors import InputError, PrivacyError
from noisette.mechanisms.quantiles.quantile import Quantile
from noisette.mechanisms.smooth.inverse_sensitivity import InverseSensitivity
from noisette.mechanisms.smooth.order import Order
from noisette.mechanisms.smooth.triangles import TriangleCount
from noisette.mechanisms.smooth.trimmed import Trimmed

ADD_REMOVE, REPLACE = nz.Neighbours
MEDIAN = Order("1/2", 0, 6, neighbours=REPLACE)


def chances(m, x):
    return np.array(list(m.outcomes(list(x)).values()))


def worst(m, world, around):
    known = {x: chances(m, sorted(x)) for x in world}
    return max(largest_loss(known[x], known[y]) for x in world for y in around(x) if y in known)


# The law


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("n", [1, 3, 4])
def test_the_law_counts_changes_by_search(n):
    m, world = InverseSensitivity("3/2", statistic=MEDIAN), tables(n, 6)
    true = changes(world, {x: rank(x, Fraction(1, 2)) for x in world}, lambda x: neighbours(x, REPLACE, 6))
    for x in world:
        weights = [math.exp(-true[x, y] / 1.5) for y in range(7)]
        assert chances(m, x) == pytest.approx(np.array(weights) / sum(weights), rel=1e-12)
        assert [m.error(y, list(x)) for y in range(7)] == [true[x, y] for y in range(7)]


@pytest.mark.parametrize("n", [1, 5, 9])
def test_for_an_odd_number_of_records_it_is_a_quantile_whose_best_cell_gains_half_a_rank(n):
    """D of Quantile is the number of changes less 1/2, and 0 for the median itself: that one is told more often."""
    draw = np.random.default_rng()
    for _ in range(20):
        x = draw.integers(0, 7, n)
        counts, m = np.bincount(x, minlength=7), InverseSensitivity(2, statistic=MEDIAN)
        upto = np.cumsum(counts)
        ranks = np.maximum(np.maximum(upto - counts - n / 2, n / 2 - upto), 0)
        weights = np.exp(-np.where(ranks > 0, ranks + 0.5, 0) / 2)
        assert chances(m, x) == pytest.approx(weights / weights.sum(), rel=1e-12)
        quantile = Quantile(1, q="1/2", cells=7, groups=1, neighbours=REPLACE)
        scaled = np.exp(-ranks * quantile.rate)
        assert quantile.pmf(range(7), counts) == pytest.approx(scaled / scaled.sum(), rel=1e-12)


# The theorem


@pytest.mark.slow
def test_all_pairs_of_small_tables_keep_epsilon():
    m = InverseSensitivity(2, statistic=MEDIAN)
    assert 0.5 < worst(m, tables(5, 6), lambda x: neighbours(x, REPLACE, 6)) <= 1 + 1e-12
    assert m.guarantee() == nz.Pure(1, neighbours=REPLACE)


@pytest.mark.parametrize("q", ["1/2", "1/4", 1])
def test_all_pairs_keep_epsilon_if_records_come_and_go(q):
    m, world = InverseSensitivity(2, statistic=Order(q, 0, 4)), [x for n in range(6) for x in tables(n, 4)]
    assert 0.5 < worst(m, world, lambda x: neighbours(x, ADD_REMOVE, 4)) <= 1 + 1e-12


@pytest.mark.slow
def test_all_pairs_of_sums_and_of_graphs_keep_epsilon():
    assert worst(InverseSensitivity(2, statistic=Trimmed(3, 0, 3)), tables(3), lambda x: neighbours(x, REPLACE)) <= 1
    world, _, around = graphs(5)
    assert 0.4 < worst(InverseSensitivity(2, statistic=TriangleCount(5)), world, around) <= 1 + 1e-12


def test_on_a_wide_span_no_smaller_epsilon_holds():
    m = InverseSensitivity(3, statistic=Order("1/2", 0, 400, neighbours=REPLACE))
    losses = [largest_loss(chances(m, x), chances(m, y)) for x, y, _ in m.pairs()]
    assert 0.99 < max(losses) / float(m.guarantee().epsilon) <= 1


class ByValue(InverseSensitivity):
    """A broken twin: the score is how far a point is from the answer, in values instead of changes."""

    def _pieces(self, x):
        table = self.statistic.read(x)
        off = np.abs(np.arange(7) - self.statistic.value(table))
        return np.ones(7, int), off


class Halved(InverseSensitivity):
    """A broken twin: only every change on one side counts, those on the other count twice."""

    def _pieces(self, x):
        sizes, distances = super()._pieces(x)
        after = np.arange(len(distances)) > int(np.argmin(distances))
        return sizes, np.where(after, 2 * distances, distances)


@pytest.mark.parametrize("twin", [ByValue, Halved])
def test_broken_twins_are_convicted(twin):
    assert worst(twin(2, statistic=MEDIAN), tables(3, 6), lambda x: neighbours(x, REPLACE, 6)) > 1.1


# The sampler

AWKWARD = [
    (InverseSensitivity(2, statistic=Order("1/2", 0, 20)), [3, 3, 9, 12, 20]),
    (InverseSensitivity("1/3", statistic=Order("1/2", 0, 20)), []),
    (InverseSensitivity(3, statistic=Trimmed(4, -3, 3)), [-3, 0, 1, 9]),
    (InverseSensitivity(2, statistic=TriangleCount(5)), [(0, 1), (1, 2), (0, 2), (2, 3)]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("m", "x"), AWKWARD, ids=["median", "empty", "sum", "graph"])
def test_draws_follow_the_law(m, x):
    low, high = m.statistic.span
    draws = np.array([m(x) for _ in range(4000)])
    law = np.array(list(m.outcomes(x).values()))
    assert law.sum() == pytest.approx(1, abs=1e-12)
    assert p_value(np.bincount(draws - low, minlength=high - low + 1), law) > ALPHA


def test_a_span_of_2_to_the_58_points():
    m = InverseSensitivity(2, statistic=Order("1/2", 0, 2**58))
    x = [2**57 + i for i in range(500)]
    assert abs(m(x) - 2**57 - 250) < 200
    assert m.half_width(x) < 30
    with pytest.raises(InputError, match="smaller span"):
        m.outcomes(x)


# What to expect


@pytest.mark.parametrize(("m", "x"), AWKWARD, ids=["median", "empty", "sum", "graph"])
def test_errors_are_as_stated(m, x):
    law, value = m.outcomes(x), m.statistic.value(m.statistic.read(x))
    for level in (0.5, 0.9, 0.99):
        t = m.half_width(x, level)
        assert math.fsum(p for y, p in law.items() if abs(y - value) <= t) >= level - 1e-12
        assert math.fsum(p for y, p in law.items() if abs(y - value) < t) < level
        assert math.fsum(p for y, p in law.items() if m.error(y, x) <= m.interval(level)) >= level


# Calibration and refusals


def test_what_is_asked_for_is_kept():
    for promise in (nz.Pure(1), nz.Approx(1, "1e-6"), nz.ZCDP("1/8")):
        for records in (1, 3):
            m = InverseSensitivity.calibrated(promise, records, statistic=MEDIAN)
            assert m.guarantee(records) <= promise
    assert InverseSensitivity.calibrated(nz.ZCDP("1/8"), statistic=MEDIAN).guarantee().epsilon == 1  # range 1
    assert InverseSensitivity(2, statistic=MEDIAN).guarantee(nz.sensitivity.histogram(neighbours=REPLACE)).epsilon == 1


def test_relations_do_not_mix():
    with pytest.raises(PrivacyError):
        InverseSensitivity(2, statistic=MEDIAN).guarantee(nz.sensitivity.histogram())
    with pytest.raises(PrivacyError):
        InverseSensitivity.calibrated(nz.Pure(1, neighbours=ADD_REMOVE), statistic=MEDIAN)


@pytest.mark.parametrize("bad", [None, math.nan, "a", [1.5], [True], [[1]], []], ids=repr)
def test_bad_tables_are_refused_before_any_coin_is_drawn(bad):
    with pytest.raises(InputError):
        InverseSensitivity(1, statistic=MEDIAN)(bad, Script())


def test_bad_parameters_are_refused():
    for make in (
        lambda: InverseSensitivity(0, statistic=MEDIAN),
        lambda: InverseSensitivity(1, statistic=Trimmed(5, 0, 9, trim=1)),
        lambda: InverseSensitivity.calibrated(nz.Pure(0), statistic=MEDIAN),
        lambda: InverseSensitivity.calibrated(nz.Pure(1), 0, statistic=MEDIAN),
        lambda: InverseSensitivity(1, statistic=MEDIAN).interval(1),
        lambda: InverseSensitivity(1, statistic=MEDIAN).half_width([1], 0),
    ):
        with pytest.raises(InputError):
            make()
