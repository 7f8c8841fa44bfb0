"""The question `HeavyHitters`: what it releases, what it costs, and that its record can be checked."""

import json
from types import SimpleNamespace

import numpy as np
import pyarrow
import pytest

import noisette as nz
from noisette.errors import InputError
from noisette.questions import heavy_hitters
from noisette.releases.sketches import hashing
from noisette.releases.sketches.misra_gries import MisraGries

ADD_REMOVE, REPLACE = nz.Neighbours.ADD_REMOVE, nz.Neighbours.REPLACE
SPEND = nz.Approx(5, "1e-6")


@pytest.fixture
def data():
    people = np.arange(6000)
    names = np.where(people % 10 < 7, "oak", np.where(people % 10 < 9, "ash", np.char.add("rare ", people.astype(str))))
    table = pyarrow.table({"who": people, "tree": names, "day": (people % 3).astype("datetime64[D]")})
    rules = {"tables": {"trees": {"unit": "who", "rows": 1}}}
    return nz.open({"trees": table}, budget=nz.Approx(1000, "1e-4"), policy=rules)


def test_frequent_values_are_released_and_rare_ones_are_not(data):
    answer = data.ask(nz.HeavyHitters("tree", memory=20), spend=SPEND)
    assert answer["tree"].values.to_pylist() == ["oak", "ash"]
    for low, high, true in zip(answer["count"].low, answer["count"].high, [4200, 1200], strict=True):
        assert low <= true <= high
    [known, hidden] = answer.value.estimate(["ash", "rare 9"]).to_pylist()
    assert known["count_low"] <= 1200 <= known["count_high"]
    assert hidden["count_low"] == 0 < hidden["count_high"]
    assert answer.plot().title.startswith("Frequent values")


class Shuffled:
    """A source that gives its groups in another order, as an engine may."""

    def __init__(self, source, order):
        self.source, self.order = source, order

    def aggregate(self, *asked):
        exact = self.source.aggregate(*asked)
        order = sorted(range(len(exact.keys)), key=lambda i: self.order(str(exact.keys.column(0)[i])))
        return SimpleNamespace(keys=exact.keys.take(order), measures=[np.asarray(m)[order] for m in exact.measures])


def collide(monkeypatch):
    """All values have one of two fingerprints."""

    def prints(values, key):
        return np.array([len(str(value)) % 2 for value in values], np.uint64)

    monkeypatch.setattr(hashing, "fingerprints", prints)


def test_values_that_collide_are_read_in_the_same_order_whatever_the_engine_does(data, monkeypatch):
    """Otherwise rows of other people change their places when one person comes, which moves the counters by more."""
    streams = []
    known = MisraGries.of

    def of(values, counts, *, memory):
        streams.append((values, counts))
        return known(values, counts, memory=memory)

    monkeypatch.setattr(heavy_hitters.MisraGries, "of", of)
    collide(monkeypatch)
    offer = nz.HeavyHitters("tree", memory=20).offer(data.schema, SPEND, ADD_REMOVE, 0.95)
    for order in (str, lambda text: text[::-1], lambda text: -len(text)):
        offer.draw(Shuffled(data._source, order), data.schema, bytes(16))
    assert len(streams[0][0]) > 500
    assert streams == streams[:1] * 3


def test_dates_are_values_too(data):
    answer = data.ask(nz.HeavyHitters("day", memory=5), spend=SPEND)
    assert len(answer) == 3
    assert answer.value.keys[0].year == 1970


def test_the_record_can_be_checked_and_changes_are_found(data):
    record = data.ask(nz.HeavyHitters("tree", memory=20), spend=SPEND).to_json()
    assert nz.answers.check(record) <= nz.Approx(5, "1e-6", neighbours=ADD_REMOVE)
    changed = json.loads(record)
    assert [part["mechanism"] for part in changed["mechanisms"]] == ["Threshold", "Geometric", "Geometric"]
    changed["mechanisms"][0]["parameters"]["scale"] = "1"
    with pytest.raises(nz.errors.PrivacyError):
        nz.answers.check(json.dumps(changed))


def test_a_delta_is_needed_and_nothing_is_charged_without(data):
    for spend in (nz.Pure(1), nz.ZCDP("1/10")):
        with pytest.raises(InputError, match="delta"):
            data.ask(nz.HeavyHitters("tree"), spend=spend)
    with pytest.raises(InputError, match="memory"):
        data.ask(nz.HeavyHitters("tree", memory=0), spend=SPEND)
    assert len(data.budget.entries) == 0


def test_what_changes_an_answer_changes_the_text(data):
    asked = [nz.HeavyHitters("tree"), nz.HeavyHitters("tree", memory=50), nz.HeavyHitters("day")]
    assert len({one.offer(data.schema, SPEND, ADD_REMOVE, 0.95).text for one in asked}) == 3


def test_replace_costs_more(data):
    one, two = (nz.HeavyHitters("tree").offer(data.schema, SPEND, relation, 0.95) for relation in (ADD_REMOVE, REPLACE))
    assert two.procedure.release.threshold.scale == 2 * one.procedure.release.threshold.scale
