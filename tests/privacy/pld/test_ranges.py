"""Bounded ranges: their sums hold against every adaptive adversary, and are nearly tight."""

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from mpmath import mp
from scipy.stats import norm

import noisette as nz
from noisette.errors import InputError
from noisette.mechanisms import Exponential, GumbelTop, InverseSensitivity, NearestRadius, Quantile, Quantiles
from noisette.mechanisms.smooth.order import Order
from noisette.privacy import Filter, poisson
from noisette.privacy.charges import charge_of, square_of_pure
from noisette.privacy.guarantee import once
from noisette.privacy.pld.loss import LatticeLaplace, Normal, Response
from noisette.privacy.pld.ranges import Adaptive, BoundedRange, fixed_delta
from noisette.privacy.pld.tight import tight_delta
from noisette.privacy.theorems import bounded_range, bounded_range_fixed

DELTA = Fraction(1, 10**6)


def most(menu: tuple[tuple[int, int, int], ...], unit: float, x: int) -> float:
    """delta(x) of the best adaptive strategy; `menu` says (epsilon, range, how many), everything in units.

    In each step the adversary takes what is left of the menu, in any order, and for it a law of two losses, t and
    t - range. Such strategies exist, so this is never above the truth.
    """

    @cache
    def value(at: int, left: tuple[int, ...]) -> float:
        best = max(0.0, -math.expm1(at * unit))
        for i, (e, r, _) in enumerate(menu):
            if left[i]:
                then = (*left[:i], left[i] - 1, *left[i + 1 :])
                for t in range(r - e, e + 1):
                    p = math.expm1((t - r) * unit) / math.expm1(-r * unit)
                    best = max(best, p * value(at - t, then) + (1 - p) * value(at - t + r, then))
        return best

    return value(x, tuple(count for *_, count in menu))


GAMES = [
    (((8, 8, 4),), Fraction(1, 16)),
    (((6, 6, 6),), Fraction(1, 60)),
    (((4, 6, 5),), Fraction(1, 4)),
    (((8, 8, 3), (4, 8, 2)), Fraction(1, 16)),
    (((6, 6, 3), (3, 3, 3)), Fraction(1, 12)),
    (((4, 5, 2), (3, 4, 2), (2, 2, 2)), Fraction(1, 8)),
]


