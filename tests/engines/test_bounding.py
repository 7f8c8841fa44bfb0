"""The surviving rows against plain dictionaries: the same multiset, for every key, order and bit width."""

from collections import Counter, defaultdict
from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st
from tests.engines.pieces import in_one_piece, pieces, pytest_generate_tests  # noqa: F401
from tests.goodness import ALPHA, p_value

from noisette.engines.bounding import choice, dense, firsts, retained
from noisette.engines.bounding import keys as packed
from noisette.engines.bounding import words as words_module
from noisette.engines.bounding.words import found
from noisette.errors import InputError
from noisette.query.schema import Limits

KEY = bytes(range(16))
EDGES = [-(2**63), -(2**62), -1, 0, 1, 2**31, 2**63 - 1]

codes = st.integers(-3, 3) | st.integers(0, 200) | st.sampled_from(EDGES)
tables = st.lists(st.tuples(codes, codes, st.integers(0, 5) | st.integers(0, 2**64 - 1)), max_size=60)
limits = st.none() | st.integers(1, 4)
all_bounds = st.builds(Limits, groups=limits, rows_per_group=limits, rows=limits)
keys = st.binary(min_size=16, max_size=16)


# The definition, slowly


def encrypt(key, left, right):
    """AES of one block of two little-endian words, as two words."""
    block = b"".join((word % 2**64).to_bytes(8, "little") for word in (left, right))
    out = Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(block)
    return int.from_bytes(out[:8], "little"), int.from_bytes(out[8:], "little")


@cache
def derived(key, number):
    return b"".join(word.to_bytes(8, "little") for word in encrypt(key, number, 0))


def group_tag(key, unit, group):
    return encrypt(derived(key, 1), unit, group)[0]


def row_tag(key, unit, group, row):
    left, right = encrypt(derived(key, 1), unit, group)
    return encrypt(derived(key, 2), left, right ^ row)[0]


def told_apart(rows):
    """The j-th of equal rows has j multiples of a constant more."""
    seen = Counter()
    for row in rows:
        yield (row + seen[row] * 0x9E3779B97F4A7C15) % 2**64, row
        seen[row] += 1


def reference(table, key, bounds, cut=lambda tag: tag):
    """The surviving rows, by the definition; `cut` weakens the tags."""
    units = defaultdict(lambda: defaultdict(list))
    for unit, group, row in table:
        units[unit][group].append(row)
    left = Counter()
    for unit, groups in units.items():
        chosen = sorted(groups, key=lambda group: (cut(group_tag(key, unit, group)), group))[: bounds.groups]

        def ranked(group, rows, unit=unit):
            return sorted((cut(row_tag(key, unit, group, word)), word, group, row) for word, row in told_apart(rows))

        rest = {group: [row for *_, row in ranked(group, groups[group])[: bounds.rows_per_group]] for group in chosen}
        rows = sorted(entry for group, some in rest.items() for entry in ranked(group, some))[: bounds.rows]
        left.update((unit, group, row) for _, _, group, row in rows)
    return left


def columns(table):
    unit, group, row = zip(*table, strict=True) if table else ((), (), ())
    return np.array(unit, np.int64), np.array(group, np.int64), np.array(row, np.uint64)


def surviving(table, key, bounds):
    unit, group, row = columns(table)
    mask = retained(unit, group=group, rows=row, key=key, limits=bounds)
    return Counter(entry for entry, alive in zip(table, mask, strict=True) if alive)


def assert_bounded(left, bounds):
    units, pairs, groups = Counter(), Counter(), defaultdict(set)
    for (unit, group, _), count in left.items():
        units[unit] += count
        pairs[unit, group] += count
        groups[unit].add(group)
    assert bounds.rows is None or all(count <= bounds.rows for count in units.values())
    assert bounds.rows_per_group is None or all(count <= bounds.rows_per_group for count in pairs.values())
    assert bounds.groups is None or all(len(some) <= bounds.groups for some in groups.values())


def crowd(seed, n=400):
    """Rows of 9 units in 12 groups, some of them alike."""
    rng = np.random.default_rng(seed)
    return list(zip(*(rng.integers(0, m, n).tolist() for m in (9, 12, 8)), strict=True))


# Against the definition


@pytest.mark.slow
@given(tables, keys, all_bounds)
def test_the_surviving_rows_are_those_of_the_definition(table, key, bounds):
    left = surviving(table, key, bounds)
    assert left == reference(table, key, bounds)
    assert_bounded(left, bounds)


@in_one_piece
@pytest.mark.parametrize(
    "bounds", [Limits(groups=3), Limits(rows_per_group=2), Limits(rows=4), Limits(groups=2, rows_per_group=2, rows=3)]
)
@pytest.mark.parametrize("spread", [1, 10**15])
def test_larger_tables_agree_too(bounds, spread):
    table = [((unit - 4) * spread, (group - 5) * spread, row) for unit, group, row in crowd(5, 3000)]
    assert surviving(table, KEY, bounds) == reference(table, KEY, bounds)


