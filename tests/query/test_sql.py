"""SQL texts become plans."""

import datetime
from fractions import Fraction

import pytest
from tests.query.tables import SCHEMA

from noisette.errors import InputError
from noisette.query.canonical import canonical_text
from noisette.query.expression import Call, Literal, Name
from noisette.query.plan import (
    Aggregate,
    Join,
    Key,
    Ordering,
    PerUnit,
    Query,
    ResultCall,
    ResultLiteral,
    Scan,
    Select,
    Where,
)
from noisette.query.prepare import prepare
from noisette.query.sql import parse
from noisette.query.stability import shape_of

ROWS = Aggregate("rows")
VISITS = Scan("visits", "visits")


def asked(text: str) -> Query:
    return parse(text, SCHEMA)


def condition(text: str):
    source = asked(f"SELECT COUNT(*) FROM visits WHERE {text}").source
    assert isinstance(source, Where)
    return source.condition


def aggregate(text: str):
    ((_, value),) = asked(f"SELECT {text} FROM visits").outputs
    return value


def same(*texts: str) -> bool:
    return len({canonical_text(asked(text)) for text in texts}) == 1


# Statements


def test_groups_results_order_and_limit():
    query = asked(
        "SELECT ward, COUNT(*) AS n, AVG(age) / 2 FROM visits WHERE age >= 18 "
        "GROUP BY ward HAVING n > 100 ORDER BY n DESC, ward LIMIT 10"
    )
    mean = Aggregate("mean", Name("visits.Age"))
    assert query == Query(
        Where(VISITS, Call("at_least", (Name("visits.Age"), Literal(18)))),
        (Name("visits.ward"),),
        (("ward", Key(0)), ("n", ROWS), ("column_3", ResultCall("divide", (mean, ResultLiteral(Fraction(2)))))),
        ResultCall("more", (ROWS, ResultLiteral(Fraction(100)))),
        (Ordering(ROWS, True), Ordering(Key(0))),
        10,
    )


def test_joins():
    on = (("v.patient_id", "l.patient_id"),)
    inner = Join(Scan("visits", "v"), Scan("labs", "l"), on)
    assert asked("SELECT COUNT(*) FROM visits v JOIN labs AS l ON l.patient_id = v.patient_id").source == inner
    assert asked("SELECT COUNT(*) FROM visits v INNER JOIN labs l USING (patient_id)").source == inner
    outer = asked(
        "SELECT COUNT(*) FROM visits v LEFT OUTER JOIN wards w ON (v.ward = w.ward) AND w.ward = v.ward"
    ).source
    assert outer == Join(Scan("visits", "v"), Scan("wards", "w"), (("v.ward", "w.ward"),) * 2, "left")
    three = asked("SELECT COUNT(value) FROM visits JOIN wards USING (ward) JOIN labs USING (patient_id) GROUP BY ward")
    assert three.keys == (Name("visits.ward"),)


def test_a_sub_query_selects_columns():
    query = asked(
        "SELECT AVG(s.double) FROM (SELECT age * 2 AS double, ward FROM visits WHERE smoker) AS s GROUP BY ward"
    )
    inner = Where(VISITS, Name("visits.smoker"))
    columns = (("s.double", Call("multiply", (Name("visits.Age"), Literal(2)))), ("s.ward", Name("visits.ward")))
    assert query.source == Select(inner, columns)
    assert query.keys == (Name("s.ward"),)


def test_a_sub_query_groups_by_unit():
    query = asked("SELECT AVG(n) FROM (SELECT patient_id, LEAST(COUNT(*), 5) AS n FROM visits GROUP BY patient_id) s")
    select = query.source
    assert isinstance(select, Select)
    assert select.source == PerUnit(VISITS, (("s.key1", Name("visits.patient_id")),), (("s.aggregate1", ROWS),))
    assert dict(select.columns)["s.n"] == Call("least", (Name("s.aggregate1"), Literal(5)))
    assert shape_of(select, SCHEMA).rows == 1


