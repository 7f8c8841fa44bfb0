"""The stable mode: distances against breadth-first search, every neighbour of small tables, ties, and broken twins."""

import math
from collections import Counter

import numpy as np
import pytest
from tests.mechanisms.stability.test_stability import ADD_REMOVE, REPLACE, edges, to_alter, world, worst_delta
from tests.tapes import Forced

import noisette as nz
from noisette.errors import InputError
from noisette.mechanisms.stability.stable_mode import StableMode, ahead
from noisette.privacy import Approx, sensitivity
from noisette.privacy.sensitivity import Sensitivity

SIZES = {ADD_REMOVE: range(9), REPLACE: [7, 8]}
WORLDS = {relation: world([0, 1, 2], sizes, relation) for relation, sizes in SIZES.items()}


def counts(table):
    return [table.count(v) for v in range(3)]


def mode(table):
    return max(range(3), key=lambda v: (table.count(v), -v))


def only_mode(table):
    """The most frequent key of an open domain, None in a tie."""
    top = Counter(table).most_common(2)
    return None if not top or (len(top) == 2 and top[0][1] == top[1][1]) else top[0][0]


# Distances


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_changes_are_those_of_a_search(relation):
    near, m = WORLDS[relation], StableMode(1, "1/20", candidates=3, neighbours=relation)
    found = to_alter(near, mode)
    for table in near:
        if len(table) < 6 or relation is REPLACE:  # larger ones may need a step out of this world
            assert m._stable(counts(table)) == (mode(table), found[table])


@pytest.mark.parametrize(
    ("x", "added", "replaced"), [([5, 2, 0], 4, 2), ([2, 5, 0], 3, 2), ([6, 6, 1], 1, 1), ([0, 0, 0], 1, 1)]
)
def test_the_errata_tables(x, added, replaced):
    assert StableMode(1, "1e-6", candidates=3)._stable(x)[1] == added
    assert StableMode(1, "1e-6", candidates=3, neighbours=REPLACE)._stable(x)[1] == replaced


def test_the_nearest_rival_is_the_one_that_wins_ties():
    assert StableMode(1, "1e-6", candidates=3)._stable([2, 5, 2]) == (1, 3)
    assert StableMode(1, "1e-6", candidates=3)._stable([1, 5, 2]) == (1, 4)
    assert StableMode(1, "1e-6", candidates=2)._stable([0, 5]) == (1, 5)


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_in_an_open_domain_ties_are_the_next_table_without_a_mode(relation):
    near, m = WORLDS[relation], StableMode(1, "1/20", neighbours=relation)
    found = to_alter(near, only_mode)
    for table in near:
        _, changes = m._stable(Counter(table))
        if only_mode(table) is None:
            assert changes == 0
        elif len(table) < 6 or relation is REPLACE:
            assert changes <= found[table] <= changes + 1
            if relation is ADD_REMOVE:
                assert changes == found[table]


# Every neighbour

KINDS = [(relation, candidates) for relation in (ADD_REMOVE, REPLACE) for candidates in (3, None)]


def read(m):
    return counts if m.candidates else Counter


@pytest.mark.parametrize(("relation", "candidates"), KINDS)
@pytest.mark.parametrize(("epsilon", "delta"), [(2, "1e-3"), ("1/2", "1/10"), (5, "1e-2")])
def test_every_neighbour_keeps_the_promise_and_some_attain_it(relation, candidates, epsilon, delta):
    m = StableMode(epsilon, delta, candidates=candidates, neighbours=relation)
    found = worst_delta(lambda t: m.outcomes(read(m)(t)), edges(WORLDS[relation]), float(m.epsilon))
    assert found == pytest.approx(float(m.delta), rel=1e-9)


@pytest.mark.parametrize(("relation", "candidates"), KINDS)
def test_the_other_relation_costs_what_is_stated(relation, candidates):
    m = StableMode(1, "1/50", candidates=candidates, neighbours=relation)
    for other in (ADD_REMOVE, REPLACE):
        promise = m.guarantee(sensitivity.histogram(neighbours=other))
        found = worst_delta(lambda t: m.outcomes(read(m)(t)), edges(WORLDS[other]), float(promise.epsilon))
        assert found <= float(promise.delta) * (1 + 1e-9)
        assert found >= float(m.delta) * 0.9
    assert promise.epsilon == (2 if relation is ADD_REMOVE else 1)


def gap(x):
    largest, second = sorted(x, reverse=True)[:2]
    return largest - second


