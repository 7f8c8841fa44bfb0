"""Truncated noise and weights: exact tails at the threshold, small worlds with all their neighbours, rare draws."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.goodness import ALPHA, p_value
from tests.mechanisms.partitions.test_threshold import NOISES, law
from tests.tapes import exp

from noisette.errors import InputError
from noisette.exact.random import SYSTEM
from noisette.laws import DiscreteLaplace
from noisette.mechanisms import Keep, Threshold
from noisette.mechanisms.partitions.bounded_laplace import BoundedLaplace, reaching, tail_up
from noisette.privacy import Approx, Neighbours
from noisette.privacy.sensitivity import Sensitivity

ADD_REMOVE, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE


# The law


@pytest.mark.parametrize(("scale", "reach"), [(3, 5), ("1/2", 1), (40, 9)])
def test_noise_is_drawn_by_its_law(scale, reach):
    noise = BoundedLaplace(Fraction(scale), reach)
    z = np.arange(-reach, reach + 1)
    counts = np.bincount(noise.sample(20_000) + reach, minlength=len(z))
    assert p_value(counts, noise.pmf(z)) > ALPHA  # fails with p < 1e-12


def summed(scale, reach):
    """The law by definition: places and probabilities."""
    z = np.arange(-reach, reach + 1)
    p = np.exp(-np.abs(z) / float(Fraction(scale)))
    return z, p / math.fsum(p)


@pytest.mark.parametrize(("scale", "reach"), [(1, 14), ("1/3", 0), ("1/3", 2), (40, 1), (100, 2000), (7, 7)])
def test_truncated_noise_is_what_its_definition_sums_to(scale, reach):
    noise, (z, p) = BoundedLaplace(scale, reach), summed(scale, reach)
    wide = np.arange(-reach - 3, reach + 4)
    padded = np.pad(p, 3)
    assert noise.pmf(wide) == pytest.approx(padded, rel=1e-12, abs=0)
    assert noise.cdf(wide) == pytest.approx(np.cumsum(padded), rel=1e-11, abs=1e-13)
    assert noise.variance() == pytest.approx(math.fsum(p * z**2), rel=1e-11)
    assert noise.mean_absolute() == pytest.approx(math.fsum(p * np.abs(z)), rel=1e-11)
    assert noise.tail(reach) == 0


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("scale", "reach"), [(1, 4), ("5/2", 9), (40, 10)])
def test_truncated_noise_is_drawn_exactly(scale, reach):
    z, p = summed(scale, reach)
    for drawn in (BoundedLaplace(scale, reach).sample((200, 500)).ravel(), singles(scale, reach, 3000)):
        assert drawn.dtype == np.int64
        seen = np.bincount(drawn + reach, minlength=len(z))
        assert p_value(seen, p) > ALPHA
    clamped = np.clip(DiscreteLaplace(scale).sample(100_000), -reach, reach)
    assert p_value(np.bincount(clamped + reach, minlength=len(z)), p) < ALPHA, "a twin passes"


def singles(scale, reach, count):
    noise = BoundedLaplace(scale, reach)
    return np.array([noise.sample() for _ in range(count)])


@pytest.mark.parametrize("scale", ["1/3", 1, "5/2", 10])
@pytest.mark.parametrize("reach", [3, 14])
def test_truncated_tails_are_exact_and_rounded_up(scale, reach):
    a = exp(-1 / Fraction(scale))
    total = 1 + 2 * sum(a**i for i in range(1, reach + 1))
    for least in range(-reach - 1, reach + 2):
        exactly = sum(a ** abs(z) for z in range(max(least, -reach), reach + 1)) / total
        assert exactly - Fraction(1, 10**60) <= tail_up(BoundedLaplace(scale, reach), least)
        assert tail_up(BoundedLaplace(scale, reach), least) <= exactly * (1 + Fraction(1, 2**80)) + Fraction(1, 10**60)


def test_a_huge_scale_neither_cancels_nor_overflows():
    noise = BoundedLaplace(2**60, 2**62)
    drawn = noise.sample(50)
    assert all(abs(int(z)) <= 2**62 for z in drawn)
    assert 0 < noise.variance() < DiscreteLaplace(2**60).variance()
    assert 0 < tail_up(noise, 2**62) < Fraction(1, 2**60)
    with pytest.raises(InputError, match=r"reach at least scale / 64: .*\.$"):
        BoundedLaplace(2**60, 2**50)


# Delta at the threshold itself


def seen(m: Threshold, weight: int) -> mpmath.mpf:
    """P(weight + Z >= threshold) by sums to 60 digits."""
    with mpmath.workdps(60):
        scale, most = mpmath.mpf(m.scale.numerator) / m.scale.denominator, 60 * math.ceil(m.scale) + 4 * m.threshold
        most = m.threshold - 1 if m.noise == "truncated" else most

        def mass(z):
            return mpmath.exp(-mpmath.mpf(z * z) / (2 * scale**2) if m.noise == "gaussian" else -abs(z) / scale)

        total = mass(0) + 2 * mpmath.fsum(mass(z) for z in range(1, most + 1))
        return mpmath.fsum(mass(z) for z in range(max(m.threshold - weight, -most), most + 1)) / total


def one_unit_alone(m: Threshold, groups: int, weight: int) -> mpmath.mpf:
    """The divergence at every epsilon between one unit in new groups and nobody: the chance that it is seen at all."""
    with mpmath.workdps(60):
        return 1 - (1 - seen(m, weight)) ** groups


CASES = [(1, "1e-6", 1, 1), ("1/2", "1e-4", 1, 1), (2, "1e-9", 3, 1), (1, "1e-5", 2, 4), ("1/5", "1e-3", 1, 3)]


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(("eps", "delta", "groups", "weight"), CASES)
def test_delta_is_not_under_reported_and_one_lower_threshold_breaks_it(eps, delta, groups, weight, noise):
    promise = Approx(eps, delta)
    m = Threshold.calibrated(promise, groups=groups, noise=noise, weight=weight)
    stated, true = m.guarantee().delta, exactly(one_unit_alone(m, groups, weight))
    assert true * (1 - Fraction(1, 10**20)) <= stated <= promise.delta
    lower = replace(m, threshold=m.threshold - 1)
    assert exactly(one_unit_alone(lower, groups, weight)) > promise.delta
    assert not lower.guarantee() <= promise
    if noise == "geometric":
        one_late = exactly(one_unit_alone(replace(m, threshold=m.threshold + 1), groups, weight))
        assert stated / one_late > math.exp(1 / float(m.scale)) * (1 - 1e-3), "what a tail from t on would state"


def exactly(x: mpmath.mpf) -> Fraction:
    return Fraction(*x.man_exp[:1]) * Fraction(2) ** x.man_exp[1]


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(("eps", "delta", "groups", "weight"), CASES)
def test_under_replace_twice_as_many_counts_are_paid_for(eps, delta, groups, weight, noise):
    """With truncated noise all of them can give the unit away; with the others half of them, so delta is a bound."""
    promise = Approx(eps, delta, neighbours=REPLACE)
    m = Threshold.calibrated(promise, groups=groups, noise=noise, weight=weight)
    stated = m.guarantee(neighbours=REPLACE).delta
    assert exactly(one_unit_alone(m, 2 * groups, weight)) * (1 - Fraction(1, 10**20)) <= stated <= promise.delta
    assert exactly(one_unit_alone(replace(m, threshold=m.threshold - 1), 2 * groups, weight)) > promise.delta


@pytest.mark.parametrize(("eps", "delta", "reach", "true"), [(1, "1e-6", 14, 3.8426e-7), ("1/2", "1e-4", 16, 8.22e-5)])
def test_truncated_noise_at_published_points(eps, delta, reach, true):
    m = Threshold.calibrated(Approx(eps, delta), noise="truncated")
    assert m.law.reach == m.threshold - 1 == reach
    assert float(m.guarantee().delta) == pytest.approx(true, rel=1e-3)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.fractions("1/20", 4, max_denominator=20), st.integers(2, 12))
def test_truncated_noise_has_the_smallest_reach_and_is_never_worse_than_geometric(eps, digits):
    promise = Approx(eps, Fraction(1, 10**digits))
    m, plain = (Threshold.calibrated(promise, noise=noise) for noise in ("truncated", "geometric"))
    e, delta = float(eps), 10.0**-digits
    formula = math.log((math.expm1(e) + 2 * delta) / (delta * (math.exp(e) + 1))) / e
    assert m.threshold - 1 == max(math.ceil(formula - 1e-9), 1) or math.isclose(formula, round(formula), abs_tol=1e-6)
    assert m.threshold <= plain.threshold
    assert m.variance() <= plain.variance() * (1 + 1e-12)
    assert Keep.calibrated(promise).least(0.5) <= m.threshold <= Keep.calibrated(promise).least(0.5) + 1


# Small worlds


def divergence(m: Threshold, before: tuple[int, ...], after: tuple[int, ...], eps: float) -> float:
    """The exact delta(eps) from one table of counts to another, over the groups that differ."""
    P = Q = np.ones(1)
    for n, n_prime in zip(before, after, strict=True):
        if n != n_prime:
            reach = max(before + after) + 25 * math.ceil(m.scale)
            P, Q = np.outer(P, law(m, n, reach)).ravel(), np.outer(Q, law(m, n_prime, reach)).ravel()
    return math.fsum(np.maximum(P - math.exp(eps) * Q, 0))


def units(keys: int, groups: int, weight: int) -> list[tuple[int, ...]]:
    """All that one unit can add to so many groups."""
    every = itertools.product(range(weight + 1), repeat=keys)
    return [u for u in every if sum(w > 0 for w in u) <= groups]


def worlds(m: Threshold, keys: int) -> list[tuple[int, ...]]:
    """What others add: nothing, little, just enough to be told, much."""
    t = m.threshold
    return list(itertools.product((0, 1, t - 1, t, 3 * t), repeat=keys))


def neighbouring(m, keys, groups, weight, relation):
    """All pairs of tables that differ by one unit, both ways round."""
    own = units(keys, groups, weight)
    pairs = itertools.product(own, own) if relation is REPLACE else ((u, (0,) * keys) for u in own)
    for (u, v), others in itertools.product(list(pairs), worlds(m, keys)):
        a, b = (tuple(x + y for x, y in zip(others, w, strict=True)) for w in (u, v))
        yield a, b
        yield b, a


def worst(m, keys, groups, weight, relation, eps):
    return max(divergence(m, a, b, eps) for a, b in set(neighbouring(m, keys, groups, weight, relation)))


WORLDS = [
    (1, 1, ADD_REMOVE),
    (1, 3, ADD_REMOVE),
    (2, 1, ADD_REMOVE),
    (2, 2, ADD_REMOVE),
    (1, 1, REPLACE),
    (1, 2, REPLACE),
]


@pytest.mark.slow_after(8)
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(("groups", "weight", "relation"), WORLDS)
def test_all_neighbours_of_small_worlds_keep_the_promise(noise, groups, weight, relation):
    keys = groups * (2 if relation is REPLACE else 1)
    promise = Approx(2, "1/50", neighbours=relation)
    m = Threshold.calibrated(promise, groups=groups, noise=noise, weight=weight)
    stated = float(m.guarantee(neighbours=relation).delta)
    found = worst(m, keys, groups, weight, relation, 2.0)
    assert found <= stated * (1 + 1e-9) <= float(promise.delta) * (1 + 2e-9)
    quiet = replace(m, scale=m.scale * Fraction(4, 5))
    assert worst(quiet, keys, groups, weight, relation, 2.0) > float(promise.delta)
    if relation is ADD_REMOVE or noise == "truncated":
        assert found >= stated * (1 - 1e-6 if noise != "gaussian" else 0.98), "some neighbours reach it"
        lower = replace(m, threshold=m.threshold - 1)
        assert worst(lower, keys, groups, weight, relation, 2.0) > float(promise.delta)
    if weight > 1:
        light = replace(m, weight=weight - 1).guarantee(neighbours=relation)
        assert worst(m, keys, groups, weight, relation, float(light.epsilon)) > float(light.delta) * 1.001


@pytest.mark.parametrize("noise", NOISES)
def test_weights_are_a_change_of_units(noise):
    """Continuous noise would need w times as much; whole noise of w steps is hardly different."""
    promise = Approx(1, "1e-6")
    for groups, weight in ((1, 1000), (3, 200)):
        one, many = (Threshold.calibrated(promise, groups=groups, noise=noise, weight=w) for w in (1, weight))
        assert float(many.scale) == pytest.approx(weight * float(one.scale), rel=0.01 if noise == "gaussian" else 1e-12)
        assert many.threshold <= weight * one.threshold
        assert many.guarantee() <= promise
        share = -math.expm1(math.log1p(-1e-6) / groups)
        laplace = weight - groups * weight * math.log(2 * share)
        if noise == "geometric":
            assert laplace <= many.threshold <= laplace + 2


def test_weights_are_told_by_a_sensitivity_as_well():
    move = Sensitivity(6, 18, 3, 2, neighbours=ADD_REMOVE)  # two groups, up to 3 in each
    for noise in NOISES:
        m = Threshold.calibrated(Approx(1, "1e-4"), move, noise=noise)
        assert m == Threshold.calibrated(Approx(1, "1e-4"), groups=2, weight=3, noise=noise)
        assert m.guarantee(move) == m.guarantee()


def test_truncated_counts_compose_as_randomized_response():
    m = Threshold(2, 8, noise="truncated", groups=2)
    for e in (0.25, 0.5, 1.0):
        truth = worst(m, 2, 2, 1, ADD_REMOVE, e)
        assert truth * (1 - 1e-9) <= m.guarantee().delta_at(e) <= truth * (1 + 1e-4)
    for distance in (2, Sensitivity(3, 9, 3, 3, neighbours=ADD_REMOVE)):
        g = m.guarantee(distance)
        assert g.delta_at(g.epsilon) <= float(g.delta) * (1 + 1e-9)


# Rare draws


@pytest.mark.parametrize("noise", [DiscreteLaplace(2), BoundedLaplace(2, 9), BoundedLaplace("3/2", 4)])
def test_noise_that_reaches_far_is_drawn_as_if_all_were(noise):
    least, count = 4, 400_000
    at, z = reaching(noise, least, count)
    assert at.tolist() == sorted(set(at.tolist()))
    assert 0 <= at[0] <= at[-1] < count
    values = np.arange(least, 12)
    chance = np.append(noise.pmf(values), noise.upper(12))
    counted = np.append([np.count_nonzero(z == v) for v in values], np.count_nonzero(z > 11))
    assert p_value([count - at.size, *counted], [1 - chance.sum(), *chance]) > ALPHA
    halves = np.bincount(at * 8 // count, minlength=8)
    assert p_value(halves, np.full(8, 1 / 8)) > ALPHA
    at, z = reaching(noise, least + 1, count)
    counted = np.append([np.count_nonzero(z - 1 == v) for v in values], np.count_nonzero(z - 1 > 11))
    assert p_value([count - at.size, *counted], [1 - chance.sum(), *chance]) < ALPHA, "a twin passes"


def test_noise_that_cannot_reach_does_not():
    at, z = reaching(BoundedLaplace(1, 5), 6, 300_000)
    assert at.size == z.size == 0


class Tied:
    """Coins whose first 16 bits always tie with the probability."""

    secure = False

    def __init__(self, word):
        self.word = word

    def words(self, count, dtype):
        return np.full(count, self.word, dtype) if dtype == np.uint16 else SYSTEM.words(count, dtype)

    def __getattr__(self, name):
        return getattr(SYSTEM, name)


def test_ties_are_settled_by_more_bits():
    noise, count = DiscreteLaplace(2), 3000
    exactly = float(noise.upper(4)) * 2**16
    share = exactly - math.floor(exactly)
    heads = reaching(noise, 4, count, Tied(math.floor(exactly)))[0].size
    assert p_value([count - heads, heads], [1 - share, share]) > ALPHA
    assert reaching(noise, 4, count, Tied(math.floor(exactly) - 1))[0].size == count
    assert reaching(noise, 4, count, Tied(math.floor(exactly) + 1))[0].size == 0


LARGE = [Threshold(1, 9), Threshold(2, 12, noise="truncated"), Threshold(3, 16, weight=2), Threshold("1/3", 3)]


def fits(m, counts, y):
    """Whether the releases of each count fit its law."""
    tested = []
    for n in range(1, m.threshold + 8):
        mine = y[counts == n]
        values = np.arange(m.threshold, m.threshold + 20)
        chance = m.pmf(values, n)
        seen = [np.count_nonzero(mine == v) for v in values]
        rest = [np.count_nonzero(mine == 0), np.count_nonzero(mine >= values[-1] + 1)]
        unseen = float(m.pmf(0, n))
        tested.append(p_value([*seen, *rest], [*chance, unseen, max(0.0, 1 - unseen - chance.sum())]) > ALPHA)
    return all(tested)


@pytest.mark.parametrize("m", LARGE, ids=str)
def test_many_groups_are_released_as_each_of_them_would_be(m, monkeypatch):
    counts = np.arange(600_000) % (m.threshold + 8)
    y = m(counts.reshape(2, -1)).ravel()
    assert y.dtype == np.int64
    assert not y[counts == 0].any()
    assert not ((y > 0) & (y < m.threshold)).any()
    assert fits(m, counts, y)
    if m.threshold > 5 * m.scale + 1:
        broken = {"later": lambda law, k, n, rng: reaching(law, k + 1, n, rng), "none": nothing}
        for name, twin in broken.items():
            monkeypatch.setitem(Threshold._drawn.__globals__, "reaching", twin)
            assert not fits(m, counts, m(counts)), name


def nothing(law, least, count, rng):
    return np.zeros(0, np.int64), np.zeros(0, np.int64)


@pytest.mark.slow
def test_many_groups_of_any_size():
    counts = np.full(200_000, 1)
    counts[::1000] = 2**62
    y = Threshold(1, 20, noise="truncated")(counts)
    assert (np.abs(y[::1000] - 2**62) < 20).all()
    assert np.count_nonzero(y) < 250
    y = Threshold(1, 20)([2**70] * 200_000)
    assert y.dtype == object
    assert abs(int(y[0]) - 2**70) < 100
