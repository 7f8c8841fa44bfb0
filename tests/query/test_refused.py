"""What is not answered: each refusal is one sentence on what to write instead, and quotes nothing of the query."""

import logging
import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp
from tests.query.tables import SCHEMA

from noisette.errors import InputError
from noisette.query.canonical import canonical_text
from noisette.query.frame import frame
from noisette.query.plan import Query
from noisette.query.sql import parse
from noisette.query.sql.text import ALLOWED, LONGEST

SECRET = "sesame"  # every text in these queries holds it, and every number is 98765

STATEMENTS = """
DROP TABLE visits
COPY visits TO 'sesame.csv'
ATTACH 'sesame.db' AS other
PRAGMA database_list
SET memory_limit = 'sesame'
INSERT INTO visits VALUES ('sesame')
CREATE TABLE sesame AS SELECT * FROM visits
DESCRIBE visits
SUMMARIZE visits
EXPLAIN SELECT COUNT(*) FROM visits
CALL pragma_version()
VALUES (98765)
TABLE visits
FROM visits
SELEC region
SELECT
SELECT COUNT(*)
SELECT COUNT(*) FROM
SELECT FROM visits
SELECT COUNT(*) FROM visits; DROP TABLE visits
SELECT COUNT(*) FROM visits; SELECT COUNT(*) FROM labs
SELECT COUNT(*) FROM visits UNION SELECT COUNT(*) FROM labs
(SELECT COUNT(*) FROM visits)
SELECT COUNT(*) INTO sesame FROM visits
SELECT COUNT(*) FROM visits FOR UPDATE
SELECT AS STRUCT COUNT(*) FROM visits
WITH RECURSIVE a AS (SELECT * FROM visits) SELECT COUNT(*) FROM a
WITH a AS MATERIALIZED (SELECT * FROM visits) SELECT COUNT(*) FROM a
WITH a(x) AS (SELECT ward FROM visits) SELECT COUNT(*) FROM a
WITH a AS (SELECT ward FROM visits), a AS (SELECT ward FROM visits) SELECT COUNT(*) FROM a
WITH a AS (DELETE FROM visits) SELECT COUNT(*) FROM visits
WITH a AS (SELECT * FROM a) SELECT COUNT(*) FROM a
WITH wards AS (SELECT * FROM labs) SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM wards)
SELECT COUNT(*) FROM visits WHERE ward = 'sesame
SELECT COUNT(* FROM visits
"""

ROWS = """
SELECT * FROM visits
SELECT visits.* FROM visits
SELECT * EXCLUDE (ward) FROM visits
SELECT COLUMNS(*) FROM visits
SELECT ward FROM visits
SELECT ward, COUNT(*) FROM visits
SELECT patient_id FROM visits
SELECT DISTINCT patient_id FROM visits
SELECT DISTINCT * FROM visits
SELECT patient_id, COUNT(*) FROM visits GROUP BY patient_id
SELECT COUNT(*) FROM visits GROUP BY patient_id
SELECT age, COUNT(*) FROM visits GROUP BY ward
SELECT 98765 FROM visits
SELECT 'sesame' AS x FROM visits
SELECT COUNT(*) + 'sesame' FROM visits
SELECT DISTINCT ON (ward) ward FROM visits
SELECT DISTINCT ward, COUNT(*) FROM visits GROUP BY ward
SELECT COUNT(*) FROM visits ORDER BY cost LIMIT 1
SELECT ward, COUNT(*) FROM visits GROUP BY ward ORDER BY cost
SELECT ward, COUNT(*) FROM visits GROUP BY ward ORDER BY 3
SELECT ward, COUNT(*) FROM visits GROUP BY ward ORDER BY 'sesame'
SELECT ward, COUNT(*) FROM visits GROUP BY ward ORDER BY ward NULLS FIRST
SELECT ward, COUNT(*) FROM visits GROUP BY ward ORDER BY ALL
SELECT ward, COUNT(*) FROM visits GROUP BY ward LIMIT 3 OFFSET 2
SELECT ward, COUNT(*) FROM visits GROUP BY ward LIMIT 10%
SELECT ward, COUNT(*) FROM visits GROUP BY ward LIMIT 0
SELECT ward, COUNT(*) FROM visits GROUP BY ward LIMIT (SELECT 98765)
SELECT ward, COUNT(*) FROM visits GROUP BY ward FETCH FIRST 3 ROWS ONLY
SELECT ward, COUNT(*) FROM visits GROUP BY ward HAVING cost > 98765
SELECT ward, COUNT(*) FROM visits GROUP BY ward HAVING COUNT(*)
SELECT ward, COUNT(*) FROM visits GROUP BY ward HAVING ward > 98765
SELECT ward, COUNT(*) FROM visits GROUP BY ward HAVING LOWER(ward) = 'sesame'
SELECT ward, COUNT(*) FROM visits GROUP BY 3
SELECT ward, COUNT(*) FROM visits GROUP BY 2
SELECT ward, COUNT(*) FROM visits GROUP BY COUNT(*)
SELECT ward, COUNT(*) FROM visits GROUP BY 'sesame'
SELECT ward, COUNT(*) FROM visits GROUP BY ()
SELECT ward, COUNT(*) FROM visits GROUP BY ward WITH ROLLUP
SELECT ward, COUNT(*) FROM visits GROUP BY CUBE (ward, age, cost, change, smoker)
SELECT COUNT(*) FROM visits GROUP BY GROUPING SETS ((), ())
SELECT COUNT(*) FROM wards
SELECT COUNT(*) FROM wards a JOIN wards b ON a.ward = b.ward
"""

