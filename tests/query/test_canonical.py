"""One form for each question: what does not change the measured numbers does not change the text, what does, does."""

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.query.tables import SCHEMA

from noisette.query.canonical import canonical, canonical_text, measured, normal
from noisette.query.plan import expression_text
from noisette.query.sql import parse


def text_of(text: str) -> str:
    return canonical_text(parse(text, SCHEMA))


BASE = "SELECT ward, COUNT(*) AS n, AVG(age) FROM visits WHERE age > 18 AND ward IN ('A', 'B') AND smoker GROUP BY ward"


@pytest.mark.parametrize(
    "other",
    [
        "select  WARD , count( * ),"
        " avg(AGE)\nfrom VISITS where AGE > 18 and WARD in ('A','B') and SMOKER group by WARD",
        "SELECT AVG(v.age) AS x, COUNT(*), v.ward FROM visits AS v WHERE v.smoker AND 18 < v.age "
        "AND v.ward IN ('B', 'A', 'B') GROUP BY 3",
        "SELECT COUNT(*), COUNT(*), AVG(age), AVG(age) + COUNT(*) FROM visits WHERE smoker "
        "AND smoker AND (age > 18 AND ward IN ('A', 'B')) GROUP BY ward",
        BASE + " HAVING n > 10 ORDER BY n LIMIT 5",
        "SELECT w, AVG(a), COUNT(*) FROM (SELECT ward AS w, age AS a, cost * 2 AS c FROM visits "
        "WHERE smoker) s WHERE a > 18 AND w IN ('A', 'B') GROUP BY w",
        "WITH z AS (SELECT * FROM visits WHERE NOT age <= 18) SELECT ward, COUNT(*), AVG(age) "
        "FROM z WHERE NOT NOT smoker AND ward IN ('A', 'B') GROUP BY ward, ward",
    ],
)
def test_what_does_not_matter(other):
    assert text_of(other) == text_of(BASE)


@pytest.mark.parametrize(
    "other",
    [
        BASE.replace("18", "19"),
        BASE.replace(">", ">="),
        BASE.replace("'B'", "'C'"),
        BASE.replace("'A'", "'a'"),
        BASE.replace("AND smoker", "OR smoker"),
        BASE.replace("AND smoker", "AND NOT smoker"),
        BASE.replace("AND smoker", ""),
        BASE.replace("AVG(age)", "AVG(cost)"),
        BASE.replace("AVG(age)", "SUM(age)"),
        BASE.replace("COUNT(*)", "COUNT(ward)"),
        BASE.replace("GROUP BY ward", "GROUP BY ward, smoker"),
        BASE.replace("FROM visits", "FROM visits JOIN labs USING (patient_id)"),
        BASE.replace("FROM visits", "FROM visits JOIN wards USING (ward)"),
        BASE.replace("FROM visits", "FROM visits LEFT JOIN wards USING (ward)"),
        BASE + " HAVING SUM(cost) > 3",
        BASE + " ORDER BY SUM(cost)",
    ],
)
def test_what_matters(other):
    assert text_of(other) != text_of(BASE)


def test_all_of_these_differ():
    texts = [
        "SELECT QUANTILE(age, 0.1) FROM visits",
        "SELECT QUANTILE(age, 0.2) FROM visits",
        "SELECT COUNT(CASE WHEN smoker THEN 1 END) FROM visits",
        "SELECT COUNT(CASE WHEN smoker THEN TRUE END) FROM visits",
        "SELECT COUNT(CASE WHEN smoker THEN '1' END) FROM visits",
        "SELECT COUNT(*) FROM visits WHERE visited > '2020-01-01'",
        "SELECT COUNT(*) FROM visits WHERE entered > '2020-01-01'",
        "SELECT COUNT(*) FROM visits WHERE age - change > 1",
        "SELECT COUNT(*) FROM visits WHERE change - age > 1",
        "SELECT COUNT(*) FROM visits WHERE COALESCE(age, change) > 1",
        "SELECT COUNT(*) FROM visits WHERE COALESCE(change, age) > 1",
        "SELECT SUM(a.age) FROM visits a JOIN visits b USING (patient_id)",
        "SELECT SUM(b.age) FROM visits a JOIN visits b USING (patient_id)",
        "SELECT COUNT(*) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY ALL) s WHERE n > 1",
        "SELECT COUNT(*) FROM (SELECT patient_id, COUNT(age) AS n FROM visits GROUP BY ALL) s WHERE n > 1",
        "SELECT COUNT(*) FROM (SELECT patient_id, ward, COUNT(*) AS n FROM visits GROUP BY ALL) s WHERE n > 1",
        "SELECT COUNT(*) FROM visits",
        "SELECT COUNT(*) FROM events",
    ]
    assert len({text_of(text) for text in texts}) == len(texts)


def test_unused_columns_of_the_outer_side_stay_apart():
    """A value computed on the far side of a LEFT JOIN is NULL without a partner, so it must not move out."""
    far = "SELECT SUM(x) FROM visits LEFT JOIN (SELECT ward, COALESCE(floor, 0) + 1 AS x FROM wards) w USING (ward)"
    near = "SELECT SUM(COALESCE(floor, 0) + 1) FROM visits LEFT JOIN wards USING (ward)"
    assert text_of(far) != text_of(near)


