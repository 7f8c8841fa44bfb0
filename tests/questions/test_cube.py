"""Data cubes: exact without noise, moved by one unit as stated, with error bars that hold."""

import json
import math
from dataclasses import replace
from itertools import combinations, combinations_with_replacement

import numpy as np
import pyarrow
import pytest
from tests.goodness import most

import noisette as nz
from noisette.errors import InputError
from noisette.query.measure import Exact

ADD_REMOVE, REPLACE = nz.Neighbours.ADD_REMOVE, nz.Neighbours.REPLACE
ONE = nz.Pure(1)
COLUMNS = {
    "ward": {"keys": ["a", "b"]},
    "age": {"bounds": [0, 2], "nullable": False},
    "sick": {},
    "pin": {"bounds": [0, 5000]},
}


def opened(table, budget=10**6, rows=2, **more):
    rules = {"unit": "who", "rows": rows, "columns": COLUMNS} | more
    return nz.open({"visits": table}, budget=budget, policy={"tables": {"visits": rules}})


def table(rows):
    """Rows of who, ward, age and sick."""
    who, ward, age, sick = zip(*rows, strict=True) if rows else ((), (), (), ())
    types = (pyarrow.int64(), pyarrow.string(), pyarrow.int64(), pyarrow.bool_())
    arrays = [pyarrow.array(values, kind) for values, kind in zip((who, ward, age, sick), types, strict=True)]
    columns = dict(zip(("who", "ward", "age", "sick"), arrays, strict=True))
    return pyarrow.table(columns | {"pin": arrays[0], "note": arrays[1]})


def random_rows(people=600):
    rng = np.random.default_rng(4)
    return [
        (who, rng.choice(["a", "b", "z", None]), int(rng.integers(0, 5)), rng.choice([True, False, None]))
        for who in range(people)
        for _ in range(rng.integers(1, 3))
    ]


ROWS = random_rows()
KNOWN = [(w, a, s) for _, w, a, s in ROWS if w != "z" and a <= 2]  # what the declarations foresee


@pytest.fixture(scope="module")
def data():
    return opened(table(ROWS))


def offer(question, data, spend=ONE, neighbours=ADD_REMOVE, level=0.95):
    return question.offer(data.schema, spend, neighbours, level)


def exactly(made, data):
    return data._source.aggregate(made.procedure.prepared.request, data.schema, bytes(16))


def without_noise(question, data, spend=ONE):
    """The cube as it would be if no noise were added."""
    made = offer(question, data, spend)
    noisy = np.asarray(made.procedure.measured(exactly(made, data)), float)
    return made.value(pyarrow.table({"noisy": noisy}))


CUBE = nz.Cube(["ward", "age", "sick"])

# Without noise


@pytest.mark.parametrize("spend", [nz.Pure(1), nz.ZCDP(1)], ids=repr)
def test_every_marginal_is_counted_exactly(data, spend):
    cube = without_noise(CUBE, data, spend)
    places = {"ward": 0, "age": 1, "sick": 2}
    for columns in cube.marginals:
        found = cube.marginal(*columns)
        for row in found.to_pylist():
            truth = sum(all(known[places[c]] == row[c] for c in columns) for known in KNOWN)
            assert row["n"] == pytest.approx(truth, abs=1e-6)
        assert found.num_rows == math.prod(len(cube.axis(c).values) for c in columns)
    assert cube.marginal("age", "ward").column_names[:2] == ["age", "ward"]


def test_conjunctions_are_counted(data):
    cube = without_noise(CUBE, data)
    truth = sum(w == "a" and a in (1, 2) for w, a, _ in KNOWN)
    assert cube.count({"ward": "a", "age": [1, 2]}).value == pytest.approx(truth)
    assert cube.count({"age": range(2), "ward": ["a", "b"]}).value == pytest.approx(
        sum(w is not None and a < 2 for w, a, _ in KNOWN)
    )
    assert cube.count({"sick": None}).value == pytest.approx(sum(s is None for *_, s in KNOWN))
    assert float(cube.total) == pytest.approx(len(KNOWN))
    a, b = cube.count({"ward": "a"}), cube.count({"ward": "b"})
    assert (a - b).value == pytest.approx(a.value - b.value)
    assert (a + b).value == pytest.approx(a.value + b.value)
    assert (a / cube.total).value == pytest.approx(a.value / len(KNOWN))


