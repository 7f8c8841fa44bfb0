"""Functions asked through a curator: which rows they get, what is told, what is refused, a model on real data."""

import os
import re

import numpy as np
import pyarrow
import pytest
from tests import services

import noisette as nz
from noisette.errors import InputError, NoisetteError
from noisette.questions.apply import Apply
from noisette.sandbox import running

pytest.importorskip("cloudpickle")
pytestmark = pytest.mark.skipif(running.machine() is None, reason="functions are run on Linux only")

N, WARDS = 300, ["east", "north", "south"]
VISITS = pyarrow.table(
    {
        "patient": [f"p{i // 3}" for i in range(N)],
        "age": np.arange(N) % 90,
        "ward": [WARDS[i % 3] for i in range(N)],
    }
)
COLUMNS = {"age": {"bounds": [0, 100], "nullable": False}, "ward": {"keys": WARDS}, "patient": {"nullable": False}}
PLACES = pyarrow.table({"ward": WARDS, "floor": [1, 2, 3]})
PUBLIC = {"public": True, "columns": {"floor": {"bounds": [1, 3]}, "ward": {"keys": WARDS}}}
SMALL = {"seconds": 0.6, "memory": "256 MiB"}


@pytest.fixture(scope="module")
def curator():
    tables = {"visits": {"unit": "patient", "rows": 3, "columns": COLUMNS}, "places": PUBLIC}
    data = {"visits": VISITS, "places": PLACES}
    return nz.open(data, budget=nz.Approx(10**6, "1e-3"), policy={"tables": tables})


def size(rows):
    return rows.num_rows


def asked(curator, function, spend=10**5, **options):
    return curator.ask(Apply(function, **{"blocks": 2, **SMALL, **options}), spend=spend)


def number(answer, name="value"):
    return answer[name].values[0].as_py()


@pytest.mark.slow
def test_blocks_hold_all_rows_each_once(curator):
    answer = asked(curator, size, blocks=4, bounds=(0, N))
    assert number(answer) * 4 == pytest.approx(N, abs=0.5)


@pytest.mark.slow
def test_overlapping_blocks_hold_all_rows_as_often_as_asked(curator):
    def seen(rows):
        counts = np.unique(np.array(rows["patient"].to_pylist()), return_counts=True)[1]
        return [rows.num_rows, float((counts == 3).all())]

    answer = asked(
        curator, seen, blocks=4, each=3, columns=["patient"], outputs=["n", "whole"], bounds=[(0, N), (0, 1)]
    )
    assert number(answer, "n") * 4 == pytest.approx(3 * N, abs=0.5)
    assert round(number(answer, "whole")) == 1


def test_how_often_a_unit_comes_is_part_of_the_question_and_of_its_noise(curator):
    once, thrice = (Apply(size, blocks=20, each=each, bounds=(0, 50), **SMALL) for each in (1, 3))
    offers = [q.offer(curator.schema, nz.Pure(1), nz.Neighbours.ADD_REMOVE, 0.95) for q in (once, thrice)]
    assert offers[0].text != offers[1].text
    assert repr(thrice) == "Apply(size, blocks=20, aggregate='mean', each=3)"
    assert "mean of 20 blocks by 7.5" in repr(curator.explain(thrice, spend=1))
    assert offers[1].why == "Laplace noise on the mean over 20 blocks, 3 of which hold a unit."
    widths = [offer.expected()[0][0].half_width for offer in offers]
    assert widths[1] == pytest.approx(3 * widths[0], rel=1e-3)


def test_too_few_votes_for_a_stable_mode_are_named(curator):
    few, enough = (Apply(size, blocks=m, each=2, aggregate="stable", **SMALL) for m in (20, 200))
    spend = nz.Approx(1, "1e-6")
    assert "20 votes are too few" in repr(curator.explain(few, spend=spend))
    assert "too few" not in repr(curator.explain(enough, spend=spend))


@pytest.mark.slow
def test_all_rows_of_a_unit_are_together_and_the_unit_is_not_shown(curator):
    def together(rows):
        counts = np.unique(np.array(rows["patient"].to_pylist()), return_counts=True)[1]
        return [float((counts == 3).all()), float(rows.column_names == ["patient"])]

    answer = asked(curator, together, columns=["patient"], outputs=["together", "alone"], bounds=(0, 1))
    assert [round(number(answer, name)) for name in ("together", "alone")] == [1, 1]

    def hidden(rows):
        return float(rows.column_names == ["age", "ward"])

    assert round(number(asked(curator, hidden, bounds=(0, 1)))) == 1


