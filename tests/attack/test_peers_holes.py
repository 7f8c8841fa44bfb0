"""Holes that were found in a peer, each tried on this system, and rules of the house under attack.

The peer let a table through as public if its name was written in another case, released an exact maximum through a
window function that was grouped by, lost its sensitivity to NaN from casts, quoted data in the causes of errors, let
failed questions cost nothing, showed a group of one person where there was no GROUP BY, and looked at the budget
without a lock.
"""

import threading
import traceback
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow
import pytest
from tests.attack import attacks
from tests.attack.attacks import BY_TEXT, COUNT, marked
from tests.attack.questions import Question
from tests.attack.tables import Table, World
from tests.attack.trial import Convicted, attacked
from tests.attack.twins import CANARY, Twice

import noisette as nz
from noisette.engines.contract import Source
from noisette.errors import BudgetError, FailedError, InputError
from noisette.mechanisms import Geometric
from noisette.query.frequency import MinimumFrequency

pytestmark = pytest.mark.slow_after(1)
WARDS = ["north", "south"]
PEOPLE = 50


def opened(**options):
    rows = [(f"p{i}", WARDS[i % 2], 20 + i, f"{CANARY} {i}") for i in range(PEOPLE)]
    visits = pyarrow.table(dict(zip(("id", "ward", "age", "note"), map(list, zip(*rows, strict=True)), strict=True)))
    columns = {
        "ward": {"keys": WARDS, "nullable": False},
        "age": {"bounds": [0, 100], "nullable": False},
        "note": {"type": "text"},
    }
    tables = {"visits": {"unit": "id", "rows": 1, "columns": columns}, "floors": {"public": True}}
    floors = pyarrow.table({"ward": WARDS, "floor": [1, 2]})
    rules = {"tables": tables, "rules": options.pop("rules", {})}
    return nz.open({"visits": visits, "floors": floors}, policy=rules, **{"budget": nz.Approx(100, "1e-3"), **options})


def explained(data, text):
    """Why a question is refused, or its offer."""
    try:
        return "", data.explain(text, spend=1).offer
    except InputError as refused:
        return str(refused), None


# Names

