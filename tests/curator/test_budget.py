"""What is spent and what is left: told honestly, and never promising more questions than will be answered."""

import json

import pytest

import noisette as nz
from noisette.curator.budget import Budget
from noisette.curator.demo import hospital
from noisette.errors import BudgetError
from noisette.ledger import Memory
from noisette.privacy import ZCDP, Approx, Pure

GAUSSIAN = nz.Gaussian(50).guarantee(1)


def budget_of(ledger):
    return Budget.of(ledger)


def charged(total, *costs):
    ledger = Memory(total)
    for cost in costs:
        ledger.charge("a question", cost, [])
    return ledger


CASES = [
    (Pure(1), [Pure("0.3")]),
    (Pure(1), [Pure("0.3"), Pure("0.1")]),
    (Pure("0.3"), [Pure("0.1")] * 3),
    (ZCDP("0.1"), [ZCDP("0.004")]),
    (ZCDP("0.1"), [Pure("0.1"), GAUSSIAN]),
    (Approx(1, "1e-6"), [Pure("0.02")]),
    (Approx(1, "1e-6"), [Pure("0.3"), Pure("0.05")]),
    (Approx(1, "1e-6"), [Pure("0.05"), GAUSSIAN]),
    (Approx(1, "1e-6"), [GAUSSIAN]),
    (Approx(1, "1e-6"), [Approx("0.01", "1e-10")]),
    (Approx(1, "1e-6"), [Pure("0.1"), Approx("0.3", "9e-9")]),
]


@pytest.mark.parametrize(("total", "costs"), CASES)
def test_as_many_more_fit_as_are_told_and_not_one_more(total, costs):
    ledger = charged(total, *costs)
    told = budget_of(ledger).more
    for _ in range(told):
        ledger.charge("the same again", costs[-1], [])
    with pytest.raises(BudgetError):
        ledger.charge("one too many", costs[-1], [])
    assert budget_of(ledger).more == 0
    assert "no more like the last fits" in repr(budget_of(ledger))


def test_before_the_first_question():
    budget = budget_of(Memory(Approx(2, "1e-6")))
    assert budget.more is None
    assert repr(budget).splitlines()[1] == "spent   ε = 0"
    assert repr(budget).endswith("Nothing was asked yet")


def test_a_delta_is_not_said_to_be_spent():
    shown = repr(budget_of(charged(Approx(2, "1e-6"), Pure("0.5"))))
    assert shown.splitlines() == [
        "budget  ε = 2 at δ = 1e-6",
        "spent   ε = 0.5",
        "left    ε = 1.5 in one question; δ = 1e-7 for unknown keys",
        "1 question was charged; 3 more like the last fit",
    ]


def test_other_budgets_in_words():
    assert repr(budget_of(charged(Pure(1), Pure("1/3")))).splitlines()[1:3] == [
        "spent   ε = 0.333334",
        "left    ε = 0.666666 in one question",
    ]
    assert "ρ = 0.5 (zero-concentrated)" in repr(budget_of(charged(ZCDP("0.5"), ZCDP("0.1"))))
    assert "more than 1,000,000 like the last fit" in repr(budget_of(charged(Pure(1), Pure("1e-9"))))


def test_in_a_notebook():
    assert "<td>ε = 0.5</td>" in budget_of(charged(Approx(2, "1e-6"), Pure("0.5")))._repr_html_()


# The tight figure


def test_the_tight_figure_is_that_of_a_sum_settled_in_advance():
    budget = budget_of(charged(Approx(2, "1e-6"), *[Pure("0.05")] * 40))
    assert budget.tight == (Pure("0.05") * 40).epsilon_at("1e-6")
    assert budget.tight < budget.spent.epsilon
    for shown in (repr(budget), budget._repr_html_()):
        assert "ε = 1.29" in shown
        assert "had all costs been settled in advance" in shown


def test_it_is_shown_only_where_it_tells_something():
    assert "tight" not in repr(budget_of(charged(Approx(2, "1e-6"), Pure("0.5"))))
    assert "tight" not in repr(budget_of(Memory(Approx(2, "1e-6"))))
    assert budget_of(charged(Pure(1), Pure("0.5"))).tight is None
    concentrated = budget_of(charged(ZCDP("0.5"), GAUSSIAN))
    assert concentrated.tight == GAUSSIAN.epsilon_at("1e-6")
    assert "at δ = 1e-6, had all costs been settled in advance" in repr(concentrated)


def test_many_different_costs_are_composed_only_when_asked_for(monkeypatch):
    budget = budget_of(charged(Approx(9, "1e-6"), *(Pure(f"1/{1000 + i}") for i in range(101))))
    monkeypatch.setattr("noisette.curator.budget.tight", lambda *_: 0.03)
    assert "tight" not in repr(budget)
    assert budget.tight == 0.03
    assert "tight   ε = 0.03" in repr(budget_of(charged(Approx(9, "1e-6"), *[Pure("1/1000")] * 101)))


# Shares


def test_an_analyst_sees_one_share_and_the_owner_all():
    ledger = Memory(Pure(2), shares={"ana": Pure(1), "bob": Pure("0.5")})
    ledger.charge("q", Pure("0.25"), [], analyst="ana")
    mine, every = Budget.of(ledger, "ana"), Budget.of(ledger)
    assert (list(mine.shares), list(every.shares)) == (["ana"], ["ana", "bob"])
    assert (mine.more, every.more) == (3, None)
    assert "share of ana  ε = 1; spent ε = 0.25, left ε = 0.75 in one question" in repr(mine)
    assert repr(every).endswith("1 question was charged")


def test_it_is_json_outside_the_command_line():
    ledger = Memory(Pure(1), shares={"ana": Pure("1/2")})
    ledger.charge("q", Pure("0.25"), [], analyst="ana")
    told = json.loads(Budget.of(ledger, "ana").to_json())
    assert told["budget"] == {"kind": "Pure", "epsilon": "1"}
    assert (told["spent"]["epsilon"], told["left"]["epsilon"], told["charges"]) == ("1/4", "3/4", 1)
    assert (told["more_like_last"], told["tight"]) == (1, None)
    assert told["shares"]["ana"]["left"]["epsilon"] == "1/4"


def test_a_curator_shows_its_tables_and_its_budget():
    data = hospital(budget=2)
    assert repr(data).startswith("visits: all rows of one patient_id are protected together (rows 8)")
    assert all(name in repr(data) for name in ("diagnosis", "wards", "region"))
    assert repr(data).endswith(repr(data.budget))
    assert "<td>visits</td>" in data._repr_html_()
    assert "ε = 2" in data._repr_html_()
