"""Scores come from questions, and what one unit can do to them from the policy."""

import numpy as np
import pyarrow
import pytest

import noisette as nz
from noisette.errors import InputError

WARDS = ["east", "north", "south"]
N = 900
VISITS = pyarrow.table(
    {
        "patient": np.arange(N) // 3,
        "age": np.arange(N) % 90,
        "ward": [WARDS[0 if i % 10 < 6 else 1 if i % 10 < 9 else 2] for i in range(N)],
        "illness": ["flu" if i % 4 else f"illness {i}" for i in range(N)],
    }
)
COLUMNS = {
    "age": {"bounds": [0, 100], "nullable": False},
    "ward": {"keys": WARDS, "nullable": False},
    "patient": {"nullable": False},
}
LIMITS = {"unit": "patient", "rows": 3, "groups": 3, "rows_per_group": 3}


@pytest.fixture
def curator():
    policy = {"tables": {"visits": {**LIMITS, "columns": COLUMNS}}}
    return nz.open({"visits": VISITS}, budget=nz.Approx(10**6, "1e-4"), policy=policy)


@pytest.mark.slow
def test_with_much_epsilon_the_best_is_told(curator):
    assert curator.ask(nz.Mode("ward"), spend=1000).rows() == [{"ward": "east"}]
    assert curator.ask(nz.Top("ward", 3), spend=1000).rows() == [{"ward": ward} for ward in WARDS]
    old = nz.Choose([0, 50, 80], score=lambda age: f"SELECT COUNT(*) FROM visits WHERE age >= {age}")
    assert curator.ask(old, spend=1000).rows() == [{"chosen": 0}]
    sums = nz.Choose(WARDS, score=lambda ward: f"SELECT SUM(50 - age) FROM visits WHERE ward = '{ward}'")
    assert curator.ask(sums, spend=1000).rows() == [{"chosen": best_sum()}]


def best_sum():
    rows = VISITS.to_pylist()
    return max(WARDS, key=lambda ward: sum(50 - row["age"] for row in rows if row["ward"] == ward))


def test_the_most_frequent_of_unknown_keys_is_told_if_it_is_far_ahead(curator):
    assert curator.ask(nz.Mode("illness"), spend=nz.Approx(5, "1e-6")).rows() == [{"illness": "flu"}]
    rare = curator.table("visits").where("age < 2 AND illness <> 'flu'")
    assert curator.ask(nz.Mode("illness", of=rare), spend=nz.Approx(1, "1e-6")).rows() == []


@pytest.mark.slow
def test_the_top_of_unknown_keys_has_counts(curator):
    answer = curator.ask(nz.Top("illness", 2), spend=nz.Approx(5, "1e-6"))
    assert answer.rows()[0]["illness"] == "flu"
    assert [column.measured for column in answer.columns] == [False, True]


def test_scores_move_as_the_policy_says(curator):
    offer = nz.Choose([1, 2], score=lambda age: f"SELECT SUM(age - 40) FROM visits WHERE age > {age}").offer(
        curator.schema, nz.Pure(1), nz.Neighbours.ADD_REMOVE, 0.95
    )
    assert offer.procedure.scores.sensitivity(nz.Neighbours.ADD_REMOVE).linf == 3 * 60
    assert not offer.procedure.scores.monotone
    assert offer.procedure.mechanism.scale == 2 * 3 * 60  # both directions, three rows of up to 60


def test_counts_move_one_way_under_add_remove_and_both_ways_under_replace(curator):
    for relation, scale in ((nz.Neighbours.ADD_REMOVE, 3), (nz.Neighbours.REPLACE, 6)):
        offer = nz.Mode("ward").offer(curator.schema, nz.Pure(1), relation, 0.95)
        assert offer.procedure.mechanism.scale == scale


