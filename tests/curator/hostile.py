"""What an analyst who means ill would ask, one question a line."""

CANARY, NUMBER = "canaryqx", 314159265  # what only the victim's rows hold

ORACLES = """
SELECT COUNT(*) FROM visits WHERE CAST(note AS INTEGER) = 1
SELECT COUNT(*) FROM visits WHERE note::INT > 0
SELECT SUM(CAST(note AS DOUBLE)) FROM visits
SELECT COUNT(*) FROM visits WHERE 1 / stay > 0
SELECT SUM(stay * 9223372036854775807) FROM visits
SELECT SUM(stay + 9223372036854775807) FROM visits
SELECT COUNT(*) FROM visits WHERE error(note) IS NULL
SELECT COUNT(CASE WHEN note = 'x' THEN error('found') END) FROM visits
SELECT COUNT(*) FROM visits WHERE strptime(note, '%Y') > DATE '2020-01-01'
SELECT COUNT(*) FROM visits WHERE note = (SELECT note FROM visits)
SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1 FROM labs)
SELECT COUNT(*) FROM visits WHERE stay[99] = 1
SELECT COUNT(*) FROM visits WHERE regexp_matches(note, '(((')
"""
STATEMENTS = """
SELECT COUNT(*) FROM visits; SELECT note FROM visits
SELECT COUNT(*) FROM visits; DROP TABLE visits
SELECT COUNT(*) FROM visits /* ; */ ; PRAGMA database_list
COPY visits TO 'stolen.csv'
COPY (SELECT * FROM visits) TO 'stolen.parquet'
EXPORT DATABASE 'stolen'
ATTACH 'stolen.db' AS stolen
INSTALL httpfs
LOAD httpfs
PRAGMA table_info('visits')
SET enable_external_access = true
CREATE TABLE stolen AS SELECT * FROM visits
DELETE FROM visits
SUMMARIZE visits
DESCRIBE visits
EXPLAIN ANALYZE SELECT COUNT(*) FROM visits
SELECT * FROM read_text('/etc/passwd')
SELECT COUNT(*) FROM read_csv('/etc/passwd')
SELECT COUNT(*) FROM '/etc/passwd'
SELECT COUNT(*) FROM glob('/*')
SELECT COUNT(*) FROM duckdb_tables()
SELECT COUNT(*) FROM information_schema.tables
SELECT getenv('HOME'), COUNT(*) FROM visits
SELECT current_setting('temp_directory'), COUNT(*) FROM visits
SELECT COUNT(*) FROM visits WHERE ward = ‘north’
SELECT COUNT(*) FROM visits WHERE ward = “north”
SELECT COUNT(*) FROM visits WHERE ward = $$north
SELECT COUNT(*) FROM visits WHERE ward = 'north
SELECT COUNT(*) FROM visits WHERE ward = 'a' OR '1'
SELECT COUNT(*) FROM visits UNION ALL SELECT patient_id FROM visits
"""
ROWS = """
SELECT * FROM visits
SELECT note FROM visits ORDER BY note LIMIT 1
SELECT COUNT(*) FROM visits ORDER BY note LIMIT 1
SELECT patient_id, COUNT(*) FROM visits GROUP BY patient_id
SELECT ward, note FROM visits GROUP BY ward
SELECT ANY_VALUE(note) FROM visits
SELECT FIRST(note) FROM visits
SELECT LIST(note) FROM visits
SELECT STRING_AGG(note, ',') FROM visits
SELECT ARG_MAX(note, age) FROM visits
SELECT MODE(note) FROM visits
SELECT MAX(note) FROM visits
SELECT ROW_NUMBER() OVER (ORDER BY age), COUNT(*) FROM visits
SELECT SUM(age) OVER () FROM visits
SELECT ward, COUNT(*) FROM visits GROUP BY ward QUALIFY ROW_NUMBER() OVER () = 1
SELECT COUNT(*) FROM visits WHERE random() < 0.5
SELECT COUNT(*) FROM visits USING SAMPLE 10%
SELECT COUNT(*) FROM visits TABLESAMPLE 10%
SELECT COUNT(*) FROM visits WHERE my_udf(note)
SELECT COUNT(*) FROM visits WHERE now() > entered
SELECT COUNT(*) FROM visits WHERE rowid = 3
"""
JOINS = """
SELECT COUNT(*) FROM visits, labs
SELECT COUNT(*) FROM visits CROSS JOIN labs
SELECT COUNT(*) FROM visits a JOIN visits b ON a.ward = b.ward
SELECT COUNT(*) FROM visits a JOIN visits b ON a.age < b.age
SELECT COUNT(*) FROM visits a JOIN labs b ON a.age = b.value
SELECT COUNT(*) FROM wards LEFT JOIN visits USING (ward)
SELECT COUNT(*) FROM visits RIGHT JOIN labs USING (patient_id)
SELECT COUNT(*) FROM visits FULL JOIN labs USING (patient_id)
SELECT COUNT(*) FROM visits NATURAL JOIN labs
SELECT COUNT(*) FROM visits JOIN labs ON visits.patient_id = labs.patient_id OR TRUE
SELECT COUNT(*) FROM visits SEMI JOIN labs USING (patient_id)
SELECT COUNT(*) FROM visits WHERE patient_id IN (SELECT patient_id FROM labs)
SELECT COUNT(*) FROM wards
SELECT COUNT(*) FROM nowhere
"""
MISSING = """
SELECT SUM(weight) FROM visits
SELECT AVG(stay) FROM visits
SELECT STDDEV(weight) FROM visits
SELECT SUM(weight * 2) FROM visits
SELECT SUM(note) FROM visits
SELECT note, COUNT(*) FROM visits GROUP BY note
SELECT stay, COUNT(*) FROM visits GROUP BY stay
SELECT nothing FROM visits
SELECT SUM(nothing) FROM visits
"""
REFUSED = [line for text in (ORACLES, STATEMENTS, ROWS, JOINS, MISSING) for line in text.strip().splitlines()]

