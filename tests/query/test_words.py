"""What is refused names the nearest thing that works: one table of words, and each of these things works."""

import pytest
from tests.query.tables import SCHEMA

import noisette as nz
from noisette.curator.demo import hospital
from noisette.errors import InputError
from noisette.query.sql import parse

WORDS = {
    "MODE(ward)": "nz.Mode('x')",
    "MODE() WITHIN GROUP (ORDER BY ward)": "nz.Mode('x')",
    "APPROX_TOP_K(ward, 3)": "nz.Top('x', 3)",
    "HISTOGRAM(age)": "nz.Histogram('x')",
    "STRING_AGG(ward, ',')": "nz.Top('x', 10)",
    "LISTAGG(ward)": "nz.Top('x', 10)",
    "ARRAY_AGG(ward)": "GROUP BY x",
    "LIST(ward)": "GROUP BY x",
    "ANY_VALUE(ward)": "GROUP BY x",
    "FIRST(ward)": "GROUP BY x",
    "ARG_MAX(ward, age)": "GROUP BY x",
    "MAX_BY(ward, age)": "GROUP BY x",
    "JSON_GROUP_ARRAY(ward)": "GROUP BY x",
    "MEDIAN(ward)": "nz.Mode('x')",
    "SUM(ward)": "COUNT(DISTINCT x)",
    "AVG(visited)": "YEAR(d)",
    "QUANTILE(entered, 0.5)": "DATE_DIFF",
    "KURTOSIS(age)": "QUANTILE(x, [0.1, 0.5, 0.9])",
    "SKEWNESS(age)": "VARIANCE(x)",
    "MAD(age)": "nz.Spread('x')",
    "ENTROPY(ward)": "SUM(COUNT(*)) OVER ()",
    "PRODUCT(age)": "AVG(LN(x))",
    "GEOMEAN(age)": "AVG(LN(x))",
    "BIT_AND(age)": "SUM(x = 1)",
    "BOOL_AND(smoker)": "COUNT_IF(condition)",
    "EVERY(smoker)": "AVG(condition)",
    "APPROX_COUNT_DISTINCT(ward)": "COUNT(DISTINCT x)",
    "RESERVOIR_QUANTILE(age, 0.5)": "QUANTILE(x, 0.5)",
    "FAVG(age)": "AVG(x)",
    "FSUM(age)": "SUM(x)",
    "REGR_SXX(age, cost)": "REGR_SLOPE(y, x)",
    "REGR_AVGX(age, cost)": "CORR(y, x)",
    "SUM(DISTINCT age)": "leave it out",
    "ROW_NUMBER() OVER (ORDER BY COUNT(*))": "ORDER BY COUNT(*) DESC LIMIT 10",
    "RANK() OVER (ORDER BY COUNT(*) DESC)": "ORDER BY COUNT(*) DESC LIMIT 10",
    "NTILE(4) OVER (ORDER BY COUNT(*))": "ORDER BY COUNT(*) DESC LIMIT 10",
    "LAG(COUNT(*)) OVER (ORDER BY ward)": "SUM(COUNT(*)) OVER ()",
    "SUM(age) OVER ()": "SUM(COUNT(*)) OVER ()",
    "SUM(COUNT(*)) OVER (ORDER BY ward)": "SUM(COUNT(*)) OVER ()",
    "MIN(age, 3)": "MIN(x)",
}


@pytest.mark.parametrize("asked", WORDS)
def test_the_nearest_thing_is_named(asked):
    with pytest.raises(InputError) as refused:
        parse(f"SELECT ward, {asked} AS y FROM visits GROUP BY ward", SCHEMA)
    sentence = str(refused.value)
    assert WORDS[asked] in sentence
    assert sentence.endswith(".")
    assert sentence.count(". ") == 0


WORKING = [
    "SELECT COUNT(DISTINCT ward) AS y FROM visits",
    "SELECT COUNT_IF(age > 3) AS y FROM visits",
    "SELECT AVG(age > 3) AS y FROM visits",
    "SELECT SUM(age = 1) AS y FROM visits",
    "SELECT AVG(LN(GREATEST(cost, 1))) AS y FROM visits",
    "SELECT QUANTILE(age, [0.1, 0.5, 0.9]) AS y FROM visits",
    "SELECT VARIANCE(age) AS y FROM visits",
    "SELECT ward, COUNT(*) / SUM(COUNT(*)) OVER () AS y FROM visits GROUP BY ward",
    "SELECT ward, COUNT(*) AS y FROM visits GROUP BY ward ORDER BY COUNT(*) DESC LIMIT 10",
    "SELECT CORR(cost, age), REGR_SLOPE(cost, age), REGR_INTERCEPT(cost, age), REGR_COUNT(cost, age) FROM visits",
    nz.Mode("ward"),
    nz.Top("ward", 3),
    nz.Histogram("age"),
    nz.Spread("age"),
]


@pytest.fixture(scope="module")
def data():
    return hospital()


@pytest.mark.parametrize("question", WORKING, ids=lambda one: one if isinstance(one, str) else type(one).__name__)
def test_what_is_named_works(question, data):
    assert data.explain(question, spend="1,1e-8")