NAMES = [
    "visits",
    "Visits",
    "VISITS",
    '"visits"',
    '"VISITS"',
    '"Visits"',
    "main.visits",
    "MAIN.Visits",
    "memory.main.visits",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_table_is_private_however_its_name_is_written(name):
    data = opened()
    said, offer = explained(data, f"SELECT COUNT(*) AS n FROM {name}")
    if offer is None:
        assert "public" not in said
    else:
        assert offer.text == explained(data, "SELECT COUNT(*) AS n FROM visits")[1].text
        assert offer.unit == "id"


@pytest.mark.parametrize("name", ["VISITS", '"Visits"', "Floors JOIN VISITS ON Floors.ward = VISITS.ward"])
def test_joins_and_sub_queries_do_not_make_it_public(name):
    data = opened()
    for text in (f"SELECT COUNT(*) AS n FROM {name}", f"SELECT COUNT(*) AS n FROM (SELECT 1 AS one FROM {name}) AS s"):
        said, offer = explained(data, text)
        assert "read them directly" not in said
        assert offer is None or offer.guarantee.epsilon == 1


# Windows, casts, divisions

EXACT = [
    "SELECT MAX(age) OVER () AS m, COUNT(*) AS n FROM visits GROUP BY 1",
    "SELECT m, COUNT(*) AS n FROM (SELECT MAX(age) OVER () AS m FROM visits) AS s GROUP BY m",
    "SELECT COUNT(*) AS n FROM visits GROUP BY MAX(age) OVER (PARTITION BY ward)",
    "SELECT ROW_NUMBER() OVER (ORDER BY age) AS r, COUNT(*) AS n FROM visits GROUP BY r",
    "SELECT FIRST_VALUE(note) OVER (ORDER BY age) AS f FROM visits GROUP BY 1",
    "SELECT COUNT(*) AS n FROM visits QUALIFY RANK() OVER (ORDER BY age) = 1",
    "SELECT (SELECT MAX(age) FROM visits) AS m, COUNT(*) AS n FROM visits GROUP BY 1",
    "SELECT COUNT(*) AS n FROM visits WHERE age = (SELECT MAX(age) FROM visits)",
]
CASTS = [
    "SELECT SUM(CAST(note AS DOUBLE)) AS s FROM visits",
    "SELECT SUM(note::DOUBLE) AS s FROM visits",
    "SELECT SUM(CAST('NaN' AS DOUBLE)) AS s FROM visits",
    "SELECT SUM(age + 'nan'::FLOAT) AS s FROM visits",
]
WITHOUT_A_VALUE = [
    "SELECT SUM(age / (age - 20)) AS s FROM visits",
    "SELECT SUM(LN(age - 20)) AS s FROM visits",
]


@pytest.mark.parametrize("text", WITHOUT_A_VALUE)
def test_no_row_makes_a_quotient_or_a_logarithm_fail(text):
    assert opened().ask(text, spend=1).rows()[0]["s_low"] is not None


@pytest.mark.parametrize("text", EXACT + CASTS)
def test_windows_and_casts_are_refused_before_anything_is_spent(text):
    data = opened()
    for spend in (1, (1, "1e-6")):
        with pytest.raises(InputError) as refused:
            data.ask(text, spend=spend)
        assert CANARY not in str(refused.value)
    assert data.ledger.entries == ()


ODD = ["'nan'", "'-inf'", "1e308"]


@pytest.mark.slow
@pytest.mark.parametrize("value", ODD)
def test_a_value_that_is_no_number_moves_no_sum_further(shelf, value):
    """Stored as a number or as a text that is read as one: it counts as NULL or as the nearer bound."""
    columns = (("u", "BIGINT"), ("g", "VARCHAR"), ("x", "DOUBLE"))
    rows, text = [(str(i), "'0.5'", "0.5") for i in range(4)], f"'{value.strip(chr(39))}'"
    rules = {"v": {"unit": "u", "rows": 2, "columns": {"x": {"bounds": [0, 2]}}}}
    mine = ("9", text, value)
    world = World({"v": Table(columns, (*rows, mine))}, {"tables": rules}, "9", {"v": (mine, ("9", "'1'", "1"))})
    stored = Question(aggregates=("SUM(v.x)", "AVG(v.x)", "COUNT(v.x)", "VARIANCE(v.x)"))
    read = Question(aggregates=("SUM(TRY_CAST(v.g AS DOUBLE))", "AVG(LEAST(GREATEST(TRY_CAST(v.g AS DOUBLE), 0), 2))"))
    assert attacked(shelf, world, [stored, read])["answered"] == 4


# Errors


class Quoting:
    """An engine whose error holds data."""

    def __init__(self, source):
        self.source = source

    def __getattr__(self, name):
        return getattr(self.source, name)

    release = Source.release

    def aggregate(self, *_):
        try:
            raise ValueError(f"cannot read {CANARY}")
        except ValueError as cause:
            raise RuntimeError(f"row of {CANARY}") from cause


@pytest.mark.parametrize(
    "rules", [{}, {"minimum_frequency": 5, "rounding": 5, "least_difference": 3}], ids=["bare", "ruled"]
)
def test_errors_have_no_cause_and_failed_questions_are_charged(rules):
    data = opened(rules=rules)
    data._source = Quoting(data._source)
    for _ in range(2):
        with pytest.raises(FailedError) as failed:
            data.ask("SELECT AVG(age) AS a FROM visits", spend=1)
        assert failed.value.__cause__ is None
        assert failed.value.__context__ is None
        assert CANARY not in "".join(traceback.format_exception(failed.value))
    assert [entry.guarantee.epsilon for entry in data.ledger.entries] == [1]


# Presence

RULE = MinimumFrequency(5)


@pytest.mark.parametrize("person", ["p7", "nobody"])
def test_a_filter_on_one_person_reveals_no_presence(person):
    """Each of 5 answers is shown with probability at most 1e-12, whether the person is there or not."""
    data = opened(rules={"minimum_frequency": RULE.units, "failure": "1e-12"}, budget=nz.Pure(1000))
    for i in range(5):
        where = f"id = '{person}' AND age < {200 + i}"
        answer = data.ask(f"SELECT COUNT(*) AS n, AVG(age) AS a FROM visits WHERE {where}", spend=2)
        assert answer["n"].values.to_pylist() == answer["a"].values.to_pylist() == [None]


@pytest.mark.parametrize("scale", ["1/2", "3", "20"])
def test_what_is_seen_of_a_group_differs_between_neighbours_by_no_more_than_the_noise_allows(scale):
    """All outputs: suppressed, or a number from the threshold on. Beside epsilon there is no further loss."""
    noise = Geometric(scale)
    t, most = RULE.threshold(noise), np.exp(1 / float(noise.scale)) * (1 + 1e-9)
    y = np.arange(t, t + 40)
    for n in range(t + 20):
        laws = [np.append(noise.law.pmf(y - m), noise.law.cdf(t - 1 - m)) for m in (n, n + 1)]
        assert (laws[0] <= most * laws[1] + 1e-300).all()
        assert (laws[1] <= most * laws[0] + 1e-300).all()
    for n in range(RULE.units):
        assert 1 - float(noise.law.cdf(t - 1 - n)) <= float(RULE.failure) * (1 + 1e-6)


# The budget


@pytest.mark.parametrize("rules", [{}, {"minimum_frequency": 5, "approval_above": "5"}], ids=["bare", "ruled"])
def test_the_budget_is_looked_at_and_charged_under_one_lock(tmp_path, rules):
    data = opened(rules=rules, budget=nz.Pure(1), ledger=tmp_path / "ledger")
    answered, refused, start = [], [], threading.Barrier(8)

    def ask(i):
        start.wait()
        try:
            answered.append(data.ask(f"SELECT COUNT(*) AS n FROM visits WHERE age > {i}", spend="0.3"))
        except BudgetError:
            refused.append(i)

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(answered), len(refused)) == (3, 5)
    assert data.budget.spent.epsilon == Fraction("0.9")
    data.ledger.verify()
    data.ledger.close()


# Rules of the house under attack

RULES = {"minimum_frequency": 3, "least_difference": 2, "rounding": 5}
ASKED = [COUNT, BY_TEXT, Question(keys=("v.b",), aggregates=("AVG(v.k)", "MEDIAN(v.k)"))]


@pytest.mark.slow
def test_neighbours_are_alike_under_the_rules(shelf):
    world = marked()
    assert attacked(shelf, replace(world, policy={**world.policy, "rules": RULES}), ASKED)["answered"] == 2 * len(ASKED)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_random_tables_and_questions_under_the_rules(shelf, seed):
    assert attacks.ruled(seed, shelf)["worlds"] == 1


@pytest.mark.slow
def test_a_twin_that_counts_twice_is_convicted_by_the_number_of_people(shelf):
    shelf.shrinks = False
    world = marked()
    ruled = replace(world, policy={**world.policy, "rules": RULES})
    with pytest.raises(Convicted, match=r"sensitivity: .* moved by"):
        attacked(shelf, ruled, [Question(aggregates=("AVG(v.k)",))], Twice)