def test_rows_with_undeclared_keys_are_in_no_marginal_and_the_answer_says_so(data):
    made = offer(CUBE, data)
    assert any("ward is a value other than its 2 declared keys" in text for text in made.caveats[0])
    assert without_noise(nz.Cube(["age"], ways=1), data).total.value > len(KNOWN)


def test_conditions_come_first(data):
    cube = without_noise(nz.Cube(["age"], ways=1, of=data.table("visits").where("sick")), data)
    assert cube.total.value == pytest.approx(sum(s is True and a <= 2 for *_, a, s in ROWS))


def test_expressions_have_names(data):
    cube = without_noise(nz.Cube({"old": "age >= 2", "ward": "ward"}), data)
    assert [axis.name for axis in cube.axes] == ["old", "ward"]
    assert cube.count({"old": True}).value == pytest.approx(sum(a == 2 for _, a, _ in KNOWN))


def test_an_empty_table_is_a_cube_of_zeros():
    assert without_noise(CUBE, opened(table([]))).total.value == 0


# What one unit can change


def placements(rows):
    """All tables of one unit's rows, next to somebody else's."""
    cells = [("a", 0), ("b", 1), ("a", 1), ("z", 0)]
    for count in range(rows + 1):
        for some in combinations_with_replacement(cells, count):
            yield table([(2, "a", 0, True), *((1, ward, age, True) for ward, age in some)])


@pytest.mark.slow
@pytest.mark.parametrize("spend", [nz.Pure(1), nz.ZCDP(1)], ids=repr)
def test_one_unit_moves_the_numbers_by_what_is_stated(spend):
    """All tables with up to three rows of a unit, where two count; a source that retains all three is noticed."""
    question = nz.Cube({"ward": "ward", "late": "age > 0"})
    found, loose = [], []
    for one in placements(3):
        data = opened(one)
        made = offer(question, data, spend)
        found.append(np.asarray(made.procedure.measured(exactly(made, data)), float))
        request = replace(made.procedure.prepared.request, limits=None)
        unbounded = data._source.aggregate(request, data.schema, bytes(16))
        loose.append(np.asarray(made.procedure.measured(unbounded), float))
    for neighbours in (ADD_REMOVE, REPLACE):
        moved = offer(question, data, spend, neighbours).procedure.made.moved
        stated = float(moved.l1 if spend.is_pure else moved.l2_squared)
        assert 0.99 * stated <= largest(found, neighbours, spend) <= stated * (1 + 1e-9)
        assert largest(loose, neighbours, spend) > 1.2 * stated


def largest(found, neighbours, spend):
    pairs = [(found[0], each) for each in found] if neighbours is ADD_REMOVE else combinations(found, 2)
    return max(np.abs(a - b).sum() if spend.is_pure else np.square(a - b).sum() for a, b in pairs)


def test_what_is_kept_is_what_the_mechanism_made_of_the_numbers(data):
    made = offer(CUBE, data)
    seen = []
    spy = replace(made.procedure.made, noise=lambda x, rng: seen.append(np.asarray(x, float)) or np.asarray(x) + 1000.0)
    drawn = replace(made.procedure, made=spy).draw(data._source, data.schema, bytes(16), None)
    truth = np.asarray(made.procedure.measured(exactly(made, data)), float)
    assert np.array_equal(seen[0], truth)
    assert np.array_equal(drawn.column("noisy").to_numpy(), truth + 1000)


def test_no_table_of_all_combinations_is_made():
    """A hundred columns of two values: the engine returns at most one combination for each row."""
    names = [f"c{i}" for i in range(100)]
    rng = np.random.default_rng(1)
    columns = {"who": np.arange(50), **{name: rng.integers(0, 2, 50) for name in names}}
    rules = {name: {"bounds": [0, 1], "nullable": False} for name in names}
    policy = {"tables": {"visits": {"unit": "who", "rows": 1, "columns": rules}}}
    data = nz.open({"visits": pyarrow.table(columns)}, budget=10, policy=policy)
    made = offer(nz.Cube(names, ways=1), data)
    exact = exactly(made, data)
    assert isinstance(exact, Exact)
    assert len(exact.measures[0]) <= 50
    cube = without_noise(nz.Cube(names, ways=1), data)
    assert cube.count({"c7": 1}).value == pytest.approx(columns["c7"].sum())


# Error bars