@pytest.mark.slow
@given(tables, all_bounds, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(table, bounds, random):
    shuffled = random.sample(table, len(table))
    assert surviving(shuffled, KEY, bounds) == surviving(table, KEY, bounds)


@pytest.mark.slow
@given(tables, tables, all_bounds)
def test_other_units_do_not_matter(table, more, bounds):
    mine = {unit for unit, _, _ in table}
    others = [entry for entry in more if entry[0] not in mine]
    both = surviving(table + others, KEY, bounds)
    assert both == surviving(table, KEY, bounds) + surviving(others, KEY, bounds)


@pytest.mark.slow
@given(tables, all_bounds)
def test_without_groups_both_bounds_on_rows_apply(table, bounds):
    unit, _, row = columns(table)
    mask = retained(unit, rows=row, key=KEY, limits=bounds)
    left = Counter((u, 0, r) for (u, _, r), alive in zip(table, mask, strict=True) if alive)
    assert left == reference([(u, 0, r) for u, _, r in table], KEY, replace(bounds, groups=None))


@in_one_piece
@pytest.mark.parametrize("group", [np.zeros(100_000, np.int64), None], ids=["one group", "no group"])
def test_each_row_has_the_same_chance_however_many_are_alike(group):
    """A unit with 9 rows of one sort and one of another keeps the other one once in ten times."""
    unit, row = np.repeat(np.arange(10_000), 10), np.tile(np.array([1] * 9 + [2], np.uint64), 10_000)
    for limits in (Limits(rows=1), Limits(rows_per_group=1)):
        mask = retained(unit, group=group, rows=row, key=KEY, limits=limits)
        assert mask.sum() == 10_000
        assert p_value(np.bincount(row[mask].astype(int))[1:], np.array([0.9, 0.1])) > ALPHA


def test_rows_without_content_are_counted_alike():
    unit, group = np.repeat(np.arange(50), 20), np.tile(np.arange(5), 200)
    limits = Limits(groups=3, rows_per_group=2, rows=5)
    mask = retained(unit, group=group, rows=None, key=KEY, limits=limits)
    order = np.random.default_rng(0).permutation(len(unit))
    again = retained(unit[order], group=group[order], rows=None, key=KEY, limits=limits)
    left = Counter(zip(unit[mask], group[mask], strict=True))
    assert left == Counter(zip(unit[order][again], group[order][again], strict=True))
    assert mask.sum() == 250


# Pieces


def one_piece_for_itself(self, ordered):
    """`Layout.first` as it would be if each piece began like the one before."""
    begins = np.ones(len(ordered), np.bool_)
    for piece in packed.pieces(len(ordered)):
        begins[piece] = packed.starts(self.owner(ordered[piece]))
        if piece.start:
            begins[piece.start] = self.owner(ordered[piece.start]) != self.owner(ordered[piece.start])
    return np.flatnonzero(begins)


EVEN = [(unit, group, 0) for unit in range(4) for group in range(8)]


@in_one_piece
@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_a_unit_that_begins_at_a_seam_is_a_unit_of_its_own(monkeypatch, size):
    """Each of four units begins at a multiple of eight: the twin retains all rows of three of them."""
    monkeypatch.setattr(words_module, "_CHUNK", size)
    bounds = Limits(groups=3, rows_per_group=1)
    assert surviving(EVEN, KEY, bounds) == reference(EVEN, KEY, bounds)
    monkeypatch.setattr(packed.Layout, "first", one_piece_for_itself)
    with pytest.raises(AssertionError):
        assert_bounded(surviving(EVEN, KEY, bounds), bounds)


# Ties


CUTS = {"high": lambda tag: tag & -(2**62) % 2**64, "low": lambda tag: tag & 3, "none": lambda tag: tag & 0}


def weaken(monkeypatch, cut):
    """Leave a few bits of every tag."""

    class Weak(choice.Tags):
        def groups(self, unit, group):
            return self._cut(super().groups(unit, group))

        def rows(self, unit, group, rows):
            return self._cut(super().rows(unit, group, rows))

        def _cut(self, tags):
            return np.array([cut(int(tag)) for tag in tags], np.uint64)

    monkeypatch.setattr(choice, "Tags", Weak)


@cache
def by_definition(seed, bounds, cut):
    return reference(crowd(seed), KEY, bounds, cut)


def agrees(seed, bounds, cut):
    return surviving(crowd(seed), KEY, bounds) == by_definition(seed, bounds, cut)


TIED_BOUNDS = [Limits(groups=2), Limits(rows_per_group=2), Limits(rows=5), Limits(groups=3, rows_per_group=2, rows=4)]


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("bounds", TIED_BOUNDS)
def test_tied_tags_are_settled(monkeypatch, cut, bounds):
    weaken(monkeypatch, cut)
    assert all(agrees(seed, bounds, cut) for seed in range(5))


@pytest.mark.parametrize("bounds", TIED_BOUNDS)
def test_ties_that_nobody_settles_are_noticed(monkeypatch, bounds):
    weaken(monkeypatch, CUTS["low"])
    monkeypatch.setattr(packed.Cut, "in_doubt", lambda *_: np.empty(0, np.intp))
    assert not agrees(0, bounds, CUTS["low"])


@pytest.mark.parametrize("bounds", TIED_BOUNDS)
def test_a_cut_off_by_one_is_noticed(monkeypatch, bounds):
    cut = choice.cut
    monkeypatch.setattr(choice, "cut", lambda items, owners, limit, layout: cut(items, owners, limit + 1, layout))
    assert not agrees(0, bounds, lambda tag: tag)
    with pytest.raises(AssertionError):
        assert_bounded(surviving(crowd(0), KEY, bounds), bounds)


# The choice is uniform and keyed


UNITS, GROUPS = 4000, 5


def choices(key, bounds):
    """Retained rows of units with 5 groups, one row each: the set of groups that each unit retains."""
    unit, group = np.repeat(np.arange(UNITS), GROUPS), np.tile(np.arange(GROUPS), UNITS)
    mask = retained(unit, group=group, rows=np.zeros(len(unit), np.uint64), key=key, limits=bounds)
    return [tuple(np.flatnonzero(row)) for row in mask.reshape(UNITS, GROUPS)]


def uniformity(found, size):
    counts = Counter(found)
    sets = list(combinations(range(GROUPS), size))
    assert set(counts) <= set(sets)
    return p_value([counts[some] for some in sets], [1 / len(sets)] * len(sets))


@in_one_piece
@pytest.mark.parametrize("bound", ["groups", "rows"])
@pytest.mark.parametrize("size", [1, 2])
def test_every_set_of_groups_survives_equally_often(bound, size):
    bounds = Limits(**{bound: size})
    assert uniformity([some for number in range(5) for some in choices(bytes([number] * 16), bounds)], size) > ALPHA


@in_one_piece
def test_a_choice_without_a_key_is_not_uniform(monkeypatch):
    monkeypatch.setattr(choice.Tags, "groups", lambda self, unit, group: group.view(np.uint64) << np.uint64(50))
    assert uniformity(choices(KEY, Limits(groups=2)), 2) < ALPHA


@in_one_piece
def test_another_key_is_another_choice():
    """Independent choices of 2 of 5 agree with chance 1/10."""
    first, second = choices(KEY, Limits(groups=2)), choices(bytes(16), Limits(groups=2))
    agree = sum(map(tuple.__eq__, first, second))
    assert p_value([agree, UNITS - agree], [0.1, 0.9]) > ALPHA


# Shapes


N = 200_000


@in_one_piece
@pytest.mark.parametrize(
    ("unit", "bounds", "count"),
    [
        (np.zeros(N, np.int64), Limits(rows=7), 7),
        (np.zeros(N, np.int64), Limits(groups=7, rows_per_group=1), 7),
        (np.zeros(N, np.int64), Limits(rows_per_group=1), 1000),
        (np.zeros(N, np.int64), Limits(groups=1000, rows_per_group=N), N),
        (np.arange(N) - N // 2, Limits(groups=1, rows_per_group=1, rows=1), N),
        (np.where(np.arange(N) < N // 2, -5, np.arange(N)), Limits(rows=3), 3 + N // 2),
        (np.where(np.arange(N) < N // 2, -5, np.arange(N)), Limits(groups=3, rows_per_group=2), 6 + N // 2),
    ],
)
@pytest.mark.parametrize("identical", [False, True])
def test_one_unit_has_all_rows_or_one_row_each(unit, bounds, count, identical):
    rows = np.arange(N, dtype=np.uint64) * np.uint64(not identical)
    assert retained(unit, group=np.arange(N) % 1000, rows=rows, key=KEY, limits=bounds).sum() == count


@pytest.mark.parametrize("group", [None, np.empty(0, np.int64)])
def test_no_rows(group):
    empty = np.empty(0, np.int64)
    bounds = Limits(groups=1, rows_per_group=1, rows=1)
    assert retained(empty, group=group, rows=empty.view(np.uint64), key=KEY, limits=bounds).shape == (0,)


def test_read_only_and_strided_columns():
    unit, group, row = columns(crowd(1))
    wide = np.stack([unit, group], axis=1)
    wide.flags.writeable = False
    bounds = Limits(groups=2, rows_per_group=2)
    strided = retained(wide[:, 0], group=wide[:, 1], rows=row, key=KEY, limits=bounds)
    assert np.array_equal(strided, retained(unit, group=group, rows=row, key=KEY, limits=bounds))


# Helpers


@given(st.lists(codes, max_size=50))
def test_dense_numbers_are_one_to_one(values):
    numbers, count = dense(np.array(values, np.int64))
    assert len(set(zip(values, numbers.tolist(), strict=True))) == len(set(values)) == len(set(numbers.tolist()))
    assert all(0 <= number < count for number in numbers)
    assert count <= max(4 * len(values), 0)


@given(st.lists(codes, max_size=50), st.integers(0, 60))
def test_last_bits_that_all_codes_share_do_not_count(values, bits):
    shifted = np.array([value << bits for value in values if -(2**63) <= value << bits < 2**63], np.int64) | 5 % 2**bits
    numbers, count = dense(shifted)
    assert len(set(zip(shifted.tolist(), numbers.tolist(), strict=True))) == len(set(numbers.tolist()))
    assert len(set(numbers.tolist())) == len(set(shifted.tolist()))
    assert all(0 <= number < count for number in numbers)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
def test_groups_may_be_narrow(dtype):
    unit, group, row = columns(crowd(3))
    limits = Limits(groups=2, rows_per_group=2, rows=3)
    wide = retained(unit, group=group - 6, rows=row, key=KEY, limits=limits)
    assert np.array_equal(wide, retained(unit, group=(group - 6).astype(dtype), rows=row, key=KEY, limits=limits))


words = st.integers(0, 9) | st.integers(0, 2**64 - 1)


@given(st.lists(words, min_size=1, max_size=50), st.lists(words, max_size=50))
def test_found_is_searchsorted(known, values):
    known, values = np.unique(np.array(known, np.uint64)), np.array(values, np.uint64)
    assert np.array_equal(found(known, values), np.searchsorted(known, values))


# Input


@in_one_piece
@pytest.mark.parametrize("value", [0, -1, 1.0, True, "3"])
@pytest.mark.parametrize("name", ["groups", "rows_per_group", "rows"])
def test_a_bound_is_a_whole_number(name, value):
    with pytest.raises(InputError, match=name):
        Limits(**{name: value})


@in_one_piece
@pytest.mark.parametrize(
    "change",
    [
        {"unit": np.zeros(3, np.int32)},
        {"unit": np.zeros(2, np.int64)},
        {"group": np.zeros(3)},
        {"group": np.zeros((3, 1), np.int64)},
        {"rows": np.zeros(3, np.int64)},
        {"key": bytes(15)},
    ],
)
def test_input_that_does_not_fit(change):
    given = {"unit": np.zeros(3, np.int64), "rows": np.zeros(3, np.uint64), "key": KEY, "limits": Limits(rows=1)}
    with pytest.raises(InputError):
        retained(**(given | change))


# Units that share a number


def pairs(group, row):
    return Counter(zip(group.tolist(), row.tolist(), strict=True))


@given(st.lists(st.tuples(st.integers(0, 3), codes, st.integers(0, 5)), max_size=60), all_bounds, keys)
def test_identities_tell_units_with_one_number_apart(rows, bounds, key):
    """Each identity has what it retains by itself, although all of them have one number."""
    identity, group, row = columns(rows)
    unit = np.full(len(rows), 7)
    mask = retained(unit, identity=identity * 5 - 2**40, group=group, rows=row, key=key, limits=bounds)
    for one in set(identity.tolist()):
        own = identity == one
        alone = retained(unit[own], group=group[own], rows=row[own], key=key, limits=bounds)
        assert pairs(group[own & mask], row[own & mask]) == pairs(group[own][alone], row[own][alone])


def test_without_identities_units_with_one_number_are_one():
    unit, group, row = np.full(4, 7), np.array([1, 2, 1, 2]), np.zeros(4, np.uint64)
    asked = {"group": group, "rows": row, "key": KEY, "limits": Limits(rows=1)}
    assert retained(unit, **asked).sum() == 1
    assert retained(unit, identity=np.array([0, 0, 1, 1]), **asked).sum() == 2
    with pytest.raises(InputError, match="identities as int64"):
        retained(unit, identity=np.zeros(4), **asked)
    with pytest.raises(InputError, match="one value per row"):
        retained(unit, identity=np.zeros(3, np.int64), **asked)


@given(st.lists(st.integers(0, 40), max_size=60), st.sampled_from([41, 2**20, 2**62]))
def test_firsts_are_the_first_places_of_each_number(numbers, count):
    """Packed with their places, and where these do not fit."""
    found = firsts(np.array(numbers, np.int64), count)
    assert found.tolist() == [numbers.index(n) for n in sorted(set(numbers))]
