"""Mechanisms become records and come back; stored names and parameters never change."""

import json

import pytest

from noisette.errors import InputError
from noisette.mechanisms import GumbelTop, InverseSensitivity, Order, Smooth, TriangleCount, TrimmedAverage
from noisette.mechanisms.catalogue import instances
from noisette.mechanisms.record import from_record, to_record
from noisette.privacy import Neighbours
from noisette.privacy.sensitivity import count
from noisette.questions.order_statistic import Near


@pytest.mark.parametrize("m", list(instances()), ids=repr)
def test_every_example_comes_back(m):
    record = json.loads(json.dumps(to_record(m, "rows", count())))
    assert from_record(record) == m


@pytest.mark.parametrize(
    ("m", "name", "parameters"),
    [
        (
            GumbelTop(2, candidates=4, k=2),
            "Top",
            {"scale": "2", "candidates": "4", "k": "2", "monotone": "False"},
        ),
        (
            Smooth(3, statistic=TriangleCount(6), beta="1/3", noise="cauchy"),
            "Smooth",
            {
                "epsilon": "3",
                "delta": "0",
                "statistic": {"name": "Triangles", "nodes": "6"},
                "beta": "1/3",
                "noise": "cauchy",
            },
        ),
        (
            Smooth(2, statistic=TrimmedAverage(0, 6, trim=1, parts=3), beta="1/5"),
            "Smooth",
            {"statistic": {"name": "TrimmedMean", "low": "0", "high": "6", "trim": "1", "parts": "3"}},
        ),
        (
            InverseSensitivity(2, statistic=Near("1/2", 0, 9)),
            "InverseSensitivity",
            {
                "scale": "2",
                "statistic": {"name": "Order", "low": "0", "high": "9", "q": "1/2", "neighbours": "add/remove"},
            },
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_stored_names_stay(m, name, parameters):
    record = to_record(m, "rows", count())
    assert record["mechanism"] == name
    assert parameters.items() <= record["parameters"].items()


def test_a_statistic_comes_back_as_that_of_the_package():
    record = to_record(InverseSensitivity(2, statistic=Near("1/2", 0, 9)), "rows", count())
    assert from_record(record).statistic == Order("1/2", 0, 9, neighbours=Neighbours.ADD_REMOVE)


def test_names_that_are_no_mechanism_are_refused():
    for name in ("Magic", "Order", "GumbelTop", "Mechanism"):
        with pytest.raises(InputError, match=f"No mechanism here is called {name}"):
            from_record({"mechanism": name, "parameters": {}})