TABLES = """
SELECT COUNT(*) FROM sesame
SELECT COUNT(*) FROM main.visits
SELECT COUNT(*) FROM information_schema.tables
SELECT COUNT(*) FROM 'sesame.csv'
SELECT COUNT(*) FROM visits JOIN 'sesame.csv' USING (ward)
SELECT COUNT(*) FROM read_csv('sesame.csv')
SELECT COUNT(*) FROM read_text('sesame')
SELECT COUNT(*) FROM glob('sesame*')
SELECT COUNT(*) FROM duckdb_settings()
SELECT COUNT(*) FROM generate_series(1, 98765)
SELECT COUNT(*) FROM query('SELECT sesame')
SELECT COUNT(*) FROM (VALUES ('sesame')) v
SELECT COUNT(*) FROM UNNEST(['sesame']) u
SELECT COUNT(*) FROM visits, labs
SELECT COUNT(*) FROM visits CROSS JOIN wards
SELECT COUNT(*) FROM visits JOIN wards
SELECT COUNT(*) FROM visits NATURAL JOIN wards
SELECT COUNT(*) FROM visits POSITIONAL JOIN wards
SELECT COUNT(*) FROM visits ASOF JOIN wards ON visits.ward = wards.ward
SELECT COUNT(*) FROM visits RIGHT JOIN wards USING (ward)
SELECT COUNT(*) FROM visits FULL JOIN wards USING (ward)
SELECT COUNT(*) FROM visits SEMI JOIN wards USING (ward)
SELECT COUNT(*) FROM visits ANTI JOIN wards USING (ward)
SELECT COUNT(*) FROM wards LEFT JOIN visits USING (ward)
SELECT COUNT(*) FROM visits JOIN wards ON visits.ward > wards.ward
SELECT COUNT(*) FROM visits JOIN wards ON visits.ward = wards.ward OR TRUE
SELECT COUNT(*) FROM visits JOIN wards ON visits.ward = 'sesame'
SELECT COUNT(*) FROM visits JOIN wards ON visits.ward = visits.ward
SELECT COUNT(*) FROM visits JOIN wards ON visits.age = wards.ward
SELECT COUNT(*) FROM visits JOIN labs ON visits.age = labs.value
SELECT COUNT(*) FROM visits JOIN visits ON visits.ward = visits.ward
SELECT COUNT(*) FROM visits JOIN wards USING (sesame)
SELECT COUNT(*) FROM visits JOIN (wards JOIN wards w ON wards.ward = w.ward) ON visits.ward = wards.ward
SELECT COUNT(*) FROM visits, LATERAL (SELECT 98765)
SELECT COUNT(*) FROM visits TABLESAMPLE 10%
SELECT COUNT(*) FROM visits USING SAMPLE 10
SELECT COUNT(*) FROM visits AT (VERSION => 98765)
SELECT COUNT(*) FROM visits PIVOT (COUNT(*) FOR ward IN ('sesame'))
SELECT COUNT(*) FROM visits AS "a.b"
SELECT COUNT(*) FROM (SELECT ward FROM visits LIMIT 5) s
SELECT COUNT(*) FROM (SELECT ward FROM visits ORDER BY ward) s
SELECT COUNT(*) FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) s
SELECT COUNT(*) FROM (SELECT COUNT(*) AS n FROM visits) s
SELECT COUNT(*) FROM (SELECT DISTINCT ward FROM visits) s
SELECT COUNT(*) FROM (SELECT patient_id, ward FROM visits GROUP BY patient_id) s
SELECT COUNT(*) FROM (SELECT patient_id, MEDIAN(age) FROM visits GROUP BY patient_id) s
SELECT COUNT(*) FROM (SELECT ward, COUNT(*) AS n FROM wards GROUP BY ward) s
SELECT COUNT(*) FROM (SELECT hour, COUNT(*) AS n FROM events GROUP BY hour) s
SELECT COUNT(*) FROM (SELECT ward FROM visits UNION SELECT ward FROM wards) s
SELECT COUNT(*) FROM (SELECT ward FROM visits) s(x)
SELECT visits.ward FROM (SELECT ward FROM visits) s GROUP BY visits.ward
SELECT COUNT(ward) FROM visits JOIN wards ON visits.ward = wards.ward
"""

