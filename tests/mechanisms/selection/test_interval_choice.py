"""Scores on pieces of a line: the law by points, the theorem by enumeration, the sampler, its refusals, its twins."""

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
from noisette.audit.divergence import largest_loss
from noisette.errors import InputError, PrivacyError
from noisette.exact.random import SYSTEM
from noisette.mechanisms import calibrate
from noisette.mechanisms.selection.exponential import Exponential
from noisette.mechanisms.selection.interval_choice import Pieces, drawn

ADD_REMOVE, REPLACE = nz.Neighbours


def pieces(scores):
    """A score for each point as pieces: how many points in a row share it."""
    return [(len(list(run)), q) for q, run in itertools.groupby(scores)]


def by_points(scale, scores):
    """The definition, to 40 digits."""
    with mpmath.workdps(40):
        weights = [mpmath.exp(mpmath.mpf(q) * scale.denominator / scale.numerator) for q in scores]
        return np.array([float(w / mpmath.fsum(weights)) for w in weights])


def law(m, scores):
    return np.array(list(m.outcomes(pieces(scores)).values()))


# The law and the theorem


@pytest.mark.parametrize("scale", [1, "7/3", "1/10", 50])
@pytest.mark.parametrize("scores", [[0, 0, 1], [4, 4, 4, 4], [-9, 0, 0, 0, 5, 5, 3], [100, 100, 99]], ids=repr)
def test_the_law_is_that_of_the_points(scale, scores):
    m = Pieces(scale, points=len(scores))
    assert list(m.outcomes(pieces(scores))) == list(range(len(scores)))
    assert law(m, scores) == pytest.approx(by_points(m.scale, scores), rel=1e-12)


def worst_loss(law_of, monotone):
    """The largest loss of all small scores on four points and all their moves by one; their pieces differ."""
    logs = {
        q: np.log(law_of(q)) for q in itertools.product(range(-2, 2), (-1, 0, 15, 16), (-1, 15, 16, 17), range(-1, 2))
    }
    worst = 0.0
    for q, one in logs.items():
        for move in itertools.product((0, 1) if monotone else (-1, 0, 1), repeat=4):
            other = logs.get(tuple(np.add(q, move).tolist()))
            worst = max(worst, 0.0 if other is None else float(np.abs(one - other).max()))
    return worst


@pytest.mark.parametrize("monotone", [False, True])
def test_every_move_of_small_scores_keeps_epsilon_and_some_reach_it(monotone):
    m = Pieces(1, points=4, monotone=monotone)
    stated = float(m.guarantee(1).epsilon)
    assert stated * (1 - 1e-5) <= worst_loss(lambda q: law(m, q), monotone) <= stated * (1 + 1e-9)
    assert stated == (1 if monotone else 2)


def test_half_the_sensitivity_is_convicted():
    m, claimed = Pieces.calibrated(nz.Pure(2), "1/2", points=4), 2
    assert worst_loss(lambda q: law(m, q), monotone=False) > 1.9 * claimed


def regardless_of_size(scores):
    """A broken twin that chooses a piece by its score alone and then a point of it."""
    sizes, values = np.array(pieces(scores)).T
    weights = np.exp(values - values.max())
    return np.repeat(weights / weights.sum() / sizes, sizes)


def test_pieces_must_count_by_their_size():
    """Where a piece begins depends on the data: a point that leaves a piece of two makes the other more likely."""
    assert worst_loss(regardless_of_size, monotone=False) > 2.4  # of 2


def test_moved_breakpoints_are_moved_scores():
    m = Pieces(2, points=10)
    one, other = m.outcomes([(4, 0), (6, 3)]), m.outcomes([(5, 0), (5, 3)])
    assert largest_loss(*(np.array(list(x.values())) for x in (one, other))) <= float(m.guarantee(3).epsilon)


def test_what_pairs_show_is_what_is_stated():
    for m in (Pieces(2, points=6), Pieces("1/3", points=9, monotone=True)):
        shown = []
        for x, y, d in m.pairs():
            P, Q = (np.array(list(m.outcomes(z).values())) for z in (x, y))
            shown.append(largest_loss(P, Q) / float(m.guarantee(d).epsilon))
        assert m.tightness <= max(shown) <= 1 + 1e-9


# The sampler

AWKWARD = [
    (Pieces("7/3", points=9), [(4, 0), (2, 3), (0, 90), (3, 5)]),
    (Pieces("1/5", points=7), [(3, 10**6), (1, 10**6 + 1), (3, 10**6)]),
    (Pieces(10**12, points=6), [(2, -(10**18)), (1, 0), (3, 10**12)]),
    (Pieces("1e305", points=5), [(3, -(2**61)), (2, 2**61)]),
    (Pieces(3, points=12), [(12, -7)]),
    (Pieces(2, points=1002), [(1000, -13), (2, 0)]),
]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("m", "x"), AWKWARD, ids=["empty", "narrow", "wide", "even", "one", "behind"])
def test_draws_follow_the_law(m, x):
    draws = [m(x) for _ in range(2500)]
    assert all(type(y) is int for y in draws)
    assert p_value(np.bincount(draws, minlength=m.points), list(m.outcomes(x).values())) > ALPHA


