"""One unit is in one block, or in as many as it is told, whoever comes, goes or is replaced.

Two wrong ways to divide fail the same checks.
"""

import itertools
import math

import numpy as np
import pyarrow
import pytest
from tests.goodness import fewest, most

from noisette.exact.random import SYSTEM
from noisette.sandbox.dividing import divided

BLOCKS = 3
WORDS = [("ann", 1), ("ann", 2), ("ann", 3), ("bob", 4), ("cid", 5), ("cid", 6)]


class Coins:
    """Scripted words: one for each unit first, or several times so, then zeros, which keep the rows in order."""

    secure = False

    def __init__(self, *words):
        self.script = [np.array(some, np.uint64) for some in words]

    def words(self, count, dtype):
        drawn = self.script.pop(0) if self.script else np.zeros(count, dtype)
        assert len(drawn) == count
        return drawn


def table(rows, owned=True):
    columns = {"x": pyarrow.array([value for _, value in rows], pyarrow.int64())}
    if owned:
        names = list(dict.fromkeys(name for name, _ in rows))
        columns["unit"] = pyarrow.array([names.index(name) for name, _ in rows], pyarrow.int64())
    return pyarrow.table(columns)


def contents(blocks):
    return [sorted(pyarrow.ipc.open_stream(one()).read_all()["x"].to_pylist()) for one in blocks]


def by_coins(rows, coins):
    """The blocks when each unit has a coin of its own."""
    names = dict.fromkeys(name for name, _ in rows)
    return contents(divided(table(rows), ["x"], BLOCKS, Coins([coins[name] for name in names])))


def by_two_coins(rows, coins):
    """The blocks when each unit is in two of three: of the first two blocks one, then another one."""
    names = dict.fromkeys(name for name, _ in rows)
    pairs = [divmod(coins[name], BLOCKS) for name in names]
    words = [first for first, _ in pairs], [second for _, second in pairs]
    return contents(divided(table(rows), ["x"], BLOCKS, Coins(*words), each=2))


def by_hash(rows, coins):
    """A wrong way: the block follows from the name, so who replaces somebody is elsewhere."""
    return [sorted(x for name, x in rows if sum(name.encode()) % BLOCKS == i) for i in range(BLOCKS)]


def by_row(rows, coins):
    """A wrong way: each row by itself."""
    return [sorted(x for _, x in rows if x % BLOCKS == i) for i in range(BLOCKS)]


def changed(one, other):
    return sum(a != b for a, b in zip(one, other, strict=True))


def most_changed(way, sides=BLOCKS):
    """The most blocks that one unit changes, over all coins, for whoever goes, and whoever is replaced by dan."""
    most = {"removed": 0, "replaced": 0}
    for drawn in itertools.product(range(sides), repeat=3):
        coins = dict(zip(("ann", "bob", "cid"), drawn, strict=True))
        for who in coins:
            before = way(WORDS, coins)
            rest = [row for row in WORDS if row[0] != who]
            most["removed"] = max(most["removed"], changed(before, way(rest, coins)))
            replaced = [("dan", 10 + x) if name == who else (name, x) for name, x in WORDS]
            after = way(replaced, coins | {"dan": coins[who]})
            most["replaced"] = max(most["replaced"], changed(before, after))
    return most


def test_one_unit_changes_one_block():
    assert most_changed(by_coins) == {"removed": 1, "replaced": 1}


@pytest.mark.slow
def test_a_unit_in_two_blocks_changes_two():
    assert most_changed(by_two_coins, sides=6) == {"removed": 2, "replaced": 2}


def test_blocks_by_a_hash_of_the_unit_change_two_where_a_unit_is_replaced():
    assert most_changed(by_hash) == {"removed": 1, "replaced": 2}


def test_a_unit_that_is_spread_over_blocks_changes_several():
    assert most_changed(by_row)["removed"] == 3


