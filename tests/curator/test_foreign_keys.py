"""Units through foreign keys, from the policy to the answer: what is refused when data is opened, and what follows."""

import json
from dataclasses import replace

import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import noisette as nz
from noisette.cli import app
from noisette.curator.described import described_data
from noisette.curator.fingerprints import fingerprints
from noisette.errors import InputError
from noisette.privacy import Neighbours

CUSTOMERS = pyarrow.table({"id": [1, 2, 3], "region": ["east", "west", "east"]})
ORDERS = pyarrow.table(
    {"key": [10, 11, 12, None, None], "customer": [1, 1, 2, 3, 3], "urgent": [True, False] * 2 + [True]}
)
LINES = pyarrow.table({"order": [10, 10, 11, 12, 99, None], "price": [1, 2, 3, 4, 5, 6]})
DATA = {"customers": CUSTOMERS, "orders": ORDERS, "lines": LINES}
LINK = {"through": "orders", "on": {"order": "key"}}


def rules(**changed):
    found = {
        "customers": {"unit": "id", "rows": 1, "columns": {"region": {"keys": ["east", "west"], "nullable": False}}},
        "orders": {"unit": {"through": "customers", "on": {"customer": "id"}}, "rows": 5},
        "lines": {"unit": LINK, "rows": 10, "columns": {"price": {"bounds": [0, 9]}}},
    }
    return {"tables": {**found, **changed}}


def opened(data=DATA, **changed):
    return nz.open(data, budget=nz.Approx(10_000, "1e-3"), policy=rules(**changed))


def exact(curator, text):
    """At an epsilon of 1,000 noise of a count is 0, except for a chance below 1e-80."""
    answer = curator.sql(text, spend=1000)
    return {name: answer[name].values.to_pylist() for name in answer.to_arrow().column_names if name in text}


# What is refused


def swapped(name, column, values):
    table = DATA[name]
    return {**DATA, name: table.set_column(table.column_names.index(column), column, values)}


def through(**changed):
    return {"lines": {"unit": {**LINK, **changed}, "rows": 10}}


