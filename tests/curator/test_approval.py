"""The largest spend, approval by the owner, and small differences of filters: decided without a look at the data."""

import sqlite3
import threading
from fractions import Fraction

import pytest
from tests.curator.ruled import BY_WARD, COUNT, opened, policy, spent, visits
from tests.policy.test_house_rules import LIMITS

import noisette as nz
from noisette.curator.answer_cache import AnswerCache
from noisette.curator.house import admissible
from noisette.errors import BudgetError, InputError, PrivacyError
from noisette.ledger import open_ledger

pytestmark = pytest.mark.slow_after(1)

# The largest spend


UNREAD = None  # no source: whoever reads it fails


@pytest.mark.parametrize(("limit", "spend", "fits"), LIMITS)
def test_a_spend_above_the_largest_is_refused_before_the_data(limit, spend, fits):
    data = opened(largest_spend=limit)
    if fits:
        data.ask(COUNT, spend=spend)
        return
    data._source = UNREAD
    with pytest.raises(BudgetError, match="The policy lets one question spend"):
        data.ask(COUNT, spend=spend)
    assert data.explain(COUNT, spend=spend).rules[0].endswith(", so it would be refused.")
    assert spent(data) == Fraction("0")
    assert data.ledger.entries == ()


BY_CODE = "SELECT code, COUNT(*) AS n FROM visits GROUP BY code"  # unknown keys


@pytest.mark.parametrize("rule", ["largest_spend", "approval_above"])
def test_an_epsilon_alone_admits_a_thousandth_of_delta_and_no_more(rule):
    """Before, one question could take all that is set aside for unknown keys."""
    data = opened(**{rule: "0.1"})
    data._source = UNREAD
    with pytest.raises(BudgetError, match=r"spends? (more than )?ε = 0\.1, δ = 1e-6 ") as fault:
        data.ask(BY_CODE, spend="0.1,1e-4")
    assert "\n" not in str(fault.value)
    assert "ε = 0.1, δ = 1e-6 " in data.explain(BY_CODE, spend="0.1,1e-4").rules[0]
    assert spent(data) == 0
    fits = data.explain(BY_CODE, spend="0.1,1e-6").rules[0]
    assert "ε = 0.1, δ = 1e-6 " in fits
    assert fits.endswith(("this one does not.", "this one spends ε = 0.1, δ = 1e-6."))


@pytest.mark.parametrize("budget", [nz.Pure(9), nz.ZCDP(9)])
def test_an_epsilon_alone_admits_no_delta_where_the_budget_has_none(budget):
    data = opened(budget=budget, largest_spend="0.1")
    with pytest.raises(BudgetError, match=r"spend ε = 0\.1 without a δ at most and this one spends"):
        data.ask(COUNT, spend="0.1,1e-30")


@pytest.mark.parametrize(
    ("rules", "delta"),
    [({"approval_above": "9"}, "1e-6"), ({"largest_spend": "9,1e-7"}, "1e-7"), ({}, "5e-6")],
)
def test_the_delta_that_unknown_keys_take_by_default_is_admitted(rules, delta):
    """Also where half of delta is set aside for them, of which a hundredth is five times too much."""
    data = nz.open({"visits": visits()}, budget=nz.Approx(100, "1e-3"), policy=policy(**rules), keys_delta="5e-4")
    spend = data.explain(BY_CODE, error=300).spend
    assert spend.delta == Fraction(delta)
    assert admissible(data.policy, spend)


def test_the_largest_spend_holds_for_lists_purchases_and_streams():
    data = opened(largest_spend="0.5", columns={"age": {"bounds": "private"}})
    data._source = UNREAD
    for act in (
        lambda: data.ask([COUNT, BY_WARD], spend=1),
        lambda: data.bounds("age", spend=1),
        lambda: data.stream(nz.Above(10, positives=1), spend=1),
    ):
        with pytest.raises(BudgetError, match=r"spend ε = 0\.5 at most and this one spends ε = 1"):
            act()


# Approval


@pytest.fixture(params=["memory", "file"])
def guarded(request, tmp_path):
    data = opened(approval_above="0.1", largest_spend="5", ledger=None if request.param == "memory" else tmp_path / "l")
    yield data
    if request.param == "file":
        data.ledger.verify()
        data.ledger.check()
        data.ledger.close()


def name_of(fault):
    return str(fault.value).split("noisette approve ")[1].split("`")[0]


