"""What candidate limits leave out: exact without noise, moved by one unit as stated, with error bars that hold.

Sensitivities are those of what an engine computes on all tiny tables of their sort, for all pairs that differ in one
unit: one that is there or not (add/remove), one whose rows are others (replace).
"""

import datetime
import json
from dataclasses import replace
from functools import cache
from itertools import combinations, combinations_with_replacement

import numpy as np
import pyarrow
import pytest
from tests.goodness import most

import noisette as nz
from noisette.errors import InputError
from noisette.query.expression import Name
from noisette.query.measure import Measure

ADD_REMOVE, REPLACE = nz.Neighbours.ADD_REMOVE, nz.Neighbours.REPLACE
ONE = nz.Pure(1)
LIMITS = [1, 3, 4, 9]
COLUMNS = {"ward": {"keys": ["a", "b"]}, "cost": {"bounds": [0, 10]}}


def opened(table, budget=100, rows=2, **more):
    rules = {"unit": "who", "rows": rows, "columns": COLUMNS, **more}
    columns = {name: rule for name, rule in rules["columns"].items() if name in table.column_names}
    return nz.open({"visits": table}, budget=budget, policy={"tables": {"visits": rules | {"columns": columns}}})


def offer(question, data, spend=ONE, neighbours=ADD_REMOVE, level=0.95):
    return question.offer(data.schema, spend, neighbours, level)


def numbers(made, data):
    exact = data._source.aggregate(
        made.procedure.prepared.request, made.procedure.cells.read_as(data.schema), bytes(16)
    )
    return made.procedure.cells.numbers(exact)


def changed(made, request):
    """The same offer with another request."""
    prepared = replace(made.procedure.prepared, request=request)
    return replace(made, procedure=replace(made.procedure, prepared=prepared))


def without_noise(question, data):
    """The answer's columns as they would be if no noise were added, nor expected, as lists."""
    made = offer(question, data, nz.Pure(10**6))
    [columns] = made.answers(pyarrow.table({"noisy": numbers(made, data).astype(float)}))
    return {column.name: column.values.to_pylist() for column in columns}


# Without noise


def truth(f, limits, most=None):
    """Units with more, what is left out, and its share, for numbers of rows f, of which one beyond the last is seen."""
    f, t = np.minimum(np.array(f, int), limits[-1] + 1)[None, :], np.array(limits)[:, None]
    lost, all_ = np.maximum(f - t, 0).sum(axis=1), f.sum()
    return {
        "units": (f > t).sum(axis=1).tolist(),
        "left_out": lost.tolist(),
        "share": [part / all_ if all_ else None for part in lost],
    }


@pytest.mark.parametrize("limits", [LIMITS, [1, 2, 4, 8, 16], [5], [1, 2, 3], [2, 1024]], ids=str)
def test_rows_are_counted_exactly(limits):
    f = np.random.default_rng(3).geometric(0.2, 500)
    data = opened(pyarrow.table({"who": np.repeat(np.arange(500), f)}))
    assert without_noise(nz.LeftOut(rows=limits), data) == {"rows": limits, **truth(f, limits)}


UNITS = {
    "numbers": pyarrow.array([1, 1, 1, 2, None, None], pyarrow.int64()),
    "texts": pyarrow.array(["ann", "ann", "ann", "Ann", None, None]),
    "reals": pyarrow.array([0.0, -0.0, 0.0, 1.5, float("nan"), None]),
    "dates": pyarrow.array([datetime.date(2020, 1, 1)] * 3 + [datetime.date(2021, 1, 1), None, None]),
    "truth": pyarrow.array([True, True, True, False, None, None]),
}


@pytest.mark.parametrize("units", UNITS.values(), ids=UNITS)
def test_units_of_every_type_and_rows_without_one(units):
    assert without_noise(nz.LeftOut(rows=LIMITS), opened(pyarrow.table({"who": units}))) == {
        "rows": LIMITS,
        **truth([3, 1], LIMITS),
    }