@pytest.mark.parametrize(("menu", "unit"), GAMES)
def test_no_adaptive_strategy_beats_a_sum(menu, unit):
    """In any order, of one kind or of several; and nine tenths of each range are beaten."""
    total = sum(e * count for e, _, count in menu)

    def known(share: Fraction, x: int) -> float:
        parts = tuple((BoundedRange(share * e * unit, share * r * unit), count) for e, r, count in menu)
        return tight_delta(parts, Fraction(0), x * unit)

    beaten = 0
    for x in range(0, 6 * total // 10, max(1, total // 5)):
        truth = most(menu, float(unit), x)
        assert truth <= known(Fraction(1), x) <= 1.7 * truth
        beaten += known(Fraction(9, 10), x) < truth
    assert beaten


def test_mixed_sums_hold_against_strategies():
    """Ranges beside randomized response, which the adversary may put anywhere between them."""
    unit, menu = Fraction(1, 16), ((8, 8, 3), (8, 16, 2))
    parts = ((BoundedRange(8 * unit), 3), (Response(8 * unit), 2))
    for x in (0, 5, 13, 21):
        truth = most(menu, float(unit), x)
        assert truth <= tight_delta(parts, Fraction(0), x * unit) <= 1.05 * truth


def test_one_pair_is_the_worst_of_two_losses():
    for e, r in ((1.0, 1.0), (1.0, 1.4), (0.3, 0.6), (5.0, 6.0)):
        loss, t = BoundedRange(Fraction(e), Fraction(r)), np.linspace(r - e, e, 20_001)
        p = np.expm1(t - r) / math.expm1(-r)
        for x in np.linspace(-e, e, 9):
            both = p * np.maximum(0, -np.expm1(x - t)) + (1 - p) * np.maximum(0, -np.expm1(x - t + r))
            P, Q = loss.above(np.array([x]))
            assert loss.delta_at(x) == pytest.approx(both.max(), abs=1e-8)
            assert float((P - math.exp(x) * Q)[0]) == pytest.approx(loss.delta_at(x), abs=1e-12)
    assert BoundedRange(Fraction(1), Fraction(2)).delta_at(0.5) == pytest.approx(
        tight_delta(((Response(Fraction(1)), 1),), Fraction(0), Fraction(1, 2))
    )


@pytest.mark.parametrize(
    ("e", "r", "count"), [(0.1, 0.1, 25), (2.0, 3.0, 4), (1e-5, 1e-5, 32), (0.5, 1.0, 6), (20.0, 20.0, 7)]
)
def test_a_block_is_a_pair_of_laws(e, r, count):
    """Its atoms have mass one and the stated curve, forward and, nearly, in reverse; none lies beyond count epsilon."""
    block = Adaptive(BoundedRange(Fraction(e), Fraction(r)), count)
    losses, p = block.atoms()
    q = p * np.exp(-losses)
    assert p.sum() == pytest.approx(1, abs=1e-6)
    for x in (-e, 0.0, e, 0.8 * count * e):
        found = math.fsum(np.maximum(0, p - math.exp(x) * q))
        assert found == pytest.approx(block.delta_at(x), rel=1e-6)
        if count * e < 30:  # else the masses of low losses are below a float's precision
            assert math.fsum(np.maximum(0, q - math.exp(x) * p)) == pytest.approx(found, rel=0.02, abs=1e-10)
    assert block.delta_at(count * e + r) == 0


@pytest.mark.slow
def test_long_sums_and_short_ones_agree():
    """Blocks of a long sum cost at most 2.5 % beside the optimum for fixed choices, below which none can be."""
    for e, k in (("1/10", 33), ("1/10", 100), ("1", 64), ("1/100", 5000)):
        fixed, adaptive = bounded_range_fixed(e, k, DELTA), bounded_range(e, k, DELTA)
        assert fixed < adaptive < 1.025 * fixed
        assert adaptive < nz.ZCDP(k * Fraction(e) ** 2 / 8).epsilon_at(DELTA)


@pytest.mark.slow
def test_the_optimum_for_fixed_choices_is_that_of_all_choices_of_t():
    e, grid = 0.8, np.linspace(0, 0.8, 33)
    p = np.expm1(grid - e) / math.expm1(-e)
    for x in (0.0, 0.5, 1.3):
        best = 0.0
        for i, j, k in itertools.combinations_with_replacement(range(33), 3):
            total = 0.0
            for lower in itertools.product((0, 1), repeat=3):
                mass = math.prod((1 - p[a]) if low else p[a] for a, low in zip((i, j, k), lower, strict=True))
                total += mass * max(0.0, -math.expm1(x - (grid[i] + grid[j] + grid[k] - e * sum(lower))))
            best = max(best, total)
        assert best * (1 - 1e-12) <= fixed_delta(Fraction("0.8"), 3, Fraction(x)) <= best * 1.01


def test_adaptive_choices_beat_the_optimum_for_fixed_ones():
    """Why no sum may use it: an adversary who sees outcomes has several per cent more."""
    unit = Fraction(1, 120)
    truth = most(((12, 12, 6),), float(unit), 36)
    assert (
        fixed_delta(Fraction(1, 10), 6, 36 * unit)
        < 0.94 * truth
        <= tight_delta(((BoundedRange(Fraction(1, 10)), 6),), Fraction(0), 36 * unit)
    )
    with pytest.raises(InputError, match="delta"):
        bounded_range_fixed(1, 3, 0)


def exponential(scores, scale):
    weights = np.exp(np.asarray(scores) / scale)
    return weights / weights.sum()


def test_exponential_mechanisms_that_depend_on_each_other():
    """All adaptive pairs of real exponential mechanisms of a few scores, enumerated: none is above the sum."""
    m = Exponential(1, candidates=3)
    promise, tables = m.guarantee(1) * 2, list(itertools.product((0, 2), (0, 3), (0,)))
    moves = list(itertools.product((-1, 1), repeat=3))
    pairs = [(exponential(t, 1), exponential(np.add(t, s), 1)) for t in tables for s in moves]
    for x in (0.0, 0.7, 1.6, 2.6):
        bound, best = promise.delta_at(Fraction(x)), 0.0
        for first in pairs:
            left = x - np.log(first[0] / first[1])
            then = [max(float(np.maximum(0, P - math.exp(y) * Q).sum()) for P, Q in pairs) for y in left]
            best = max(best, float(first[0] @ then))
        assert 0.2 * bound < best <= bound


# The sums that were loose

SUMS = {
    "exponential": Exponential.calibrated(nz.Pure("0.1"), candidates=10).guarantee(1),
    "quantile": Quantile("0.1", q=1, cells=10).guarantee(1),
    "median": Quantile("0.1", q="1/2", cells=1000).guarantee(1),
    "quantiles": Quantiles("0.1", at=("1/2",), cells=10).guarantee(1),
    "nearest": NearestRadius(20, k=2, columns=(0, 9), rows=(0, 9), place=(1, 2)).guarantee(1),
    "inverse sensitivity": InverseSensitivity(20, statistic=Order("1/2", 0, 20)).guarantee(1),
    "top": GumbelTop(20, candidates=9, k=1).guarantee(1),
}


@pytest.mark.parametrize("name", SUMS)
def test_a_sum_knows_the_range(name):
    """100 of 0.1 have an epsilon of 4.77 as plain epsilons, of 2.42 by their rho, and of 2.28 by their ranges."""
    one = SUMS[name]
    assert one.epsilon == Fraction(1, 10)
    epsilon = (one * 100).epsilon_at(DELTA)
    assert 2.246 < epsilon < (2.33 if name == "median" else 2.28)
    assert (nz.Pure("0.1") * 100).epsilon_at(DELTA) > 4.77
    assert (one * 100).delta_at(Fraction(epsilon)) <= float(DELTA) * (1 + 1e-6)


@pytest.mark.parametrize(
    "rest",
    [
        nz.Pure("0.3"),
        nz.Laplace(5).guarantee(1) * 3,
        nz.Gaussian(10).guarantee(1) * 4,
        nz.Approx("0.2", "1e-8"),
        nz.ZCDP("0.01"),
        poisson(nz.Pure(1), "0.1"),
    ],
)
def test_mixed_sums_use_the_best_way(rest):
    """Never above the pairs alone, and never above rho alone; less than what the ranges cost as plain epsilons."""
    one = SUMS["exponential"]
    plain = nz.Pure("0.1", neighbours=one.neighbours) * 100 + rest
    both = one * 100 + rest
    assert both.epsilon_at(DELTA) < 0.75 * plain.epsilon_at(DELTA)
    assert both.epsilon_at(DELTA) > (one * 100).epsilon_at(DELTA)
    if isinstance(rest, nz.ZCDP | nz.Pure):
        assert both.epsilon_at(DELTA) <= (nz.ZCDP(Fraction(1, 8)) + rest).epsilon_at(DELTA) * (1 + 1e-9)


def test_sums_do_not_depend_on_the_order():
    a, b, c = SUMS["exponential"] * 10, Exponential(7, candidates=3).guarantee(1) * 5, nz.Laplace(3).guarantee(1)
    assert (a + b + c).epsilon_at(DELTA) == (c + b + a).epsilon_at(DELTA) == (b + (c + a)).epsilon_at(DELTA)


@pytest.mark.parametrize("epsilon", ["1/10000000", "1/1000", "3", "40", "299", "1000", "1000000"])
@pytest.mark.parametrize("k", [1, 2, 1000])
def test_extreme_ranges_stay_within_what_stands(epsilon, k):
    one = nz.Pure(epsilon, losses=once(BoundedRange(Fraction(epsilon))))
    if k * one.epsilon <= 10**6:
        known = (one * k).epsilon_at(DELTA)
        assert 0 <= known <= (nz.Pure(epsilon) * k).epsilon_at(DELTA) * (1 + 1e-9)


# Filters


def test_the_odds_of_a_range_are_those_of_gaussian_noise_at_most():
    """Phi(Phi^-1(a) + mu) >= e^r a/(1 + (e^r - 1) a), touching at a = 1/(1 + e^(r/2)); a smaller mu does not do."""
    for r in (0.01, 0.5, 2.0, 9.0):
        mu, a = (
            math.sqrt(square_of_pure(Fraction(r) / 2)),
            np.append(np.geomspace(1e-12, 0.5, 400), 1 / (1 + math.exp(r / 2))),
        )
        power = math.exp(r) * a / (1 + math.expm1(r) * a)
        assert (norm.cdf(norm.ppf(a) + mu) >= power * (1 - 1e-12)).all()
        assert not (norm.cdf(norm.ppf(a) + 0.999 * mu) >= power).all()
        P, Q = BoundedRange(Fraction(r)).above(np.linspace(-r, r, 9)[1:-1])
        assert pytest.approx(math.exp(r) * Q / (1 + math.expm1(r) * Q)) == P


def test_a_filter_counts_ranges_by_their_rho_and_their_odds():
    one = SUMS["exponential"]
    charge = charge_of(one)
    assert (charge.epsilon, charge.rho) == (Fraction(1, 10), Fraction(1, 800))
    assert charge.square == square_of_pure(Fraction(1, 20))
    for rule, least in (("zcdp", 60), ("gaussian", 40)):
        f = Filter(nz.Approx(2, DELTA), reserve=0, rule=rule)
        admitted = next(k for k in itertools.count(1) if not f.allows(one, times=k + 1))
        assert least < admitted
        assert one * admitted <= nz.Approx(2, DELTA)  # the same composition, fixed in advance


@pytest.mark.slow
def test_a_static_sum_admits_at_least_what_a_filter_does():
    one = Exponential.calibrated(nz.Pure("0.05"), candidates=10).guarantee(1)
    budget = nz.Approx(1, DELTA)
    for rule in ("zcdp", "gaussian"):
        f = Filter(budget, reserve=0, rule=rule)
        k = next(k for k in itertools.count(1) if not f.allows(one, times=k + 1))
        assert one * k <= budget
        for other in (nz.Laplace(40).guarantee(1), nz.Gaussian(50).guarantee(1)):
            f = Filter(budget, rule=rule)
            f.charge(other)
            k = next(k for k in itertools.count(1) if not f.allows(one, times=k + 1))
            assert other + one * k <= budget


def test_other_losses_keep_their_charges():
    for loss in (LatticeLaplace(Fraction(1, 2), 4), Response(Fraction(1, 2))):
        assert charge_of(nz.Pure("1/2", losses=once(loss))).rho == Fraction(1, 8)
    assert charge_of(nz.ZCDP("1/8", losses=once(Normal(Fraction(1, 2))))).square == Fraction(1, 4)


@pytest.mark.parametrize("epsilon", ["0.03", "7", "577"])
@pytest.mark.parametrize("gap", ["1e-3", "1e-12", "1e-25"])
def test_a_single_range_has_its_closed_form_to_the_last_digits(epsilon, gap):
    """delta is about (gap/2)^2 there: floats of epsilon and of x hold nothing of a gap of 1e-25."""
    found = tight_delta(((BoundedRange(Fraction(epsilon)), 1),), Fraction(0), Fraction(epsilon) - Fraction(gap))
    with mp.workdps(400):
        r, x = mp.mpf(epsilon), mp.mpf(epsilon) - mp.mpf(gap)
        true = (mp.exp(r / 2) - mp.exp(x / 2)) ** 2 / (mp.exp(r) - 1)
        assert 1 <= mp.mpf(found) / true <= 1 + 2e-12


def test_a_delta_that_is_nearly_one_is_one():
    sure = nz.Approx(7, 1 - Fraction(1, 10**30))
    for more in (nz.Pure(1), nz.Approx(1, "1e-6"), nz.ZCDP(1), nz.Laplace(2).guarantee(1), nz.Gaussian(3).guarantee(1)):
        assert (sure + more).delta_at(1) == 1
        assert (sure + more).epsilon_at("1e-3") == math.inf
    assert (sure * 3).delta_at(2) == sure.delta_at(2) == 1