def test_nobody_can_understate_a_sensitivity(curator):
    def score(age):
        return f"SELECT COUNT(*) FROM visits WHERE age > {age}"

    with pytest.raises(InputError, match="by 3"):
        curator.ask(nz.Choose([1, 2], score=score, sensitivity=1), spend=1)
    curator.ask(nz.Choose([1, 2], score=score, sensitivity=3), spend=1)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 0 - COUNT(*) FROM visits",
        "SELECT AVG(age) FROM visits",
        "SELECT MEDIAN(age) FROM visits",
        "SELECT ward, COUNT(*) FROM visits GROUP BY ward",
        "SELECT COUNT(*), COUNT(*) FROM visits",
        "SELECT COUNT(*) AS n FROM visits HAVING n > 3",
    ],
)
def test_a_score_is_one_count_or_sum(curator, text):
    spent = curator.budget.spent
    with pytest.raises(InputError):
        curator.ask(nz.Choose([1, 2], score=lambda _: text), spend=1)
    assert curator.budget.spent == spent


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: nz.Choose([], score=str), "candidates"),
        (lambda: nz.Choose([1], score=str), "candidates"),
        (lambda: nz.Choose(5, score=str), "candidates"),
        (lambda: nz.Choose([1, 1], score=str), "twice"),
        (lambda: nz.Choose([1, 2], score="COUNT(*)"), "function"),
        (lambda: nz.Choose([1, 2], score=str, sensitivity=-1), "sensitivity"),
        (lambda: nz.Choose([1, 2], score=str, sensitivity=float("nan")), "sensitivity"),
    ],
)
def test_bad_candidates_are_refused_at_once(make, said):
    with pytest.raises(InputError, match=said):
        make()


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (lambda: nz.Top("ward", 4), "only 3"),
        (lambda: nz.Top("ward", 0), "k must"),
        (lambda: nz.Mode("illness"), "delta"),
        (lambda: nz.Mode("nothing"), "nothing"),
        (lambda: nz.Mode("ward", of="the visits"), "of must"),
        (lambda: nz.Choose([1, 2], score=lambda _: 3), "query in SQL"),
        (lambda: nz.Nearest("age", "age", place=(-5, 0), k=1), "place"),
        (lambda: nz.Nearest("age", "age", place=(5, 5), k=0), "k must"),
        (lambda: nz.Nearest("age", "ward", place=(5, 5), k=1), "whole numbers"),
        (lambda: nz.Nearest("age", "age", place=(5, 5), k=1, tell="name"), "tell"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_questions_are_refused_and_cost_nothing(curator, question, said):
    with pytest.raises(InputError, match=said):
        curator.ask(question(), spend=1)
    assert curator.budget.entries == ()


def test_the_same_question_in_other_words_is_free(curator):
    first = curator.ask(nz.Mode("ward"), spend=1)
    again = curator.ask(nz.Mode("ward", of=curator.table("visits")), spend=1)
    assert again.rows() == first.rows()
    assert len(curator.budget.entries) == 1


def test_distances_and_points_are_about_where_people_are(curator):
    near = nz.Nearest("age", "100 - age", place=(50, 50), k=100)
    [row] = curator.ask(near, spend=1000).rows()
    true = np.sort(np.hypot(VISITS["age"].to_numpy() - 50, 50 - VISITS["age"].to_numpy()))
    assert true[90] <= row["distance"] <= true[110] + 1
    [point] = curator.ask(nz.Nearest("age", "100 - age", place=(50, 50), k=100, tell="place"), spend=1000).rows()
    assert abs(np.hypot(point["x"] - 50, point["y"] - 50) - row["distance"]) < 3


def test_scores_on_different_grids_move_in_one_unit():
    """Tenths and whole numbers: three rows of up to 50 tenths, and three of up to 100."""
    data = pyarrow.table({"patient": np.arange(30) // 3, "pay": np.arange(30) / 10, "age": np.arange(30)})
    columns = {
        "pay": {"type": "real", "bounds": [0, 5], "grid": "1/10", "nullable": False},
        "age": {"bounds": [0, 100], "nullable": False},
    }
    policy = {"tables": {"visits": {**LIMITS, "columns": columns}}}
    curator = nz.open({"visits": data}, budget=10**6, policy=policy)
    mixed = nz.Choose(["pay", "age"], score=lambda name: f"SELECT SUM({name}) FROM visits")
    scores = mixed.offer(curator.schema, nz.Pure(1), nz.Neighbours.ADD_REMOVE, 0.95).procedure.scores
    assert scores.sensitivity(nz.Neighbours.ADD_REMOVE).linf * scores.unit == 300
    assert curator.ask(mixed, spend=10**5).rows() == [{"chosen": "age"}]


def test_unknown_keys_are_told_in_order():
    """An engine's own order of the groups would tell something about the table."""
    word = [f"{i * 7919 % 997:03}" for i in range(997)] * 60
    curator = nz.open({"words": pyarrow.table({"word": word})}, budget=nz.Approx(100, "1e-4"))
    answer = curator.sql("SELECT word, COUNT(*) AS n FROM words GROUP BY word", spend=nz.Approx(5, "1e-6"))
    told = [row["word"] for row in answer.rows()]
    assert len(told) > 900
    assert told == sorted(told)