@pytest.mark.slow
def test_a_grid_of_2_to_the_60_points():
    """Each third of a piece is as likely as the other two, and pieces as their sizes and scores say."""
    m, x = Pieces(2, points=2**60), [(3 * 2**40, 41), (2**60 - 2**43, 14), (2**43 - 3 * 2**40, 39)]
    sizes, scores = np.array(x).T
    weights = sizes * np.exp((scores - 41) / 2)
    thirds = (np.cumsum(sizes) - sizes)[:, None] + sizes[:, None] * np.arange(3) // 3
    places = np.searchsorted(thirds.ravel(), [m(x) for _ in range(2500)], side="right") - 1
    assert weights.min() / weights.sum() > 0.05
    assert p_value(np.bincount(places, minlength=9), np.repeat(weights / weights.sum() / 3, 3)) > ALPHA


def test_a_hundred_thousand_pieces():
    m = Pieces(2, points=10**12)
    x = np.column_stack([np.full(10**5, 10**7), np.arange(10**5)])
    assert all(y >= 10**12 - 100 * 10**7 for y in (m(x) for _ in range(5)))


@pytest.mark.slow
def test_too_large_a_bound_of_sizes_changes_nothing_but_time():
    sizes, losses, most = np.array([5, 1, 0, 3]), np.array([2, 0, 1, 1]), np.array([5, 9, 4, 7])
    chances = sizes * np.exp(-losses / 2)
    counts = np.bincount(
        [drawn(losses, most, lambda i: int(sizes[i]), Fraction(2), SYSTEM) for _ in range(2500)], minlength=4
    )
    assert p_value(counts[[0, 1, 3]], chances[[0, 1, 3]] / chances.sum()) > ALPHA
    assert not counts[2]
    careless = np.bincount(
        [drawn(losses, most, lambda i: int(most[i]), Fraction(2), SYSTEM) for _ in range(2500)], minlength=4
    )
    assert p_value(careless, np.maximum(chances, 1e-12) / chances.sum()) < ALPHA


@pytest.mark.slow
def test_half_the_noise_is_told_apart():
    m, x = Pieces(2, points=5), [(3, 0), (2, 3)]
    counts = np.bincount([m(x) for _ in range(2500)], minlength=5)
    assert p_value(counts, list(Pieces(1, points=5).outcomes(x).values())) < ALPHA


# What to expect


@pytest.mark.parametrize("scale", [1, "5/2"])
def test_losses_are_as_stated(scale):
    m = Pieces(scale, points=4)
    t, worst = m.interval(0.9), 1.0
    for losses in itertools.product(range(0, 16, 3), repeat=3):
        scores = [0, *(-v for v in losses)]
        errors = np.array([m.error(y, pieces(scores)) for y in range(4)])
        assert errors.tolist() == [0, *losses]
        worst = min(worst, law(m, scores)[errors <= t].sum())
    assert worst >= 0.9 - 1e-12
    assert law(m, [0] + [-int(t)] * 3)[0] < 0.9  # a smaller t would not do


def test_errors_do_not_count_empty_pieces():
    assert Pieces(1, points=3).error(2, [(2, 0), (0, 50), (1, -4)]) == 4


# Calibration and refusals


@given(st.fractions("1/100", 20, max_denominator=1000), st.fractions("1/7", 50, max_denominator=7), st.booleans())
def test_what_is_asked_for_is_kept_exactly(epsilon, size, monotone):
    m = calibrate(Pieces, epsilon, sensitivity=size, points=7, monotone=monotone)
    assert m.guarantee(size) == nz.Pure(epsilon)
    rho = calibrate(Pieces, nz.ZCDP(epsilon), sensitivity=size, points=7, monotone=monotone)
    assert rho.guarantee(size) <= nz.ZCDP(epsilon)
    assert rho.scale == Exponential.calibrated(nz.ZCDP(epsilon), size, candidates=7, monotone=monotone).scale


def test_relations_are_carried_and_not_mixed():
    moved = nz.sensitivity.counts(3, neighbours=REPLACE)
    assert Pieces(2, points=3, monotone=True).guarantee(moved) == nz.Pure(1, neighbours=REPLACE)
    assert Pieces(2, points=3, monotone=True).guarantee(nz.sensitivity.counts(3)).epsilon == Fraction(1, 2)
    with pytest.raises(PrivacyError):
        Pieces.calibrated(nz.Pure(1, neighbours=ADD_REMOVE), moved, points=3)


BAD = [
    [(3, 0)], [(5, 0)], [(-1, 0), (5, 0)], [], [(4,)], [(4, 0, 0)], (4, 0), [(4, 0.5)], [(4.0, 1)], [(4, math.nan)],
    [(4, None)], [("4", 0)], [(True, 0), (3, 1)], [(4, True)], [(2, 0), (2,)], [(4, 2**62)], [(4, -(2**70))],
    [(2**70, 0), (4 - 2**70, 0)], None, "", 4, math.nan, {"a": 1},
]  # fmt: skip


@pytest.mark.parametrize("x", BAD, ids=str)
def test_bad_pieces_are_refused_before_any_coin_is_drawn(x):
    with pytest.raises(InputError) as error:
        Pieces(1, points=4)(x, Script())
    assert str(error.value).endswith(".")
    assert ". " not in str(error.value)


@pytest.mark.parametrize(
    "options",
    [{"scale": 0}, {"scale": math.nan}, {"points": 1}, {"points": "3"}, {"points": 2**62}, {"monotone": None}],
    ids=str,
)
def test_bad_parameters_are_refused(options):
    with pytest.raises(InputError):
        Pieces(**{"scale": 1, "points": 3, **options})


def test_laws_of_large_grids_are_refused():
    with pytest.raises(InputError, match="65,536"):
        Pieces(1, points=10**6).outcomes([(10**6, 0)])