def test_an_empty_table_and_a_unit_with_a_million_rows():
    empty = opened(pyarrow.table({"who": pyarrow.array([], pyarrow.int64())}))
    assert without_noise(nz.LeftOut(rows=LIMITS), empty) == {"rows": LIMITS, **truth([0], LIMITS)}
    huge = opened(pyarrow.table({"who": np.concatenate([np.zeros(10**6, int), np.arange(1, 6)])}))
    assert without_noise(nz.LeftOut(rows=LIMITS), huge) == {"rows": LIMITS, **truth([10**6] + [1] * 5, LIMITS)}


def test_conditions_come_first():
    data = opened(pyarrow.table({"who": [1] * 6 + [2] * 3, "cost": [1, 2, 3, 4, 5, 6, 1, 2, 9]}))
    asked = nz.LeftOut(rows=LIMITS, of=data.table("visits").where("cost >= 3"))
    assert without_noise(asked, data) == {"rows": LIMITS, **truth([4, 1], LIMITS)}


def test_groups_are_those_that_a_question_has():
    """Declared keys and NULL are groups, other values are in none; two keys make pairs."""
    rows = {"who": [1, 1, 1, 1, 1, 2, 2, 3], "ward": ["a", "a", "b", None, "z", "z", "z", "b"]}
    data = opened(pyarrow.table({**rows, "floor": [1, 2, 1, 1, 1, 1, 1, 1]}))
    found = without_noise(nz.LeftOut(groups=[1, 2], by="ward"), data)
    assert found == {"groups": [1, 2], **truth([3, 1], [1, 2])}
    found = without_noise(nz.LeftOut(groups=[1, 2, 4], by=["ward", "floor"]), data)
    assert found == {"groups": [1, 2, 4], **truth([4, 1], [1, 2, 4])}
    limited = opened(pyarrow.table({"who": [1, 1, 1], "ward": ["a", "z", "y"]}), groups=1)  # as questions bound it
    answer = limited.sql("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", spend=50)
    assert [row["n"] for row in answer.rows()] == [1, 0, 0]


def test_values_are_counted_as_they_are_stored():
    """The declared bounds [0, 10] clamp what questions see; ends belong to the bounds; NULL and NaN are no values."""
    cost = [-7.0, 0.0, 5.0, 10.0, 10.5, 99.0, float("inf"), -float("inf"), float("nan"), None]
    data = opened(pyarrow.table({"who": range(len(cost)), "cost": pyarrow.array(cost, pyarrow.float64())}), rows=1)
    found = without_noise(nz.LeftOut("cost", bounds=[(0, 10), (-7, 99), (10, 10.5)]), data)
    assert found == {
        "low": [0, -7, 10],
        "high": [10, 99, 10.5],
        "below": [2, 1, 4],
        "above": [3, 1, 2],
        "share": [5 / 8, 2 / 8, 6 / 8],
    }


def test_dates_have_bounds_too():
    days = [datetime.date(2020, 1, day) for day in (1, 5, 9)]
    data = opened(pyarrow.table({"who": [1, 2, 3], "day": days}), rows=1)
    found = without_noise(nz.LeftOut("day", bounds=[(days[1], datetime.date(2020, 1, 8))]), data)
    assert (found["below"], found["above"], found["low"]) == ([1], [1], [days[1]])


def test_rows_that_count_are_bounded_before_their_values_are_counted():
    data = opened(pyarrow.table({"who": [1] * 50 + [2], "cost": [99] * 50 + [5]}), rows=2)
    found = without_noise(nz.LeftOut("cost", bounds=[(0, 10)]), data)
    assert (found["below"], found["above"], found["share"]) == ([0], [2], [2 / 3])


# What one unit can change


@cache
def moved(name, *, twin=lambda made: made, rows=2):
    """(numbers of each table, the sensitivity stated under both relations)."""
    (question, tables), found = WORLDS[name], []
    for table in tables:
        data = opened(table, rows=rows)
        made = twin(offer(question, data))
        found.append(numbers(made, data))
    return found, {each: offer(question, data, neighbours=each).procedure.sensitivity for each in (ADD_REMOVE, REPLACE)}


def norms(a, b):
    change = np.abs((a - b).astype(object))
    return {"l0": sum(change > 0), "l1": sum(change), "l2_squared": sum(change * change), "linf": max(change)}


