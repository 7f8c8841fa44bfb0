"""Pairs of rows that agree in a column: what one unit can change, on all small tables, and that the bar holds."""

from itertools import combinations_with_replacement

import numpy as np
import pyarrow
import pytest
from tests.goodness import fewest

import noisette as nz
from noisette.errors import InputError
from noisette.questions import self_join
from noisette.questions.self_join import SelfJoin, truncated

LIMITS = (1, 2, 4)
ROWS = [(u, k) for u in (1, 2) for k in (1, 2)]


def worlds(rows, most=2):
    """All tables of others' rows and up to `most` rows of unit 0, by their values."""
    others = [world for size in range(6) for world in combinations_with_replacement((1, 2, 3), size)]
    own = [world for size in range(most + 1) for world in combinations_with_replacement((1, 2, 3), size)]
    return [(other, mine) for other in others for mine in own]


def pairs(values, limits=LIMITS):
    return truncated(np.unique(np.array(values, int), return_counts=True)[1], limits)


def farthest(most):
    """How far Q_m moves at most if unit 0 comes, and if it is replaced by another of at most as many rows."""
    by_others = {}
    for other, mine in worlds(ROWS, most):
        by_others.setdefault(other, []).append(pairs(other + mine))
    found = [np.array(numbers) for numbers in by_others.values()]
    comes = [np.abs(numbers - numbers[0]).max(axis=0) for numbers in found]
    return np.max(comes, axis=0), np.max([np.ptp(numbers, axis=0) for numbers in found], axis=0)


def offered(most_rows=2, neighbours=nz.Neighbours.ADD_REMOVE, spend=1, **options):
    data = opened(most_rows)
    return SelfJoin("k", **options).offer(data.schema, nz.Pure(spend), neighbours, 0.95)


def opened(rows=2, values=(1, 1, 2)):
    table = pyarrow.table({"u": range(len(values)), "k": pyarrow.array(values, pyarrow.int64())})
    return nz.open({"v": table}, budget=10**6, policy={"tables": {"v": {"unit": "u", "rows": rows, "columns": KEYS}}})


KEYS = {"k": {"type": "integer", "keys": [1, 2, 3]}}


@pytest.mark.parametrize("neighbours", nz.Neighbours, ids=str)
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_one_unit_moves_each_truncation_by_what_is_stated(rows, neighbours):
    stated = [int(moved.l1) for moved in offered(rows, neighbours, most=4).procedure.moved]
    comes, replaced = farthest(rows)
    assert (comes <= stated).all()
    assert (replaced <= stated).all()
    assert comes[0] == stated[0] == rows  # of values that nobody else has


def test_the_stated_number_is_reached_and_half_of_it_is_convicted():
    comes, _ = farthest(1)
    stated = np.array([int(moved.l1) for moved in offered(1, most=4).procedure.moved])
    assert (comes == stated).all()
    assert (comes > stated / 2).all()


def test_a_twin_that_truncates_nothing_is_convicted():
    whole = [pairs(world, (100,))[0] for world in ((1,) * 5, (1,) * 6)]
    assert whole[1] - whole[0] > 2 * 4 - 1 == int(offered(1, most=4).procedure.moved[-1].l1)


def test_truncations_grow_and_never_exceed_the_pairs():
    for other, mine in worlds(ROWS):
        values = other + mine
        found = pairs(values)
        assert found == sorted(found)
        assert found[-1] <= sum(a == b for a in values for b in values)
    assert pairs((1, 1, 2)) == [2, 5, 5]


@pytest.mark.parametrize("spend", [nz.Pure(1), nz.Approx(1, "1e-6"), nz.ZCDP("1/8")], ids=str)
def test_all_numbers_together_keep_the_promise(spend):
    offer = SelfJoin("k", most=64).offer(opened().schema, spend, nz.Neighbours.REPLACE, 0.95)
    assert offer.guarantee <= spend
    assert len(offer.parts) == 7


def test_null_equals_nothing_and_the_last_truncation_holds_all_pairs():
    """At scale 12/9000 any noise at all has a probability below 1e-300."""
    for keys in (KEYS, {"k": {"type": "integer"}}):
        policy = {"tables": {"v": {"unit": "u", "rows": 1, "columns": keys}}}
        values = pyarrow.array([1, 1, 1, 2, None, None], pyarrow.int64())
        data = nz.open({"v": pyarrow.table({"u": range(6), "k": values})}, budget=10**6, policy=policy)
        answer = data.ask(SelfJoin("k", most=4), spend=90_000)
        assert [answer["pairs"].values[0].as_py(), answer["pairs"].low[0], answer["pairs"].high[0]] == [10, 10, 10]


def test_what_cannot_be_counted_is_refused():
    for most, sentence in ((0, "most"), (2**20 + 1, "lower most")):
        with pytest.raises(InputError, match=sentence):
            offered(most=most)
    with pytest.raises(InputError, match=r"question SelfJoin\(column\)"):
        opened().ask("SELECT count(*) AS n FROM v JOIN v AS w ON v.k = w.k", spend=1)


# The upper end


def bars(rows, most, spend, times=60):
    """The ends of the bars of many releases, with so many rows of each value."""
    race = SelfJoin("k", most=most).offer(opened(1).schema, nz.Pure(spend), nz.Neighbours.ADD_REMOVE, 0.95).procedure
    exact = truncated(np.array(rows, np.int64), race.limits)
    for _ in range(times):
        noisy = [int(noise(np.array([q], np.int64))[0]) for noise, q in zip(race.noise, exact, strict=True)]
        [(pairs,)] = race.answers(pyarrow.table({"most": list(race.limits), "pairs": noisy}))
        yield pairs.low[0], pairs.high[0]


@pytest.mark.parametrize("spend", [1, 100, "1/10"])
@pytest.mark.parametrize("rows", [[], [1], [20, 9, 9], [64, 64], [65], [5000, 3], [40] * 50], ids=str)
def test_bars_hold_however_many_rows_one_value_has(rows, spend):
    """Fails with p < 1e-12: of 60 bars of 95 % fewer hold."""
    true = sum(n**2 for n in rows)
    assert sum(low <= true <= high for low, high in bars(rows, 64, spend)) >= fewest(60, 0.95)


def test_few_rows_of_each_value_have_an_upper_end_and_more_than_most_have_none(monkeypatch):
    assert all(np.isfinite(high) for _, high in bars([20, 9, 9], 64, 100))
    assert all(np.isinf(high) for _, high in bars([65], 64, 100))
    monkeypatch.setattr(self_join.Race, "_complete", lambda *_: True)
    assert not any(low <= 5000**2 <= high for low, high in bars([5000], 64, 1))


def test_an_open_end_says_to_raise_most():
    data = opened(1, [1] * 30)
    [said] = data.ask(SelfJoin("k", most=4), spend=1000).warnings
    assert said.endswith("no upper end, since a value may have more rows than were counted: raise most.")
    assert data.ask(SelfJoin("k", most=64), spend=1000).warnings == ()
