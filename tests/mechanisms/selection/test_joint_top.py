"""The joint top k: its law by definition, its theorem for all small scores, its counting, its sampler, its twins."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.goodness import ALPHA, p_value
from tests.mechanisms.selection.test_exponential import BAD, moves
from tests.tapes import Script

import noisette as nz
from noisette.audit.divergence import renyi
from noisette.errors import InputError, PrivacyError
from noisette.mechanisms.selection.exponential import Exponential
from noisette.mechanisms.selection.gumbel_top import GumbelTop
from noisette.mechanisms.selection.joint_top import JointTop, _even, _Proposals

ADD_REMOVE, REPLACE = nz.Neighbours


def loss(order, scores):
    best = sorted(scores, reverse=True)
    return max(best[place] - scores[i] for place, i in enumerate(order))


def by_definition(m, scores):
    orders = list(itertools.permutations(range(m.candidates), m.k))
    weights = [math.exp(-loss(y, scores) / m.scale) for y in orders]
    return {y: w / math.fsum(weights) for y, w in zip(orders, weights, strict=True)}


def worst(before, after):
    return max(abs(math.log(p / after[y])) for y, p in before.items())


# The law and the theorem


@pytest.mark.parametrize(("k", "scores"), [(1, [0, 3, 1]), (2, [5, 5, 0, -9]), (3, [0, 0, 0]), (3, [2, 1, 0, 9, 9])])
def test_the_law_is_the_definition(k, scores):
    m = JointTop("7/3", candidates=len(scores), k=k)
    assert m.outcomes(scores) == pytest.approx(by_definition(m, scores), rel=1e-12)


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize(("k", "n"), [(1, 3), (2, 2), (2, 4), (3, 4), (3, 3)])
def test_every_move_of_small_scores_keeps_epsilon(monotone, k, n):
    m = JointTop(1, candidates=n, k=k, monotone=monotone)
    stated, reached = float(m.guarantee(1).epsilon), 0.0
    for q in itertools.combinations_with_replacement(range(3), n):
        law = by_definition(m, q)
        reached = max(reached, *(worst(law, by_definition(m, np.add(q, s).tolist())) for s in moves(n, 1, monotone)))
    assert 0.3 * stated < reached <= stated * (1 + 1e-12)
    assert stated == (1 if monotone else 2) * (1 if k == 1 else 2)


@pytest.mark.parametrize(("monotone", "n"), [(True, 120), (False, 200)])
def test_with_many_candidates_epsilon_is_nearly_reached(monotone, n):
    m, back = JointTop(4, candidates=n, k=2, monotone=monotone), 0 if monotone else -1
    x, y = [4, 2] + [0] * (n - 2), [5, 2 + back, 1] + [back] * (n - 3)
    assert 0.98 < worst(m.outcomes(x), m.outcomes(y)) / float(m.guarantee(1).epsilon) <= 1


def test_losses_move_both_ways_even_if_scores_move_one_way():
    """What makes the factor 2: the second score alone grows, one order loses more and one less."""
    before, after = [10, 5, 0], [10, 6, 0]
    assert [loss((0, 2), q) for q in (before, after)] == [5, 6]
    assert [loss((1, 0), q) for q in (before, after)] == [5, 4]


def test_a_range_of_one_is_convicted():
    """A broken twin: noise for losses that all move one way, as the scores do."""
    one_way = Exponential.calibrated(nz.Pure(1), candidates=120, monotone=True).scale
    m = JointTop(one_way, candidates=120, k=2, monotone=True)
    x, y, _ = m.pairs()[0]
    assert worst(m.outcomes(x), m.outcomes(y)) > 1.5
    honest = JointTop.calibrated(nz.Pure(1), candidates=120, k=2, monotone=True)
    assert worst(honest.outcomes(x), honest.outcomes(y)) <= 1


@pytest.mark.parametrize("m", [JointTop(2, candidates=30, k=2, monotone=True), JointTop("5/2", candidates=5, k=1)])
def test_its_pairs_are_as_tight_as_stated(m):
    parts = [worst(by_definition(m, x), by_definition(m, y)) / float(m.guarantee(d).epsilon) for x, y, d in m.pairs()]
    assert 0.8 < m.tightness <= max(parts) <= 1 + 1e-9


def test_its_range_gives_its_rho():
    m = JointTop(1, candidates=3, k=2)
    rho = float(m.guarantee(1).epsilon) ** 2 / 8
    assert m.guarantee(1) <= nz.ZCDP(Fraction(rho))
    for q in itertools.product(range(3), (0, 5), range(3)):
        for s in moves(3, 1, False):
            P, Q = (np.array(list(m.outcomes(x).values())) for x in (q, np.add(q, s)))
            assert max(renyi(P, Q, order) / order for order in (1.1, 2, 8)) <= rho * (1 + 1e-9)


def test_one_candidate_is_that_of_the_exponential_mechanism():
    m, scores = JointTop(2, candidates=4, k=1), [0, 1, 3, 2]
    assert list(m.outcomes(scores).values()) == pytest.approx(Exponential(2, candidates=4).pmf(range(4), scores))
    assert m.guarantee(1) == Exponential(2, candidates=4).guarantee(1)


def test_relations_are_carried():
    m = JointTop(1, candidates=4, k=2, monotone=True)
    assert m.guarantee(nz.sensitivity.histogram()) == nz.Pure(2, neighbours=ADD_REMOVE)
    assert m.guarantee(nz.sensitivity.histogram(neighbours=REPLACE)) == nz.Pure(4, neighbours=REPLACE)
    with pytest.raises(PrivacyError):
        JointTop.calibrated(
            nz.Pure(1, neighbours=ADD_REMOVE), nz.sensitivity.histogram(neighbours=REPLACE), candidates=3, k=2
        )


# How it is drawn


@given(st.lists(st.integers(0, 12), min_size=2, max_size=6), st.integers(1, 6), st.integers(0, 13))
def test_orders_that_lose_at_most_v_are_counted(scores, k, v):
    k = min(k, len(scores))
    orders = itertools.permutations(range(len(scores)), k)
    losses = max(scores) - np.sort(scores)[::-1]
    assert _Proposals(losses, k, Fraction(1)).within(v) == sum(loss(y, scores) <= v for y in orders)


def test_places_are_drawn_evenly():
    sizes = np.array([2, 3, 5])
    possible = [y for y in itertools.permutations(range(5), 3) if all(i < s for i, s in zip(y, sizes, strict=True))]
    drawn = Counter(tuple(_even(sizes, nz.exact.random.SYSTEM)) for _ in range(3000))
    assert len(possible) == 2 * 2 * 3
    assert p_value([drawn[y] for y in possible], [1 / 12] * 12) > ALPHA


@pytest.mark.parametrize("scale", ["1/3", 2, 9, 50])
def test_proposals_are_the_weights_of_their_ranges(scale):
    """N e^(-from/scale) (1 - e^(-step/scale)) for every range, all in one unit, as floats and enclosed."""
    p = _Proposals(np.array([0, 1, 1, 7, 30, 400]), 3, Fraction(scale))
    a = math.exp(-1 / p.scale)
    for at in range(p.steps + 1):
        start, end = at * p.step, (at + 1) * p.step
        true = p._most(at) * a**start * (1 - a ** (end - start) if at < p.steps else 1) / 2.0**p.unit
        lo, hi = p._weight(at)(80)
        assert 0 <= hi - lo <= 2 * p._most(at) + 2
        assert lo / 2**80 == pytest.approx(true, rel=1e-9, abs=1e-20)
        assert math.exp(-p.near[at]) == pytest.approx(true, rel=1e-9, abs=1e-300)
    assert 1 >= math.exp(-p.near.min()) > 0.45


AWKWARD = [
    (JointTop("7/3", candidates=4, k=2), [0, 3, 5, 5]),
    (JointTop("1/5", candidates=3, k=2), [10**6, 10**6 + 1, 10**6]),
    (JointTop(10**12, candidates=3, k=3), [-(10**12), 0, 10**12]),
    (JointTop(25, candidates=5, k=3), [90, 60, 60, 0, 1]),
    (JointTop(3, candidates=4, k=2), [2**62 - 1, -(2**62) + 1, 2, 0]),
    (JointTop(3, candidates=4, k=4), [7, 7, 7, 7]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("m", "scores"), AWKWARD, ids=["ties", "narrow", "wide", "steps", "far", "even"])
def test_draws_follow_the_law(m, scores):
    drawn, law = Counter(m(scores) for _ in range(2000)), by_definition(m, scores)
    assert all(type(i) is int for y in drawn for i in y)
    assert p_value([drawn[y] for y in law], list(law.values())) > ALPHA


@pytest.mark.slow
def test_other_scales_and_the_top_by_rounds_are_told_apart():
    m, scores = JointTop(3, candidates=4, k=2), [0, 2, 9, 6]
    drawn = Counter(m(scores) for _ in range(12_000))  # a twin passes with p < 1e-12: its p-values are near 1e-75
    others = [JointTop(Fraction(12, 5), candidates=4, k=2), JointTop(Fraction(15, 4), candidates=4, k=2)]
    for law in [other.outcomes(scores) for other in (*others, GumbelTop(3, candidates=4, k=2))]:
        assert p_value([drawn[y] for y in law], list(law.values())) < ALPHA


def test_orders_of_hundreds_of_thousands():
    """2^1300 orders and more: numbers of that size decide, floats do not overflow."""
    scores = np.arange(10**5) ** 2 // 1000
    m = JointTop(2, candidates=10**5, k=100)
    released = m(scores)
    assert len(set(released)) == 100
    assert m.error(released, scores) <= m.interval(1 - 1e-9)
    even = JointTop(2, candidates=10**5, k=100)(np.zeros(10**5, int))
    assert len(set(even)) == 100


def test_weights_far_away_are_not_computed_at_length():
    p = _Proposals(np.array([0, 10**15, 2 * 10**15]), 2, Fraction(1, 1000))
    lo, hi = p._weight(p.steps)(64)
    assert p.steps == 1
    assert lo == 0
    assert hi <= 2


# What to expect


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_scores_are_as_near_to_the_best_as_stated(level):
    m = JointTop(1, candidates=4, k=2)
    t, least = m.interval(level), 1.0
    for scores in itertools.combinations_with_replacement([0, 1, 2, int(t), int(t) + 1], 4):
        law = m.outcomes(scores)
        least = min(least, math.fsum(p for y, p in law.items() if loss(y, scores) <= t))
        assert all(m.error(y, scores) == loss(y, scores) for y in law)
    assert level <= least < level + 0.35


def mean_loss(m, scores, draws):
    return np.mean([m.error(m(scores), scores) for _ in range(draws)])


def test_where_scores_stand_out_it_beats_rounds_of_the_same_epsilon():
    """Losses of 20 by rounds of which each has a twentieth of epsilon, and of one choice with half of it."""
    scores = [10**5 // (i + 1) ** 2 for i in range(200)]
    joint = JointTop.calibrated(nz.Pure(1), candidates=200, k=20, monotone=True)
    rounds = GumbelTop.calibrated(nz.Pure(1), candidates=200, k=20, monotone=True)
    assert joint.guarantee(1).epsilon == rounds.guarantee(1).epsilon == 1
    assert mean_loss(joint, scores, 60) < 0.75 * mean_loss(rounds, scores, 60)


@pytest.mark.slow
def test_where_all_scores_are_near_rounds_are_better():
    scores = [3 * i for i in range(60)]
    joint = JointTop.calibrated(nz.Pure(1), candidates=60, k=2, monotone=True)
    rounds = GumbelTop.calibrated(nz.Pure(1), candidates=60, k=2, monotone=True)
    means = [math.fsum(p * loss(y, scores) for y, p in m.outcomes(scores).items()) for m in (rounds, joint)]
    assert means[0] < 0.8 * means[1]


# Calibration and refusals


@pytest.mark.slow
@given(st.fractions("1/100", 20, max_denominator=1000), st.fractions("1/7", 50, max_denominator=7), st.integers(1, 7))
def test_what_is_asked_for_is_kept_exactly(epsilon, size, k):
    m = JointTop.calibrated(nz.Pure(epsilon), size, candidates=7, k=k)
    assert m.guarantee(size) == nz.Pure(epsilon)
    rho = JointTop.calibrated(nz.ZCDP(epsilon), size, candidates=7, k=k)
    assert rho.guarantee(size) <= nz.ZCDP(epsilon)
    assert JointTop.calibrated(nz.Approx(epsilon, "1e-6"), size, candidates=7, k=k).guarantee(size) <= nz.Approx(
        epsilon, "1e-6"
    )


@pytest.mark.parametrize("scores", BAD, ids=str)
def test_bad_scores_are_refused_before_any_coin_is_drawn(scores):
    with pytest.raises(InputError) as error:
        JointTop(1, candidates=3, k=2)(scores, Script())
    assert str(error.value).endswith(".")
    assert ". " not in str(error.value)


@pytest.mark.parametrize(
    "options", [{"scale": 0}, {"candidates": 1}, {"monotone": None}, {"k": 0}, {"k": 4}, {"k": True}, {"k": 1.5}]
)
def test_bad_parameters_are_refused(options):
    with pytest.raises(InputError):
        JointTop(**{"scale": 1, "candidates": 3, "k": 2, **options})
    if "scale" not in options:
        with pytest.raises(InputError):
            JointTop.calibrated(nz.Pure(1), **{"candidates": 3, "k": 2, **options})


def test_levels_out_of_range_are_refused():
    with pytest.raises(InputError, match="level"):
        JointTop(1, candidates=3, k=2).interval(0)
