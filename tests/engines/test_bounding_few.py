"""Few groups: the table keeps the same groups as the definition, in however many parts the rows come."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engines.pieces import in_one_piece, pieces, pytest_generate_tests  # noqa: F401
from tests.engines.test_bounding import CUTS, KEY, crowd, reference

from noisette.engines.bounding import choice, first_groups
from noisette.query.schema import Limits

GROUPS = 12
least_units = st.sampled_from([-(2**63), -5, 0, 2**40, 2**63 - 9])
rows = st.lists(st.tuples(st.integers(0, 8), st.integers(0, GROUPS - 1)), max_size=60)


def surviving(table, limit, parts=1, least=0):
    """The rows that are left, if they come in parts."""
    unit, group = (np.array(column, np.int64) for column in zip(*table, strict=True)) if table else ([], [])
    cuts = np.linspace(0, len(table), parts + 1).astype(int)
    parts = [(np.array(unit[a:b], np.int64) + least, np.array(group[a:b], np.int8)) for a, b in pairwise(cuts)]
    masks = first_groups(parts, groups=GROUPS, limit=limit, key=KEY)
    return None if masks is None else np.concatenate(masks).astype(bool)


def expected(table, limit, least=0, cut=lambda tag: tag):
    """The same by the definition."""
    left = reference([(unit + least, group, 0) for unit, group in table], KEY, Limits(groups=limit), cut)
    return np.array([(unit + least, group, 0) in left for unit, group in table], bool)


def two(seed, n=400):
    return [(unit, group) for unit, group, _ in crowd(seed, n)]


@given(rows, st.integers(1, GROUPS - 1), st.integers(1, 4), least_units)
def test_the_groups_are_those_of_the_definition(table, limit, parts, least):
    found = surviving(table, limit, parts, least)
    if found is not None:
        assert found.tolist() == expected(table, limit, least).tolist()


@in_one_piece
@pytest.mark.parametrize("limit", [1, 3, GROUPS - 1])
def test_tables_in_several_pieces_agree_too(monkeypatch, limit):
    monkeypatch.setattr(choice, "_ENTRIES", 3 * GROUPS)
    assert surviving(two(1), limit, 5).tolist() == expected(two(1), limit).tolist()


@pytest.mark.parametrize("cut", [*CUTS.values(), lambda tag: tag | 2**64 - 4], ids=[*CUTS, "highest"])
@pytest.mark.parametrize("limit", [1, 3])
def test_tied_tags_are_settled(monkeypatch, cut, limit):
    class Weak(choice.Tags):
        def groups(self, unit, group):
            return np.array([cut(int(tag)) for tag in super().groups(unit, group)], np.uint64)

    monkeypatch.setattr(choice, "Tags", Weak)
    for seed in range(5):
        assert surviving(two(seed), limit).tolist() == expected(two(seed), limit, cut=cut).tolist()


def test_a_table_that_keeps_one_more_is_noticed(monkeypatch):
    first = choice._first
    monkeypatch.setattr(choice, "_first", lambda there, unit, limit, tags: first(there, unit, limit + 1, tags))
    assert surviving(two(0), 3).tolist() != expected(two(0), 3).tolist()


def test_units_that_are_far_apart_get_no_table():
    far = [(0, 1), (10**15, 2), (5, 3)]
    assert surviving(far, 1) is None
    assert surviving([], 2).tolist() == []