CONDITIONS = r"""
age
patient_id
age = NULL
ward = 98765
age = 'sesame'
sesame = 98765
visits.sesame = 98765
labs.value = 98765
"AGE" > 98765
visited >= 'sesame'
visited = DATE '2020-02-30'
entered = TIMESTAMP 'sesame'
visited = '20200131'
age > 1e999
age > 98765987659876598765987659876598765987659876598765
COUNT(*) > 98765
AVG(age) > 98765
error('sesame')
getenv('sesame') = 'sesame'
random() < 0.5
uuid() IS NULL
now() > visited
current_date > visited
sesame(age) > 98765
"sesame"(age) > 98765
main.sesame(age) > 98765
(SELECT COUNT(*) FROM visits) > 98765
EXISTS (SELECT * FROM labs)
age IN (SELECT value FROM labs)
age IN (SELECT floor FROM wards)
age + 1 IN (SELECT floor FROM wards)
ward IN (SELECT LOWER(ward) FROM wards)
ward IN (SELECT ward, floor FROM wards)
ward IN (SELECT ward FROM wards LIMIT 3)
ward IN (SELECT ward FROM wards WHERE age > 98765)
ward IN (SELECT ward FROM wards WHERE ward IN (SELECT ward FROM wards))
ward IN (SELECT ward FROM sesame)
ward IN (SELECT 'sesame')
ward NOT IN (SELECT ward FROM wards)
age > 98765 OR ward IN (SELECT ward FROM wards)
EXISTS (SELECT * FROM wards)
EXISTS (SELECT * FROM wards WHERE ward = ward)
EXISTS (SELECT * FROM labs WHERE labs.patient_id = visits.patient_id)
EXISTS (SELECT * FROM wards w WHERE w.ward = visits.ward AND w.floor = visits.age)
NOT EXISTS (SELECT * FROM wards w WHERE w.ward = visits.ward AND w.floor = visits.age)
age IN (cost, 98765)
age IN (98765, NULL)
age = ANY (SELECT value FROM labs)
ward LIKE patient_id
ward LIKE 'sesame' ESCAPE 'sesame'
ward LIKE patient_id ESCAPE 's'
ward ILIKE patient_id
ward ~ 'sesame('
ward ~ '(sesame)\1'
ward ~ '(?i)sesame'
ward ~ 'sesame(?=s)'
ward ~ 'sesame*?'
ward ~ '^*sesame'
ward ~ '\bsesame'
ward ~ '[z-a]sesame'
ward ~ '[]sesame'
ward ~ 'sesame{98765}'
ward ~ '((sesame{90}){90}){90}'
ward SIMILAR TO patient_id
ward GLOB 'sesame'
regexp_matches(ward, 'sesame', 'i')
regexp_matches(age, 'sesame')
regexp_extract(ward, 'sesame') = ward
regexp_replace(ward, 'sesame', 'sesame') = ward
ward || cost = ward
ward || NULL = ward
length(age) = 98765
CAST(ward AS INTEGER) = 98765
CAST(cost AS INTEGER) = 98765
CAST('sesame' AS INTEGER) = 98765
TRY_CAST(ward AS BOOLEAN)
TRY_CAST(ward AS TIMESTAMP) = entered
TRY_CAST(cost AS INTEGER) = 98765
ward::DATE = visited
cost::TEXT = 'sesame'
entered::TEXT = 'sesame'
age::TINYINT::BOOLEAN
age::FLOAT = 98765
age % cost = 0
cost % 98765 = 0
ward % 98765 = 0
length(ward) % 98765 = 0
age ** 98765 = 0
POWER(age, 98765) > 0
POWER(age, cost) > 0
POWER(age, -1) > 0
LN(age * 0) > 0
LN(LN(LN(LN(GREATEST(cost, 98765))))) > 0
LOG(3, cost + 1) > 0
SQRT(-1 - age) > 0
SQRT(ward) > 0
EXP(age) > 0
WIDTH_BUCKET(age, 98765, 0, 5) = 1
WIDTH_BUCKET(age, 0, cost, 5) = 1
WIDTH_BUCKET(age, 0, 10, 0) = 1
age / 0 > 98765
change // 98765 = 0
age IS DISTINCT FROM NULL
age BETWEEN SYMMETRIC 98765 AND 1
SUM(age) OVER (PARTITION BY ward) > 98765
ROW_NUMBER() OVER () = 98765
age[98765] = 0
ward -> 'sesame' IS NULL
[age] = [98765]
{'sesame': age} IS NULL
(age, cost) = (98765, 98765)
age = ?
age = $1
age = $sesame
#1 > 98765
ward COLLATE nocase = 'sesame'
DATE_TRUNC('sesame', visited) = visited
DATE_TRUNC('hour', visited) = visited
DATE_TRUNC('month', age) = visited
DATE_TRUNC(ward, visited) = visited
DATE_DIFF('sesame', visited, visited) = 98765
DATE_DIFF('day', age, visited) = 98765
DATE_DIFF('hour', visited, visited) = 98765
DATE_DIFF('day', visited, entered) = 'sesame'
STRFTIME(visited, 'sesame%j') = ward
STRFTIME(visited, 'sesame%H') = ward
STRFTIME(visited, ward) = ward
STRFTIME(visited, 'sesame%') = ward
EXTRACT(epoch FROM visited) > 98765
EXTRACT(century FROM visited) = 0
EXTRACT(minute FROM visited) = 0
DATE_PART('sesame', visited) = 98765
weekday(visited) = 0
visited + INTERVAL 'sesame' DAY > visited
visited + INTERVAL 3 HOUR > visited
visited + INTERVAL 98765987659 DAY > visited
visited + INTERVAL 98765 YEAR > visited
visited + INTERVAL age DAY > visited
visited + INTERVAL 3 SESAME > visited
visited + age > visited
visited + visited > visited
INTERVAL 3 DAY = INTERVAL 4 DAY
INTERVAL 3 DAY - visited > visited
entered - entered > 98765
ward - visited > 98765
ward > age
NOT age
age AND smoker
TRIM(ward, 'sesame') = ward
LTRIM(ward) = ward
ROUND(age, cost) = 98765
ROUND(age, 98765) = 0
ROUND(ward) = 98765
ROUND(patient_id, 1) = 0
SUBSTR(ward, 0, 2) = ward
SUBSTR(ward, -1) = ward
SUBSTR(ward, age, 1) = ward
SUBSTR(age, 1, 1) = ward
LEFT(ward, -1) = ward
LEFT(ward, cost) = ward
RIGHT(ward, -1) = ward
REPLACE(ward, '', 'sesame') = ward
REPLACE(ward, patient_id, 'sesame') = ward
SPLIT_PART(ward, '', 1) = ward
SPLIT_PART(ward, 'sesame', 0) = ward
SPLIT_PART(ward, 'sesame', 98765) = ward
STARTS_WITH(ward, patient_id)
CONTAINS(age, 'sesame')
BIN(age) = 98765
BIN(age, 0) = 98765
LEAST(ward, age) = 98765
CASE WHEN age THEN TRUE END
CASE WHEN smoker THEN age ELSE ward END = 98765
COALESCE(age, ward) = 98765
YEAR(ward) = 98765
YEAR(98765) = 98765
list_filter([1], x -> x > 98765) IS NULL
age > 98765 QUALIFY TRUE
age > 98765 WINDOW w AS (PARTITION BY ward)
'sesame'
* = 98765
"""