def test_every_row_is_in_one_block_in_its_own_columns():
    for owned in (True, False):
        found = contents(divided(table(WORDS, owned), ["x"], BLOCKS, SYSTEM))
        assert sorted(itertools.chain(*found)) == [1, 2, 3, 4, 5, 6]


def test_rows_that_are_units_draw_by_themselves():
    drawn = [0, 1, 2, 0, 1, 2]
    found = contents(divided(table(WORDS, owned=False), ["x"], BLOCKS, Coins(drawn)))
    assert found == [[1, 4], [2, 5], [3, 6]]


@pytest.mark.slow
def test_blocks_and_orders_are_drawn_evenly():
    rows, times = table([("ann", 1), ("bob", 2)], owned=False), 2_000
    seen = dict.fromkeys(itertools.product(range(2), repeat=2), 0)
    first = 0
    for _ in range(times):
        blocks = [pyarrow.ipc.open_stream(one()).read_all()["x"].to_pylist() for one in divided(rows, ["x"], 2, SYSTEM)]
        seen[tuple(next(i for i in range(2) if x in blocks[i]) for x in (1, 2))] += 1
        first += [1, 2] in blocks
    for count in (*seen.values(), first):
        assert fewest(times, 1 / 4) <= count <= most(times, 1 / 4)  # fails with p < 1e-11, all five


def test_no_rows_give_empty_blocks():
    for each in (1, 2):
        assert contents(divided(table([]), ["x"], BLOCKS, SYSTEM, each=each)) == [[]] * BLOCKS


# Overlapping blocks


@pytest.mark.parametrize("owned", [True, False])
@pytest.mark.parametrize("each", [1, 2, 4, 7])
def test_a_unit_is_in_so_many_different_blocks_with_all_of_its_rows(each, owned):
    found = contents(divided(table(WORDS, owned), ["x"], 7, SYSTEM, each=each))
    assert all(len(set(block)) == len(block) for block in found)
    where = {x: {i for i, block in enumerate(found) if x in block} for _, x in WORDS}
    assert {len(blocks) for blocks in where.values()} == {each}
    if owned:
        assert where[1] == where[2] == where[3]
        assert where[5] == where[6]


@pytest.mark.parametrize(("blocks", "each"), [(3, 2), (4, 2), (4, 3), (5, 5)])
def test_every_choice_of_blocks_has_as_many_coins(blocks, each):
    seen = dict.fromkeys(itertools.combinations(range(blocks), each), 0)
    for coins in itertools.product(*(range(last + 1) for last in range(blocks - each, blocks))):
        found = contents(divided(table([("ann", 1)]), ["x"], blocks, Coins(*([one] for one in coins)), each=each))
        seen[tuple(i for i, block in enumerate(found) if block)] += 1
    assert set(seen.values()) == {math.factorial(each)}


def test_many_units_choose_evenly_and_apart_from_each_other():
    count, blocks, each = 60_000, 5, 2
    found = contents(divided(pyarrow.table({"x": np.arange(count)}), ["x"], blocks, SYSTEM, each=each))
    own = np.zeros((count, blocks), bool)
    for i, block in enumerate(found):
        own[block, i] = True
    both = own.astype(float).T @ own  # pairs of blocks that one unit is in
    following = own[:-1].astype(float).T @ own[1:]  # blocks of a unit, and of the next one
    for pairs, chance in ((both[~np.eye(blocks, dtype=bool)], 0.1), (following.ravel(), 0.16)):
        assert pairs == pytest.approx(count * chance, abs=8 * math.sqrt(count * chance))  # fails with p < 1e-13


def test_rows_in_many_blocks_are_held_once():
    rows = pyarrow.table({f"x{i}": np.arange(20_000.0) for i in range(10)})
    before = pyarrow.total_allocated_bytes()
    kept = divided(rows, rows.column_names, 40, SYSTEM, each=20)
    assert pyarrow.total_allocated_bytes() - before <= 1.1 * rows.nbytes
    assert len(kept[0]()) > rows.nbytes / 3