def test_the_form_keeps_what_is_shown():
    query = parse("SELECT age AS a, ward AS b, age AS c, COUNT(*) FROM visits GROUP BY age, ward ORDER BY b", SCHEMA)
    form = canonical(query)
    assert [name for name, _ in form.outputs] == ["a", "b", "c", "count"]
    assert form.outputs[1][1] == form.order[0].by
    assert len(form.keys) == 2
    assert measured(query).keys == tuple(sorted(form.keys, key=expression_text))


@pytest.mark.slow
def test_the_same_text_in_every_process():
    script = (
        "from noisette.query.sql import parse; from noisette.query.canonical import canonical_text;"
        f"from tests.query.tables import SCHEMA; print(canonical_text(parse({BASE!r}, SCHEMA)))"
    )
    for seed in ("1", "2"):
        found = subprocess.run(
            [sys.executable, "-c", script], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        )
        assert found.stdout.strip() == text_of(BASE)
    assert json.loads(text_of(BASE))["source"][0] == "where"


# Properties

CONDITIONS = [
    "age > 18", "age >= 18", "18 > age", "smoker", "NOT smoker", "ward = 'A'", "ward <> 'A'", "ward IN ('A', 'B')",
    "visited >= '2020-01-01'", "cost BETWEEN 1 AND 2", "age + change > 3", "change + age > 3", "ward LIKE 'A%'",
    "age IS NULL",     "LEAST(age, cost) > 3", "GREATEST(cost, age) > 3", "CASE WHEN smoker THEN age ELSE cost END > 3",
]  # fmt: skip
conditions = st.recursive(
    st.sampled_from(CONDITIONS),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda parts: "(" + " ".join(parts) + ")"),
        inner.map(lambda text: f"NOT ({text})"),
    ),
    max_leaves=6,
)


def condition(text: str):
    return parse(f"SELECT COUNT(*) FROM visits WHERE {text}", SCHEMA).source.condition


@given(conditions)
def test_the_form_of_a_form_is_itself(text):
    query = parse(f"SELECT ward, COUNT(*), SUM(cost) FROM visits AS x WHERE {text} GROUP BY ward", SCHEMA)
    assert canonical(canonical(query)) == canonical(query)
    assert canonical_text(canonical(query)) == canonical_text(query)


@pytest.mark.slow
@given(st.lists(conditions, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_order_repeats_and_stacks_do_not_matter(parts, random):
    shuffled = [*parts, random.choice(parts)]
    random.shuffle(shuffled)
    flat = text_of(f"SELECT COUNT(*) FROM visits WHERE {' AND '.join(f'({part})' for part in parts)}")
    assert text_of(f"SELECT COUNT(*) FROM visits AS q WHERE {' AND '.join(f'({part})' for part in shuffled)}") == flat
    stacked = "visits"
    for part in shuffled:
        stacked = f"(SELECT * FROM {stacked} WHERE {part}) AS s"
    assert text_of(f"SELECT COUNT(*) FROM {stacked}") == flat


VALUES = [None, -1, 0, 3, 18, 19]


def evaluate(expression, row):
    """Conditions over numbers, truth values and texts, with NULL as None: what SQL says, in Python."""
    match expression_text(expression), expression:
        case _, _ if hasattr(expression, "name"):
            return row[expression.name.partition(".")[2]]
        case _, _ if hasattr(expression, "value"):
            return expression.value
    operation = expression.operation
    values = [evaluate(argument, row) for argument in expression.arguments]
    if operation == "and":
        return False if any(v is False for v in values) else None if None in values else True
    if operation == "or":
        return True if any(v is True for v in values) else None if None in values else False
    if None in values:
        return operation == "is_null" if operation == "is_null" else None
    a, b = values[0], values[-1]
    return {
        "not": lambda: not a,
        "is_null": lambda: False,
        "equal": lambda: a == b,
        "unequal": lambda: a != b,
        "less": lambda: a < b,
        "at_most": lambda: a <= b,
        "more": lambda: a > b,
        "at_least": lambda: a >= b,
        "in": lambda: a in values[1:],
        "add": lambda: a + b,
        "least": lambda: min(values),
        "greatest": lambda: max(values),
    }[operation]()


simple = conditions.filter(lambda text: not any(word in text for word in ("LIKE", "visited", "CASE")))
numbers = st.sampled_from(VALUES)


@pytest.mark.slow
@given(simple, numbers, numbers, numbers, st.sampled_from([None, True, False]), st.sampled_from([None, "A", "B"]))
def test_the_form_has_the_same_value_for_every_row(text, age, cost, change, smoker, ward):
    row = {"Age": age, "cost": cost, "change": change, "smoker": smoker, "ward": ward}
    expression = condition(text)
    assert evaluate(normal(expression), row) is evaluate(expression, row) or (
        evaluate(normal(expression), row) == evaluate(expression, row)
    )