AGGREGATES = """
SUM(ward)
SUM(DISTINCT age)
AVG(visited)
AVG(*)
MAX(ward)
MIN(age, 98765)
COUNT()
COUNT(DISTINCT age, cost)
COUNT(DISTINCT *)
COUNT(age ORDER BY cost)
SUM(COUNT(*))
SUM(age) OVER ()
RANK() OVER (ORDER BY age)
LAG(age) OVER (ORDER BY age)
QUANTILE(age)
QUANTILE(age, 98765)
QUANTILE(age, [0.1, 0.2]) * 2
QUANTILE(age, cost)
PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age, cost)
SUM(age) WITHIN GROUP (ORDER BY age)
ANY_VALUE(age)
FIRST(age)
MODE(ward)
STRING_AGG(ward, 'sesame')
ARRAY_AGG(ward)
LIST(ward)
HISTOGRAM(age)
ARG_MAX(ward, age)
BOOL_AND(smoker)
APPROX_COUNT_DISTINCT(ward)
CORR(age, ward)
SKEWNESS(age)
COUNT(*) FILTER (WHERE age)
COUNT(*) FILTER (WHERE COUNT(*) > 98765)
ROUND(AVG(age), 98765)
LOWER(COUNT(*))
CASE WHEN COUNT(*) > 98765 THEN 1 END
AVG(age) || 'sesame'
NOT COUNT(*)
random()
AVG(age) > 'sesame'
EXP(AVG(age))
"""