def test_a_question_waits_until_it_is_approved_and_is_charged_once(guarded):
    source, guarded._source = guarded._source, UNREAD
    with pytest.raises(BudgetError, match="waits for the owner's approval") as fault:
        guarded.ask(COUNT, spend=1)
    with pytest.raises(BudgetError) as again:
        guarded.ask("select count( * ) as m from visits", spend=1)  # the same question
    assert name_of(fault) == name_of(again)
    assert [(r.id, r.state, r.spend) for r in guarded.ledger.requests] == [(name_of(fault), "pending", nz.Pure(1))]
    assert spent(guarded) == Fraction("0")
    assert guarded.explain(COUNT, spend=1).rules[1].endswith(f"waits for the owner's approval, as {name_of(fault)}.")
    guarded.ledger.approve(name_of(fault), why="the board agreed")
    guarded._source = source
    first = guarded.ask(COUNT, spend=1)
    assert guarded.ask(COUNT, spend=1).rows() == first.rows()
    assert spent(guarded) == Fraction("1")
    assert guarded.explain(COUNT, spend=1).rules[1] == f"The owner approved this question as {name_of(fault)}."
    assert first.record["rules"] == {"largest_spend": "5", "approval_above": "1/10"}
    small = guarded.explain(COUNT, spend="0.1").rules
    assert small[0] == "The policy lets one question spend ε = 5 at most and this one spends ε = 0.1."
    assert small[1].endswith("wait for the owner's approval, and this one does not.")


def test_an_approval_is_for_one_question_spend_and_analyst(guarded):
    with pytest.raises(BudgetError) as fault:
        guarded.ask(COUNT, spend=1, analyst="ana")
    guarded.ledger.approve(name_of(fault))
    for question, spend, analyst in ((COUNT, "1.1", "ana"), (COUNT, 1, "bob"), (BY_WARD, 1, "ana"), (COUNT, 1, None)):
        with pytest.raises(BudgetError, match="waits for"):
            guarded.ask(question, spend=spend, analyst=analyst)
    assert spent(guarded) == Fraction("0")
    guarded.ask(COUNT, spend=1, analyst="ana")
    guarded.ask(COUNT, spend="0.1")  # small ones never wait
    assert spent(guarded) == Fraction("1.1")


def test_declined_and_unknown_names(guarded):
    with pytest.raises(BudgetError) as fault:
        guarded.ask(COUNT, spend=1)
    guarded.ledger.decline(name_of(fault))
    with pytest.raises(BudgetError, match="The owner declined this question"):
        guarded.ask(COUNT, spend=1)
    assert [request.state for request in guarded.ledger.requests] == ["declined"]
    for name in ("nothing", "", None, 3):
        with pytest.raises(InputError, match="No question of that name waits"):
            guarded.ledger.approve(name)
    with pytest.raises(InputError, match="Say why"):
        guarded.ledger.approve(name_of(fault), why=" ")


def test_the_largest_spend_comes_first(guarded):
    with pytest.raises(BudgetError, match="at most"):
        guarded.ask(COUNT, spend=6)
    assert guarded.ledger.requests == ()


@pytest.mark.slow
def test_an_analyst_cannot_fill_the_ledger_with_requests():
    guarded = opened(approval_above="0.1")
    for i in range(100):
        with pytest.raises(BudgetError, match="waits for"):
            guarded.ask(f"{COUNT} WHERE age > {i}", spend=1)
    with pytest.raises(BudgetError, match="100 questions wait"):
        guarded.ask(f"{COUNT} WHERE age > 100", spend=1)
    assert len(guarded.ledger.requests) == 100


def test_an_approval_is_an_entry_that_cannot_be_forged(tmp_path):
    data = opened(approval_above="0.1", ledger=tmp_path / "l")
    with pytest.raises(BudgetError) as fault:
        data.ask(COUNT, spend=1)
    data.ledger.approve(name_of(fault), why="agreed")
    assert [(b["kind"], b.get("act")) for b in data.ledger.history] == [
        ("open", None),
        ("request", None),
        ("act", "approve"),
    ]
    data.ledger.close()
    with sqlite3.connect(tmp_path / "l") as connection:
        connection.execute("DROP TRIGGER IF EXISTS ledger_entries_update")
        for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f'DROP TRIGGER "{trigger}"')
        connection.execute("UPDATE ledger_entries SET body = replace(body, 'approve', 'decline') WHERE number = 3")
    connection.close()
    with pytest.raises(PrivacyError, match="Entry 3"):
        open_ledger(tmp_path / "l").verify()