REFUSED = {
    "no table": (
        DATA,
        through(through="order"),
        "unit.through in the policy names a table that is not there: did you mean orders?",
    ),
    "another case": (DATA, through(through="Orders"), "names a table that is not there: did you mean orders?"),
    "no column": (
        DATA,
        through(on={"orders": "key"}),
        "unit.on in the policy names a column that the data does not have: did you mean order?",
    ),
    "no far column": (
        DATA,
        through(on={"order": "keys"}),
        "unit.on in the policy names a column that the data does not have: did you mean key?",
    ),
    "nothing": (
        DATA,
        through(on={}),
        'unit.on in the policy must say which columns are equal: on = { order_id = "id" }.',
    ),
    "a text": (DATA, through(on="key"), "unit.on in the policy must say which columns are equal"),
    "no name": (DATA, through(through=3), "unit.through in the policy must be the name of a table"),
    "one column twice": (
        DATA,
        through(on={"order": "key", "price": "key"}),
        "must not name a column of the far table twice",
    ),
    "another word": (DATA, through(by="key"), "tables.lines.unit.by in the policy is unknown"),
    "a public table": (
        DATA,
        {"orders": {"public": True}},
        "unit.through in the policy names a public table, which leads to nobody",
    ),
    "no unit": (DATA, {"orders": {}}, 'names a table without a unit: add unit = "column" to [tables.orders].'),
    "a circle": (
        DATA,
        {"orders": {"unit": {"through": "lines", "on": {"key": "order"}}}},
        "tables.lines.unit in the policy leads in a circle: let one of its tables name a column as its unit.",
    ),
    "itself": (DATA, {"orders": {"unit": {"through": "orders", "on": {"customer": "key"}}}}, "leads in a circle"),
    "a public child": (
        DATA,
        {"lines": {"unit": LINK, "public": True}},
        "is public, so it protects nobody: leave unit out.",
    ),
    "a key that is there twice": (
        swapped("orders", "key", pyarrow.array([10, 10, 12, 13, 14])),
        {},
        "tables.lines.unit.on in the policy refers to several rows of orders with the same key: keep one row for each.",
    ),
    "text and number": (
        swapped("lines", "order", pyarrow.array(["10"] * 6)),
        {},
        "tables.lines.unit.on in the policy compares order, stored as VARCHAR, with key, stored as BIGINT: store both",
    ),
    "double and number": (
        swapped("lines", "order", pyarrow.array([10.0] * 6)),
        {},
        "stored as DOUBLE, with key, stored as BIGINT",
    ),
    "doubles": (
        swapped("lines", "order", pyarrow.array([10.0] * 6))
        | {"orders": ORDERS.set_column(0, "key", ORDERS["key"].cast("double"))},
        {},
        "compares order, stored as DOUBLE: store keys as whole numbers or as text.",
    ),
    "bounds for sale": (
        DATA,
        {"orders": {"unit": "customer", "rows": 5, "columns": {"key": {"bounds": "private"}}}},
        "tables.lines.unit.on in the policy refers to key, so its bounds cannot be for sale: leave them out.",
    ),
    "bounds that make two keys one": (
        DATA,
        {"orders": {"unit": "customer", "rows": 5, "columns": {"key": {"bounds": [0, 11]}}}},
        "refers to several rows of orders with the same key",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_one_sentence_when_the_data_is_opened(name):
    data, changed, sentence = REFUSED[name]
    with pytest.raises(InputError) as caught:
        opened(data, **changed)
    assert sentence in str(caught.value)
    assert str(caught.value).count(". ") == 0


def test_csv_files_need_the_types_of_keys(tmp_path):
    for name, table in DATA.items():
        pyarrow.csv.write_csv(table, tmp_path / f"{name}.csv")
    files = {name: tmp_path / f"{name}.csv" for name in DATA}

    def typed(**columns):
        return {"columns": {name: {"type": type} for name, type in columns.items()}}

    orders = {"unit": "customer", "rows": 5, **typed(key="integer", customer="integer")}
    changed = {"customers": {"unit": "id", "rows": 1, **typed(id="integer")}, "orders": orders}
    with pytest.raises(
        InputError, match=r"columns\.order in the policy is missing: the unit of a CSV file needs a type"
    ):
        opened(files, **changed, lines={"unit": LINK, "rows": 10, **typed(price="integer")})
    with pytest.raises(InputError, match="stored as VARCHAR, with key, stored as BIGINT"):
        opened(files, **changed, lines={"unit": LINK, "rows": 10, **typed(order="text")})
    lines = {"unit": LINK, "rows": 10, **typed(order="integer")}
    assert exact(opened(files, **changed, lines=lines), "SELECT count(*) AS n FROM lines") == {"n": [4]}


# What follows


def test_everything_knows_whose_a_row_is():
    data = opened()
    assert exact(data, "SELECT count(*) AS n FROM lines") == {"n": [4]}
    joined = 'FROM lines l JOIN orders o ON l."order" = o.key'
    assert exact(data, f"SELECT count(*) AS n, count(DISTINCT customer) AS u {joined}") == {"n": [4], "u": [2]}
    assert exact(
        data, f"SELECT region, count(*) AS n {joined} JOIN customers c ON c.id = o.customer GROUP BY region"
    ) == {
        "region": ["east", "west"],
        "n": [3, 1],
    }
    frame = data.table("orders").join(data.table("lines"), on={"key": "order"})
    assert data.ask(frame.count(), spend=1000)["count"].values.to_pylist() == [4]


def test_an_explanation_says_what_one_person_can_produce():
    told = " ".join(
        repr(opened().explain('SELECT count(*) AS n FROM lines l JOIN orders o ON l."order" = o.key', spend=1)).split()
    )
    assert "one id can change rows by 10 in one group, 10 in all" in told
    assert "At most 10 rows of each id are used" in told
    assert "lines that lead to no id through orders and customers are left out" in told


def test_many_to_many_is_refused_with_the_fix():
    with pytest.raises(InputError, match="along the foreign keys that the policy declares"):
        opened().sql("SELECT count(*) AS n FROM lines l JOIN orders o ON l.price = o.customer", spend=1)


def test_a_limit_that_is_for_sale_can_be_bought():
    data = opened(lines={"unit": LINK, "rows": "private"})
    with pytest.raises(InputError, match="buy the limit once"):
        data.sql("SELECT count(*) AS n FROM lines", spend=1)
    data.rows("lines", spend=500)
    assert exact(data, "SELECT count(*) AS n FROM lines")["n"][0] >= 2


def test_other_keys_are_other_data_and_another_question():
    """Where rows lead elsewhere, the ledger is about other data, and no kept answer is given again."""
    first, other = (
        described_data(DATA, budget=1, policy=rules(orders={"unit": unit, "rows": 5}))
        for unit in ("customer", {"through": "customers", "on": {"customer": "id"}})
    )
    prints = [fingerprints(DATA, d.schema, Neighbours.ADD_REMOVE, {n: {} for n in DATA}, {}) for d in (first, other)]
    assert prints[0]["orders"] != prints[1]["orders"]
    assert prints[0]["lines"] != prints[1]["lines"]
    assert prints[0]["customers"] == prints[1]["customers"]
    plain = replace(first.schema["customers"], through=())
    assert (
        fingerprints(DATA, {"customers": plain}, Neighbours.ADD_REMOVE, {"customers": {}}, {})["customers"]
        == prints[0]["customers"]
    )


@pytest.mark.slow
def test_a_project_writes_and_reads_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, table in DATA.items():
        pyarrow.parquet.write_table(table, f"{name}.parquet")
    with open("mine.toml", "w") as file:
        file.write(opened().policy.to_toml())
    run = CliRunner().invoke
    made = run(app, ["open", *(f"{name}.parquet" for name in DATA), "--policy", "mine.toml", "--json"])
    assert made.exit_code == 0, made.output
    lines = json.loads(made.output)["tables"]["lines"]
    assert (lines["unit"], [step["table"] for step in lines["through"]]) == ("id", ["orders", "customers"])
    shown = run(app, ["open", *(f"{name}.parquet" for name in DATA), "--policy", "mine.toml"])
    assert (
        "lines: all rows that lead through orders and customers to one id are protected together (rows 10)"
        in shown.output
    )
    asked = run(app, ["ask", "SELECT count(*) AS n FROM lines", "--spend", "1000", "--json"])
    assert asked.exit_code == 0, asked.output