def lines(text: str) -> list[str]:
    return [line for line in text.strip().splitlines() if line]


REFUSED = [
    *lines(STATEMENTS),
    *lines(ROWS),
    *lines(TABLES),
    *(f"SELECT COUNT(*) FROM visits WHERE {condition}" for condition in lines(CONDITIONS)),
    *(f"SELECT {aggregate} FROM visits" for aggregate in lines(AGGREGATES)),
]
ADVICE = re.compile(
    r"\b(write|use|leave|check|ask|group|name|give|put|move|join|add|declare|swap|read|needs|compute)\b"
    r"|\b(one is|did you mean)\b",
    re.I,
)


def assert_good(sentence: str, query: str) -> None:
    assert sentence.endswith((".", "?"))
    assert "\n" not in sentence
    assert len(sentence) < 320
    assert ADVICE.search(sentence), sentence
    assert "98765" not in sentence
    for literal in re.findall(r"'([^']{5,})'?", query):
        assert literal not in sentence or literal in ("month",), sentence
    assert "sqlglot" not in sentence.lower()
    assert "expressions" not in sentence


@pytest.mark.parametrize("query", REFUSED)
def test_refused_with_advice(query, caplog):
    with caplog.at_level(logging.DEBUG), pytest.raises(InputError) as refused:
        parse(query, SCHEMA)
    assert_good(str(refused.value), query)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__ or refused.value.__context__ is None
    assert not caplog.records


def test_the_list_of_refusals_is_long():
    assert len(REFUSED) == len(set(REFUSED)) >= 250


@pytest.mark.parametrize("query", ["", ";", "-- nothing", " \n", "\x00", "SELECT \ud800", 5, None, b"SELECT"])
def test_what_is_no_query(query):
    with pytest.raises(InputError):
        parse(query, SCHEMA)