@pytest.mark.slow
@pytest.mark.parametrize("spend", [nz.Pure("1/2"), nz.ZCDP("1/20")], ids=repr)
def test_bars_hold_as_often_as_they_say(data, spend):
    """Counts, differences, ratios and all bars at once, of 400 cubes: each fails with p < 1e-12."""
    made, level, draws = offer(CUBE, data, spend, level=0.9), 0.9, 400
    truth = without_noise(CUBE, data, spend)
    exact = np.asarray(made.procedure.measured(exactly(made, data)), float)
    noisy = np.asarray(made.procedure.made.noise(np.tile(exact, draws))).reshape(draws, -1)
    missed, apart = {"count": 0, "difference": 0, "ratio": 0, "all at once": 0}, truth.to_arrow()["n"].to_numpy()
    known = {name: float(one) for name, one in asked(truth).items()}
    for y in noisy:
        cube = made.value(pyarrow.table({"noisy": y}))
        for name, one in asked(cube).items():
            missed[name] += not one.low <= known[name] <= one.high
        bars = cube.to_arrow(simultaneous=True)
        low, high = bars["n_low"].to_numpy(), bars["n_high"].to_numpy()
        missed["all at once"] += bool(((low > apart) | (high < apart)).any())
    assert max(missed.values()) <= most(draws, 1 - level), missed
    assert min(missed["count"], missed["difference"], missed["ratio"]) >= draws * (1 - level) / 3


def asked(cube):
    one, other = cube.count({"ward": "a", "age": [0, 1]}), cube.count({"ward": "b", "age": 2})
    return {"count": one, "difference": one - other, "ratio": one / cube.count({"ward": "a"})}


def test_all_bars_at_once_are_wider(data):
    cube = data.ask(CUBE, spend=1).value
    one, every = cube.to_arrow(), cube.to_arrow(simultaneous=True)
    assert one["n"].equals(every["n"])
    assert (every["n_high"].to_numpy() > one["n_high"].to_numpy()).all()


def test_a_ratio_whose_lower_part_may_be_0_is_unknown(data):
    cube = without_noise(CUBE, data, nz.Pure("1/100"))  # bars are far wider than the numbers
    found = cube.total / cube.count({"ward": "a", "age": 0})
    assert found.low <= found.value <= found.high
    assert (found.low, found.high) == (-math.inf, math.inf)


def test_numbers_from_0_on_are_offered_apart(data):
    made = offer(CUBE, data)
    exact = np.asarray(made.procedure.measured(exactly(made, data)), float)
    cube = made.value(pyarrow.table({"noisy": exact + 300 * np.where(np.arange(len(exact)) % 2, 1, -1)}))
    plain, moved = cube.marginal("ward", "age"), cube.marginal("ward", "age", nonnegative=True)
    assert plain["n"].to_numpy().min() < 0 <= moved["n"].to_numpy().min()
    assert moved["n"].to_numpy().sum() == pytest.approx(max(plain["n"].to_numpy().sum(), 0))
    assert (moved["n_low"].to_numpy() <= moved["n"].to_numpy()).all()
    assert (moved["n_low"].to_numpy() >= 0).all()


# The answer


def test_the_answer_is_a_table_and_a_cube_that_goes_on_answering(data):
    answer = data.ask(CUBE, spend=1)
    spent = len(data.budget.entries)
    cube = answer.value
    assert answer.to_arrow().column("n").equals(cube.to_arrow().column("n"))
    assert answer.to_arrow().column_names == ["marginal", "ward", "age", "sick", "n", "n_low", "n_high"]
    marginal = cube.marginal("ward", "age")
    both = [n for n, which in zip(*(answer[c].values.to_pylist() for c in ("n", "marginal")), strict=True)
            if which == "ward, age"]  # fmt: skip
    assert marginal["n"].to_pylist() == both
    assert cube.count({"ward": "a"}).half_width > 0
    assert len(data.budget.entries) == spent
    assert "ward (3), age (3), sick (3)" in repr(cube)
    assert "±" in repr(cube.total)


def test_sums_of_released_numbers_agree(data):
    cube = data.ask(CUBE, spend=nz.Approx(1, "1e-6")).value
    for columns in cube.marginals:
        assert sum(cube.marginal(*columns)["n"].to_pylist()) == pytest.approx(cube.total.value)


def test_the_chart_shows_one_marginal(data):
    answer = data.ask(CUBE, spend=1)
    assert "n by ward, age" in answer.plot().title
    assert answer.value.chart("sick", note="made up").title == "n by sick\nmade up"


