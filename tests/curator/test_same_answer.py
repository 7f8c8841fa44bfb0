"""The same question gets the same answer for free; another one is paid for, before anything is drawn."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction

import pytest
from tests.curator.clinic import opened, watch

import noisette as nz
from noisette.curator.answer_cache import AnswerCache
from noisette.errors import BudgetError, InputError, PrivacyError
from noisette.ledger import Memory

BASE = "SELECT ward, COUNT(*) AS n, AVG(age) AS a FROM visits WHERE age >= 18 AND cost < 900 GROUP BY ward"
SAME = {
    "space and case": "select  ward,\n\tcount( * ) as n, avg(AGE) as a from VISITS "
    "where age>=18 and cost<900 group by WARD",
    "comment": BASE + " -- the same",
    "other names": BASE.replace("AS n", "AS many").replace("AS a ", "AS mean "),
    "alias of the table": "SELECT v.ward, COUNT(*) AS n, AVG(v.age) AS a FROM visits AS v "
    "WHERE v.age >= 18 AND v.cost < 900 GROUP BY v.ward",
    "order of conditions": BASE.replace("age >= 18 AND cost < 900", "cost < 900 AND age >= 18"),
    "sides of conditions": BASE.replace("age >= 18 AND cost < 900", "18 <= age AND 900 > cost"),
    "order of columns": BASE.replace("ward, COUNT(*) AS n, AVG(age) AS a", "AVG(age) AS a, ward, COUNT(*) AS n"),
    "having": BASE + " HAVING n > 0",
    "order by": BASE + " ORDER BY n DESC",
    "limit": BASE + " ORDER BY ward LIMIT 1",
    "arithmetic": BASE.replace("AVG(age) AS a", "AVG(age) AS a, 2 * AVG(age) + 1 AS b"),
    "number": BASE.replace("18", "18.0"),
}
OTHER = {
    "condition": BASE.replace("18", "19"),
    "aggregate": BASE.replace("AVG(age)", "AVG(cost)"),
    "one more": BASE.replace("COUNT(*) AS n", "COUNT(*) AS n, SUM(cost) AS s"),
    "no groups": "SELECT COUNT(*) AS n, AVG(age) AS a FROM visits WHERE age >= 18 AND cost < 900",
    "more rows": BASE.replace(" AND cost < 900", ""),
}


def by_ward(release):
    """The numbers of each ward, whatever the columns are called; their bars are wider where rows are selected."""
    plain = [column.name for column in release.columns if column.measured]
    return {row["ward"]: {row[name] for name in plain} - {None} for row in release.rows()}


def test_the_answer_that_was_kept_first_is_given(monkeypatch):
    """Two processes that ask at once draw both, and the second gives what the first one kept."""
    curator = opened(nz.Pure(1))
    first = by_ward(curator.sql(BASE, spend="1e-6"))
    curator._answers = AnswerCache()
    monkeypatch.setattr(curator.ledger, "answer", lambda key: None)  # as it was when the second one looked
    assert by_ward(curator.sql(BASE, spend="1e-6")) == first  # other noise is the same with p < 1e-12
    assert len(curator.ledger.entries) == 1


def test_each_analyst_pays_for_an_answer():
    curator = opened(nz.Pure(1))
    curator.ledger = Memory(nz.Pure(1), shares={"ana": nz.Pure(1), "bob": nz.Pure(1)})
    for analyst in ("ana", "bob", "ana"):
        curator.sql(BASE, spend="1/4", analyst=analyst)
    assert [entry.analyst for entry in curator.ledger.entries] == ["ana", "bob"]


def test_data_that_were_opened_for_one_analyst_answer_no_other():
    curator = opened(nz.Pure(1), analyst="ana")
    with pytest.raises(InputError, match="were opened for ana"):
        curator.sql(BASE, spend="1/4", analyst="bob")


def test_a_spend_under_another_relation_is_refused():
    curator = opened(nz.Pure(1))
    with pytest.raises(PrivacyError, match="replace"):
        curator.sql(BASE, spend=nz.Pure("1/4", neighbours=nz.Neighbours.REPLACE))
    assert curator.ledger.entries == ()


def test_an_answer_under_another_relation_is_another_one():
    curator = opened(nz.Pure(1))
    curator.sql(BASE, spend="1/4")
    curator.policy = replace(curator.policy, neighbours=nz.Neighbours.REPLACE)
    with pytest.raises(PrivacyError, match="replace"):
        curator.sql(BASE, spend="1/4")


@pytest.fixture(scope="module")
def asked():
    """A curator that was asked already, its source, and the answer."""
    curator = opened(nz.Pure(100))
    source = watch(curator)
    return curator, source, by_ward(curator.sql(BASE, spend=1))


@pytest.mark.parametrize("name", SAME)
def test_the_same_question_is_free_and_has_the_same_numbers(asked, name):
    curator, source, first = asked
    before, computed = curator.budget.spent, source.computed
    again = by_ward(curator.sql(SAME[name], spend=1))
    assert (curator.budget.spent, source.computed) == (before, computed)
    assert again
    for ward, numbers in again.items():
        assert first[ward] <= numbers or (name == "having" and numbers <= first[ward])  # bars for all, so fewer answers


@pytest.mark.parametrize("name", OTHER)
def test_another_question_is_paid_for(asked, name):
    curator, source, _ = asked
    before, computed = curator.budget.spent.epsilon, source.computed
    curator.sql(OTHER[name], spend=1)
    assert (curator.budget.spent.epsilon, source.computed) == (before + 1, computed + 1)


@pytest.mark.parametrize("spend", ["1/1000", 2])
def test_another_spend_is_paid_for(asked, spend):
    curator, source, _ = asked
    before, computed = curator.budget.spent.epsilon, source.computed
    curator.sql(BASE, spend=spend)
    assert (curator.budget.spent.epsilon, source.computed) == (before + Fraction(spend), computed + 1)


def test_another_spend_is_paid_for_and_noised_anew():
    curator = opened(nz.Pure(10))
    first, second = (curator.sql(BASE, spend=spend)["n"].values.to_pylist() for spend in (1, "1/1000"))
    assert curator.budget.spent.epsilon == 1 + Fraction(1, 1000)
    assert first != second  # alike with a chance far below 1e-9: noise of deviation above 1,000 on three counts


@pytest.mark.parametrize("spend", [1, 1.0, "1", "2/2", Fraction(1), nz.Pure(1)], ids=repr)
def test_a_spend_may_be_written_in_many_ways(asked, spend):
    curator, source, first = asked
    computed = source.computed
    assert by_ward(curator.sql(BASE, spend=spend)) == first
    assert source.computed == computed


def test_another_level_of_error_bars_is_free():
    curator = opened()
    narrow, wide = (curator.sql(BASE, spend=1, level=level) for level in (0.5, 0.99))
    assert narrow["n"].values == wide["n"].values
    assert (narrow["n"].low >= wide["n"].low).all()
    assert len(curator.ledger.entries) == 1


def test_frames_and_sql_share():
    curator = opened()
    frame = curator.table("visits").where("cost < 900").where("age >= 18").group_by("ward")
    asked = frame.agg(n="COUNT(*)", a="AVG(age)").release(spend=1)
    assert by_ward(asked) == by_ward(curator.sql(BASE, spend=1))
    assert len(curator.ledger.entries) == 1


def test_keys_in_another_order_are_the_same_groups():
    curator = opened()
    one = curator.sql("SELECT ward, smoker, COUNT(*) AS n FROM visits GROUP BY ward, smoker", spend=20)
    other = curator.sql("SELECT smoker, ward, COUNT(*) AS n FROM visits GROUP BY smoker, ward", spend=20)
    assert {(r["ward"], r["smoker"]): r["n"] for r in one.rows()} == {
        (r["ward"], r["smoker"]): r["n"] for r in other.rows()
    }
    assert len(curator.ledger.entries) == 1


def test_a_batch_in_another_order_is_the_same_batch():
    texts = [f"SELECT COUNT(*) AS n FROM visits WHERE ward = '{ward}' AND age > 30" for ward in ("north", "south")]
    texts += ["SELECT SUM(cost) AS n FROM visits"]
    curator = opened()
    first = [release["n"].values.to_pylist() for release in curator.ask(texts, spend=1)]
    again = [release["n"].values.to_pylist() for release in curator.ask(texts[::-1], spend=1)]
    assert first == again[::-1]
    assert len(curator.ledger.entries) == 1


@pytest.mark.slow
def test_a_batch_pays_once():
    curator = opened(nz.Pure(10))
    curator.ask([BASE, OTHER["condition"], OTHER["no groups"]], spend=1)
    assert curator.budget.spent.epsilon <= 1
    assert len(curator.ledger.entries) == 1
    one, two = curator.ask([BASE, BASE], spend=2)
    assert one.to_arrow() == two.to_arrow()


# Charge first, then draw


def test_a_charge_stands_before_data_is_touched():
    curator = opened(nz.Pure(10))
    compute, seen = curator._source.aggregate, []

    def spying(*arguments):
        seen.append(curator.budget.spent.epsilon)
        return compute(*arguments)

    curator._source.aggregate = spying
    curator.sql(BASE, spend=3)
    assert seen == [3]


def test_a_budget_that_does_not_hold_the_cost_touches_no_data():
    curator = opened(nz.Pure("0.5"))
    source = watch(curator)
    with pytest.raises(BudgetError):
        curator.sql(BASE, spend=1)
    assert source.computed == 0
    assert curator.budget.spent.epsilon == 0
    assert curator.ledger.entries == ()
    assert not curator.explain(BASE, spend=1).allowed
    curator.sql(BASE, spend="0.5")


def test_explain_is_free():
    curator = opened(nz.Pure(1))
    source = watch(curator)
    assert curator.explain(BASE, spend=1).allowed
    curator.explain("SELECT COUNT(*) FROM visits", error=50)
    assert source.computed == 0
    assert curator.budget.spent.epsilon == 0


# Arithmetic of the budget


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("budget", "spend"),
    [(nz.Pure(1), nz.Pure("1/10")), (nz.ZCDP(1), nz.ZCDP("1/10")), (nz.Approx(1, "1e-6"), nz.Pure("1/10"))],
    ids=["pure", "zcdp", "approx"],
)
def test_ten_tenths_fit(budget, spend):
    curator = opened(budget)
    for age in range(10):
        curator.sql(f"SELECT COUNT(*) FROM visits WHERE age > {age}", spend=spend)
    if not isinstance(budget, nz.Approx):
        with pytest.raises(BudgetError):
            curator.sql("SELECT COUNT(*) FROM visits WHERE age > 10", spend=spend)
        assert curator.budget.left <= type(budget)("1e-9")  # noise is rounded up, so a crumb may be left
    assert [entry.number for entry in curator.ledger.entries] == list(range(1, len(curator.ledger.entries) + 1))


def test_about_how_many_more():
    curator = opened(nz.Pure(1))
    assert curator.budget.more is None
    curator.sql(BASE, spend="1/10")
    assert curator.budget.more == 9


@pytest.mark.parametrize("spend", [nz.Approx(1, "1e-6"), nz.ZCDP("0.1")], ids=str)
def test_a_pure_budget_is_not_spent_on_less_than_pure_noise(spend):
    curator = opened(nz.Pure(1), rows=None, groups=40, rows_per_group=1)
    source = watch(curator)
    with pytest.raises(PrivacyError):
        curator.sql("SELECT age, COUNT(*) FROM visits GROUP BY age", spend=spend)
    assert source.computed == 0
    assert curator.budget.spent.epsilon == 0


# Threads


@pytest.mark.slow
def test_threads_cannot_spend_more_than_there_is():
    curator = opened(nz.Pure(1))

    def asks(age):
        try:
            curator.sql(f"SELECT COUNT(*) FROM visits WHERE age > {age}", spend="1/10")
        except BudgetError:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(asks, range(16))) == 10
    assert curator.budget.spent.epsilon == 1
    assert len(curator.ledger.entries) == 10


def test_threads_that_ask_the_same_pay_once():
    curator = opened(nz.Pure(1))
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: curator.sql(BASE, spend=1)["n"].values.to_pylist(), range(16)))
    assert len(set(map(tuple, answers))) == 1
    assert len(curator.ledger.entries) == 1