def test_faults_are_placed():
    with pytest.raises(InputError, match="line 2, column 5"):
        parse("SELECT COUNT(*) FROM visits\nWHERE", SCHEMA)
    with pytest.raises(InputError, match="line 1, column"):
        frame(SCHEMA, "visits").where("age >= ")


@pytest.mark.slow_after(4)
@pytest.mark.parametrize(
    "deep",
    [
        "(" * 5000,
        "NOT " * 5000,
        "- " * 5000,
        "CASE WHEN " * 2000,
        "ABS(" * 4000,
        "age +" * 3000,
        "1 IN (" * 3000,
        "[" * 9000,
    ],
)
def test_too_deep(deep):
    with pytest.raises(InputError):
        parse(f"SELECT COUNT(*) FROM visits WHERE {deep}", SCHEMA)
    with pytest.raises(InputError):
        parse(f"SELECT COUNT(*) FROM visits WHERE {deep} age", SCHEMA)


def test_too_long():
    with pytest.raises(InputError, match="too long"):
        parse("SELECT COUNT(*) FROM visits" + " " * LONGEST, SCHEMA)


def test_long_chains_of_conditions_are_no_nesting():
    chain = " AND ".join(f"age <> {n}" for n in range(100, 500))
    assert parse(f"SELECT COUNT(*) FROM visits WHERE {chain}", SCHEMA)


@pytest.mark.parametrize("wrap", ["NULLIF({}, 1)", "CASE {} WHEN 1 THEN 2 WHEN 2 THEN 3 ELSE 4 END", "BIN({}, 1)"])
def test_sugar_does_not_explode(wrap):
    text = "age"
    for _ in range(30):
        text = wrap.format(text)
    with pytest.raises(InputError):
        parse(f"SELECT COUNT(*) FROM visits WHERE {text} = 1", SCHEMA)


def test_doubling_tables_do_not_explode():
    names = [f"a{n}" for n in range(30)]
    parts = ["a0 AS (SELECT * FROM visits)"]
    for old, new in pairwise(names):
        parts.append(f"{new} AS (SELECT x.patient_id FROM {old} x JOIN {old} y USING (patient_id))")
    for depth in (6, 30):
        with pytest.raises(InputError, match=r"too (many|deep)|could make more than"):
            parse(f"WITH {', '.join(parts[:depth])} SELECT COUNT(*) FROM {names[depth - 1]}", SCHEMA)


def test_nested_subqueries_end_in_a_sentence():
    def nested(depth: int) -> str:
        return "SELECT COUNT(*) FROM " + "(SELECT * FROM " * depth + "visits" + ")" * depth

    assert canonical_text(parse(nested(8), SCHEMA)) == canonical_text(parse(nested(0), SCHEMA))
    for depth in (13, 20, 200):
        with pytest.raises(InputError, match="nested too deeply"):
            parse(nested(depth), SCHEMA)


def test_comments_are_dropped():
    plain = parse("SELECT COUNT(*) FROM visits WHERE age > 3", SCHEMA)
    assert parse("SELECT /* a */ COUNT(*) -- b\nFROM visits /*+ c */ WHERE age > 3 -- d", SCHEMA) == plain


def test_clauses_cannot_leave_their_call():
    rows = frame(SCHEMA, "visits")
    for text in (
        "age > 1 GROUP BY ward",
        "age FROM labs",
        "age, cost",
        "age; DROP TABLE visits",
        "age AS x",
        "",
        "*",
        "DISTINCT age",
    ):
        with pytest.raises(InputError):
            rows.where(text)
        with pytest.raises(InputError):
            rows.sum(text)
    for text in ("count LIMIT 3", "count; DROP TABLE visits", "", "cost", "3", "count) --"):
        with pytest.raises(InputError):
            rows.count().order_by(text)
    for text in ("count > 3 ORDER BY 1", "cost > 3", "count"):
        with pytest.raises(InputError):
            rows.count().having(text)


# Token soup