@pytest.mark.parametrize(
    "inner",
    [
        "SELECT patient_id, ward, MAX(age) AS x FROM visits GROUP BY patient_id, ward HAVING COUNT(*) > 1",
        "SELECT patient_id, MAX(age) - MIN(age) AS x FROM visits GROUP BY ALL",
        "SELECT MAX(age) AS x FROM visits GROUP BY patient_id",
        "SELECT patient_id AS p, COUNT(*) FILTER (WHERE smoker) AS x FROM visits GROUP BY p",
        "SELECT patient_id, CASE WHEN COUNT(*) > 3 THEN 1 ELSE 0 END AS x FROM visits GROUP BY 1",
        "SELECT DISTINCT patient_id, age AS x FROM visits",
        "SELECT patient_id, YEAR(MAX(visited)) AS x FROM visits GROUP BY patient_id",
        "SELECT patient_id, BIN(age, 10) AS x, COUNT(*) AS n FROM visits GROUP BY patient_id, BIN(age, 10)",
    ],
)
def test_sub_queries_per_unit(inner):
    query = asked(f"SELECT COUNT(x) FROM ({inner}) AS s WHERE x < 100")
    assert shape_of(query.source, SCHEMA).unit == "patient_id"


def test_with_names_sub_queries():
    flat = "SELECT ward, COUNT(*) FROM visits WHERE age > 18 AND smoker GROUP BY ward"
    with_names = (
        "WITH grown AS (SELECT * FROM visits WHERE age > 18), both AS (SELECT ward AS w FROM grown WHERE smoker) "
        "SELECT w, COUNT(*) FROM both GROUP BY w"
    )
    nested = (
        "SELECT w, COUNT(*) FROM (WITH a AS (SELECT * FROM visits WHERE smoker) SELECT ward w "
        "FROM a WHERE age > 18) GROUP BY 1"
    )
    assert same(flat, with_names, nested)


def test_a_name_shadows_the_table():
    assert same(
        "WITH visits AS (SELECT * FROM visits WHERE age > 18) SELECT COUNT(*) FROM visits",
        "SELECT COUNT(*) FROM visits WHERE age > 18",
    )


def test_each_use_of_a_name_is_a_copy():
    query = asked(
        "WITH a AS (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) "
        "SELECT COUNT(*) FROM a x JOIN a y USING (patient_id) WHERE x.n > y.n"
    )
    assert isinstance(query.source, Where)


# Groups


def test_ways_to_group():
    assert same(
        "SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) FROM visits GROUP BY FLOOR(age / 10) * 10",
        "SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) FROM visits GROUP BY decade",
        "SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) FROM visits GROUP BY 1",
        "SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) FROM visits GROUP BY ALL",
        "SELECT BIN(age, 10) AS decade, COUNT(*) FROM visits GROUP BY Decade",
        "SELECT age // 10 * 10 AS decade, COUNT(*) FROM visits GROUP BY 1, decade",
    )


def test_keys_alone():
    assert asked("SELECT DISTINCT ward FROM visits") == asked("SELECT ward FROM visits GROUP BY ward")
    assert asked("SELECT DISTINCT ward FROM visits").outputs == (("ward", Key(0)),)


def test_keys_in_other_words():
    query = asked("SELECT visits.WARD AS w, YEAR(visited) + 1 FROM visits GROUP BY ward, EXTRACT(year FROM visited)")
    assert query.outputs[0] == ("w", Key(0))
    assert query.outputs[1][1] == ResultCall("add", (Key(1), ResultLiteral(Fraction(1))))


def test_a_column_comes_before_an_alias():
    query = asked("SELECT age * 10 AS age, COUNT(*) FROM visits GROUP BY age")
    assert query.keys == (Name("visits.Age"),)


def test_one_and_true_are_different_keys():
    with pytest.raises(InputError):
        asked("SELECT CASE WHEN smoker THEN TRUE END FROM visits GROUP BY CASE WHEN smoker THEN 1 END")