def test_explanations_have_an_error_for_each_number_of_columns(data):
    explained = data.explain(CUBE, spend=1)
    assert [c.assumes for c in explained.columns] == [
        "the total", "a cell of a marginal of 1 column", "a cell of a marginal of 2 columns"
    ]  # fmt: skip
    cube = data.ask(CUBE, spend=1).value
    for size, column in enumerate(explained.columns):
        widths = [float(m["n_high"][0].as_py() - m["n"][0].as_py()) for names in cube.marginals
                  if len(names) == size and (m := cube.marginal(*names))]  # fmt: skip
        assert max(widths) == pytest.approx(column.half_width, rel=1e-3)


# What it is kept by


def test_what_changes_an_answer_changes_the_text_and_nothing_else_does(data):
    texts = {
        offer(question, data).text
        for question in (
            CUBE,
            nz.Cube(["ward", "age", "sick"], ways=1),
            nz.Cube(["ward", "age"]),
            nz.Cube(["ward", "age", "sick"], of=data.table("visits").where("sick")),
        )
    }
    assert len(texts) == 4
    other = nz.Cube({"ill": "sick", "age": "age", "ward": "visits.ward"})
    assert offer(other, data, level=0.5).text == offer(CUBE, data).text
    fresh = opened(table(ROWS))
    one, two = fresh.ask(CUBE, spend=1).value, fresh.ask(other, spend=1).value
    assert len(fresh.budget.entries) == 1
    assert one.count({"sick": True, "age": 1}).value == two.count({"age": 1, "ill": True}).value


def test_json_has_a_list_or_names():
    assert json.loads(CUBE.to_json()) == {"cube": {"columns": ["ward", "age", "sick"]}}
    named = nz.Cube({"w": "ward", "old": "age > 1"}, ways=1)
    assert json.loads(named.to_json()) == {"cube": {"columns": {"w": "ward", "old": "age > 1"}, "ways": 1}}
    assert nz.questions.from_json(named.to_json()) == named
    assert hash(named) == hash(nz.questions.from_json(named.to_json()))


# Refusals


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: nz.Cube([]), "columns must name"),
        (lambda: nz.Cube("ward"), "columns must name"),
        (lambda: nz.Cube(["ward", "ward"]), "columns must name"),
        (lambda: nz.Cube(["ward", 3]), "columns must name"),
        (lambda: nz.Cube(["ward"], ways=2), "from 1 to the number of columns, 1 here"),
        (lambda: nz.Cube(["ward"], ways=0), "from 1 to"),
        (lambda: nz.Cube(["ward"], ways=True), "from 1 to"),
        (lambda: nz.Cube({"n": "ward"}, ways=1), "cannot be called"),
        (lambda: nz.Cube(["ward"], ways=1, of=3), "of must be rows"),
    ],
)
def test_what_cannot_be_a_cube_is_refused(make, why):
    with pytest.raises(InputError, match=why):
        make()


@pytest.mark.parametrize(
    ("question", "why"),
    [
        (nz.Cube(["ward", "nothing"]), "nothing"),
        (nz.Cube({"a": "age", "b": "visits.age"}), "the same"),
        (nz.Cube(["note", "ward"]), "note has no declared values: declare keys or bounds"),
        (nz.Cube({"x": "pin", "y": "pin + 1"}), "cells"),
        (nz.Cube({f"x{i}": f"age > {i}" for i in range(20)}, ways=10), "marginals"),
        (nz.Cube(["ward"], ways=1, of="SELECT * FROM nowhere"), "nowhere"),
    ],
)
def test_what_cannot_be_asked_is_refused(data, question, why):
    spent = len(data.budget.entries)
    with pytest.raises(InputError, match=why):
        data.ask(question, spend=1)
    assert len(data.budget.entries) == spent


@pytest.mark.parametrize(
    ("use", "why"),
    [
        (lambda cube: cube.marginal("cost"), "no such column: it has ward, age, sick"),
        (lambda cube: cube.marginal("ward", "ward"), "once"),
        (lambda cube: cube.marginal("ward", "age", "sick"), "At most 2 columns"),
        (lambda cube: cube.count({"ward": "z"}), "A value is not one of ward"),
        (lambda cube: cube.count({"ward": [["a"]]}), "A value is not one of ward"),
        (lambda cube: cube.count("ward"), "Name columns and values"),
        (lambda cube: cube.total - 3, "take both from the same cube"),
    ],
)
def test_what_a_cube_does_not_know_is_refused(data, use, why):
    with pytest.raises(InputError, match=why):
        use(without_noise(CUBE, data))
