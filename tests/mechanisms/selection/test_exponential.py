"""The exponential mechanism: its theorem by enumeration of scores, its sampler, its refusals, its broken twins."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.goodness import ALPHA, p_value
from tests.tapes import Script

import noisette as nz
from noisette.audit.divergence import largest_loss, laws_of, renyi
from noisette.errors import InputError, PrivacyError
from noisette.exact import choice
from noisette.mechanisms import calibrate
from noisette.mechanisms.selection.exponential import Exponential
from noisette.privacy.sensitivity import Sensitivity

ADD_REMOVE, REPLACE = nz.Neighbours


def mp_law(m, scores):
    """The definition, to 50 digits."""
    with mpmath.workdps(50):
        rate = mpmath.mpf(m.scale.denominator) / m.scale.numerator
        measure = m.measure or [1] * m.candidates
        weights = [part * mpmath.exp(rate * q) for part, q in zip(measure, scores, strict=True)]
        return np.array([float(w / mpmath.fsum(weights)) for w in weights])


def moves(k, d, monotone):
    """All moves of scores by at most d, or all up by at most d (down is the same pair in the other order)."""
    return itertools.product(range(0 if monotone else -d, d + 1), repeat=k)


# The theorem


def test_the_slides_scores_have_the_known_law():
    m = calibrate(Exponential, 1, sensitivity=10, candidates=4)  # tenths
    assert m.pmf(range(4), [0, 10, 25, 22]) == pytest.approx([0.1094, 0.1803, 0.3817, 0.3286], abs=5e-5)


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("measure", [None, (3, 1, 2)])
def test_every_move_of_small_scores_keeps_epsilon_and_some_reach_it(monotone, measure):
    m = Exponential(1, candidates=3, monotone=monotone, measure=measure)
    laws = {
        q: np.log(m.pmf(range(3), q)) for q in itertools.product(range(-2, 3), (-2, 0, 25, 26, 27), range(-2, 28, 7))
    }
    stated, worst = float(m.guarantee(1).epsilon), 0.0
    for q, law in laws.items():
        for move in moves(3, 1, monotone):
            loss = np.abs(law - np.log(m.pmf(range(3), np.add(q, move)))).max()
            worst = max(worst, loss)
    assert stated * (1 - 1e-6) <= worst <= stated * (1 + 1e-9)
    assert stated == (1 if monotone else 2)


@pytest.mark.parametrize("k", [2, 3, 40])
def test_no_number_of_candidates_is_cheaper(k):
    """Unlike ranks, of which one is always 0, the best score may move as well: `choice.loss` would say too little."""
    m = Exponential(1, candidates=k)
    x, y, _ = m.pairs()[0]
    assert largest_loss(*laws_of(m, x, y)) == pytest.approx(2, rel=1e-9)
    assert float(choice.loss(Fraction(1), k, up=True)) < 1.97


@pytest.mark.slow
@pytest.mark.parametrize("monotone", [False, True])
def test_the_range_gives_its_rho(monotone):
    m = Exponential(2, candidates=3, monotone=monotone)
    rho = float(m.guarantee(1).losses.parts[0][0].rho())
    assert rho == float(m.guarantee(1).epsilon) ** 2 / 8
    for q in itertools.product(range(4), repeat=3):
        for move in moves(3, 1, monotone):
            P, Q = laws_of(m, q, tuple(np.add(q, move).tolist()))
            assert max(renyi(P, Q, order) / order for order in (1.1, 2, 10)) <= rho * (1 + 1e-9)


def test_half_the_sensitivity_is_convicted():
    m = Exponential(1, candidates=5)  # e^q is 1-DP for half a step only
    x, y, _ = m.pairs()[0]
    assert largest_loss(*laws_of(m, x, y)) > 2 * 0.999
    as_if_monotone = calibrate(Exponential, 1, candidates=5, monotone=True)
    assert largest_loss(*laws_of(as_if_monotone, x, y)) > 2 * 0.999  # in both directions it is 2-DP


def test_monotone_scores_are_so_for_added_and_removed_records_only():
    m = Exponential(1, candidates=3, monotone=True)
    assert m.guarantee(nz.sensitivity.histogram()) == nz.Pure(1, neighbours=ADD_REMOVE)
    assert m.guarantee(nz.sensitivity.histogram(neighbours=REPLACE)) == nz.Pure(2, neighbours=REPLACE)
    assert calibrate(Exponential, nz.Pure(1, neighbours=REPLACE), candidates=3, monotone=True).scale == 2
    assert calibrate(Exponential, nz.Pure(1, neighbours=ADD_REMOVE), candidates=3, monotone=True).scale == 1


def test_the_range_is_read_off_a_sensitivity():
    m = Exponential(1, candidates=9)
    assert m.guarantee(nz.sensitivity.histogram()).epsilon == 1  # one score moves
    assert m.guarantee(Sensitivity(9, 9, 1, 9, neighbours=ADD_REMOVE)).epsilon == 2  # all may
    assert m.guarantee(Sensitivity(5, 17, 4, 2, neighbours=ADD_REMOVE)).epsilon == 5
    assert m.guarantee(0).epsilon == 0
    assert m.guarantee("3/2").epsilon == 3


@pytest.mark.slow
def test_the_score_is_near_the_best():
    """P(loss >= scale (ln k + t)) <= e^-t."""
    m = Exponential(3, candidates=4)
    for q in itertools.product(range(0, 25, 3), repeat=4):
        loss = max(q) - np.array(q)
        for t in (0.5, 1, 3):
            assert m.pmf(range(4), q)[loss >= 3 * (math.log(4) + t)].sum() <= math.exp(-t)


# The law and the sampler

AWKWARD = [
    (Exponential("7/3", candidates=4), [0, 3, 5, 5]),
    (Exponential("1/5", candidates=3), [10**6, 10**6 + 1, 10**6]),
    (Exponential(10**12, candidates=3), [-(10**18), 0, 10**12]),
    (Exponential(2, candidates=4, measure=("1/2", 1, "0.1", 7)), [3, 0, 5, -2]),
    (Exponential(1, candidates=2, measure=(10**200, 1)), [0, 461]),
]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("m", "scores"), AWKWARD, ids=["ties", "narrow", "wide", "measure", "steep measure"])
def test_the_law_is_the_definition_and_draws_follow_it(m, scores):
    law = m.pmf(range(m.candidates), scores)
    assert law == pytest.approx(mp_law(m, scores), rel=1e-11, abs=1e-300)
    draws = [m(scores) for _ in range(3000)]
    assert all(type(y) is int for y in draws)
    assert p_value(np.bincount(draws, minlength=m.candidates), law) > ALPHA


@pytest.mark.slow
def test_other_scales_and_measures_are_told_apart():
    m, scores = Exponential(2, candidates=4, measure=(1, 2, 2, 1)), [0, 1, 3, 2]
    counts = np.bincount([m(scores) for _ in range(4000)], minlength=4)
    for other in (Exponential(1, candidates=4, measure=(1, 2, 2, 1)), Exponential(2, candidates=4)):
        assert p_value(counts, other.pmf(range(4), scores)) < ALPHA


def test_laws_of_special_scores():
    m = Exponential(1, candidates=4)
    assert m.pmf(range(4), [5, 5, 5, 5]).tolist() == [0.25] * 4
    assert m.pmf([-1, 4, 1.5], [1, 1, 1, 1]).tolist() == [0, 0, 0]
    assert m([-(2**61), 2**61, 0, 0]) == 1
    assert m(np.array([0, 0, 10**4, 1], np.uint64)) == 2
    assert Exponential(1, candidates=2, measure=(2, 4)) == Exponential(1, candidates=2, measure=("1/3", "2/3"))


def test_coins_turn_where_the_law_says():
    """A chosen candidate is kept with 2^40 e^-y / W exactly: words just below and above decide."""
    m, scores = Exponential(3, candidates=2, measure=(5, 2)), [2, 1]
    with mpmath.workprec(300):
        share = mpmath.mpf(2) / 5 * mpmath.exp(-mpmath.mpf(1) / 3)
        first, second = (int(mpmath.floor(p * (2**40 + 2**20))) + 1 for p in (mpmath.mpf(1), share))
        turn = int(mpmath.floor(mpmath.ldexp(mpmath.ldexp(share, 40) / second, 64)))
    assert m(scores, Script(first, turn - 1)) == 1
    assert m(scores, Script(first, turn + 1, 0, 0)) == 0  # another attempt, at the first candidate


def float_softmax(m, scores):
    """A broken twin: e^(q/scale) in floats, which overflows."""
    weights = np.exp(np.asarray(scores, float) / float(m.scale))
    law = np.nan_to_num(weights / weights.sum())
    return min(int(np.searchsorted(np.cumsum(law), np.random.default_rng().random())), m.candidates - 1)


def test_a_float_softmax_is_convicted():
    m, large = Exponential(2, candidates=3), [10**6, 10**6 - 1, 10**6]
    law = m.pmf(range(3), large)
    with np.errstate(over="ignore", invalid="ignore"):
        broken = [float_softmax(m, large) for _ in range(500)]
    assert p_value(np.bincount(broken, minlength=3), law) < ALPHA
    assert p_value(np.bincount([m(large) for _ in range(500)], minlength=3), law) > ALPHA


@pytest.mark.slow
def test_a_million_candidates():
    m, scores = Exponential(2, candidates=10**6), np.arange(10**6)
    assert scores[m(scores)] > 10**6 - 200
    even = [m(np.zeros(10**6, int)) // 10**5 for _ in range(60)]
    assert p_value(np.bincount(even, minlength=10), [0.1] * 10) > ALPHA


# What to expect


@pytest.mark.parametrize("m", [Exponential(1, candidates=2), Exponential("5/2", candidates=4, measure=(1, 2, 3, 1))])
def test_losses_are_as_stated(m):
    k, t, worst, squares = m.candidates, m.interval(0.9), 1.0, 0.0
    for losses in itertools.product([0, *range(1, 16, 2), int(t) + 1, int(t)], repeat=k):
        if min(losses) == 0:
            loss, law = np.array(losses), m.pmf(range(k), [-v for v in losses])
            worst = min(worst, law[loss <= t].sum())
            squares = max(squares, (law * loss**2).sum())
    assert worst >= 0.9 - 1e-12
    assert 0.9 * m.variance() <= squares <= m.variance() * (1 + 1e-12)
    lost = [0] + [-int(t)] * (k - 1)
    assert m.pmf(0, lost) < 0.9  # a smaller t would not do
    for level in (0, 1, -1, math.nan):
        with pytest.raises(InputError, match="level"):
            m.interval(level)


# Calibration

epsilons = st.fractions("1/100", 20, max_denominator=1000)
promises = st.one_of(
    st.builds(nz.Pure, epsilons),
    st.builds(nz.Approx, epsilons, st.fractions("1/1000000", "1/10", max_denominator=10**6)),
    st.builds(nz.ZCDP, epsilons),
)


@pytest.mark.slow
@given(promises, st.fractions("1/7", 50, max_denominator=7), st.booleans())
def test_what_is_asked_for_is_kept_and_not_wasted(promise, size, monotone):
    m = calibrate(Exponential, promise, sensitivity=size, candidates=7, monotone=monotone)
    assert m.guarantee(size) <= promise
    more = Exponential(m.scale * Fraction(999, 1000), candidates=7, monotone=monotone)
    assert not more.guarantee(size) <= promise


def test_many_choices_compose_by_their_range():
    m = calibrate(Exponential, nz.ZCDP("1/10"), candidates=100, times=9)
    assert m.guarantee(1) * 9 <= nz.ZCDP("1/10")
    assert float(m.guarantee(1).epsilon) > 0.995 * math.sqrt(8 * 0.1 / 9)  # by epsilon^2/2 it would be half of that


# What is refused


@pytest.mark.parametrize(
    "options",
    [
        {"scale": 0}, {"scale": -1}, {"scale": math.nan}, {"scale": "1e-40"}, {"candidates": 0}, {"candidates": 1},
        {"candidates": 2.5}, {"candidates": 2**22 + 1}, {"monotone": 1}, {"measure": (1, 2)}, {"measure": (1, 0, 1)},
        {"measure": (1, -1, 1)}, {"measure": (1, math.nan, 1)}, {"measure": ("1e-300", 1, "1e300")}, {"measure": ()},
    ],
    ids=repr,
)  # fmt: skip
def test_bad_parameters_are_refused(options):
    with pytest.raises(InputError) as error:
        Exponential(**{"scale": 1, "candidates": 3, **options})
    assert str(error.value).endswith(".")
    assert ". " not in str(error.value)


BAD = [
    [], [[]], 3, [1, 2], [1, 2, 3, 4], [1.0, 2.0, 3.0], [1, math.nan, 2], [1, 2, "3"], None, [True, False, True],
    [[1, 2, 3]], [[1, 2, 3], [1, 2]], [2**62, 1, 1], [1, -(10**400), 1],
    np.ma.masked_array([1, 2, 3], [True, False, False]),
]  # fmt: skip


@pytest.mark.parametrize("scores", BAD, ids=str)
def test_bad_scores_are_refused_before_any_coin_is_drawn(scores):
    with pytest.raises(InputError) as error:
        Exponential(1, candidates=3)(scores, Script())
    assert str(error.value).endswith(".")
    assert ". " not in str(error.value)


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, True, "1e400", None])
def test_bad_sensitivities_are_refused(bad):
    with pytest.raises(InputError):
        calibrate(Exponential, 1, sensitivity=bad, candidates=8)


def test_relations_do_not_mix():
    replaced = nz.sensitivity.histogram(neighbours=REPLACE)
    with pytest.raises(PrivacyError):
        Exponential.calibrated(nz.Pure(1, neighbours=ADD_REMOVE), replaced, candidates=3)