def largest(found, reaches, absent):
    """The largest move in each norm under both relations, next to what is stated; `absent` has no row of the unit."""
    pairs = {
        ADD_REMOVE: [(found[absent], each) for i, each in enumerate(found) if i != absent],
        REPLACE: list(combinations(found, 2)),
    }
    every = {each: [norms(a, b) for a, b in some] for each, some in pairs.items()}
    return [
        (str(each), norm, max(move[norm] for move in every[each]), getattr(reaches[each], norm))
        for each in every
        for norm in ("l0", "l1", "l2_squared", "linf")
    ]


def faults(*world):
    return [case for case in largest(*world) if case[2] > case[3]]


def owned(rows, other=((2, "a", 5), (2, "b", 50))):
    """A table with rows of a unit, and of another one that stays."""
    who, ward, cost = zip(*[(1, *row) for row in rows], *other, strict=True) if rows else zip(*other, strict=True)
    types = pyarrow.array(who, pyarrow.int64()), pyarrow.array(ward), pyarrow.array(cost, pyarrow.int64())
    return pyarrow.table(dict(zip(("who", "ward", "cost"), types, strict=True)))


BY_ROWS = [owned([("a", 1)] * n) for n in range(13)]
BY_WARDS = [owned([(w, 1) for w in some]) for n in range(5) for some in combinations(("a", "b", "z", None), n)]
BY_COSTS = [
    owned([("a", cost) for cost in some]) for n in range(4) for some in combinations_with_replacement((-5, 50, None), n)
]
WORLDS = {
    "rows": (nz.LeftOut(rows=LIMITS), BY_ROWS),
    "groups": (nz.LeftOut(groups=[1, 2], by="ward"), BY_WARDS),
    "values": (nz.LeftOut("cost", bounds=[(0, 10), (0, 20)]), BY_COSTS),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS)
def test_one_unit_moves_the_numbers_by_what_is_stated_and_no_less(name):
    world = largest(*moved(name), 0)
    assert [case for case in world if case[2] > case[3]] == []
    tight = [case for case in world if case[1] == "l1"]
    assert all(change == stated for _, _, change, stated in tight)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rows", "values"])
def test_a_sensitivity_that_is_too_small_is_noticed(name):
    found, reaches = moved(name)
    halved = {
        each: nz.privacy.sensitivity.Sensitivity(r.l1 / 2, r.l2_squared / 4, r.linf / 2, 1, neighbours=each)
        for each, r in reaches.items()
    }
    assert {case[1] for case in faults(found, halved, 0)} == {"l0", "l1", "l2_squared", "linf"}


@pytest.mark.slow
def test_a_unit_that_is_not_cut_beyond_the_last_candidate_is_noticed():
    def uncut(made):
        request = made.procedure.prepared.request
        rows, total = request.measures
        [name] = [part for part in total.of.arguments if isinstance(part, Name)]
        whole = Measure("sum", name, high=10**6)
        return changed(made, replace(request, measures=(rows, whole)))

    assert faults(*moved("rows"), 0) == []
    assert faults(*moved("rows", twin=uncut), 0)


@pytest.mark.slow
def test_rows_that_are_not_bounded_are_noticed():
    def unbounded(made):
        return changed(made, replace(made.procedure.prepared.request, limits=None))

    assert faults(*moved("values", twin=unbounded), 0)


# Error bars


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.95, 0.8])
@pytest.mark.parametrize("spend", [nz.Pure("1/2"), nz.ZCDP("1/20"), nz.Pure(3)], ids=repr)
def test_bars_hold_as_often_as_they_say(spend, level):
    """8,000 releases with at most 0.2 % more misses than stated: too many by chance with p < 1e-10 in all."""
    f = np.random.default_rng(3).geometric(0.2, 400)
    data, limits, draws = opened(pyarrow.table({"who": np.repeat(np.arange(400), f)})), [1, 2, 4, 8, 16, 32], 8_000
    made = offer(nz.LeftOut(rows=limits), data, spend, level=level)
    true, exact = truth(f, limits), numbers(made, data)
    noisy = np.asarray(made.procedure.mechanism(np.tile(exact, draws))).astype(float).reshape(draws, -1)
    share = 1 - level + 0.002
    for name in ("units", "left_out"):
        half = made.procedure._estimate(made.procedure.cells.weights[name], 0.0).half_width(
            made.procedure._noises(level)
        )
        missed = (np.abs(noisy @ made.procedure.cells.weights[name].T - true[name]) > half).sum(axis=0)
        assert missed.max() <= most(draws, share), name
        assert missed.min() >= draws * (1 - level) / 3, name  # and they are not much too wide
        (low, value, high), raw = ends(made, name, noisy[0]), made.procedure.cells.weights[name] @ noisy[0]
        assert value == pytest.approx(np.maximum(raw, 0), abs=0.5)
        assert (low <= np.maximum(raw - half, 0)).all()
        assert (high >= np.maximum(raw + half, 0)).all()
    wrong = [outside(ends(made, "share", row), true["share"]) for row in noisy[:300]]
    assert np.sum(wrong, axis=0).max() <= most(300, share)


