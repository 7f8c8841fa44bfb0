"""A minimum frequency and rounding: kept by every answer, explained before, recorded after."""

import json
from fractions import Fraction

import numpy as np
import pyarrow
import pytest
from tests.contracts import test_questions as hospital
from tests.curator.ruled import BY_WARD, WARDS, opened, policy, refusal, spent, visits

import noisette as nz
from noisette.answers import Column
from noisette.answers.check import check
from noisette.curator.house import rounded
from noisette.errors import InputError
from noisette.questions.data import from_json

pytestmark = pytest.mark.slow_after(1)

# Minimum frequency


def test_a_filter_on_one_person_shows_nothing():
    """The chance that any of these is shown is at most 3e-6."""
    data = opened(minimum_frequency=5)
    for i in range(3):
        answer = data.ask(f"SELECT COUNT(*) AS n, SUM(age) AS s FROM visits WHERE id = {i}", spend=2)
        assert answer.rows() == [dict.fromkeys(("n", "n_low", "n_high", "s", "s_low", "s_high"))]
        assert answer["n"].values.null_count == 1


@pytest.mark.slow
def test_declared_groups_are_listed_as_suppressed_and_unknown_ones_are_absent():
    data = opened(minimum_frequency=20)
    declared = data.ask(BY_WARD, spend=2)
    assert [row["n"] is None for row in declared.rows()] == [True, False, True]
    assert declared["ward"].values.to_pylist() == WARDS
    assert "suppressed" in str(declared)
    assert "suppressed" in declared._repr_html_()
    unknown = data.ask("SELECT code, COUNT(*) AS n FROM visits GROUP BY code", spend=(2, "1e-6"))
    assert unknown["code"].values.to_pylist() == ["c0", "c1"]
    rare = data.ask("SELECT code, COUNT(*) AS n FROM visits WHERE id < 9 GROUP BY code", spend=(2, "1e-6"))
    assert len(rare) == 0


@pytest.mark.slow
def test_the_rule_is_explained_stated_and_recorded():
    data = opened(minimum_frequency=10)
    asked = "SELECT ward, AVG(age) AS a FROM visits GROUP BY ward"
    explained, answer = data.explain(asked, spend=1), data.ask(asked, spend=1)
    for text in (str(explained), str(answer)):
        assert "failure ≤ 1e-6" in text.splitlines()[0] + text
    sentences = answer.caveats
    assert explained.caveats == (sentences,)
    assert any("a group of fewer than 10 ids is shown with probability at most 1e-6" in one for one in sentences)
    record = json.loads(answer.to_json())
    assert record["rules"]["minimum_frequency"] == 10
    assert record["rules"]["failure"] == "1/1000000"
    assert check(answer.to_json()) <= nz.Pure(1)
    assert spent(data) == Fraction("1")
    plain = opened().ask(asked, spend=1)
    assert "rules" not in json.loads(plain.to_json())


def test_what_needs_the_number_of_people_releases_it_once():
    data = opened(minimum_frequency=10)
    assert data.explain(BY_WARD, spend=1).error == opened().explain(BY_WARD, spend=1).error
    said = " ".join(data.explain(BY_WARD, spend=1).caveats[0])
    assert "the rule costs nothing more" in said


OTHERS = ['{"histogram": "age"}', '{"mode": "ward"}', '{"cube": {"columns": ["ward", "age"]}}', '{"distinct": "ward"}']


@pytest.mark.parametrize("text", OTHERS)
def test_other_questions_are_refused_before_anything_is_spent(text):
    data, question = opened(minimum_frequency=10), from_json(text)
    for ask in (data.ask, data.explain):
        with pytest.raises(InputError, match="at least 10 ids behind every group"):
            ask(question, spend=1)
    with pytest.raises(InputError, match="cannot keep minimum_frequency"):
        data.stream(nz.Above(10, positives=1), spend=1)
    assert spent(data) == Fraction("0")


@pytest.mark.slow
def test_a_question_in_json_and_one_with_methods_keep_the_rule():
    data = opened(minimum_frequency=20)
    assert data.ask(from_json(json.dumps({"sql": BY_WARD})), spend=2)["n"].values.null_count == 2
    counted = data.ask(data.table("visits").group_by("ward").count(), spend=2)
    assert counted["count"].values.null_count == 2


@pytest.mark.slow
def test_every_other_question_is_refused_in_the_same_words():
    policy = {"tables": {"visits": hospital.RULES, "wards": hospital.PUBLIC}, "rules": {"minimum_frequency": 3}}
    data = nz.open(hospital.TABLES, budget=nz.Approx(9, "1e-4"), policy=policy)
    for name, question in hospital.EXAMPLES.items():
        if not name.endswith("0"):
            continue
        said = [refusal(data, question, spend) for spend in ((2, "1e-7"), 2)]
        if name.startswith("sql") or said == [None, said[1]]:
            assert name.split()[0] in ("sql", "top", "quantiles"), name  # the others ask what SQL asks
        else:
            assert any("at least 3 patient_ids" in str(one) or "keep minimum_frequency" in str(one) for one in said), (
                name
            )


