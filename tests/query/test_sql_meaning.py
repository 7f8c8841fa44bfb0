"""A text, its plan and the plan's canonical form mean the same rows to the engine."""

import duckdb
import pytest
from tests.query.tables import SCHEMA

from noisette.engines.duckdb.session import text_of
from noisette.engines.sql.relation import relation_sql
from noisette.query.canonical import canonical
from noisette.query.sql import parse

TABLES = {
    "visits": """
        SELECT 'p' || (i % 60) AS patient_id,
            ['A', 'B', 'C', NULL][1 + i % 4] AS ward,
            CASE WHEN i % 7 > 0 THEN (i * 37) % 121 END::INTEGER AS Age,
            CASE WHEN i % 11 > 0 THEN ((i * 7919) % 100000) / 100 END::DOUBLE AS cost,
            ((i * 13) % 21 - 10)::INTEGER AS change,
            [TRUE, FALSE, NULL][1 + i % 3] AS smoker,
            CASE WHEN i % 5 > 0 THEN DATE '2020-01-01' + (i * 3)::INTEGER END AS visited,
            TIMESTAMP '2020-01-01 12:00:00' + INTERVAL (i * 5) HOUR AS entered
        FROM range(400) t(i)""",
    "labs": "SELECT 'p' || (i % 50) AS patient_id, ((i * 17) % 51)::INTEGER AS value FROM range(150) t(i)",
    "wards": "SELECT * FROM (VALUES ('A', 1), ('B', NULL)) t(ward, floor)",
    "events": "SELECT (i % 24)::INTEGER AS hour FROM range(100) t(i)",
}

CONDITIONS = """
age > 18
NOT age > 18
NOT (age > 18 OR smoker)
NOT (age BETWEEN 20 AND 90) OR ward IS NULL
age NOT BETWEEN 20 AND 90
ward IN ('A', 'C')
ward NOT IN ('A')
NOT (ward IN ('A', 'B') AND smoker)
ward <> 'A' AND ward <> 'B'
ward LIKE 'A%' OR ward NOT LIKE '%B'
smoker
NOT smoker
smoker IS TRUE
smoker IS NOT TRUE
smoker IS FALSE
smoker IS NOT FALSE
smoker IS NULL
age + change > cost / 10 - 1
-change > 3
ABS(change) > 3 AND change < 0
change * 2 + 1 = -5
LEAST(change, 3) = 3
FLOOR(change / 4.0) = -2
CEIL(change / 4.0) = -2
age // 10 = 3
CASE WHEN age > 50 THEN change WHEN smoker THEN 1 END > 0
CASE ward WHEN 'A' THEN 1 WHEN 'B' THEN 2 ELSE 3 END >= 2
IF(smoker, 1, 0) = 0
COALESCE(age, 50) > 40
IFNULL(ward, 'B') = 'B'
NULLIF(ward, 'A') = 'B'
NULLIF(ward, 'A') IS NULL
LOWER(ward) = 'a' OR UPPER(TRIM(ward)) = 'B'
visited >= '2020-06-01'
visited BETWEEN DATE '2020-06-01' AND '2021-06-01'
entered < '2020-02-01'
entered < TIMESTAMP '2020-01-15 13:30:00'
YEAR(visited) = 2021 AND MONTH(visited) < 5
EXTRACT(quarter FROM visited) = 2
DATE_PART('day', visited) = 1 OR EXTRACT(isodow FROM visited) = 7
HOUR(entered) > 12
age::DOUBLE / 2 > 30.25
cost > 1e2 AND cost <= 500.5
age > 18 AND smoker OR ward = 'A' AND NOT change > 0
SUBSTR(patient_id, 2, 1) = '3' OR SUBSTRING(patient_id FROM 2) = '1'
LEFT(patient_id, 2) = 'p4' OR RIGHT(patient_id, 1) = '7'
LENGTH(patient_id) = 2
patient_id || '-' || ward = 'p4-A' OR CONCAT(ward, '-', age) = '-5'
REPLACE(patient_id, 'p1', 'x') LIKE 'x%'
SPLIT_PART(patient_id || '/' || ward, '/', 2) = 'B'
ward ILIKE 'a' OR ward NOT ILIKE '%B'
patient_id LIKE 'p!_%' ESCAPE '!' OR patient_id NOT LIKE 'p!1' ESCAPE '!'
STARTS_WITH(patient_id, 'p2') OR CONTAINS(patient_id, '5') OR SUFFIX(patient_id, '9')
REGEXP_MATCHES(patient_id, '^p[13-5][^0-7]?$')
patient_id ~ '(1|2){2}' OR patient_id SIMILAR TO 'p.'
change % 3 = -1 OR age % 7 = 2
age % NULLIF(change, 0) = 1
ROUND(cost / 3, 1) > 100.5 AND ROUND(cost) < 900
ROUND(age, -1) = 40
SQRT(age) > 5.5
POWER(change, 2) > 20 AND POWER(change, 3) < 0
LN(cost + 1) > 5 AND LOG10(cost + 1) < 2.5
LOG2(age + 1) = 3
TRY_CAST(SUBSTR(patient_id, 2) AS INTEGER) > 25
CAST(age AS VARCHAR) LIKE '1%'
CAST(entered AS DATE) = DATE '2020-01-31'
CAST(smoker AS INTEGER) = 1
age IS DISTINCT FROM 30
ward IS NOT DISTINCT FROM 'A'
EXTRACT(dow FROM visited) = 0 OR DAYOFWEEK(visited) = 6
WEEK(visited) = 53 OR EXTRACT(week FROM entered) < 3
DAYOFYEAR(visited) > 360
DATE_TRUNC('month', visited) = DATE '2020-03-01' OR DATE_TRUNC('week', visited) = DATE '2019-12-30'
DATE_TRUNC('hour', entered) = TIMESTAMP '2020-01-02 13:00:00'
visited + INTERVAL '1' MONTH > DATE '2021-01-31'
visited >= DATE '2020-12-31' - INTERVAL '90' DAY
entered - INTERVAL 5 HOUR < TIMESTAMP '2020-01-03 12:00:00'
visited - DATE '2020-06-01' BETWEEN 0 AND 100
DATE_DIFF('day', DATE '2020-06-01', visited) > 500
DATE_DIFF('month', visited, DATE '2022-06-01') = 7
DATE_DIFF('year', visited, DATE '2022-06-01') = 1
DATE_DIFF('hour', entered, TIMESTAMP '2020-02-01 00:00:00') BETWEEN 0 AND 50
STRFTIME(visited, '%Y-%m') = '2020-07'
STRFTIME(entered, '%H:%M') = '17:00'
"""

