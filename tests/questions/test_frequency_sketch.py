"""The question `FrequencySketch`: its value goes on answering, its noise is that of all rows of a unit."""

import json

import numpy as np
import pyarrow
import pytest

import noisette as nz
from noisette.errors import InputError

ADD_REMOVE, REPLACE = nz.Neighbours.ADD_REMOVE, nz.Neighbours.REPLACE


@pytest.fixture
def data():
    people = np.arange(3000)
    names = np.where(people % 10 < 7, "oak", np.where(people % 10 < 9, "ash", "elm"))
    table = pyarrow.table({"who": people, "tree": names, "height": people % 7})
    return nz.open({"trees": table}, budget=1000, policy={"tables": {"trees": {"unit": "who", "rows": 2}}})


def test_the_value_estimates_any_key(data):
    answer = data.ask(nz.FrequencySketch("tree"), spend=20)
    found = answer.value.estimate(["oak", "ash", "elm", "yew"]).to_pydict()
    assert found["count"] == pytest.approx([2100, 600, 300, 0], abs=10)
    for name, low, high, true in zip(
        *(found[k] for k in ("key", "count_low", "count_high")), [2100, 600, 300, 0], strict=True
    ):
        assert low <= true <= high, name
    assert len(data.budget.entries) == 1
    assert (answer.value.cells.ravel() == answer["count"].values.to_numpy()).all()
    assert answer.plot().title.startswith("Largest cells")


def test_whole_numbers_and_dates_are_keys_too(data):
    found = data.ask(nz.FrequencySketch("height"), spend=50).value.estimate(range(8))["count"].to_pylist()
    assert found == pytest.approx([3000 / 7] * 7 + [0], abs=5)


def test_rows_of_a_unit_are_bounded_and_paid_for(data):
    offer = nz.FrequencySketch("tree", depth=3).offer(data.schema, nz.Pure(1), ADD_REMOVE, 0.95)
    assert offer.parts[0]["sensitivity"] == {"l0": 6, "l1": "6", "l2_squared": "12", "linf": "2"}
    assert offer.procedure.noise.scale == 6
    other = nz.FrequencySketch("tree", depth=3).offer(data.schema, nz.Pure(1), REPLACE, 0.95)
    assert other.parts[0]["sensitivity"] == {"l0": 12, "l1": "12", "l2_squared": "48", "linf": "4"}


def test_what_changes_an_answer_changes_the_text(data):
    asked = [nz.FrequencySketch("tree", **more) for more in ({}, {"width": 512}, {"depth": 3}, {"key": 1})]
    assert len({one.offer(data.schema, nz.Pure(1), ADD_REMOVE, 0.95).text for one in asked}) == 4


def test_the_sketch_is_kept_with_the_answer(data):
    first = data.ask(nz.FrequencySketch("tree", width=64), spend=1)
    assert (first.value.cells == data.ask(nz.FrequencySketch("tree", width=64), spend=1).value.cells).all()
    assert nz.answers.check(first.to_json()) == nz.Pure(1, neighbours=ADD_REMOVE)
    assert json.loads(first.to_json())["mechanisms"][0]["mechanism"] == "Geometric"


@pytest.mark.parametrize("wrong", [{"depth": 2}, {"width": 1}, {"key": -1}], ids=str)
def test_shapes_that_cannot_be_are_refused(data, wrong):
    with pytest.raises(InputError):
        data.ask(nz.FrequencySketch("tree", **wrong), spend=1)
    assert len(data.budget.entries) == 0


def test_sketches_of_two_curators_merge(data):
    asked = nz.FrequencySketch("tree", width=256)
    others = pyarrow.table({"who": range(500), "tree": ["oak"] * 500})
    other = nz.open({"trees": others}, budget=100, policy={"tables": {"trees": {"unit": "who", "rows": 1}}})
    merged = data.ask(asked, spend=20).value.merge(other.ask(asked, spend=20).value)
    assert len(merged.noises) == 2
    assert merged.estimate(["oak"])["count"].to_pylist() == pytest.approx([2600], abs=10)
