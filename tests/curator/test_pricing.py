"""An error instead of a spend: the noise that takes least of what is left, by the rules the ledger opened with."""

import json
import math

import pyarrow
import pytest

import noisette as nz
from noisette.errors import BudgetError, InputError
from noisette.ledger import Memory
from noisette.privacy import ZCDP, Approx, Pure
from noisette.privacy.charges import charge_of

COUNT = "SELECT count(*) AS n FROM visits"
WARDS = "SELECT ward, count(*) AS n FROM visits GROUP BY ward"
UNKNOWN = "SELECT name, count(*) AS n FROM visits GROUP BY name"
SIX = {
    "count": (COUNT, 30, None),
    "wards": (WARDS, 30, None),
    "sum": ("SELECT sum(age) AS s FROM visits", 3000, None),
    "average": ("SELECT avg(age) AS a FROM visits", 3, 1000),
    "quantile": ("SELECT median(age) AS m FROM visits", 100, None),
    "unknown keys": (UNKNOWN, 30, None),
}
POLICY = {
    "tables": {
        "visits": {
            "unit": "p",
            "rows": 1,
            "columns": {
                "age": {"bounds": [0, 100], "nullable": False},
                "ward": {"keys": ["a", "b"], "nullable": False},
                "name": {"nullable": False},
            },
        }
    }
}
ROWS = {"p": [1, 1, 2], "age": [10, 20, 30], "ward": ["a", "b", "a"], "name": ["x", "y", "x"]}


BUDGET = Approx(5, "1e-6")


def visits(budget=BUDGET, rows=ROWS, **options):
    return nz.open({"visits": pyarrow.table(rows)}, budget=budget, policy=POLICY, **options)


def often(ledger, cost):
    """How often a cost is charged before the ledger refuses it."""
    count = 0
    while ledger.allows(cost):
        ledger.charge("q", cost, [])
        count += 1
    return count


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(
    ("kind", "least"),
    [("count", 240), ("wards", 240), ("sum", 230), ("average", 460), ("quantile", 62), ("unknown keys", 80)],
)
def test_six_kinds_of_questions_keep_their_error_and_fit_as_often_as_is_said(kind, least):
    """A quantile's error is the one that holds whatever the values are, which takes more than a usual one."""
    question, error, rows = SIX[kind]
    found = visits().explain(question, error=error, rows=rows)
    assert 0.97 * error <= found.error <= error
    assert least <= found.prices.more == often(Memory(BUDGET), found.offer.guarantee)
    assert f"about {found.prices.more} like it fit into what is left" in repr(found)
    assert (charge_of(found.offer.guarantee).delta > 0) == (kind == "unknown keys")


def test_counts_with_the_same_error_fit_almost_three_times_as_often_as_by_their_price_alone():
    """The issue's example: 87 counts with Laplace noise at epsilon 0.1, which is best for a single one."""
    data = visits()
    alone, found = data.explain(COUNT, spend="0.1,1e-9"), data.explain(COUNT, error=30)
    assert alone.error == found.error == 30
    assert alone.prices.epsilon < 0.5 * found.prices.epsilon  # what it would cost if nothing else were asked
    assert found.prices.more > 2.9 * alone.prices.more
    assert "It takes least of what is left: for the same error, ε = 0.09823 fits 84 times." in found.why


@pytest.mark.parametrize(
    ("budget", "error", "kind"),
    [(Pure(5), 30, Pure), (ZCDP("0.4"), 30, ZCDP), (Approx(5, "1e-6"), 30, ZCDP), (Approx(5, "1e-6"), 2, Pure)],
)
def test_the_budget_decides_which_noise_takes_least(budget, error, kind):
    """A large question takes less as a plain epsilon, where the budget counts both."""
    found = visits(budget).explain(COUNT, error=error)
    assert isinstance(found.spend, kind)
    assert found.error <= error


def test_what_is_left_decides_too():
    """A large epsilon leaves nothing to the rules for many small costs; the plain sum goes on."""
    data = visits(Approx(1, "1e-6"))
    assert isinstance(data.explain(COUNT, error=30).spend, ZCDP)
    data.ledger.charge("something else", Pure("0.25"), [])
    found = data.explain(COUNT, error=30)
    assert isinstance(found.spend, Pure)
    assert found.prices.more == 7


def test_the_same_error_is_free_the_next_time_whatever_would_be_chosen_now():
    data = visits(Approx(1, "1e-6"))
    first = data.ask(COUNT, error=30)
    assert isinstance(data.ledger.entries[0].guarantee, ZCDP)
    data.ledger.charge("something else", Pure("0.25"), [])
    again = data.sql(COUNT, error=30)
    assert len(data.ledger.entries) == 2
    assert again.to_csv() == first.to_csv()
    assert data.table("visits").where("age > 3").count().release(error=30) is not None
    assert isinstance(data.ledger.entries[2].guarantee, Pure)