def ends(made, name, noisy):
    [columns] = made.answers(pyarrow.table({"noisy": noisy}))
    [column] = [each for each in columns if each.name == name]
    return column.low, column.values.to_numpy(), column.high


def outside(bar, true):
    return (bar[0] > true) | (bar[2] < true)


def test_the_noise_is_the_one_that_errs_less():
    data = opened(BY_ROWS[3])
    kinds = {
        repr(spend): type(offer(nz.LeftOut(rows=LIMITS), data, spend).procedure.mechanism).__name__
        for spend in (nz.Pure(1), nz.ZCDP("1/8"), nz.Approx(1, "1e-9"))
    }
    assert list(kinds.values()) == ["Geometric", "Gaussian", "Geometric"]


@pytest.mark.parametrize("name", ["rows", "groups", "values"])
def test_what_is_kept_is_what_the_mechanism_made_of_the_numbers(name):
    question, tables = WORLDS[name]
    data, seen = opened(tables[5]), []
    made = offer(question, data)
    spy = replace(made.procedure, mechanism=lambda x, rng: seen.append(x.tolist()) or x + 1000)
    spied = replace(made, procedure=spy)
    drawn = spied.draw(data._source, data.schema, bytes(16))
    assert seen == [numbers(made, data).tolist()]
    assert drawn.column("noisy").to_pylist() == (numbers(made, data) + 1000).tolist()


def test_nothing_is_below_nothing():
    data = opened(pyarrow.table({"who": [1]}))
    made = offer(nz.LeftOut(rows=LIMITS), data)
    [columns] = made.answers(pyarrow.table({"noisy": np.full(len(numbers(made, data)), -50.0)}))
    for column in columns[1:]:
        assert (column.low >= 0).all()
        if column.name == "share":
            assert set(column.values.to_pylist()) == {None}
            assert (column.high == 1).all()
        else:
            assert min(column.values.to_pylist()) >= 0
    [columns] = made.answers(pyarrow.table({"noisy": np.full(len(numbers(made, data)), 1e300)}))
    assert columns[1].values.to_pylist()[0] == 2**62


# What it is kept by


def test_what_changes_an_answer_changes_the_text_and_nothing_else_does():
    data = opened(BY_COSTS[5])
    texts = {
        offer(question, data).text
        for question in (
            nz.LeftOut(rows=[1, 2]),
            nz.LeftOut(rows=[1, 3]),
            nz.LeftOut(groups=[1, 2], by="ward"),
            nz.LeftOut(groups=[1, 2], by=["cost", "ward"]),
            nz.LeftOut("cost", bounds=[(0, 10)]),
            nz.LeftOut("cost", bounds=[(0, 11)]),
            nz.LeftOut(rows=[1, 2], of=data.table("visits").where("cost > 3")),
        )
    }
    assert len(texts) == 7
    one, other = nz.LeftOut("cost", bounds=[(0, 10), (5, 20)]), nz.LeftOut("cost", bounds=[(5, 10), (0, 20)])
    assert offer(one, data).text == offer(other, data, level=0.5).text
    assert offer(one, opened(BY_COSTS[5], rows=3)).text != offer(one, data).text
    data.ask(one, spend=1)
    data.ask(other, spend=1)
    assert len(data.budget.entries) == 1


def test_the_limits_of_rows_are_not_needed_to_ask_about_them():
    data = opened(BY_ROWS[4], rows="private")
    assert len(data.ask(nz.LeftOut(rows=LIMITS), spend=1)) == 4
    with pytest.raises(InputError, match="noisette buy rows"):
        data.ask(nz.LeftOut("cost", bounds=[(0, 10)]), spend=1)


