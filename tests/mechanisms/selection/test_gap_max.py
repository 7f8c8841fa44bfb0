"""Gap-max: leads by search over moves, the theorem over all small scores, optimality of the curve, broken twins."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.goodness import ALPHA, p_value
from tests.mechanisms.selection.test_choosing import divergence
from tests.mechanisms.selection.test_exponential import BAD
from tests.tapes import Script, exp

import noisette as nz
from noisette.errors import InputError, PrivacyError
from noisette.laws import DiscreteLaplace
from noisette.mechanisms import Keep
from noisette.mechanisms.partitions.keep import _table
from noisette.mechanisms.selection.gap_max import GapMax, _best
from noisette.privacy import Approx, Neighbours, Pure

REPLACE = Neighbours.REPLACE


def moves(k, monotone):
    """All moves of one person: each score by at most one, all of them up or all down if monotone."""
    both = list(itertools.product((-1, 0, 1), repeat=k))
    return [d for d in both if not monotone or min(d) >= 0 or max(d) <= 0]


def first_best(q):
    return max(range(len(q)), key=lambda i: (q[i], -i))


def changes(q, monotone, most=9):
    """The least number of moves after which another candidate is best, by search."""
    reached, best = {q}, first_best(q)
    for count in range(1, most):
        reached = {tuple(a + b for a, b in zip(r, d, strict=True)) for r in reached for d in moves(len(q), monotone)}
        if any(first_best(r) != best for r in reached):
            return count
    raise AssertionError("too far to search")


# Leads


@pytest.mark.parametrize("monotone", [False, True])
def test_the_steps_are_the_changes_that_make_another_candidate_best(monotone):
    m = GapMax(1, "1e-3", candidates=2, monotone=monotone)
    for gap in range(-4, 5):
        q = (0, gap)
        assert m._steps(_best(m._scores._read(q))[1]) == changes(q, monotone)


@given(st.lists(st.integers(-5, 5), min_size=2, max_size=6))
def test_leads_count_ties_for_the_first(q):
    m = GapMax(1, "1e-3", candidates=len(q))
    best, lead = _best(m._scores._read(q))
    assert best == first_best(q)
    assert lead == min(q[best] - v + (j > best) for j, v in enumerate(q) if j != best) >= 1


# The theorem


def worst(m, law, monotone, reach=7):
    """The largest divergence over all scores in a range and all their neighbours."""
    promise, laws, largest = m.guarantee(1), {}, 0.0
    for q in itertools.product(range(reach), repeat=3):
        for d in moves(3, monotone):
            r = tuple(a + b for a, b in zip(q, d, strict=True))
            for x in (q, r):
                laws[x] = laws.get(x) or law(m, x)
            largest = max(largest, divergence(laws[q], laws[r], float(promise.epsilon)))
    return largest / float(promise.delta)


def stated(m, x):
    return m.outcomes(x)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize(("eps", "delta"), [(1, "1/20"), (3, "1e-3"), ("1/4", "1/10")])
def test_all_small_scores_keep_the_guarantee_and_use_it_up(eps, delta, monotone):
    m = GapMax(eps, delta, candidates=3, monotone=monotone)
    assert worst(m, stated, monotone) == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("monotone", [False, True])
def test_no_curve_in_the_lead_releases_more(monotone):
    """p_1 <= delta is needed where another one may be best, and from there on both inequalities of Keep."""
    m = GapMax(1, "1/20", candidates=2, monotone=monotone)
    curve, grow, one = _table(m.epsilon, m.delta0), exp(1), Fraction(2**128)
    for n in range(1, len(curve)):
        before = curve[n - 1] if n > 1 else 0
        bound = min(grow * before + one / 20, one - (one - before - one / 20) / grow, one)
        assert bound - 4 <= curve[n] <= bound
        lead = n * m.reach
        assert m.chance([lead - 1, 0]) == m.chance([0, lead]) == float(curve[n] / one)
        assert m.chance([lead, 0]) == (float(curve[n + 1] / one) if n + 1 < len(curve) else 1)


def one_step_more(m, x):
    """A broken twin: the lead counted from the tie, as if an equal score had to be overtaken by all."""
    best, lead = _best(m._scores._read(x))
    kept = float(m._keep.chance(m._steps(lead) + 1))
    return {best: kept, None: 1 - kept}


def half_the_reach(m, x):
    """A broken twin for scores that move in both directions: the lead taken for the changes."""
    return replace(m, reach=1).outcomes(x)


def certain(m, x):
    """A broken twin without any noise: released from a lead on."""
    best, lead = _best(m._scores._read(x))
    return {best: 1.0} if lead > 3 else {None: 1.0}


def second_best(m, x):
    """A broken twin that names the best candidate as None's reason: something is always released."""
    best, _ = _best(m._scores._read(x))
    return {best: 1.0}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("twin", [one_step_more, half_the_reach, certain, second_best])
def test_broken_twins_are_convicted(twin):
    m = GapMax(1, "1/20", candidates=3)
    assert worst(m, twin, monotone=False) > 1.5


def test_noise_on_the_lead_releases_less():
    """Two-sided geometric noise against a threshold, at the same guarantee, for leads of every size."""
    m = GapMax(1, "1e-6", candidates=2, monotone=True)
    noise = DiscreteLaplace(1)
    t = next(t for t in range(100) if noise.upper(t) <= 1e-6)  # a lead of 1 is released with at most delta
    for lead in range(1, 60):
        assert m.chance([0, lead]) >= float(noise.cdf(lead - 1 - t)) - 1e-15


