"""Threshold: its guarantee by enumeration of all small neighbours, its calibration, its draws, its broken twins."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.goodness import ALPHA, fit, gaussian, laplace, p_value
from tests.tapes import exp

from noisette.errors import InputError, PrivacyError
from noisette.laws import DiscreteGaussian, DiscreteLaplace
from noisette.mechanisms import Threshold, calibrate
from noisette.mechanisms.partitions import threshold_cost
from noisette.mechanisms.partitions.threshold_cost import old_delta, tail
from noisette.privacy import ZCDP, Approx, Neighbours, Pure, sensitivity
from noisette.privacy.sensitivity import Sensitivity

ADD_REMOVE, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
NOISES = ["geometric", "truncated", "gaussian"]


def law(m: Threshold, n: int, reach: int) -> np.ndarray:
    """Probabilities of being suppressed and of t, t+1, … for a group of n units, from the noise alone."""
    if n == 0:
        return np.append(1.0, np.zeros(reach))
    z = np.arange(-(w := reach + 40 * math.ceil(m.scale)), w + 1)
    gaussian = m.noise == "gaussian"
    weights = np.exp(-(z**2) / (2 * float(m.scale**2)) if gaussian else -np.abs(z) / float(m.scale))
    weights[np.abs(z) >= m.threshold] *= m.noise != "truncated"
    weights /= weights.sum()
    y = n + z
    released = weights[(y >= m.threshold) & (y < m.threshold + reach)]
    return np.append(1 - released.sum() - weights[y >= m.threshold + reach].sum(), released)


def divergence(m: Threshold, moves: tuple[tuple[int, int], ...], eps: float, *, reach: int = 200) -> float:
    """The exact delta(eps) of groups that change (from, to) all at once, in the worse direction."""
    P = Q = np.ones(1)
    for n, n_prime in moves:
        P, Q = np.outer(P, law(m, n, reach)).ravel(), np.outer(Q, law(m, n_prime, reach)).ravel()
    factor = math.exp(eps)
    return max(math.fsum(np.maximum(a - factor * b, 0)) for a, b in ((P, Q), (Q, P)))


def worst(m: Threshold, groups: int, eps: float, counts: tuple[int, ...]) -> float:
    return max(
        divergence(m, tuple((n, n + 1) for n in chosen), eps)
        for chosen in itertools.combinations_with_replacement(counts, groups)
    )


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(("eps", "delta"), [(1, "1e-3"), (3, "1e-4"), ("1/2", "1/200")])
def test_neighbours_keep_the_promise(noise, groups, eps, delta):
    m = Threshold.calibrated(Approx(eps, delta), groups=groups, noise=noise)
    t, e, stated = m.threshold, float(Fraction(eps)), float(m.guarantee().delta)
    found = worst(m, groups, e, (0, 1, t - 2, t - 1, t, t + 1, t + 30))
    assert found <= stated * (1 + 1e-9) <= float(Fraction(delta)) * (1 + 2e-9)
    assert found >= stated * (1 - 1e-6), "some neighbours reach the stated delta"
    assert worst(m, groups, 0.99 * e, (0, 1, t, t + 30)) > stated, "and no smaller epsilon would do"


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("noise", NOISES)
def test_broken_twins_break_the_promise(noise):
    promise = Approx(1, "1e-3")
    m = Threshold.calibrated(promise, groups=2, noise=noise)
    counts = (0, 1, m.threshold, m.threshold + 30)
    alone = Threshold.calibrated(promise, groups=1, noise=noise)
    for broken in (
        replace(m, threshold=m.threshold - 1),
        replace(m, scale=m.scale * Fraction(4, 5)),
        replace(m, scale=alone.scale),
        replace(m, threshold=replace(alone, scale=m.scale).threshold),
    ):
        assert worst(broken, 2, 1.0, counts) > 1.001e-3
        assert not broken.guarantee() <= promise
    undivided = next(t for t in range(1, 99) if tail(replace(m, threshold=t).law, t - 1) <= promise.delta)
    assert undivided < m.threshold, "delta not divided by the groups"
    assert worst(replace(m, threshold=undivided), 2, 1.0, counts) > 1.001e-3


@pytest.mark.parametrize("scale", ["1/3", 1, "5/2", 10])
def test_the_tail_begins_at_the_threshold(scale):
    noise = DiscreteLaplace(scale)
    a = exp(-1 / noise.scale)
    for t in (-3, 0, 1, 2, 15):
        exactly = (1 - a) / (1 + a) * (a**t / (1 - a)) if t > 0 else 1 - a ** (1 - t) / (1 + a)
        assert exactly - Fraction(1, 10**60) <= tail(noise, t) <= exactly * (1 + Fraction(1, 2**80))
    m = Threshold(scale, 4)
    assert float(m.guarantee().delta) == pytest.approx(float(m.chance(1)), rel=1e-12)
    one_late = float(a**4 / (1 + a))  # a tail from t on instead of t - 1 understates delta by e^(1/scale)
    assert float(m.guarantee().delta) / one_late == pytest.approx(math.exp(1 / float(noise.scale)))


@pytest.mark.parametrize("sigma", [Fraction(1, 2), 1, 4, 300])
def test_gaussian_tails_are_rounded_up(sigma):
    noise = DiscreteGaussian(Fraction(sigma) ** 2)
    z = np.arange(0, math.ceil(40 * sigma))
    weights = np.exp(-(z**2) / (2 * float(noise.sigma2)))
    total = 2 * math.fsum(weights) - 1
    for t in (1, math.ceil(sigma), math.ceil(3 * sigma), math.ceil(6 * sigma)):
        exactly = math.fsum(weights[t:]) / total
        assert exactly * (1 - 1e-12) <= tail(noise, t) <= exactly * (1 + 1e-6)
        assert tail(noise, 1 - t) >= 1 - exactly - 1e-15


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("s2", [1, 2, 9])
@pytest.mark.parametrize("e", [0.0, 0.7, 2.0])
def test_a_sum_of_noises_tells_the_loss_of_several_counts(n, s2, e):
    z = np.arange(-40 * s2, 40 * s2 + 1)
    one = np.exp(-(z**2) / (2 * s2))
    one /= one.sum()
    total = one
    for _ in range(n - 1):
        total = np.convolve(total, one)
    y = np.arange(-(len(total) // 2), len(total) // 2 + 1)
    exactly = math.fsum(total * np.maximum(0, -np.expm1(e - (2 * y + n) / (2 * s2))))
    assert exactly * (1 - 1e-12) <= old_delta(Fraction(s2), n, e) <= exactly * (1 + 3e-3 if s2 == 1 else 1 + 1e-7)


@pytest.mark.parametrize(
    ("groups", "noise", "scale", "threshold"),
    [
        (1, "geometric", 1, 15),
        (10, "geometric", 10, 156),
        (100, "geometric", 100, 1775),
        (1, "truncated", 1, 15),
        (10, "truncated", 10, 133),
        (100, "truncated", 100, 1314),
        (1, "gaussian", 4.2308, 22),
        (10, "gaussian", 13.3599, 71),
        (100, "gaussian", 42.2468, 239),
    ],
)
def test_calibration_at_one_and_a_millionth(groups, noise, scale, threshold):
    """Continuous Laplace noise needs 14.122, 155.2, 1773.8; Gaussian noise 22.09, 73.9, 249.9 with a split of delta."""
    promise = Approx(1, "1e-6")
    m = Threshold.calibrated(promise, groups=groups, noise=noise)
    assert (float(m.scale), m.threshold) == (pytest.approx(scale, rel=1e-4), threshold)
    assert m.guarantee() <= promise
    assert not replace(m, threshold=threshold - 1).guarantee() <= promise
    if (groups, noise) != (100, "truncated"):  # whose losses are never all positive at once: it knows, and is right
        assert not replace(m, scale=m.scale * Fraction(999, 1000)).guarantee() <= promise
    if noise == "gaussian":
        wider = [replace(m, scale=m.scale * f, threshold=threshold - 1) for f in (Fraction(101, 100), Fraction(11, 10))]
        assert not any(other.guarantee() <= promise for other in wider), "more noise would not lower the threshold"


@settings(max_examples=15)
@given(
    st.fractions("1/5", 4, max_denominator=10),
    st.integers(2, 9),
    st.integers(1, 40),
    st.sampled_from(NOISES),
    st.sampled_from([None, ADD_REMOVE, REPLACE]),
    st.integers(1, 3),
)
def test_calibration_keeps_the_promise(eps, digits, groups, noise, relation, units):
    promise = Approx(eps, Fraction(1, 10**digits), neighbours=relation)
    m = Threshold.calibrated(promise, units, groups=groups, noise=noise)
    assert m.groups == groups
    assert m.guarantee(units, neighbours=relation or ADD_REMOVE) <= promise


def test_ranges_of_new_groups_only_raise_delta():
    m = Threshold.calibrated(Approx(1, "1e-6"), groups=45, noise="gaussian")
    s2, new, stated = m.scale**2, float(tail(m.law, m.threshold - 1)), float(m.guarantee().delta)
    for j in range(46):
        unseen = (1 - new) ** j
        assert 1 - unseen * (1 - old_delta(s2, 45 - j, 1.0)) <= stated


def test_several_units_move_a_group_further():
    for m in (Threshold(1, 9), Threshold(1, 9, noise="truncated"), Threshold(3, 15, noise="gaussian", epsilon=2)):
        two = m.guarantee(2)
        for n in (0, 1, m.threshold, m.threshold + 20):
            assert divergence(m, ((n, n + 2),), float(two.epsilon)) <= float(two.delta)
        assert divergence(m, ((0, 2),), float(two.epsilon)) > float(m.guarantee().delta)
    assert m.guarantee(0) == Approx(0, 0, neighbours=ADD_REMOVE)


@pytest.mark.parametrize("noise", NOISES)
def test_replacing_moves_twice_as_many_groups(noise):
    promise = Approx(1, "1e-3", neighbours=REPLACE)
    m = Threshold.calibrated(promise, noise=noise)
    assert m == Threshold.calibrated(promise, sensitivity.histogram(neighbours=REPLACE), noise=noise)
    assert m.guarantee(neighbours=REPLACE) <= promise
    t = m.threshold
    moves = [((1, 0), (0, 1)), ((1, 0), (t, t + 1)), ((t + 20, t + 19), (t + 20, t + 21)), ((t, t - 1), (0, 1))]
    assert max(divergence(m, move, 1.0) for move in moves) <= 1e-3


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("moved", [1, 2, 3, 5])
def test_an_odd_number_of_counts_that_replacing_moves_belongs_to_one_group_more(noise, moved):
    """A unit in g groups moves 2 g counts, so what is stated for units must hold where an odd number is moved."""
    promise, far = Approx(1, "1e-3", neighbours=REPLACE), Sensitivity(moved, moved, 1, moved, neighbours=REPLACE)
    m = Threshold.calibrated(promise, far, noise=noise)
    assert 2 * m.groups == moved + moved % 2
    for_units, for_moves = m.guarantee(neighbours=REPLACE), m.guarantee(far)
    assert for_moves <= promise
    assert for_units.epsilon >= for_moves.epsilon
    assert for_units.delta >= for_moves.delta


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("m", [Threshold(1, 6), Threshold(2, 8, noise="gaussian", epsilon=1)])
def test_draws_follow_the_law(m):
    n, count = m.threshold + 1, 200_000
    y = m(np.full(count, n))
    assert y.dtype == np.int64
    below = (laplace if m.noise == "geometric" else gaussian)(m.scale if m.noise == "geometric" else m.scale**2)
    edges = np.arange(-1, 12)  # the first cell is what is suppressed: noise below -1
    suppressed_as = np.where(y == 0, -5, y - n)
    assert fit(suppressed_as, below, edges) > ALPHA
    assert set(np.unique(y[y < m.threshold])) <= {0}
    single = np.array([m(n) for _ in range(4000)])
    assert fit(np.where(single == 0, -5, single - n), below, edges) > ALPHA
    quiet = replace(m, scale=m.scale * Fraction(4, 5))(np.full(count, n))
    assert fit(np.where(quiet == 0, -5, quiet - n), below, edges) < ALPHA, "a twin passes"
    late = replace(m, threshold=m.threshold + 1)(np.full(count, n))
    assert fit(np.where(late == 0, -5, late - n), below, edges) < ALPHA, "a twin passes"
    alone = int(np.count_nonzero(m(np.ones(count, int))))
    chance = float(m.chance(1))
    assert p_value([count - alone, alone], [1 - chance, chance]) > ALPHA


def test_nobody_is_never_released():
    m = Threshold(1, 1)
    assert not m(np.zeros(10_000, int)).any()
    assert m(0) == 0
    assert m.release(0) is None
    kept, noisy = m.release([[0, 50], [0, 2**70]])
    assert kept.tolist() == [[False, True], [False, True]]
    assert noisy[0, 0] == noisy[1, 0] == 0
    assert abs(noisy[1, 1] - 2**70) < 100
    assert isinstance(m.release(50), int)


def test_what_composition_knows_is_true():
    for m in (Threshold(2, 9), Threshold(2, 9, noise="truncated"), Threshold(3, 11, noise="gaussian", epsilon=1)):
        g = m.guarantee()
        for e in (0.1, 0.3, 1.0, 2.0):
            truth = worst(m, 1, e, (0, 1, m.threshold, m.threshold + 60))
            assert truth <= g.delta_at(e) * (1 + 1e-9)
        twice = [divergence(m, ((n, n + 1), (k, k + 1)), 1.0) for n in (0, m.threshold + 20) for k in (0, m.threshold)]
        assert max(twice) <= (g * 2).delta_at(1) * (1 + 1e-9)


@pytest.mark.parametrize(
    "m", [Threshold(2, 9), Threshold(2, 9, noise="truncated"), Threshold(3, 11, noise="gaussian", epsilon=1)]
)
def test_pmf_is_the_law(m):
    for n in (0, 1, m.threshold, m.threshold + 7):
        y = np.append(0, np.arange(m.threshold, m.threshold + 100))
        assert m.pmf(y, n) == pytest.approx(law(m, n, 100), abs=1e-14)
    assert m.pmf(1, 5) == 0


class Untouched:
    """Coins that nobody may toss."""

    secure = False

    def __getattr__(self, name):
        raise AssertionError("drawn before the input was checked")


@pytest.mark.parametrize(
    "bad", [-1, [3, -1], 2.0, [1.5], math.nan, [math.nan], "3", None, True, [True], [], [[1], [2, 3]], 1j]
)
def test_bad_counts_are_refused_before_any_draw(bad):
    for call in (Threshold(1, 15), Threshold(1, 15).release):
        with pytest.raises(InputError) as error:
            call(bad, Untouched())
        assert str(error.value).endswith(".")
        assert ". " not in str(error.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda: Threshold(0, 5),
        lambda: Threshold(math.nan, 5),
        lambda: Threshold(1, 0),
        lambda: Threshold(1, 2.5),
        lambda: Threshold(1, 5, groups=0),
        lambda: Threshold(1, 5, noise="laplace"),
        lambda: Threshold(1, 5, noise="gaussian"),
        lambda: Threshold(1, 5, noise="truncated", epsilon=1),
        lambda: Threshold(1000, 5, noise="truncated"),
        lambda: Threshold(1, 5, weight=0),
        lambda: Threshold(1, 5, weight="1/2"),
        lambda: Threshold(1, 5, weight=True),
        lambda: Threshold.calibrated(Approx(1, "1e-6"), weight=0),
        lambda: Threshold(1, 5, epsilon=1),
        lambda: Threshold(1, 5, noise="gaussian", epsilon=0),
        lambda: Threshold("1e80", 5),
        lambda: Threshold.calibrated(Approx(1, 0)),
        lambda: Threshold.calibrated(Approx(1, "1e-40"), noise="gaussian"),
        lambda: Threshold.calibrated(Approx(0, "1e-6")),
        lambda: Threshold.calibrated(Pure(1)),
        lambda: Threshold.calibrated(ZCDP(1), noise="gaussian"),
        lambda: Threshold.calibrated(Approx(1, 1)),
        lambda: Threshold.calibrated(Approx(1, "1e-6"), groups=0),
        lambda: Threshold.calibrated(Approx(1, "1e-6"), 0),
        lambda: Threshold.calibrated(Approx(1, "1e-6"), noise="normal"),
        lambda: Threshold.calibrated(Approx(1, "1e-6"), Sensitivity(0, 0, 0, 0, neighbours=ADD_REMOVE)),
        lambda: Threshold(1, 5).guarantee("1/2"),
        lambda: Threshold(1, 5).interval(1),
        lambda: Threshold(1, 1, noise="truncated").guarantee(),
        lambda: Threshold(1, 3, noise="truncated", weight=5).guarantee(),
    ],
)
def test_bad_parameters_are_refused_in_one_sentence(call):
    with pytest.raises(InputError) as error:
        call()
    assert str(error.value).endswith(".")
    assert ". " not in str(error.value)


def test_relations_do_not_mix():
    with pytest.raises(PrivacyError):
        calibrate(Threshold, Approx(1, "1e-6", neighbours=REPLACE), sensitivity=sensitivity.histogram())


@pytest.mark.parametrize("variance", [2**20, 2**24])
@pytest.mark.parametrize("shift", [1, 30])
@pytest.mark.parametrize("deviations", [0, 1, 4, 8])
def test_wide_noise_is_accounted_as_continuous_and_never_below(variance, shift, deviations):
    e = deviations * shift / math.sqrt(variance)
    summed, smooth = (f(Fraction(variance), shift, e) for f in (threshold_cost._summed, threshold_cost._smooth))
    assert summed * (1 - 1e-9) <= smooth <= summed * (1 + 250 / math.sqrt(variance) / shift)


def test_sigma_does_not_jump_where_noise_becomes_wide(monkeypatch):
    promise = Approx("1e-3", "1e-9")
    wide = Threshold.calibrated(promise, noise="gaussian")
    monkeypatch.setattr(threshold_cost, "_WIDE", 2**62)
    old_delta.cache_clear()
    exact = Threshold.calibrated(promise, noise="gaussian")
    old_delta.cache_clear()
    assert exact.scale <= wide.scale <= exact.scale * Fraction(102, 100)