TOKENS = [
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP",
    "BY",
    "HAVING",
    "ORDER",
    "LIMIT",
    "JOIN",
    "LEFT",
    "ON",
    "USING",
    "AS",
    "AND",
    "OR",
    "NOT",
    "IN",
    "LIKE",
    "BETWEEN",
    "IS",
    "NULL",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "WITH",
    "DISTINCT",
    "ALL",
    "COUNT(*)",
    "COUNT(",
    "SUM(",
    "AVG(",
    "MEDIAN(",
    "QUANTILE(",
    "FILTER",
    "(WHERE",
    "OVER",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ".",
    ";",
    ":",
    "::",
    "=",
    "<>",
    "<",
    ">",
    "<=",
    ">=",
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "||",
    "1",
    "0.5",
    "1e3",
    "1e99",
    "'x'",
    "'2020-01-31'",
    '"ward"',
    "ward",
    "age",
    "cost",
    "visits",
    "labs",
    "wards",
    "patient_id",
    "v",
    "s",
    "visited",
    "smoker",
    "DATE",
    "TIMESTAMP",
    "CAST(",
    "EXTRACT(",
    "YEAR(",
    "BIN(",
    "date_part(",
    "UNION",
    "EXCEPT",
    "UNNEST(",
    "VALUES",
    "PIVOT",
    "QUALIFY",
    "$1",
    "?",
    "@",
    "#",
    "~",
    "INTERVAL",
    "INTO",
    "ROLLUP(",
    "--",
    "/*",
    "*/",
    "é",
    "数",
    "\u200b",
    "'",
    '"',
    "(SELECT",
    "EXISTS",
    "SET",
    "CREATE",
    "TABLE",
    "DESC",
    "ASC",
    "NULLS",
    "FIRST",
    "OFFSET",
    "TRUE",
    "FALSE",
    "COALESCE(",
    "LEAST(",
    "NULLIF(",
    "IF(",
    "ROUND(",
    "COLUMNS(",
    "LAMBDA",
]

soup = st.lists(st.sampled_from(TOKENS), max_size=25).map(" ".join)
seeds = st.sampled_from([query for query in REFUSED if query.startswith("SELECT")])


@st.composite
def spoiled(draw: st.DrawFn) -> str:
    """A query with some of its tokens replaced, doubled or left out."""
    words = draw(seeds).split(" ")
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, len(words) - 1))
        words[place : place + draw(st.integers(0, 2))] = draw(st.lists(st.sampled_from(TOKENS), max_size=2))
        words = words or ["SELECT"]
    return " ".join(words)


def parsed_or_refused(text: str) -> None:
    try:
        query = parse(text, SCHEMA)
    except InputError as refused:
        sentence = str(refused)
    else:
        assert isinstance(query, Query)
        sentence = canonical_text(query)
    assert sentence
    assert "\n" not in sentence


@pytest.mark.slow
@settings(max_examples=500)
@given(soup)
def test_soup(text):
    parsed_or_refused(text)
    parsed_or_refused(f"SELECT {text}")
    parsed_or_refused(f"SELECT COUNT(*) FROM visits WHERE {text}")


@pytest.mark.slow
@settings(max_examples=500)
@given(spoiled())
def test_spoiled_queries(text):
    parsed_or_refused(text)


@given(st.text(max_size=60))
def test_any_text(text):
    parsed_or_refused(text)
    parsed_or_refused(f"SELECT COUNT(*) FROM visits WHERE ward = {text}")
    parsed_or_refused(f"SELECT COUNT(*) AS {text} FROM visits")


def test_a_part_that_is_new_to_the_list_is_refused(monkeypatch):
    """The list decides: what is struck from it is refused, whatever the readers could do with it."""
    text = "SELECT COUNT(*) FROM visits WHERE ward NOT LIKE 'A%'"
    assert parse(text, SCHEMA)
    monkeypatch.setitem(ALLOWED, exp.Like, frozenset({"this", "expression"}))
    with pytest.raises(InputError, match="negate"):
        parse(text, SCHEMA)
    monkeypatch.delitem(ALLOWED, exp.Like)
    with pytest.raises(InputError):
        parse(text, SCHEMA)