# Refusals


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: nz.LeftOut(), "Name candidates of one sort"),
        (lambda: nz.LeftOut(rows=[1], groups=[1]), "Name candidates of one sort"),
        (lambda: nz.LeftOut(groups=[1]), "Name candidates of one sort"),
        (lambda: nz.LeftOut(rows=[1], by="ward"), "Name candidates of one sort"),
        (lambda: nz.LeftOut(bounds=[(0, 1)]), "Name candidates of one sort"),
        (lambda: nz.LeftOut("cost", rows=[1]), "Name candidates of one sort"),
        (lambda: nz.LeftOut(rows=[]), "1 to 64 candidates"),
        (lambda: nz.LeftOut(rows=range(1, 99)), "1 to 64 candidates"),
        (lambda: nz.LeftOut(rows="12"), "1 to 64 candidates"),
        (lambda: nz.LeftOut(rows=[2, 1]), "must ascend"),
        (lambda: nz.LeftOut(rows=[0, 1]), "each of rows"),
        (lambda: nz.LeftOut(rows=[2**21]), "must ascend"),
        (lambda: nz.LeftOut("cost", bounds=[5]), "two values"),
    ],
)
def test_candidates_that_are_none(make, why):
    with pytest.raises(InputError, match=why):
        make()


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (lambda data: nz.LeftOut("cost", bounds=[(5, 5)]), "the lower one first"),
        (lambda data: nz.LeftOut("ward", bounds=[("a", "b")]), "ward holds text"),
        (lambda data: nz.LeftOut("cost", bounds=[("a", "b")]), "each of bounds"),
        (lambda data: nz.LeftOut("nothing", bounds=[(0, 1)]), "no column nothing"),
        (lambda data: nz.LeftOut(groups=[1], by="nothing"), "nothing"),
        (lambda data: nz.LeftOut(rows=[1, 10_008, 110_011, 10**6]), "common multiple"),
        (lambda data: nz.LeftOut(rows=[1], of=data.table("visits").select("cost")), "belong to one table"),
        (lambda data: nz.LeftOut(rows=[1], of=data.table("visits").group_by("ward")), "rows, not groups"),
        (
            lambda data: nz.LeftOut("cost", bounds=[(0, 1)], of=data.table("visits").where("cost > 3")),
            "reads cost itself",
        ),
    ],
)
def test_refusals_cost_nothing(ask, why):
    data = opened(BY_COSTS[5])
    with pytest.raises(InputError, match=why):
        data.ask(ask(data), spend=1)
    assert data.budget.spent.epsilon == 0


def test_rows_that_are_units_and_public_tables_have_no_limits():
    rows = nz.open({"people": BY_ROWS[2]}, budget=1)
    for question in (nz.LeftOut(rows=[1]), nz.LeftOut(groups=[1], by="ward")):
        with pytest.raises(InputError, match=r"[Ee]ach row is a unit"):
            rows.ask(question, spend=1)
    rules = {"tables": {"floors": {"public": True}}}
    both = nz.open({"people": BY_ROWS[2], "floors": BY_ROWS[2]}, unit="who", rows=1, budget=1, policy=rules)
    with pytest.raises(InputError, match="public"):
        both.ask(nz.LeftOut(rows=[1], of=both.table("floors")), spend=1)
    assert without_noise(nz.LeftOut("cost", bounds=[(0, 10)]), rows)["above"] == [1]  # values have bounds all the same


def test_the_record_says_the_steps_in_which_noise_is_added():
    data = opened(BY_ROWS[5])
    record = json.loads(data.ask(nz.LeftOut(rows=[2, 4, 8]), spend=1).to_json())
    [part] = record["mechanisms"]
    assert (part["mechanism"], part["grid"], part["sensitivity"]["l1"]) == ("Geometric", "1/4", "4")
    assert part["parameters"] == {"scale": "4"}


def test_a_table_that_is_not_there_is_named():
    data = nz.open(pyarrow.table({"k": [1]}), budget=9)
    with pytest.raises(InputError, match="There is no table c"):
        data.explain(nz.LeftOut("k", bounds=[(0, 1), (0, 2)], of=data.table("c")), spend=1)