def test_bounds_and_limits_are_sold_under_the_rule():
    data = opened(minimum_frequency=10, rounding=5, columns={"age": {"bounds": "private"}})
    assert data.bounds("age", spend=2)[1] > 60


def test_bought_keys_keep_the_rule():
    data = opened(minimum_frequency=50, columns={"ward": {"keys": "private", "nullable": False}})
    assert data.keys("ward", spend=(2, "1e-6")) == ["north"]


@pytest.mark.parametrize("relation", list(nz.Neighbours), ids=str)
def test_the_same_coins_show_the_same_groups_in_neighbours_where_noise_says_so(relation):
    """What is shown follows from the released number: no group is shown below its threshold."""
    data = nz.open(
        {"visits": visits()},
        policy={"budget": {"epsilon": 100, "neighbours": str(relation)}, **policy(minimum_frequency=3)},
    )
    for _ in range(3):
        answer = data.ask(BY_WARD, spend=Fraction(1, 2) + Fraction(1, 10) * data.budget.spent.epsilon)
        [least] = answer.record["rules"]["shown_from"]
        assert all(n is None or n >= least for n in answer["n"].values.to_pylist())


# Rounding


@pytest.mark.slow
def test_numbers_are_multiples_and_bars_are_wider():
    data, plain = opened(rounding=5), opened()
    answer, exact = data.ask(BY_WARD, spend=1), plain.explain(BY_WARD, spend=1)
    assert all(n % 5 == 0 for n in answer["n"].values.to_pylist())
    assert data.explain(BY_WARD, spend=1).error == exact.error + 2.5
    low, high = answer["n"].unmoved
    assert np.allclose(high - low, 2 * (exact.error + 2.5))
    assert answer.record["rules"] == {"rounding": "5"}
    assert any("rounded to multiples of 5, and error bars are wider by 2.5" in one for one in answer.caveats)
    assert check(answer.to_json())


@pytest.mark.parametrize("step", [Fraction(5), Fraction(1, 3), Fraction(1, 1000), Fraction(7)], ids=str)
def test_what_was_within_a_bar_is_within_the_rounded_one(step):
    chance = np.random.default_rng(7)
    values = chance.normal(0, 20, 500)
    low, high = values - chance.gamma(2, 4, 500), values + chance.gamma(2, 4, 500)
    [made] = rounded([Column("x", pyarrow.array(values), low, high).within((-10.0, 30.0))], step)
    unmoved = made.unmoved
    assert (unmoved[0] <= low + 1e-9).all()
    assert (unmoved[1] >= high - 1e-9).all()
    assert np.allclose(unmoved[1] - unmoved[0], high - low + float(step))
    printed = made.values.to_numpy() / float(step)
    assert np.allclose(printed, np.rint(printed))
    assert (made.low >= -10).all()


def chosen(**rules):
    tables = {"visits": {"unit": "id", "rows": "each question", "columns": {"age": {"bounds": [0, 100]}}}}
    return nz.open({"visits": visits()}, budget=900, policy={"tables": tables, "rules": rules})


@pytest.mark.slow
def test_a_question_that_chooses_its_limit_is_rounded():
    answer = chosen(rounding=5).sql("SELECT COUNT(*) AS n FROM visits", spend=2)
    assert answer["n"].values[0].as_py() % 5 == 0
    assert answer.caveats[0].startswith("Numbers are rounded to multiples of 5")
    explained = [
        chosen(**rules).explain("SELECT COUNT(*) AS n FROM visits", spend=2) for rules in ({}, {"rounding": 5})
    ]
    plain, wider = ({name: one.half_width for name, one in e.columns[0].by_limit.items()} for e in explained)
    assert {name: width + 2.5 for name, width in plain.items()} == wider


@pytest.mark.slow
def test_small_differences_are_suppressed_at_limits_that_were_chosen():
    """The chance that one of the first two is suppressed, or the third shown, is below 1e-9 at these spends."""
    data = chosen(minimum_frequency=5, least_difference=50)
    for clause, shown in (("", True), ("WHERE age < 45", True), ("WHERE age < 89", False)):
        answer = data.sql(f"SELECT SUM(age) AS s, COUNT(*) AS n FROM visits {clause}", spend=30)
        assert (answer["n"].values.null_count == 0) is shown
        assert any("as this question chose" in one for one in answer.caveats) is shown
    clipped = [data.sql(f"SELECT SUM(age) AS s FROM visits {one}", spend=30) for one in ("", "WHERE id <> 3")]
    assert [answer["s"].values.null_count for answer in clipped] == [0, 1]


@pytest.mark.slow
def test_a_histogram_is_rounded_and_does_not_go_on_answering():
    answer = opened(rounding=10).ask(nz.Histogram("age", bins=4), spend=1)
    assert answer.released is None
    assert all(float(n) % 10 == 0 for n in answer["n"].values.to_pylist())
    assert not hasattr(answer.value, "count")


def test_suppressed_and_unknown_numbers_stay_so():
    answer = opened(rounding=5, minimum_frequency=20).ask(BY_WARD, spend=2)
    assert [n is None for n in answer["n"].values.to_pylist()] == [True, False, True]