def test_names_of_outputs():
    query = asked(
        "SELECT ward, ward, COUNT(*), COUNT(*), COUNT(age), COUNT(DISTINCT patient_id), AVG(age),"
        " MEAN(age), SUM(age + 1), "
        'COUNT(*) + 1, ROUND(AVG(cost), 1), MAX(age) AS "Größte", SUM(cost) FILTER (WHERE smoker) '
        "FROM visits GROUP BY ward"
    )
    assert [name for name, _ in query.outputs] == [
        "ward", "ward_2", "count", "count_2", "count_age", "count_distinct_patient_id", "avg_age", "mean_age", "sum",
        "column_10", "avg_cost", "Größte", "sum_cost",
    ]  # fmt: skip


# Aggregates

AGE = Name("visits.Age")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("COUNT(*)", ROWS),
        ("COUNT(1)", ROWS),
        ("COUNT(age)", Aggregate("count", AGE)),
        ("COUNT(DISTINCT patient_id)", Aggregate("units")),
        ("COUNT(DISTINCT ward)", Aggregate("distinct", Name("visits.ward"))),
        ("SUM(age)", Aggregate("sum", AGE)),
        ("AVG(age)", Aggregate("mean", AGE)),
        ("MEAN(age)", Aggregate("mean", AGE)),
        *((f"{name}(age)", Aggregate("variance", AGE)) for name in ("VARIANCE", "VAR_POP", "VAR_SAMP")),
        *((f"{name}(age)", Aggregate("deviation", AGE)) for name in ("STDDEV", "STDDEV_POP", "STDDEV_SAMP")),
        ("MIN(age)", Aggregate("quantile", AGE, Fraction(0))),
        ("MAX(age)", Aggregate("quantile", AGE, Fraction(1))),
        ("MEDIAN(age)", Aggregate("quantile", AGE, Fraction(1, 2))),
        *(
            (f"{name}(age, 0.1)", Aggregate("quantile", AGE, Fraction(1, 10)))
            for name in ("QUANTILE", "QUANTILE_CONT", "QUANTILE_DISC")
        ),
        ("PERCENTILE_CONT(0.1) WITHIN GROUP (ORDER BY age)", Aggregate("quantile", AGE, Fraction(1, 10))),
        ("PERCENTILE_DISC(0.1) WITHIN GROUP (ORDER BY age DESC)", Aggregate("quantile", AGE, Fraction(9, 10))),
        ("COUNT_IF(smoker)", Aggregate("count", Call("case", (Name("visits.smoker"), Literal(1), Literal(None))))),
        (
            "COUNT(*) FILTER (WHERE smoker)",
            Aggregate("count", Call("case", (Name("visits.smoker"), Literal(1), Literal(None)))),
        ),
        ("SUM(age) FILTER (WHERE smoker)", Aggregate("sum", Call("case", (Name("visits.smoker"), AGE, Literal(None))))),
    ],
)
def test_aggregates(text, expected):
    assert aggregate(text) == expected


def test_units_of_a_row_are_its_rows():
    assert parse("SELECT COUNT(DISTINCT hour) FROM events", SCHEMA).outputs[0][1] == Aggregate(
        "distinct", Name("events.hour")
    )


# Expressions