ANSWERED = """
SELECT COUNT(*) FROM visits WHERE age % 0 = 1
SELECT SUM(1 / (age - 50)) FROM visits
SELECT COUNT(*) FROM visits WHERE sqrt(cost - 10) > 0
SELECT COUNT(*) FROM visits WHERE ln(cost) > 0
SELECT COUNT(*) AS n FROM visits
SELECT ward, COUNT(*) AS n, SUM(cost) AS s, AVG(age) AS a, STDDEV(cost) AS d FROM visits GROUP BY ward
SELECT COUNT(DISTINCT note) AS n, COUNT(DISTINCT patient_id) AS p FROM visits
SELECT SUM(LEAST(GREATEST(stay, 0), 9)) AS s, SUM(LEAST(GREATEST(weight, -1), 9)) AS t FROM visits
SELECT COUNT(*) AS n FROM visits WHERE note = 'canaryqx' OR age = 314159265
SELECT COUNT(*) AS n FROM visits WHERE note LIKE '%canary%' AND stay > 9223372036854775806
SELECT SUM(age * age - cost / 7) AS s FROM visits WHERE NOT cost > 5
SELECT floor, COUNT(*) AS n, SUM(age) AS a FROM visits LEFT JOIN floors USING (ward) GROUP BY floor
SELECT SUM(value) AS v, COUNT(*) AS n FROM visits JOIN labs USING (patient_id)
SELECT AVG(LEAST(n, 9)) AS n FROM (SELECT patient_id, COUNT(*) AS n, MAX(age) AS a FROM visits GROUP BY patient_id) AS s
SELECT MEDIAN(age) AS m, MAX(cost) AS x FROM visits
SELECT note, COUNT(DISTINCT patient_id) AS n FROM visits GROUP BY note
SELECT stay, COUNT(*) AS n, SUM(cost) AS c FROM visits GROUP BY stay
SELECT YEAR(entered) AS y, COUNT(*) AS n FROM visits GROUP BY y
""".strip().splitlines()

NOWHERE = """
SELECT COUNT(*) / 0 AS n FROM visits WHERE age > 1
SELECT COUNT(*) / (1 - 1) AS n FROM visits WHERE age > 2
SELECT 1 / 0 AS x, COUNT(*) AS n FROM visits WHERE age > 3
SELECT COUNT(*) AS n FROM visits WHERE age > 4 HAVING n / 0 > 3
SELECT COUNT(*) AS n FROM visits WHERE age > 5 HAVING 'a' = 'b'
""".strip().splitlines()