def test_published_leads():
    """The numbers of the docstring."""
    m = GapMax.calibrated(Approx(1, "1e-6"), candidates=10)
    for n, (half, certain) in {m: (27, 55), replace(m, monotone=True, reach=1): (14, 28)}.items():
        chances = [n.chance([lead - 1, *[0] * 9]) for lead in range(1, 60)]  # the first one leads by one more
        assert next(lead for lead, chance in enumerate(chances, 1) if chance >= 0.5) == half
        assert next(lead for lead, chance in enumerate(chances, 1) if chance == 1) == certain


# The sampler, calibration, refusals


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("m", "x"), [(GapMax(1, "1e-6", candidates=3), [5, 31, 4]), (GapMax("1/2", "1e-3", candidates=2), [21, 0])]
)
def test_draws_follow_the_law(m, x):
    draws, law = [m(x) for _ in range(3000)], m.outcomes(x)
    assert p_value([draws.count(y) for y in law], list(law.values())) > ALPHA
    other = replace(m, epsilon=m.epsilon * Fraction(4, 5)).outcomes(x)
    assert p_value([draws.count(y) for y in law], [other[y] for y in law]) < ALPHA


def test_many_candidates_do_not_matter():
    few, many = GapMax(1, "1e-6", candidates=2), GapMax(1, "1e-6", candidates=10**5)
    scores = [0] * 10**5
    scores[77] = 26
    assert few.chance([0, 26]) == many.chance(scores)
    assert many([*scores[:-1], 90]) == 10**5 - 1


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("monotone", [False, True])
def test_what_is_asked_for_is_kept_exactly(size, monotone):
    m = GapMax.calibrated(Approx(1, "1e-6"), size, candidates=4, monotone=monotone)
    assert m.reach == size * (1 if monotone else 2)
    assert m.guarantee(size) == Approx(1, "1e-6")
    assert m.guarantee(2 * size) == Approx(1, "1e-6").group(2)
    replaced = GapMax.calibrated(Approx(1, "1e-6", neighbours=REPLACE), size, candidates=4, monotone=monotone)
    assert replaced.reach == 2 * size


def test_larger_moves_cost_so_many_steps():
    m = GapMax(1, "1/50", candidates=2)
    promise = m.guarantee(2)
    for gap in range(-9, 10):
        for d in itertools.product(range(-2, 3), repeat=2):
            P, Q = m.outcomes([0, gap]), m.outcomes([d[0], gap + d[1]])
            assert divergence(P, Q, float(promise.epsilon)) <= float(promise.delta) * (1 + 1e-12)


def test_relations_are_carried():
    m = GapMax(1, "1e-6", candidates=4, monotone=True)
    assert m.guarantee(nz.sensitivity.histogram()) == Approx(1, "1e-6", neighbours=Neighbours.ADD_REMOVE)
    assert m.guarantee(nz.sensitivity.histogram(neighbours=REPLACE)).epsilon == 2
    with pytest.raises(PrivacyError):
        GapMax.calibrated(Approx(1, "1e-6", neighbours=REPLACE), nz.sensitivity.histogram(), candidates=4)


def test_parts_of_a_step_are_no_move_of_whole_scores():
    m = GapMax.calibrated(Approx(1, "1e-6"), "1/3", candidates=4)
    assert m.reach == 1
    assert m.guarantee("1/3") == Approx(0, 0)
    assert m.guarantee("1/2") == Approx(1, "1e-6")


def test_intervals_are_leads():
    m = GapMax(1, "1e-4", candidates=3)
    for level in (0.5, 0.9, 0.99):
        t = int(m.interval(level))
        assert m.chance([0, t + 1, 0]) >= level > m.chance([0, t, 0])
        assert m.error(None, [0, t, 0]) == t
        assert m.error(1, [0, t, 0]) == 0


@pytest.mark.parametrize("scores", BAD, ids=str)
def test_bad_scores_are_refused_before_any_coin_is_drawn(scores):
    with pytest.raises(InputError) as error:
        GapMax(1, "1e-6", candidates=3)(scores, Script())
    assert str(error.value).endswith(".")
    assert ". " not in str(error.value)


@pytest.mark.parametrize(
    "options", [{"epsilon": 0}, {"delta0": 0}, {"delta0": 1}, {"candidates": 1}, {"monotone": 1}, {"reach": 0}]
)
def test_bad_parameters_are_refused(options):
    with pytest.raises(InputError):
        GapMax(**{"epsilon": 1, "delta0": "1e-6", "candidates": 3, **options})


def test_promises_that_cannot_be_kept_are_refused():
    for promise in (Pure(1), Approx(1, 0), nz.ZCDP(1)):
        with pytest.raises(InputError, match="delta"):
            GapMax.calibrated(promise, candidates=3)
    for bad in (0, -1, math.nan, True, None):
        with pytest.raises(InputError):
            GapMax.calibrated(Approx(1, "1e-6"), bad, candidates=3)


def test_the_curve_is_that_of_keep():
    assert GapMax(1, "1e-6", candidates=2)._keep == Keep(1, "1e-6")