VISITED, ENTERED, WARD = Name("visits.visited"), Name("visits.entered"), Name("visits.ward")
NEW_YEAR = datetime.date(2020, 1, 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("age > 0.1", Call("more", (AGE, Literal(Fraction(1, 10))))),
        ("age > 1e3", Call("more", (AGE, Literal(1000)))),
        ("age > -.5e-1", Call("more", (AGE, Literal(Fraction(-1, 20))))),
        ("age <> 1", Call("unequal", (AGE, Literal(1)))),
        ("age BETWEEN 1 AND 2", Call("and", (Call("at_least", (AGE, Literal(1))), Call("at_most", (AGE, Literal(2)))))),
        ("age NOT IN (1, -2)", Call("not", (Call("in", (AGE, Literal(1), Literal(-2))),))),
        ("ward LIKE 'a%'", Call("like", (WARD, Literal("a%")))),
        ("ward NOT LIKE 'a%'", Call("not", (Call("like", (WARD, Literal("a%"))),))),
        ("age IS NULL", Call("is_null", (AGE,))),
        ("age IS NOT NULL", Call("not", (Call("is_null", (AGE,)),))),
        ("smoker IS TRUE", Call("coalesce", (Name("visits.smoker"), Literal(False)))),
        ("visited >= '2020-01-01'", Call("at_least", (VISITED, Literal(NEW_YEAR)))),
        ("visited >= DATE '2020-01-01'", Call("at_least", (VISITED, Literal(NEW_YEAR)))),
        ("'2020-01-01' <= visited", Call("at_most", (Literal(NEW_YEAR), VISITED))),
        ("visited IN ('2020-01-01')", Call("in", (VISITED, Literal(NEW_YEAR)))),
        ("entered < '2020-01-01'", Call("less", (ENTERED, Literal(datetime.datetime(2020, 1, 1))))),
        ("entered < DATE '2020-01-01'", Call("less", (ENTERED, Literal(datetime.datetime(2020, 1, 1))))),
        (
            "entered < TIMESTAMP '2020-01-01 12:30'",
            Call("less", (ENTERED, Literal(datetime.datetime(2020, 1, 1, 12, 30)))),
        ),
        ("age::DOUBLE > CAST(1 AS DOUBLE)", Call("more", (AGE, Literal(1)))),
        ("YEAR(visited) = 1", Call("equal", (Call("year", (VISITED,)), Literal(1)))),
        ("ISODOW(visited) = 1", Call("equal", (Call("weekday", (VISITED,)), Literal(1)))),
        ("IF(smoker, age, 1) = 1", Call("equal", (Call("case", (Name("visits.smoker"), AGE, Literal(1))), Literal(1)))),
        (
            "NULLIF(age, 1) = 1",
            Call("equal", (Call("case", (Call("equal", (AGE, Literal(1))), Literal(None), AGE)), Literal(1))),
        ),
        ("LEAST(age, 1) = 1", Call("equal", (Call("least", (AGE, Literal(1))), Literal(1)))),
    ],
)
def test_expressions(text, expected):
    assert condition(text) == expected


@pytest.mark.parametrize(
    "texts",
    [
        (
            "EXTRACT(month FROM visited) = 1",
            "MONTH(visited) = 1",
            "DATE_PART('Month', visited) = 1",
            "datepart('month', visited) = 1",
        ),
        ("CASE ward WHEN 'A' THEN 1 ELSE 2 END = 1", "CASE WHEN ward = 'A' THEN 1 ELSE 2 END = 1"),
        ("IFNULL(age, 1) = 1", "COALESCE(age, 1) = 1"),
        ("CEIL(cost) = 1", "CEILING(cost) = 1"),
        ("VISITS.Age = 1", "age = 1", '"Age" = 1', "visits.AGE = 1"),
        ("age // 10 = 1", "FLOOR(age / 10) = 1"),
        ("(((age))) = 1", "age = 1"),
        ("@age = 1", "ABS(age) = 1"),
    ],
)
def test_sugar(texts):
    assert len({repr(condition(text)) for text in texts}) == 1


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ward, COUNT(*), SUM(cost), AVG(age), MEDIAN(age), STDDEV(cost) FROM visits "
        "WHERE visited > '2020-06-01' GROUP BY ward",
        "SELECT floor, COUNT(*) FROM visits LEFT JOIN wards USING (ward) GROUP BY floor",
        "SELECT AVG(LEAST(n, 10)) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) s",
        "SELECT hour, COUNT(*) FROM events GROUP BY hour",
        "SELECT COUNT(*) FILTER (WHERE smoker), COUNT(DISTINCT patient_id) FROM visits",
    ],
)
def test_plans_can_be_prepared(text):
    schema = dict(SCHEMA)
    assert prepare(parse(text, schema), schema).request.measures
