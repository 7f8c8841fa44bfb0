"""The choosing mechanism: its theorem over all small tables, its constants, its sampler, its broken twins."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import mpmath
import pytest
from tests.goodness import ALPHA, p_value
from tests.tapes import Script

from noisette.errors import InputError, PrivacyError
from noisette.mechanisms import Keep, Threshold
from noisette.mechanisms.selection.choosing import Choosing
from noisette.privacy import Approx, Neighbours, Pure, sensitivity
from noisette.privacy.sensitivity import Sensitivity

ADD_REMOVE, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE


def divergence(P, Q, epsilon):
    """The hockey-stick divergence, in the worse order."""
    factor, outcomes = math.exp(epsilon), {*P, *Q}
    pairs = [(P.get(y, 0.0), Q.get(y, 0.0)) for y in outcomes]
    return max(math.fsum(max(0.0, p - factor * q) for p, q in order) for order in (pairs, [(q, p) for p, q in pairs]))


@lru_cache
def noise(scale):
    """P(z) of two-sided geometric noise."""
    with mpmath.workdps(30):
        a = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
        return {z: (1 - a) / (1 + a) * a ** abs(z) for z in range(-400, 401)}


@lru_cache
def passed(scale, least):
    return sum(p for z, p in noise(scale).items() if z >= least)


def by_definition(m, scores):
    """The law as the paper states it, from sums over the noise to 30 digits."""
    good = {i: q for i, q in scores.items() if q > 0}
    if not good:
        return {None: 1.0}
    with mpmath.workdps(30):
        best, rate = max(good.values()), mpmath.mpf(m.scale.denominator) / m.scale.numerator
        power = {q: mpmath.exp(rate * (q - best)) for q in set(good.values())}
        total, through = sum(power[q] for q in good.values()), passed(m.scale, m.threshold - best)
        return {None: float(1 - through), **{i: float(through * power[q] / total) for i, q in good.items()}}


def steps(scores, growth):
    """All tables with one record more."""
    for raised in itertools.product((0, 1), repeat=len(scores)):
        if sum(raised) <= growth:
            yield tuple(q + up for q, up in zip(scores, raised, strict=True))


def worst(m, law, tables, epsilon):
    """The largest divergence over all of the tables and their neighbours."""
    laws = {}

    def known(scores):
        if scores not in laws:
            laws[scores] = law(m, dict(enumerate(scores)))
        return laws[scores]

    return max(divergence(known(q), known(r), epsilon) for q in tables for r in steps(q, m.growth))


def stated(m, x):
    return m.outcomes(x)


# The law and the theorem


@pytest.mark.parametrize("m", [Choosing(2, 12, candidates=5), Choosing("1/2", 3, candidates=4, growth=2)])
def test_the_law_is_that_of_the_paper(m):
    for q in itertools.product((0, 1, 2, 5, 12, 14), repeat=3):
        x = dict(enumerate(q))
        assert m.outcomes(x) == pytest.approx(by_definition(m, x), abs=1e-14)


SMALL = [
    Choosing(1, 4, candidates=4),
    Choosing(1, 5, candidates=4, growth=2),
    Choosing("3/2", 6, candidates=4, growth=3),
    Choosing("1/2", 2, candidates=4, growth=9),
    Choosing(3, 9, candidates=4, growth=2),
]


@pytest.mark.parametrize("m", SMALL, ids=repr)
def test_every_small_table_keeps_the_guarantee_and_some_reach_delta(m):
    tables = list(itertools.product(range(m.threshold + 3), repeat=3))
    tables = [(*q, 0) for q in tables if tuple(sorted(q, reverse=True)) == q]  # names do not matter
    promise = m.guarantee(1)
    seen = worst(m, stated, tables, float(promise.epsilon))
    assert seen <= float(promise.delta) * (1 + 1e-12)
    assert seen >= float(promise.delta) * (1 - 1e-9)


@pytest.mark.parametrize("scale", ["1/2", 1, 3])
def test_epsilon_is_reached_with_many_ties(scale):
    m = Choosing(scale, 40, candidates=10**6)
    tied = dict.fromkeys(range(3000), 20)
    P, Q = m.outcomes(tied), m.outcomes({**tied, 0: 21})
    loss, epsilon = math.log(Q[0] / P[0]), float(m.guarantee(1).epsilon)
    assert 0.99 * epsilon < loss <= epsilon


@pytest.mark.parametrize("growth", [1, 2, 10, 1000])
@pytest.mark.parametrize("scale", [1, 2, "13/2"])
def test_delta_is_the_largest_over_all_best_scores(scale, growth):
    """r(M) k e^(1/s)/(e^(M/s) + k e^(1/s)), and r(1), as sums say."""
    s = Fraction(scale)
    t = math.ceil(float(s) * math.log(growth / -math.expm1(-1 / float(s)))) + 3
    m = Choosing(scale, t, candidates=2**64, growth=growth)
    new = [
        by_definition(m, {0: best, **dict.fromkeys(range(1, growth + 1), 1)}) for best in (1, t - 1, t, t + 1, t + 9)
    ]
    masses = [math.fsum(p for y, p in law.items() if y is not None and y > 0) for law in new]
    alone = 1 - by_definition(m, {0: 1})[None]
    assert float(m.guarantee().delta) == pytest.approx(max(*masses, alone), rel=1e-12)


# Broken twins


def untested(m, x):
    """The exponential mechanism on positive scores, without the test."""
    good = {i: q for i, q in x.items() if q > 0}
    total = sum(math.exp(q / float(m.scale)) for q in good.values())
    return {i: math.exp(q / float(m.scale)) / total for i, q in good.items()} or {None: 1.0}


TWINS = {
    "without the test": untested,
    "threshold one lower": lambda m, x: replace(m, threshold=m.threshold - 1).outcomes(x),
    "half the noise": lambda m, x: replace(m, scale=m.scale / 2).outcomes(x),
    "more growth than stated": stated,
}


@pytest.mark.parametrize("name", TWINS)
def test_broken_twins_are_convicted(name):
    m = Choosing(1, 5, candidates=4, growth=2)
    promise = m.guarantee(1)
    tables = [(*q, 0) for q in itertools.product(range(8), repeat=3) if tuple(sorted(q, reverse=True)) == q]
    told = replace(m, growth=3) if name == "more growth than stated" else m
    seen = worst(told, TWINS[name], tables, float(promise.epsilon))
    assert seen > 1.2 * float(promise.delta)


# Calibration


def test_the_threshold_is_the_least_that_keeps_the_promise():
    for growth in (1, 3, 100):
        m = Choosing.calibrated(Approx(1, "1e-6"), candidates=2**64, growth=growth)
        assert m.guarantee() <= Approx(1, "1e-6")
        assert replace(m, threshold=m.threshold - 1).guarantee().delta > Fraction(1, 10**6)


def test_when_to_use_which():
    """The numbers of the docstring."""
    promise = Approx(1, "1e-6")
    ours = {k: Choosing.calibrated(promise, candidates=2**64, growth=k) for k in (1, 3, 10, 100)}
    assert [m.threshold for m in ours.values()] == [28, 30, 33, 37]
    assert [Keep.calibrated(promise, groups=k).least(0.5) for k in ours] == [14, 40, 132, 630]
    noises = "geometric", "gaussian"
    best = [min(Threshold.calibrated(promise, groups=k, noise=noise).threshold for noise in noises) for k in ours]
    assert best == [15, 38, 71, 239]
    assert ours[1].interval(0.95, positives=10**4) == 32
    assert 437 < 16 * math.log(4 * 10**4 / (0.05 * 1e-6)) < 439


@pytest.mark.parametrize("records", [1, 2, 3])
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_several_records_cost_so_many_steps(records, relation):
    promise = Approx(2, "1e-4", neighbours=relation)
    m = Choosing.calibrated(promise, records, candidates=5, growth=2)
    count = records * (2 if relation is REPLACE else 1)
    assert m.scale == count
    assert m.guarantee(records, neighbours=relation) <= promise
    assert m.guarantee(records, neighbours=relation).neighbours is relation


@pytest.mark.slow
def test_two_steps_keep_the_guarantee_of_two():
    m = Choosing(1, 5, candidates=3, growth=1)
    promise = m.guarantee(1, neighbours=REPLACE)
    for rest in itertools.product(range(7), repeat=3):
        for q, other in itertools.combinations(steps(rest, 1), 2):  # a record replaced, the rest stays
            P, Q = m.outcomes(dict(enumerate(q))), m.outcomes(dict(enumerate(other)))
            assert divergence(P, Q, float(promise.epsilon)) <= float(promise.delta) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("move", "count"),
    [
        (sensitivity.histogram(), 1),
        (sensitivity.histogram(neighbours=REPLACE), 2),
        (sensitivity.counts(6), 2),
        (sensitivity.counts(6, neighbours=REPLACE), 3),
        (sensitivity.counts(7, neighbours=REPLACE), 3),
        (sensitivity.counts(8, neighbours=REPLACE), 4),
        (Sensitivity(4, 16, 4, 1, neighbours=ADD_REMOVE), 4),
    ],
    ids=repr,
)
def test_sensitivities_are_so_many_steps(move, count):
    m = Choosing(2, 30, candidates=10, growth=3)
    assert m.guarantee(move).epsilon == count
    assert m.guarantee(move).neighbours is move.neighbours
    assert Choosing.calibrated(Approx(1, "1e-6"), move, candidates=10, growth=3).scale == 2 * count


# The sampler, what to expect, refusals


@pytest.mark.slow
@pytest.mark.parametrize(
    ("m", "x"),
    [
        (Choosing(2, 12, candidates=2**64), {2**63: 13, 5: 11, 7: 12, 9: 0}),
        (Choosing("1/2", 3, candidates=9, growth=3), {1: 3, 5: 2, 8: 1}),
        (Choosing(4, 30, candidates=9), {4: 28}),
    ],
)
def test_draws_follow_the_law(m, x):
    draws, law = [m(x) for _ in range(4000)], by_definition(m, x)
    assert p_value([draws.count(y) for y in law], list(law.values())) > ALPHA
    quiet = replace(m, scale=m.scale / 2).outcomes(x)
    assert p_value([draws.count(y) for y in law], [quiet[y] for y in law]) < ALPHA


def test_nothing_is_released_of_an_empty_table():
    m = Choosing(1, 2, candidates=4)
    assert {m(x) for x in ({}, {0: 0}, ([], []), {1: 0, 2: 0}) for _ in range(200)} == {None}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("m", [Choosing(1, 4, candidates=3), Choosing("5/2", 9, candidates=3)], ids=repr)
def test_errors_are_as_stated(m):
    t, seen = m.interval(0.9), 1.0
    shorter = 1.0
    for q in itertools.combinations_with_replacement(range(int(t) + 4), 3):
        x = dict(enumerate(q))
        errors = {y: m.error(y, x) for y in m.outcomes(x)}
        seen = min(seen, math.fsum(p for y, p in m.outcomes(x).items() if errors[y] <= t))
        shorter = min(shorter, math.fsum(p for y, p in m.outcomes(x).items() if errors[y] <= t - 1))
    assert shorter < 0.9 <= seen + 1e-12


BAD = [None, [], "", 3, {0: -1}, {0: 1.0}, {0: True}, {0: math.nan}, {9: 1}, {"a": 1}, ([0, 0], [1, 1]), [[1], [2, 3]]]


@pytest.mark.parametrize("x", BAD, ids=str)
def test_bad_scores_are_refused_before_any_coin_is_drawn(x):
    with pytest.raises(InputError) as error:
        Choosing(1, 4, candidates=4)(x, Script())
    assert str(error.value).endswith(".")
    assert ". " not in str(error.value)


@pytest.mark.parametrize(
    "options",
    [{"scale": 0}, {"threshold": 0}, {"threshold": 1.5}, {"candidates": 1}, {"growth": 0}, {"growth": 10**9}],
)
def test_bad_parameters_are_refused(options):
    with pytest.raises(InputError):
        Choosing(**{"scale": 1, "threshold": 5, "candidates": 4, **options})


def test_promises_that_cannot_be_kept_are_refused():
    with pytest.raises(InputError, match="delta"):
        Choosing.calibrated(Pure(1), candidates=4)
    with pytest.raises(InputError):
        Choosing.calibrated(Approx(1, "1e-6"), 0, candidates=4)
    with pytest.raises(PrivacyError):
        Choosing.calibrated(Approx(1, "1e-6", neighbours=REPLACE), sensitivity.histogram(), candidates=4)
    with pytest.raises(InputError):
        Choosing.calibrated(Approx(1, "1e-6"), candidates=0)