TEXTS = [f"SELECT COUNT(*) FROM visits WHERE {line}" for line in CONDITIONS.strip().splitlines()] + [
    "SELECT COUNT(*) FROM visits JOIN labs USING (patient_id) WHERE value > age",
    "SELECT COUNT(*) FROM visits WHERE ward IN (SELECT DISTINCT ward FROM wards) AND age > 30",
    "SELECT COUNT(*) FROM visits WHERE smoker AND ward IN (SELECT ward FROM wards WHERE floor IS NOT NULL)",
    "SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM wards w WHERE w.ward = v.ward AND floor = 1)",
    "SELECT COUNT(*) FROM (SELECT * FROM visits WHERE ward IN (SELECT ward FROM wards)) s WHERE s.age > 10",
    "SELECT COUNT(*) FROM visits v LEFT JOIN wards w ON w.ward = v.ward WHERE w.floor IS NULL",
    "SELECT COUNT(*) FROM visits v LEFT JOIN (SELECT ward, COALESCE(floor, 0) AS f "
    "FROM wards) w USING (ward) WHERE f IS NULL",
    "SELECT COUNT(*) FROM visits a JOIN visits b USING (patient_id) WHERE a.age < b.age AND a.ward = b.ward",
    "SELECT COUNT(*) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) s WHERE n > 6",
    "SELECT COUNT(*) FROM (SELECT patient_id, ward, MAX(age) - MIN(age) AS r FROM visits "
    "GROUP BY ALL HAVING COUNT(*) > 1) s WHERE r > 9",
    "SELECT COUNT(*) FROM (SELECT DISTINCT patient_id, ward FROM visits) s",
    "SELECT COUNT(*) FROM (SELECT patient_id, COUNT(*) FILTER (WHERE smoker) AS n, SUM(change) AS s "
    "FROM visits GROUP BY 1) WHERE n > 1 AND s < 0",
    "WITH a AS (SELECT patient_id AS p, AVG(age) AS m FROM visits GROUP BY p) SELECT COUNT(*) "
    "FROM a JOIN labs ON p = patient_id WHERE m > value",
    "WITH a AS (SELECT * FROM visits WHERE smoker), b AS (SELECT age * 2 AS x, ward FROM a) "
    "SELECT COUNT(*) FROM b WHERE x > 50 AND ward = 'A'",
    "SELECT COUNT(*) FROM events WHERE hour BETWEEN 3 AND 5",
]


@pytest.fixture(scope="module")
def engine():
    connection = duckdb.connect()
    for name, rows in TABLES.items():
        connection.execute(f"CREATE TABLE {name} AS {rows}")
    return connection


@pytest.mark.parametrize("text", TEXTS)
def test_the_same_rows(engine, text):
    stored = {name: {row[0]: row[1] for row in engine.execute(f"DESCRIBE {name}").fetchall()} for name in TABLES}
    (expected,) = engine.execute(text).fetchone()
    for query in (parse(text, SCHEMA), canonical(parse(text, SCHEMA))):
        rows = text_of(relation_sql(query.source, SCHEMA, stored))
        assert engine.execute(f"SELECT COUNT(*) FROM ({rows}) t").fetchone() == (expected,)
    assert expected > 0