def test_the_choice_does_not_depend_on_the_data():
    other = {"p": list(range(9)), "age": [99] * 9, "ward": ["b"] * 9, "name": ["z"] * 9}
    for question, error, rows in (SIX["count"], SIX["unknown keys"]):
        first, second = (visits(rows=table).explain(question, error=error, rows=rows) for table in (ROWS, other))
        assert (first.spend, first.prices) == (second.spend, second.prices)


def test_unknown_keys_take_a_hundredth_of_what_was_set_aside():
    found = visits(keys_delta="5e-7").explain(UNKNOWN, error=30)
    assert found.spend.delta == Approx(1, "5e-9").delta
    assert visits().explain(UNKNOWN, error=30).spend.delta == Approx(1, "1e-9").delta
    assert visits().explain(UNKNOWN, error=30, delta="2e-9").spend.delta == Approx(1, "2e-9").delta
    with pytest.raises(InputError, match="only groups shared by enough people are released, and that needs a delta"):
        visits(keys_delta=0).explain(UNKNOWN, error=30)
    with pytest.raises(InputError, match="that needs a delta"):
        visits(Pure(5)).ask(UNKNOWN, error=30)


def test_wrong_prices_cost_nothing():
    data = visits()
    for wrong in ({}, {"spend": 1, "error": 30}, {"error": -1}, {"error": True}):
        with pytest.raises(InputError):
            data.ask(COUNT, **wrong)
    with pytest.raises(InputError, match="such as rows=1000"):
        data.ask(SIX["average"][0], error=3)
    assert data.ledger.entries == ()


@pytest.mark.parametrize(
    ("budget", "question", "spend", "prices"),
    [
        (BUDGET, COUNT, "0.1", "alone ε = 0.1 at δ = 1e-6 · about 81 like it fit into what is left"),
        (BUDGET, COUNT, "rho=0.005", "alone ε = 0.3969 at δ = 1e-6 · about 101 like it fit into what is left"),
        (BUDGET, UNKNOWN, "0.1,1e-3", "alone ε = 0.1 at δ = 0.000932 · none like it fit into what is left"),
        (Pure(1), COUNT, "0.3", "alone ε = 0.3 · about 3 like it fit into what is left"),
        (Pure(1), COUNT, "rho=0.005", "alone ε = 0.3969 at δ = 1e-6 · none like it fit into what is left"),
        (ZCDP(1), COUNT, "rho=0.005", "alone ε = 0.3969 at δ = 1e-6 · about 200 like it fit into what is left"),
        (BUDGET, COUNT, "1e-6", "alone ε = 1e-6 at δ = 1e-6 · more than 1,000,000 like it fit into what is left"),
    ],
)
def test_both_prices_in_words(budget, question, spend, prices):
    found = visits(budget).explain(question, spend=spend)
    assert str(found.prices) == prices
    assert repr(found).splitlines()[1] == prices
    assert prices in found._repr_html_()
    told = json.loads(found.to_json())["prices"]
    assert (told["epsilon"], told["more"]) == (found.prices.epsilon, found.prices.more)


def test_what_the_house_admits_goes_first():
    """Where the owner limits the epsilon of a question, no rho is chosen; nothing at all, and the refusal says so."""
    data = nz.open({"visits": pyarrow.table(ROWS)}, budget=BUDGET, policy=POLICY | {"rules": {"largest_spend": "0.1"}})
    assert isinstance(data.explain(COUNT, error=30).spend, Pure)
    assert data.ask(COUNT, error=30) is not None
    with pytest.raises(BudgetError):
        data.ask(COUNT, error=3)
    assert len(data.ledger.entries) == 1


def test_of_two_that_fit_once_the_one_that_leaves_more_is_chosen():
    """Where little is left only the plain sum has room, and there an epsilon alone takes less."""
    data = visits(Approx(1, "1e-6"))
    data.ledger.charge("something else", Pure("0.5"), [])
    found = data.explain(COUNT, error=8)
    assert (found.spend.delta, found.prices.more) == (0, 1)
    assert isinstance(found.spend, Pure)


@pytest.mark.parametrize("error", [1e-300, 5e-324])
@pytest.mark.parametrize("budget", [BUDGET, Pure(10)])
def test_the_smallest_errors_have_a_price_or_a_sentence(budget, error):
    data = visits(budget)
    assert data.explain(COUNT, error=error).error == 0  # a whole number, that is right so often
    with pytest.raises((InputError, BudgetError)):
        data.ask(SIX["average"][0], error=error, rows=1000)
    assert not data.ledger.entries


@pytest.mark.parametrize("error", [10**400, math.inf, math.nan, 0, "30"])
def test_what_is_no_error_is_one_sentence(error):
    with pytest.raises(InputError, match=r"^error must be a number above 0"):
        visits().ask(COUNT, error=error)
