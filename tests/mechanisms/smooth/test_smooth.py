"""Smooth sensitivity: its theorem on all small tables, its sampler, the fallacy of local sensitivity, its refusals."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from tests.goodness import ALPHA, p_value
from tests.mechanisms.smooth.test_smooth_statistics import graphs, neighbours, tables
from tests.tapes import Script

import noisette as nz
from noisette.audit.divergence import hockey_stick, largest_loss, renyi
from noisette.audit.sampled import epsilon_lower_bound
from noisette.errors import InputError, PrivacyError
from noisette.exact.random import SYSTEM
from noisette.mechanisms.smooth.order import Order
from noisette.mechanisms.smooth.smooth import Smooth
from noisette.mechanisms.smooth.statistic import Fall
from noisette.mechanisms.smooth.triangles import TriangleCount
from noisette.mechanisms.smooth.trimmed import Trimmed, TrimmedAverage

ADD_REMOVE, REPLACE = nz.Neighbours
MEDIAN = Order("1/2", 0, 6, neighbours=REPLACE)


@pytest.mark.parametrize("people", [1, 2, 3])
def test_a_group_takes_the_delta_of_a_group(people):
    m = Smooth(1, "1/100", statistic=MEDIAN, beta="1/10", noise="laplace", span=(-80, 86))
    known = m.guarantee(people)
    assert known.epsilon == people
    assert float(known.delta) == pytest.approx(sum(math.exp(i) for i in range(people)) / 100)


def test_noise_goes_both_ways():
    m = Smooth(1, statistic=MEDIAN, beta="1/10", span=(-120, 126))
    drawn = np.array([m([3] * 9) for _ in range(80)])
    assert drawn.min() < 3 < drawn.max()  # fails with p < 1e-12: each side has more than a third of the draws


def laws(m, world):
    return {x: np.array(list(m.outcomes(list(x)).values())) for x in world}


def worst(m, world, around, measure):
    """The largest divergence of all neighbours in a world."""
    known = laws(m, world)
    return max(measure(known[x], known[y]) for x in world for y in around(x) if y in known)


def replaced(x):
    return neighbours(x, REPLACE, 6)


# The theorem


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("noise", ["cauchy", "student"])
@pytest.mark.parametrize("beta", ["1/10", "1/4", "3/10"])
def test_all_pairs_of_small_tables_keep_epsilon(noise, beta):
    m = Smooth(1, statistic=MEDIAN, beta=beta, noise=noise, span=(-150, 156))
    assert 0.6 < worst(m, tables(3, 6), replaced, largest_loss) <= 1 + 1e-9


def test_all_pairs_of_small_tables_keep_epsilon_if_records_come_and_go():
    m = Smooth(1, statistic=Order("1/2", 0, 6), beta="1/4", noise="cauchy", span=(-150, 156))
    world = [x for n in range(4) for x in tables(n, 6)]
    assert 0.6 < worst(m, world, lambda x: neighbours(x, ADD_REMOVE, 6), largest_loss) <= 1 + 1e-9


@pytest.mark.slow
def test_all_pairs_of_small_tables_keep_epsilon_and_delta():
    m = Smooth(1, "1/100", statistic=MEDIAN, beta="1/10", noise="laplace", span=(-150, 156))
    delta = worst(m, tables(3, 6), replaced, lambda P, Q: hockey_stick(P, Q, 1.0))
    assert 0.005 < delta <= 0.01
    assert worst(m, tables(3, 6), replaced, largest_loss) > 1.01  # Laplace noise has no epsilon of its own


def test_all_pairs_of_graphs_keep_epsilon():
    m, (world, _, around) = Smooth(1, statistic=TriangleCount(4), beta="1/5"), graphs(4)
    known = {g: np.array(list(m.outcomes(sorted(g)).values())) for g in world}
    assert max(largest_loss(known[g], known[h]) for g in world for h in around(g)) <= 1 + 1e-9


def test_trimmed_sums_keep_epsilon():
    m = Smooth(1, statistic=Trimmed(4, 0, 3, trim=1), beta="1/8", span=(-60, 66))
    assert 0.5 < worst(m, tables(4), lambda x: neighbours(x, REPLACE), largest_loss) <= 1 + 1e-9


def test_trimmed_means_keep_epsilon_if_records_come_and_go():
    m = Smooth(1, statistic=TrimmedAverage(0, 3, trim=1, parts=4), beta="1/8", span=(-100, 112))
    world = [x for n in range(7) for x in tables(n)]
    assert 0.6 < worst(m, world, lambda x: neighbours(x, ADD_REMOVE), largest_loss) <= 1 + 1e-9


def rho(P, Q):
    """The largest Rényi divergence, divided by its order."""
    return max(renyi(P, Q, a) / a for a in (1.01, 1.5, 3, 8, 30))


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["1/4", 1, 3])
@pytest.mark.parametrize("part", ["1/20", "1/4", "3/4"])
def test_all_pairs_of_small_tables_keep_rho(epsilon, part):
    e = Fraction(epsilon)
    m = Smooth(e, statistic=MEDIAN, beta=e * Fraction(part), noise="log-normal", span=(-150, 156))
    assert m.guarantee() == nz.ZCDP(e**2 / 2, neighbours=REPLACE)
    assert 0.1 < worst(m, tables(3, 6), replaced, rho) / (e**2 / 2) <= 1 + 1e-9


@pytest.mark.slow
def test_all_pairs_of_small_tables_keep_rho_if_records_come_and_go():
    m = Smooth(1, statistic=Order("1/2", 0, 6), beta="1/4", noise="log-normal", span=(-150, 156))
    world = [x for n in range(4) for x in tables(n, 6)]
    assert 0.2 < worst(m, world, lambda x: neighbours(x, ADD_REMOVE, 6), rho) <= 0.5 * (1 + 1e-9)


@pytest.mark.parametrize("noise", ["cauchy", "student"])
def test_on_a_wide_span_no_smaller_epsilon_holds(noise):
    m = Smooth(1, statistic=Order("1/2", 0, 100), beta="1/4", noise=noise, span=(-1000, 1100))
    known = [[np.array(list(m.outcomes(x).values())) for x in pair[:2]] for pair in m.pairs()]
    assert 0.97 < max(largest_loss(*both) for both in known) <= 1


def test_on_a_wide_span_no_smaller_delta_holds():
    m = Smooth(1, "1/100", statistic=Order("1/2", 0, 1000), beta="1/10", noise="laplace", span=(-20_000, 21_000))
    known = [[np.array(list(m.outcomes(x).values())) for x in pair[:2]] for pair in m.pairs()]
    assert 0.008 < max(hockey_stick(*both, 1.0) for both in known) <= 0.01


class Twice(Smooth):
    """A broken twin: half of the noise."""

    @property
    def share(self):
        return 2 * super().share


class OffByOne(Smooth):
    """A broken twin: gaps of k changes are taken for gaps of k + 1 (erratum E14)."""

    def _centre(self, x):
        value, steps = super()._centre(x)
        return value, steps - self._parts


class Local(Smooth):
    """The fallacy: noise that is scaled to the local sensitivity of the table at hand."""

    def _centre(self, x):
        table = self.statistic.read(x)
        m = (len(table) - 1) // 2
        gap = int(max(table[m] - table[m - 1], table[m + 1] - table[m]))
        return int(table[m]), round(math.log(max(gap, 1e-9)) / float(self._step))


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("twin", [Twice, OffByOne, Local])
def test_broken_twins_are_convicted(twin):
    m = Smooth(1, statistic=MEDIAN, beta="1/10", span=(-150, 156))
    broken = object.__new__(twin)
    vars(broken).update({name: value for name, value in vars(m).items() if name != "share"})
    assert worst(broken, tables(3, 6), replaced, largest_loss) > 1.05
    assert worst(m, tables(3, 6), replaced, largest_loss) <= 1 + 1e-9


class Steeper(Smooth):
    """A broken twin: its sensitivity falls four times as fast as it says."""

    def _centre(self, x):
        table = self.statistic.read(x)
        gap, changes = self.statistic.smooth(table, 4 * self.beta)
        return self.statistic.value(table), round(math.log(gap) / float(self._step)) - 4 * changes * self._parts


@pytest.mark.slow
@pytest.mark.parametrize("twin", [Twice, Steeper, Local])
def test_broken_twins_of_log_normal_noise_are_convicted(twin):
    m = Smooth("1/5", statistic=MEDIAN, beta="1/10", noise="log-normal", span=(-150, 156))
    broken = object.__new__(twin)
    vars(broken).update({name: value for name, value in vars(m).items() if name != "share"})
    assert worst(broken, tables(3, 6), replaced, rho) > 1.05 * 0.02
    assert worst(m, tables(3, 6), replaced, rho) <= 0.02 * (1 + 1e-9)


@pytest.mark.slow
def test_local_sensitivity_is_convicted_by_an_audit():
    """Two neighbours, the same answer 0: nobody moves the one, and one record moves the other by 1000."""
    x, y = [0, 0, 0, 0, 1000], [0, 0, 0, 1000, 1000]

    def fallacy(table):
        a, b, c = sorted(table)[1:4]
        return b + nz.Geometric(max(b - a, c - b))(0) if max(b - a, c - b) else b

    assert epsilon_lower_bound(fallacy, x, y, runs=2000, confidence=1 - 1e-9) > 3
    m = Smooth(1, statistic=Order("1/2", 0, 1000, neighbours=REPLACE), beta="1/10")
    assert epsilon_lower_bound(m, x, y, runs=1000, confidence=1 - 1e-9) <= 1


@pytest.mark.slow
def test_rounding_the_sensitivity_up_costs_nothing():
    """ln S, rounded up to parts of beta, still differs by beta at most; rounded to other parts it would not."""
    for beta in (Fraction(1, 10), Fraction(3, 7)):
        m = Smooth(2, statistic=MEDIAN, beta=beta, noise="cauchy")
        steps = {x: m._centre(list(x))[1] for x in tables(4, 6)}
        for x in steps:
            fall = MEDIAN.smooth(MEDIAN.read(list(x)), beta)
            true = fall.gap * math.exp(-beta * fall.changes)
            assert true * (1 - 1e-12) <= math.exp(m._step * steps[x]) <= true * math.exp(1 / 64) * (1 + 1e-12)
            assert all(abs(steps[x] - steps[y]) <= m._parts for y in replaced(x) if y in steps)
        assert m._step * m._parts == beta


# The sampler


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["cauchy", "student", "laplace", "log-normal"])
@pytest.mark.parametrize("x", [[0, 3, 4, 6, 6], [5] * 9, [0] * 40], ids=["spread", "even", "sure"])
def test_draws_follow_the_law(noise, x):
    m = Smooth(1, "1/50" if noise == "laplace" else 0, statistic=MEDIAN, beta="1/10", noise=noise, span=(-20, 30))
    law = m.outcomes(x)
    assert math.fsum(law.values()) == pytest.approx(1, abs=1e-12)
    draws = [m(x) for _ in range(3000)]
    assert all(type(y) is int for y in draws)
    counts, chances = np.bincount(np.array(draws) + 20, minlength=51), np.array(list(law.values()))
    assert not counts[chances < 1e-15].any()
    assert p_value(counts[chances >= 1e-15], chances[chances >= 1e-15] / chances.sum()) > ALPHA


@pytest.mark.parametrize("noise", ["cauchy", "student", "laplace"])
@pytest.mark.parametrize("w", [1, 2, 17])
def test_draws_turn_where_the_law_says(noise, w):
    """128 bits just below and above P(|Z| > (w - 1/2) s/S) decide between w and w - 1."""
    m = Smooth(1, "1/50" if noise == "laplace" else 0, statistic=MEDIAN, beta="1/10", noise=noise, span=(-90, 96))
    steps = 37
    with mpmath.workdps(80):
        scale = mpmath.exp(mpmath.mpf(37) / 70) * m.share.denominator / m.share.numerator
        z = (mpmath.mpf(w) - mpmath.mpf(1) / 2) / scale
        t = z / mpmath.sqrt(3)
        p = {
            "cauchy": 1 - 2 * mpmath.atan(z) / mpmath.pi,
            "student": 1 - 2 * (t / (1 + t**2) + mpmath.atan(t)) / mpmath.pi,
            "laplace": mpmath.exp(-z),
        }[noise]
        turn = int(mpmath.floor(mpmath.ldexp(p, 192)))
    words = [(turn + move >> shift) & (2**64 - 1) for move in (-2, 2) for shift in (128, 64, 0)]
    assert m._step == Fraction(1, 70)
    assert m._drawn(steps, 90, Script(*words[:3], 0, 0)) == w
    assert m._drawn(steps, 90, Script(*words[3:], 0, 0)) == w - 1


def test_a_span_holds_what_is_released():
    m = Smooth(1, statistic=MEDIAN, beta="1/10", noise="cauchy")
    draws = {m([0, 3, 6]) for _ in range(300)}
    assert draws <= set(range(7))
    assert {0, 6} <= draws
    for noise in ("student", "log-normal"):
        wide = Smooth(1, statistic=Order("1/2", 0, 2**50), beta="1/10", noise=noise)
        assert 0 <= wide([2**49] * 100) <= 2**50
        assert wide([2**49] * 5000) == 2**49  # S is 2^49 e^-250


# What to expect


@pytest.mark.parametrize("noise", ["student", "log-normal"])
def test_errors_are_as_stated(noise):
    m = Smooth(1, statistic=MEDIAN, beta="1/10", noise=noise, span=(-100, 106))
    for x, level in itertools.product([(0, 0, 6), (0, 3, 6), (3, 3, 3, 3, 3, 3, 3)], (0.5, 0.9, 0.99)):
        law, t = m.outcomes(list(x)), m.half_width(list(x), level)
        inside = math.fsum(p for y, p in law.items() if m.error(y, list(x)) <= t)
        assert inside >= level - 1e-12
        assert math.fsum(p for y, p in law.items() if m.error(y, list(x)) <= t - 1) < level
        assert t <= m.interval(level)


@pytest.mark.slow
def test_a_beta_is_chosen_for_a_public_table():
    like, median = list(range(0, 1000, 5)), Order("1/2", 0, 1000, neighbours=REPLACE)
    for promise in (nz.Pure(1), nz.Approx(1, "1e-6"), nz.ZCDP("1/2")):
        chosen, usual = (Smooth.calibrated(promise, statistic=median, like=each) for each in (like, None))
        assert chosen.half_width(like) <= usual.half_width(like)
        assert chosen.guarantee() <= promise
        assert chosen.guarantee().neighbours is REPLACE


@pytest.mark.slow
def test_zcdp_is_kept_by_log_normal_noise_which_errs_less_than_what_a_pure_guarantee_implies():
    like, median = list(range(0, 1000, 5)), Order("1/2", 0, 1000, neighbours=REPLACE)
    for given in ("1/32", "1/8", "1/2"):
        m = Smooth.calibrated(nz.ZCDP(given), statistic=median, like=like)
        pure = Smooth.calibrated(nz.ZCDP(given), statistic=median, like=like, noise="student")
        assert m.noise == "log-normal"
        assert m.guarantee() <= nz.ZCDP(given)
        assert m.guarantee().rho >= Fraction(given) * (1 - Fraction(1, 10**9))
        assert m.half_width(like) < 0.7 * pure.half_width(like)


def test_log_normal_noise_protects_groups_and_keeps_no_epsilon():
    m = Smooth.calibrated(nz.ZCDP("1/2"), 2, statistic=MEDIAN)
    assert m.guarantee(2) == nz.ZCDP("1/2", neighbours=REPLACE)
    assert m.guarantee(1) == nz.ZCDP("1/8", neighbours=REPLACE)
    for promise in (nz.Pure(1), nz.Approx(1, "1e-6")):
        with pytest.raises(InputError, match=r"ask for ZCDP\(rho\)"):
            Smooth.calibrated(promise, statistic=MEDIAN, noise="log-normal")


def test_groups_and_relations():
    m = Smooth.calibrated(nz.Pure(1), 4, statistic=MEDIAN)
    assert m.guarantee(4) == nz.Pure(1, neighbours=REPLACE)
    assert m.guarantee(nz.sensitivity.histogram(neighbours=REPLACE)) == m.guarantee(1)
    laplace = Smooth.calibrated(nz.Approx(1, "1e-3"), 3, statistic=MEDIAN)
    assert laplace.guarantee(3) <= nz.Approx(1, "1e-3", neighbours=REPLACE)
    with pytest.raises(PrivacyError):
        m.guarantee(nz.sensitivity.histogram())
    with pytest.raises(PrivacyError):
        Smooth.calibrated(nz.Pure(1, neighbours=ADD_REMOVE), statistic=MEDIAN)


@pytest.mark.parametrize("options", [
    {"epsilon": 0}, {"epsilon": "x"}, {"beta": 0}, {"beta": 5}, {"noise": "gauss"}, {"delta": "1e-6"}, {"span": (0, 5)},
    {"span": 7}, {"noise": "laplace"}, {"noise": "laplace", "delta": 1}, {"span": (-1.5, 9)},
    {"noise": "log-normal", "delta": "1e-6"}, {"noise": "log-normal", "beta": 5},
])  # fmt: skip
def test_bad_parameters_are_refused(options):
    with pytest.raises(InputError):
        Smooth(**{"epsilon": 1, "statistic": MEDIAN, "beta": "1/10", **options})


@pytest.mark.parametrize("bad", [None, math.nan, "a", [1.5], [True], [[1]], []], ids=repr)
def test_bad_tables_are_refused_before_any_coin_is_drawn(bad):
    with pytest.raises(InputError):
        Smooth(1, statistic=MEDIAN, beta="1/10")(bad, Script())


def test_what_cannot_be_written_out_is_refused():
    m = Smooth(1, statistic=Order("1/2", 0, 10**6), beta="1/10")
    with pytest.raises(InputError, match="smaller span"):
        m.outcomes([1, 2, 3])
    with pytest.raises(InputError, match="level"):
        m.interval(1)
    assert isinstance(replace(m, epsilon=2)([1, 2, 3], SYSTEM), int)
    assert MEDIAN.smooth(MEDIAN.read([0, 0, 6]), Fraction(1, 10)) == Fall(6, 0)
