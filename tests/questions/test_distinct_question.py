"""The question `Distinct`: what it counts, what it needs, how often its bars hold, and what it is kept by."""

import json

import numpy as np
import pyarrow
import pytest
from tests.goodness import most

import noisette as nz
from noisette.errors import InputError
from noisette.releases.sketches.distinct import credited

ONE = nz.Pure(1)
ADD_REMOVE, REPLACE = nz.Neighbours.ADD_REMOVE, nz.Neighbours.REPLACE


def opened(table, budget=1000, **rules):
    policy = {"tables": {"visits": {"unit": "who", "columns": {}, **rules}}}
    return nz.open({"visits": table}, budget=budget, policy=policy)


def offer(question, data, spend=ONE, neighbours=ADD_REMOVE, level=0.95):
    return question.offer(data.schema, spend, neighbours, level)


def read(question, data):
    """The credits that a draw would add noise to."""
    seen = []
    made = offer(question, data)

    class Watched:
        limits = made.procedure.release.limits

        def __call__(self, f, rng):
            seen.append(list(f))
            return 1, 0

    procedure = type(made.procedure)(made.procedure.relation, Watched(), 0.95)
    procedure.draw(data._source, data.schema, bytes(16), None)
    return seen[0]


ROWS = {"who": [1, 1, 1, 2, 2, 3, None], "x": ["a", "b", "c", "c", None, "c", "z"]}


def test_nulls_are_no_values_and_rows_of_nobody_do_not_count():
    data = opened(pyarrow.table(ROWS))
    assert read(nz.Distinct("x", most=4), data) == credited([0, 0, 0, 1, 2], [0, 1, 2, 2, 2], [1, 2, 4]) == [2, 3, 3]
    assert read(nz.Distinct("x", of="SELECT * FROM visits WHERE x <> 'a'", most=1), data) == [2]
    assert read(nz.Distinct("UPPER(x)", most=1), data) == [2]


def test_each_row_may_be_a_unit_and_then_one_value_counts_for_it():
    table = pyarrow.table({"x": [1.5, -0.0, 0.0, 1.5, float("nan"), None]})
    data = nz.open({"visits": table}, budget=100, policy={"tables": {"visits": {"unit": None, "columns": {}}}})
    made = offer(nz.Distinct("x"), data)
    assert made.procedure.release.limits == (1,)
    assert data.ask(nz.Distinct("x"), spend=60)["distinct"].values.to_pylist() == [2]


def test_no_limit_on_rows_is_needed_and_a_join_is_refused_by_its_own_sentence():
    data = opened(pyarrow.table({"who": np.repeat(np.arange(50), 40), "x": np.arange(2000) % 300}))
    assert data.ask(nz.Distinct("x"), spend=100)["limit"].values[0].as_py() >= 4
    with pytest.raises(InputError, match="nothing"):
        data.ask(nz.Distinct("nothing"), spend=1)
    with pytest.raises(InputError, match="most"):
        data.ask(nz.Distinct("x", most=0), spend=1)


def test_public_tables_need_no_noise():
    public = {"tables": {"p": {"public": True}, "visits": {"unit": "who"}}}
    data = nz.open({"p": pyarrow.table({"y": [1]}), "visits": pyarrow.table(ROWS)}, budget=1, policy=public)
    with pytest.raises(InputError, match="public"):
        data.ask(nz.Distinct("y", of="SELECT * FROM p"), spend=1)


def test_the_lower_end_holds_as_often_as_it_says():
    """1,500 releases: the lower end is above the truth more often than stated with probability below 1e-11."""
    rng = np.random.default_rng(5)
    table = pyarrow.table({"who": rng.integers(0, 60, 900), "x": rng.integers(0, 400, 900)})
    data, draws = opened(table), 1_500
    made, truth = offer(nz.Distinct("x", most=16), data, level=0.9), len(set(table["x"].to_pylist()))
    f = read(nz.Distinct("x", most=16), data)
    assert f[0] == 60  # at the limit 1 most values are left out
    released = [made.procedure.release(f) for _ in range(draws)]
    ends = [noisy - made.procedure.release.half_width(limit, 0.9) for limit, noisy in released]
    assert sum(end > truth for end in ends) <= most(draws, 0.05)
    within = [abs(n - f[made.procedure.release.limits.index(limit)]) for limit, n in released]
    halves = [made.procedure.release.half_width(limit, 0.9) for limit, _ in released]
    assert sum(np.greater(within, halves)) <= most(draws, 0.1)


def test_it_errs_less_than_a_count_of_distinct_values_in_sql():
    rng = np.random.default_rng(5)
    table = pyarrow.table({"who": rng.integers(0, 3000, 20_000), "x": rng.integers(0, 20, 20_000)})
    data = opened(table, rows=64)
    sql = data.explain("SELECT COUNT(DISTINCT x) AS n FROM visits", spend=1).error
    assert sql > 100
    assert data.explain(nz.Distinct("x"), spend=1).error <= 6
    answer = data.ask(nz.Distinct("x"), spend=1)
    assert abs(answer["distinct"].values[0].as_py() - 20) < 64


def test_caveats_say_what_the_upper_end_rests_on():
    data = opened(pyarrow.table(ROWS))
    said = " ".join(offer(nz.Distinct("x"), data).caveats[0])
    assert "the lower end holds for all values" in said
    assert "credited" in said


def test_what_changes_an_answer_changes_the_text():
    data = opened(pyarrow.table({**ROWS, "y": ROWS["x"]}))
    asked = [
        nz.Distinct("x"),
        nz.Distinct("y"),
        nz.Distinct("x", most=8),
        nz.Distinct("x", of="SELECT * FROM visits WHERE y = 'a'"),
    ]
    assert len({offer(one, data).text for one in asked}) == 4
    assert offer(asked[0], data).text == offer(nz.Distinct("x", of="SELECT * FROM visits"), data, level=0.5).text


def test_the_record_can_be_checked():
    data = opened(pyarrow.table(ROWS))
    record = data.ask(nz.Distinct("x"), spend=1).to_json()
    assert nz.answers.check(record) == nz.Pure(1, neighbours=ADD_REMOVE)
    names = [part["mechanism"] for part in json.loads(record)["mechanisms"]]
    assert names == ["PermuteAndFlip", "Geometric"]


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE], ids=str)
def test_concentrated_promises_use_gaussian_noise(relation):
    data = opened(pyarrow.table(ROWS))
    made = offer(nz.Distinct("x"), data, nz.ZCDP("1/100"), relation)
    assert made.guarantee <= nz.ZCDP("1/100", neighbours=relation)
    assert {type(noise).__name__ for noise in made.procedure.release.noise} == {"Gaussian"}