@pytest.mark.slow
def test_rows_of_a_frame_with_joins_and_conditions(curator):
    of = curator.table("visits").where("age >= 45").join(curator.table("places"), on="ward")

    def checked(rows):
        ages, floors = rows["age"].to_numpy(), rows["floor"].to_pylist()
        right = [WARDS.index(ward) + 1 for ward in rows["ward"].to_pylist()] == floors
        return [float(ages.min() >= 45), float(right), len(ages)]

    answer = asked(curator, checked, of=of, outputs=["old", "joined", "n"], bounds=[(0, 1), (0, 1), (0, N)])
    old = int((VISITS["age"].to_numpy() >= 45).sum())
    assert [round(number(answer, name)) for name in ("old", "joined")] == [1, 1]
    assert 2 * number(answer, "n") == pytest.approx(old, abs=1)


def test_the_same_question_is_free_and_another_function_is_not(curator):
    first = Apply(size, blocks=2, bounds=(0, N), **SMALL)
    again = Apply(size, blocks=2, bounds=(0, N), **SMALL)
    other = Apply(lambda rows: rows.num_rows, blocks=2, bounds=(0, N), **SMALL)
    answer, spent = curator.ask(first, spend=3), repr(curator.budget)
    assert curator.ask(again, spend=3).rows() == answer.rows()
    assert repr(curator.budget) == spent
    texts = {q.offer(curator.schema, nz.Pure(3), nz.Neighbours.ADD_REMOVE, 0.95).text for q in (first, again, other)}
    assert len(texts) == 2


def test_explanations_show_each_number_and_what_failures_count_as(curator):
    question = Apply(size, blocks=20, outputs=["a", "b"], bounds=[(0, 1), (0, 50)], default=[0, 25], **SMALL)
    shown = " ".join(repr(curator.explain(question, spend=1)).split())
    for part in (
        "Laplace noise",
        "a block that fails counts as 25",
        "not how much the blocks differ",
        "mean of 20 blocks by 2.5",
    ):
        assert part in shown


@pytest.mark.slow
def test_rows_that_are_units_by_themselves():
    data = pyarrow.table({"x": np.arange(50)})
    table = {"tables": {"t": {"columns": {"x": {"bounds": [0, 50], "nullable": False}}}}}
    curator = nz.open({"t": data}, budget=10**6, policy=table)
    answer = asked(curator, lambda rows: float(rows["x"].to_numpy().sum()), bounds=(0, 2000))
    assert 2 * number(answer) == pytest.approx(49 * 25, abs=1)


@pytest.mark.slow
def test_labels(curator):
    def often(rows):
        return max(WARDS, key=rows["ward"].to_pylist().count)

    only = curator.table("visits").where("ward = 'south'")
    answer = asked(curator, often, of=only, aggregate="mode", labels=WARDS)
    assert number(answer, "label") == "south"
    spend = nz.Approx(1000, "1e-6")
    assert number(asked(curator, often, of=only, aggregate="stable", blocks=8, spend=spend), "label") == "south"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"blocks": 0}, "blocks"),
        ({"blocks": 1}, "blocks"),
        ({"blocks": 2.5}, "blocks"),
        ({"blocks": 10**6}, "10,000"),
        ({"each": 0}, "each"),
        ({"each": -1}, "each"),
        ({"each": 1.5}, "each"),
        ({"each": True}, "each"),
        ({"each": "2"}, "each"),
        ({"each": None}, "each"),
        ({"each": 6}, "at most the number of blocks"),
        ({"bounds": (1, 0)}, "low below high"),
        ({"bounds": None}, "bounds"),
        ({"bounds": (0, float("nan"))}, "high"),
        ({"bounds": [(0, 1)], "outputs": 2}, "one for each output"),
        ({"outputs": 0}, "outputs"),
        ({"outputs": ["a", "a"]}, "different names"),
        ({"outputs": ["a_low"]}, "_low"),
        ({"default": 2}, "within the bounds"),
        ({"default": [0, 1]}, "default"),
        ({"aggregate": "max"}, "one of mean"),
        ({"labels": ["a", "b"]}, "labels"),
        ({"aggregate": "mode"}, "bounds"),
        ({"aggregate": "mode", "bounds": None}, "list them"),
        ({"aggregate": "mode", "bounds": None, "labels": ["a"]}, "at least two"),
        ({"aggregate": "stable", "bounds": None, "default": ""}, "text of at most"),
        ({"seconds": 0}, "seconds"),
        ({"memory": "1 GB"}, "MiB"),
        ({"memory": 1000}, "MiB"),
        ({"columns": "age"}, "columns"),
        ({"modules": [1]}, "modules"),
    ],
)
def test_bad_options_get_one_sentence(options, message):
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        Apply(size, **{"blocks": 5, "bounds": (0, 1), **options})
    assert str(caught.value).endswith(".")


