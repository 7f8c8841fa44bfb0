"""Multiplicative weights as a question: what it answers, what its value goes on to answer, and what it refuses."""

import numpy as np
import pyarrow
import pytest

import noisette as nz
from noisette.errors import InputError
from noisette.privacy import Neighbours

COUNTS = np.random.default_rng(0).integers(0, 60, (16, 4))
COUNTS[:2] += 400
COLUMNS = {"age": {"bounds": [0, 15], "nullable": False}, "ward": {"keys": list("abcd"), "nullable": False}}


def opened():
    cells = np.repeat(np.arange(64), COUNTS.ravel())
    table = pyarrow.table({"age": cells // 4, "ward": [("abcd")[i] for i in (cells % 4).tolist()]})
    return nz.open({"t": table}, budget=nz.Approx(1000, "1e-3"), policy={"tables": {"t": {"columns": COLUMNS}}})


QUERIES = [{"age": [i, j]} for i in range(0, 16, 3) for j in range(i, 16, 4)] + [{"ward": ["a", "c"]}, {}]


def truth(query):
    low, high = query.get("age", [0, 15])
    return int(COUNTS[low : high + 1, [0, 2] if "ward" in query else slice(None)].sum())


@pytest.mark.slow
@pytest.mark.parametrize("spend", [nz.Pure(20), nz.ZCDP(20), nz.Approx(20, "1e-6")], ids=str)
def test_queries_are_answered_with_bars_that_hold(spend):
    answer = opened().ask(nz.MultiplicativeWeights(["age", "ward"], QUERIES, rounds=8), spend=spend)
    rows = answer.rows()
    assert [row["query"] for row in rows][-2:] == ['{"ward": ["a", "c"]}', "{}"]
    inside = [row["n_low"] <= truth(query) <= row["n_high"] for row, query in zip(rows, QUERIES, strict=True)]
    assert sum(inside) >= len(QUERIES) - 3  # coins are fixed; each measured one fails with a chance of 5 %
    errors = [abs(row["n"] - truth(query)) for row, query in zip(rows, QUERIES, strict=True)]
    assert np.mean(errors) < 0.1 * COUNTS.sum()


@pytest.mark.slow
def test_marginals_are_measured_whole_and_rows_are_made_of_them():
    answer = opened().ask(
        nz.MultiplicativeWeights(["age", "ward"], ways=2, rounds=1, total=int(COUNTS.sum())), spend=50
    )
    assert len(answer) == 64
    assert answer.rows()[1]["query"] == "age = 0, ward = b"
    assert np.array([row["n"] for row in answer.rows()]) == pytest.approx(COUNTS.ravel(), abs=4)
    value = answer.value
    assert abs(value.count({"age": [0, 1]}).value - COUNTS[:2].sum()) < 20
    assert (value.count({"ward": "b"}).low, value.count({"ward": "b"}).high) == (0, np.inf)  # nothing is known of it
    rows = value.rows()
    assert rows.num_rows == COUNTS.sum() == value.total
    made = np.bincount(rows.column("age").to_numpy(), minlength=16)
    assert np.abs(made - COUNTS.sum(axis=1)).max() < 20
    assert rows.schema.field("ward").type == pyarrow.string()


@pytest.mark.slow
def test_it_is_asked_again_for_nothing_and_other_rows_are_another_question():
    curator = opened()
    asked = nz.MultiplicativeWeights("age", [{"age": [0, 3]}, {"age": [2, 9]}], rounds=2)
    assert curator.ask(asked, spend=1).rows() == curator.ask(asked, spend=1).rows()
    assert len(curator.budget.entries) == 1
    curator.ask(
        nz.MultiplicativeWeights("age", asked.queries, rounds=2, of="SELECT * FROM t WHERE ward = 'a'"), spend=1
    )
    assert len(curator.budget.entries) == 2


def test_the_order_of_columns_makes_another_question():
    """What is kept numbers columns and candidates in that order."""
    schema, given = opened().schema, (nz.Pure(1), Neighbours.ADD_REMOVE, 0.95)
    texts = {nz.MultiplicativeWeights(c, ways=1).offer(schema, *given).text for c in (["age", "ward"], ["ward", "age"])}
    streams = {nz.Oracle(c).stream(schema, *given).text for c in (["age", "ward"], ["ward", "age"])}
    assert len(texts) == len(streams) == 2


@pytest.mark.slow
def test_more_is_known_after_more_rounds():
    curator, errors = opened(), []
    for rounds in (1, 12):
        answer = curator.ask(nz.MultiplicativeWeights("age", QUERIES[:-2], rounds=rounds), spend=nz.ZCDP(10))
        found = [row["n"] for row in answer.rows()]
        errors.append(np.abs(np.array(found) - [truth(query) for query in QUERIES[:-2]]).mean())
    assert errors[1] < 0.5 * errors[0]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"columns": []}, "columns"),
        ({"columns": ["age", "age"]}, "each once"),
        ({"columns": "age", "queries": []}, "queries"),
        ({"columns": "age", "queries": [{"age": 3}], "ways": 1}, "not both"),
        ({"columns": "age", "queries": ["age"]}, "A query says"),
        ({"columns": "age", "ways": 2}, "ways"),
        ({"columns": "age", "rounds": 0}, "rounds"),
        ({"columns": "age", "rounds": 10**6}, "rounds"),
        ({"columns": "age", "total": 0}, "total"),
        ({"columns": "age", "queries": [{"cost": 3}]}, "not among"),
        ({"columns": "age", "queries": [{"age": (9, 3)}]}, "lower end"),
        ({"columns": ["age", "ward"], "queries": [{"ward": "z"}]}, "no declared key"),
        ({"columns": ["age", "ward"], "queries": [{"ward": []}]}, "one value at least"),
    ],
)
def test_refusals_cost_nothing(fields, said):
    curator = opened()
    with pytest.raises(InputError, match=rf"^[^\n]*{said}[^\n]*\.$"):
        curator.ask(nz.MultiplicativeWeights(**fields), spend=1)
    assert not curator.budget.entries