def test_many_threads_are_charged_once(guarded):
    with pytest.raises(BudgetError) as fault:
        guarded.ask(COUNT, spend=1)
    guarded.ledger.approve(name_of(fault))
    found = []
    threads = [threading.Thread(target=lambda: found.append(guarded.ask(COUNT, spend=1).rows())) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert found == found[:1] * 6
    assert spent(guarded) == Fraction("1")


@pytest.mark.slow
def test_purchases_and_streams_wait_as_well():
    data = opened(approval_above="0.1", columns={"age": {"bounds": "private"}})
    for act in (lambda: data.bounds("age", spend=1), lambda: data.stream(nz.Above(10, positives=1), spend=1)):
        with pytest.raises(BudgetError, match="waits for") as fault:
            act()
        data.ledger.approve(name_of(fault))
        act()
    assert spent(data) == Fraction("2")


# Small differences


def shown(answer):
    return [n is not None for n in answer["n"].values.to_pylist()]


def test_a_filter_that_leaves_out_few_people_is_suppressed():
    data = opened(minimum_frequency=2, least_difference=40)
    assert shown(data.ask(COUNT, spend=4)) == [True]
    assert shown(data.ask(f"{COUNT} WHERE id > 3", spend=4)) == [False]


@pytest.mark.slow
def test_filters_that_differ_by_one_condition_and_few_people_are_suppressed():
    data = opened(minimum_frequency=2, least_difference=40)
    assert shown(data.ask(COUNT, spend=4)) == [True]
    assert shown(data.ask(f"{COUNT} WHERE id > 3", spend=4)) == [False]
    assert shown(data.ask(f"{COUNT} WHERE age < 45", spend=4)) == [True]  # many differ
    assert shown(data.ask(f"{COUNT} WHERE age < 45 AND id > 3", spend=4)) == [False]
    assert shown(data.ask(f"{COUNT} WHERE age < 45 AND id > 3", spend=4)) == [False]  # and stays so
    assert shown(data.ask(COUNT, spend=4)) == [True]  # the earlier one stays, too
    assert shown(data.ask(f"{COUNT} WHERE age < 46 AND id > 2", spend=4)) == [True]  # two conditions: beyond the rule


@pytest.mark.slow
def test_small_differences_are_found_group_by_group_and_by_key():
    data = opened(minimum_frequency=2, least_difference=40)
    data.ask(BY_WARD, spend=4)
    assert shown(data.ask(f"{BY_WARD[:-14]} WHERE id > 9 GROUP BY ward", spend=4)) == [False, False, False]
    by_code = "SELECT code, COUNT(*) AS n FROM visits {} GROUP BY code"
    data.ask(by_code.format(""), spend=(4, "1e-7"))
    later = data.ask(by_code.format("WHERE id < 100 OR code = 'c1'"), spend=(4, "1e-7"))
    assert later["code"].values.to_pylist() == ["c0"]  # the other group is the same as before


@pytest.mark.slow
@pytest.mark.parametrize("stored", [False, True])
def test_a_question_that_runs_at_the_same_time_is_not_missed(stored, tmp_path, monkeypatch):
    """The first is charged, the second one is answered, then the first one is kept: it is the later one."""
    data = opened(minimum_frequency=2, least_difference=40, ledger=tmp_path / "l" if stored else None)
    curator, draw, answers = type(data), type(data)._draw, []

    def slow(self, offer, schema):
        monkeypatch.setattr(curator, "_draw", draw)
        answers.append(data.ask(f"{COUNT} WHERE id > 3", spend=4))
        return draw(self, offer, schema)

    monkeypatch.setattr(curator, "_draw", slow)
    answers.append(data.ask(COUNT, spend=4))
    assert [shown(answer) for answer in answers] == [[True], [False]]
    again = [data.ask(question, spend=4) for question in (f"{COUNT} WHERE id > 3", COUNT)]
    assert [shown(answer) for answer in again] == [[True], [False]]


@pytest.mark.slow
def test_both_are_suppressed_if_both_are_kept_before_either_decides(monkeypatch):
    data = opened(minimum_frequency=2, least_difference=40)
    drawn, answers = AnswerCache.drawn, []

    def slow(self, *given, **named):
        found = drawn(self, *given, **named)
        monkeypatch.setattr(AnswerCache, "drawn", drawn)
        if not answers:
            answers.append(data.ask(f"{COUNT} WHERE id > 3", spend=4))
        return found

    monkeypatch.setattr(AnswerCache, "drawn", slow)
    answers.append(data.ask(COUNT, spend=4))
    assert [shown(answer) for answer in answers] == [[False], [False]]


@pytest.mark.slow
def test_a_decision_that_was_changed_is_an_error(monkeypatch):
    data = opened(minimum_frequency=2, least_difference=40)
    data.ask(COUNT, spend=4)
    monkeypatch.setattr(type(data.ledger), "latest", lambda self, key: (0, b"none"))
    with pytest.raises(PrivacyError, match="was changed"):
        data.ask(COUNT, spend=4)


@pytest.mark.slow
def test_the_rule_reads_what_was_released_and_survives_the_process(tmp_path):
    data = opened(minimum_frequency=2, least_difference=40, ledger=tmp_path / "l")
    data.ask([COUNT, BY_WARD], spend=8)
    answer = data.ask(f"{COUNT} WHERE id > 3", spend=4)
    assert shown(answer) == [False]
    assert answer.record["rules"]["least_difference"] == "40"
    assert any("one condition more or less are suppressed" in one for one in answer.caveats)
    data.ledger.verify()
    data.ledger.close()
