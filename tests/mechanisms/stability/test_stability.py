"""What mechanisms for stable values share: examples, draws, refusals, checks of distances; and small worlds to test in.

A world is a set of tables with its neighbours: all multisets of a few values, of a few sizes. Distances are found by
breadth-first search, so they know nothing of the code.
"""

import itertools
import math
from collections import Counter, defaultdict
from dataclasses import replace
from fractions import Fraction

import pytest
from tests.goodness import ALPHA, p_value

from noisette.errors import InputError, PrivacyError
from noisette.mechanisms.stability import (
    point_function,
    propose_test_release,
    stable,
    stable_distance,
    stable_location,
    stable_mode,
    stable_scale,
)
from noisette.mechanisms.stability.stability import ShiftedBins, check_distance
from noisette.privacy import ZCDP, Approx, Neighbours, Pure, sensitivity
from noisette.privacy.sensitivity import Sensitivity

ADD_REMOVE, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
MODULES = (stable, stable_distance, stable_mode, propose_test_release, stable_location, stable_scale, point_function)
EXAMPLES = [m for module in MODULES for m in module.examples]
KINDS = list(dict.fromkeys(type(m) for m in EXAMPLES))
OPTIONS = {"ProposeTestRelease": {"bound": 2}, "StableLocation": {"width": 4}}


def world(values, sizes, relation):
    """{table: its neighbours}, tables being sorted tuples."""
    tables = {t for n in sizes for t in itertools.combinations_with_replacement(sorted(values), n)}
    near = {}
    for t in tables:
        fewer = {t[:i] + t[i + 1 :] for i in range(len(t))}
        if relation is REPLACE:
            found = {tuple(sorted((*rest, v))) for rest in fewer for v in values} - {t}
        else:
            found = fewer | {tuple(sorted((*t, v))) for v in values}
        near[t] = found & tables
    return near


def edges(near):
    return [(a, b) for a in near for b in near[a] if a < b]


def to_reach(near, targets):
    """{table: steps to the nearest target}, infinite where there is none."""
    steps, ring, at = dict.fromkeys(near, math.inf), set(targets), 0
    while ring:
        steps.update(dict.fromkeys(ring, at))
        ring, at = {b for a in ring for b in near[a] if steps[b] == math.inf}, at + 1
    return steps


def to_alter(near, value):
    """{table: steps to the nearest table with another value}."""
    kinds = defaultdict(set)
    for t in near:
        kinds[value(t)].add(t)
    changes = {}
    for tables in kinds.values():
        steps = to_reach(near, set(near) - tables)
        changes.update({t: steps[t] for t in tables})
    return changes


def delta_between(P, Q, epsilon):
    """The exact hockey-stick divergence of two laws, the larger of both directions."""
    factor, keys = math.exp(epsilon), P.keys() | Q.keys()
    return max(math.fsum(max(0.0, a.get(y, 0.0) - factor * b.get(y, 0.0)) for y in keys) for a, b in ((P, Q), (Q, P)))


def worst_delta(law, pairs, epsilon):
    """The largest divergence over all pairs of tables; laws that come again are compared once."""
    laws = {t: frozenset(law(t).items()) for t in {t for pair in pairs for t in pair}}
    different = {(laws[a], laws[b]) for a, b in pairs}
    return max(delta_between(dict(P), dict(Q), epsilon) for P, Q in different)


# Every example


def name(m):
    return repr(m).replace("Fraction", "")


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("m", EXAMPLES, ids=name)
def test_draws_follow_the_law(m):
    for table in {repr(x): x for pair in m.pairs() for x in pair[:2]}.values():
        law, draws = m.outcomes(table), Counter(m(table) for _ in range(1000))
        counts = [draws[outcome] for outcome in law]
        assert sum(counts) == 1000
        assert p_value(counts, list(law.values())) > ALPHA


@pytest.mark.parametrize("factor", [Fraction(4, 5), Fraction(5, 4)])
@pytest.mark.parametrize("m", EXAMPLES, ids=name)
def test_ten_thousand_typical_draws_of_a_twin_are_told_apart(m, factor):
    field = "scale" if hasattr(m, "scale") else "epsilon"
    broken = replace(m, **{field: getattr(m, field) * factor})
    tables = [x for pair in m.pairs() for x in pair[:2]]
    laws = [(m.outcomes(table), broken.outcomes(table)) for table in tables]
    assert min(p_value([10_000 * other.get(y, 0.0) for y in law], list(law.values())) for law, other in laws) < ALPHA


@pytest.mark.parametrize("m", EXAMPLES, ids=name)
def test_relations_are_carried(m):
    for relation in Neighbours:
        assert m.guarantee(sensitivity.histogram(neighbours=relation)).neighbours is relation
    nobody = m.guarantee(0)
    assert nobody.epsilon == nobody.delta == 0
    assert float(m.guarantee(2).epsilon) == pytest.approx(2 * float(m.guarantee(1).epsilon), rel=0.05)
    assert m.guarantee(2).delta > m.guarantee(1).delta