@pytest.mark.slow
def test_what_cannot_be_asked_costs_nothing(curator):
    before = repr(curator.budget)
    wrong = [
        Apply(size, blocks=5, bounds=(0, 1), columns=["nothing"]),
        Apply(size, blocks=5, bounds=(0, 1), of=curator.table("places")),
        Apply(size, blocks=5, bounds=(0, 1), modules=["no_such_module"]),
        Apply(size, blocks=5, bounds=(0, 1), memory=2**50),
        Apply(size, blocks=5, aggregate="stable"),
    ]
    for question in wrong:
        with pytest.raises(NoisetteError):
            curator.ask(question, spend=1)
    with pytest.raises(InputError, match="function"):
        Apply("age", blocks=5, bounds=(0, 1))
    with pytest.raises(InputError, match="rows, not groups"):
        Apply(size, blocks=5, bounds=(0, 1), of=curator.table("visits").group_by("ward"))
    assert repr(curator.budget) == before


@pytest.mark.slow
def test_rehearsals_and_advice():
    question = Apply(size, blocks=5, bounds=(0, 1000), **SMALL)
    assert question.rehearse(VISITS) == N
    broken = Apply(lambda rows: rows["salary"], blocks=5, bounds=(0, 1), **SMALL)
    with pytest.raises(InputError, match="KeyError"):
        broken.rehearse(VISITS)
    advice = question.advise(2_000, spend=1)
    blocks, each, errors, _ = zip(*advice.rows, strict=True)
    assert blocks == (5, 10, 20, 50, 100, 200, 500, 1_000)
    assert [m * n for m, n in zip(blocks, each, strict=True)] == [2_000] * 8
    assert [error * m for m, error in zip(blocks, errors, strict=True)] == pytest.approx(
        [1000 * np.log(20)] * 8, rel=1e-3
    )
    assert "A usual number is 21 blocks." in repr(advice)
    with pytest.raises(InputError, match="fewer blocks"):
        question.advise(8, spend=1)


def test_advice_for_overlapping_blocks_and_for_votes():
    means = {each: Apply(size, blocks=100, each=each, bounds=(0, 1000), **SMALL) for each in (1, 5)}
    apart, overlapping = (means[each].advise(2_000, spend=1) for each in (1, 5))
    errors = [{m: (n, error) for m, n, error, _ in advice.rows} for advice in (apart, overlapping)]
    for m in (100, 200, 1_000):  # five times as many blocks of the same size, the same noise
        assert errors[1][5 * m] == pytest.approx(errors[0][m], rel=1e-3)
    assert overlapping.rows[-1][0] == 5_000
    assert "A unit is in 5 of them" in repr(overlapping)
    assert "A unit is in" not in repr(apart)
    assert overlapping.usual == pytest.approx(5 * apart.usual, abs=3)

    votes = Apply(size, blocks=100, aggregate="stable", **SMALL).advise(2_000, spend=nz.Approx(1, "1e-6"))
    leads = {m: lead for m, _, lead, _ in votes.rows}
    assert leads[20] > 1 > leads[100]
    assert leads[50] * 50 == leads[200] * 200
    shown = repr(votes)
    for part in ("none", "30.0% of votes", "Where two thirds of the blocks agree, 100 are enough.", "too few"):
        assert part in shown
    with pytest.raises(InputError, match="fewer blocks"):
        means[5].advise(30, spend=1)


@pytest.mark.slow
def test_coefficients_of_a_model_of_real_people(monkeypatch):
    monkeypatch.setenv("NOISETTE_PARALLEL", str(min(2, len(os.sched_getaffinity(0)))))
    pytest.importorskip("sklearn", reason="the model is one of scikit-learn")
    adult = services.optional("data/adult.csv")
    names, high = ["age", "education-num", "hours-per-week"], [84, 15, 98]
    columns = {n: {"type": "integer", "bounds": [0, t], "nullable": False} for n, t in zip(names, high, strict=True)}
    columns["income>50K"] = {"type": "integer", "bounds": [0, 1], "nullable": False}
    curator = nz.open({"adult": str(adult)}, budget=100, policy={"tables": {"adult": {"columns": columns}}})

    def coefficients(rows):
        from sklearn.linear_model import LogisticRegression

        x = np.column_stack([rows[name].to_numpy() / top for name, top in zip(names, high, strict=True)])
        return LogisticRegression(C=100).fit(x, rows["income>50K"].to_numpy()).coef_[0]

    quoted = [f'"{name}"' for name in (*names, "income>50K")]
    question = Apply(
        coefficients, blocks=20, columns=quoted, outputs=names, bounds=(-10, 20), seconds=1.5, memory="512 MiB"
    )
    from pyarrow import csv

    plain = coefficients(csv.read_csv(adult))
    answer = curator.ask(question, spend=20)
    found = [number(answer, name) for name in names]
    half = [float(answer[name].high[0] - answer[name].low[0]) / 2 for name in names]
    assert all(h < 1 for h in half)
    assert found == pytest.approx(plain, abs=2.5)  # the noise, and what small blocks err