def test_the_gap_is_no_distance_under_replace():
    """Erratum E2: dist = max - secondmax is said to be the Hamming distance."""
    m = StableMode(1, "1/50", candidates=3, neighbours=REPLACE)

    def by_gap(t):
        kept, suppressed = m._odds(max(1, gap(counts(t))))
        return {mode(t): kept, None: suppressed}

    assert worst_delta(by_gap, edges(WORLDS[REPLACE]), 1.0) > 3 * 0.02
    assert worst_delta(lambda t: m.outcomes(counts(t)), edges(WORLDS[REPLACE]), 1.0) <= 0.02 * (1 + 1e-9)


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_a_change_too_many_is_convicted(relation):
    m = StableMode(1, "1/50", candidates=3, neighbours=relation)

    def shifted(t):
        value, changes = m._stable(counts(t))
        kept, suppressed = m._odds(changes + 1)
        return {value: kept, None: suppressed}

    assert worst_delta(shifted, edges(WORLDS[relation]), 1.0) > 1.5 * 0.02


def test_the_lucky_tie_must_be_broken_in_public():
    """A twin that gives every mode the tie, whether it comes first or not."""
    m = StableMode(1, "1/50", candidates=3)

    def lucky(t):
        kept, suppressed = m._odds(gap(counts(t)) + 1)
        return {mode(t): kept, None: suppressed}

    assert worst_delta(lucky, edges(WORLDS[ADD_REMOVE]), 1.0) > 1.5 * 0.02


def test_several_records_of_one_person():
    m = StableMode(1, "1e-4", candidates=3)
    assert m.guarantee(Sensitivity(3, 9, 3, 3, neighbours=ADD_REMOVE)) == m.guarantee(3)
    r = StableMode(1, "1e-4", candidates=3, neighbours=REPLACE)
    assert r.guarantee(Sensitivity(6, 18, 3, 6, neighbours=REPLACE)) == r.guarantee(3)
    assert r.guarantee(sensitivity.histogram()).epsilon == 1
    kept = StableMode.calibrated(Approx(1, "1e-6"), 3, candidates=5)
    assert kept.guarantee(3) <= Approx(1, "1e-6")


# What it releases


@pytest.mark.parametrize("bit", [0, 1])
def test_a_mode_far_ahead_is_always_released(bit):
    assert StableMode(1, "1e-6", candidates=4)([3, 2, 60, 5], Forced(bit)) == 2
    assert StableMode(1, "1e-6")({("a", 1): 90, "b": 40}, Forced(bit)) == ("a", 1)


def test_ties_of_an_open_domain_and_empty_tables_are_never_released():
    m = StableMode(1, "1/3")
    for table in ({}, {"a": 0}, {"a": 9, "b": 9}):
        assert m.outcomes(table) == {None: 1.0}
        assert {m(table) for _ in range(50)} == {None}


def test_whole_numbers_of_any_kind_and_size():
    assert StableMode(1, "1e-6", candidates=2)(np.array([2**61, 5], np.uint64)) == 0
    assert StableMode(1, "1e-6")({"a": np.int64(70), "b": 2**80}) == "b"
    assert type(StableMode(1, "1e-6", candidates=2)([0, 99])) is int


def test_a_million_candidates_in_a_moment():
    x = np.arange(10**6) // 10
    x[777] = 10**6
    assert StableMode(1, "1e-6", candidates=10**6)(x) == 777
    assert ahead(dict(enumerate(x[:50_000].tolist()))) == (777, 10**6 - 4999)


@pytest.mark.parametrize("bad", [[1, 2], [1, 2, 3, 4], [1, -1, 2], [0, 1, 2**62], [[1, 2, 3]], {1: 2, 2: 3, 3: 4}, 3])
def test_counts_must_be_one_a_candidate(bad):
    with pytest.raises(InputError):
        StableMode(1, "1e-6", candidates=3)(bad)


@pytest.mark.parametrize("candidates", [1, 0, 2.5, True, "3"])
def test_candidates_must_be_at_least_two(candidates):
    with pytest.raises(InputError):
        StableMode(1, "1e-6", candidates=candidates)


# The recipe: try the stable mode, and choose if there is none


def test_stable_or_chosen_costs_the_sum():
    """Both parts over all neighbours, exactly: the second is drawn only where the first says None."""
    stable, chosen = StableMode("1/2", "1/50", candidates=3), nz.PermuteAndFlip(2, candidates=3, monotone=True)

    def law(t):
        first = dict(stable.outcomes(counts(t)))
        rest = first.pop(None)
        told = {("stable", v): p for v, p in first.items()}
        return told | {("chosen", v): rest * float(chosen.pmf(v, counts(t))) for v in range(3)}

    total = stable.guarantee(1) + chosen.guarantee(1)
    assert float(total.epsilon) == 1
    assert worst_delta(law, edges(WORLDS[ADD_REMOVE]), 1.0) <= 0.02 * (1 + 1e-9)
    assert math.isclose(sum(law((0, 1, 1)).values()), 1)