@pytest.mark.parametrize("relation", [None, ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("people", [1, 2])
def test_calibration_keeps_the_promise(kind, relation, people):
    promise = Approx(2, "1e-5", neighbours=relation)
    m = kind.calibrated(promise, people, **OPTIONS.get(kind.__name__, {}))
    assert m.guarantee(people) <= promise
    assert not m.guarantee(people) <= Approx("19/10", "1e-5", neighbours=relation)
    if relation and hasattr(m, "neighbours"):
        assert m.guarantee(people).neighbours is relation
        assert (
            kind.calibrated(
                promise, sensitivity.histogram(neighbours=relation), **OPTIONS.get(kind.__name__, {})
            ).guarantee(1)
            <= promise
        )
        other = REPLACE if relation is ADD_REMOVE else ADD_REMOVE
        with pytest.raises(PrivacyError):
            kind.calibrated(promise, sensitivity.histogram(neighbours=other), **OPTIONS.get(kind.__name__, {}))


class Untouched:
    """Coins that nobody may toss."""

    secure = False

    def __getattr__(self, name):
        raise AssertionError("drawn before the input was checked")


SECRET = 987654
BAD = [
    math.nan, None, "", "ab", True, [], [[1], [2, 3]], 2.5, [0.5, SECRET + 0.5], (), (SECRET,), (SECRET, -1),
    (SECRET, 1.5), (SECRET, 2.0), (SECRET, True), (SECRET, None), (SECRET, "1"), (SECRET, 1, 2.5), (math.nan, 1),
    ([SECRET], 1), (None, 3), [True, False], [-1, -SECRET, None], {SECRET: -1}, {SECRET: 1.5}, {SECRET: True},
    {None: 3}, [(SECRET, 1)], [(SECRET, None)], [SECRET], [[SECRET, True]], object(), 1j, [2**70, -(2**70), 0.5],
]  # fmt: skip


@pytest.mark.parametrize("m", EXAMPLES, ids=name)
@pytest.mark.parametrize("bad", BAD, ids=range(len(BAD)))
def test_unusable_inputs_are_refused_before_any_draw(m, bad):
    if isinstance(m, ShiftedBins) and bad in ((SECRET,), [SECRET], (SECRET, -1), (SECRET, 1)):
        return  # those are values
    with pytest.raises(InputError) as error:
        m(bad, Untouched())
    assert str(error.value).endswith(".")
    assert ". " not in str(error.value)
    assert str(SECRET) not in str(error.value)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not stable_distance.StableDistance])
@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(0, "1e-6"), (-1, "1e-6"), (1, 0), (1, -1), (1, 1), (1, "1e-40"), (math.nan, "1e-6"), (1, math.nan),
     (True, "1e-6"), (None, "1e-6"), ("1e-9", "1e-12")],
)  # fmt: skip
def test_bad_parameters_are_refused_in_one_sentence(kind, epsilon, delta):
    more = {"scale": 1, "bound": 1} if kind.__name__ == "ProposeTestRelease" else OPTIONS.get(kind.__name__, {})
    with pytest.raises(InputError) as error:
        kind(epsilon, delta, **more)
    assert str(error.value).endswith(".")
    assert ". " not in str(error.value)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("promise", [Pure(1), ZCDP(1), Approx(1, 0), Approx(0, "1e-6")], ids=repr)
def test_promises_without_a_delta_are_refused(kind, promise):
    with pytest.raises(InputError):
        kind.calibrated(promise, **OPTIONS.get(kind.__name__, {}))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("people", [0, -1, "1/2", math.nan, True, None, Sensitivity(0, 0, 0, 0, neighbours=REPLACE)])
def test_bad_sensitivities_are_refused(kind, people):
    with pytest.raises(InputError):
        kind.calibrated(Approx(1, "1e-6"), people, **OPTIONS.get(kind.__name__, {}))


@pytest.mark.parametrize("kind", [stable_mode.StableMode, point_function.PointFunction, stable_scale.StableScale])
def test_a_relation_must_be_one(kind):
    with pytest.raises(InputError):
        kind(1, "1e-6", neighbours="replace")


# Distances that people supply

NUMBERS = [(n, n + 1) for n in range(20)]


def test_good_distances_pass():
    assert check_distance(lambda x: max(0, x - 3), NUMBERS) == 20
    assert check_distance(lambda x: min(abs(x - 7), abs(x - 8)), NUMBERS, answer=lambda x: x >= 8) == 20
    assert check_distance(lambda x: max(0, 5 - x), NUMBERS, answer=lambda x: x * x, bound=9) == 20


@pytest.mark.parametrize(
    "distance", [lambda x: x - 3, lambda x: x / 2, lambda x: float(x), lambda x: None, lambda x: True]
)
def test_distances_that_are_negative_or_not_whole_are_refused(distance):
    with pytest.raises(InputError, match=r"^The distance must be a whole number, at least 0: .*\.$"):
        check_distance(distance, NUMBERS)


def test_distances_that_jump_are_refused():
    with pytest.raises(PrivacyError, match="by more than 1"):
        check_distance(lambda x: 2 * x, NUMBERS)


def test_distances_that_are_above_0_where_answers_move_are_refused():
    with pytest.raises(PrivacyError, match="must be 0 there"):
        check_distance(lambda x: 1, NUMBERS, answer=lambda x: x // 10)
    with pytest.raises(PrivacyError, match="must be 0 there"):
        check_distance(lambda x: max(0, 6 - x), NUMBERS, answer=lambda x: x * x, bound=9)
    with pytest.raises(InputError):
        check_distance(lambda x: 1, NUMBERS, answer=lambda x: math.nan, bound=1)
