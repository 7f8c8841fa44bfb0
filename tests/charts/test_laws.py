"""Laws at two neighbouring inputs, and the loss between them."""

import math

import pytest

from noisette.charts import law
from noisette.errors import InputError
from noisette.mechanisms import Geometric


def test_numbers_stand_on_an_axis_with_their_probabilities():
    m = Geometric(2)
    here, there = ({y: float(m.pmf(y, x)) for y in range(-40, 42)} for x in (0, 1))
    chart = law(here, there, epsilon=0.5, title="Geometric", note="0.5-DP")
    upper, lower = chart.spec["vconcat"]
    drawn = upper["data"]["values"]
    assert {row["outcome"]: row["p"] for row in drawn if row["input"] == "x"}.items() <= here.items()
    assert {row["outcome"]: row["p"] for row in drawn if row["input"] == "x + 1"}.items() <= there.items()
    assert {0, 1, -5, 6} <= {row["outcome"] for row in drawn}
    losses = [row["loss"] for row in lower["layer"][0]["data"]["values"]]
    assert max(map(abs, losses)) == pytest.approx(0.5)
    assert [layer["encoding"]["y"]["datum"] for layer in lower["layer"][1:]] == [0.0, -0.5, 0.5]


def test_whole_numbers_that_never_come_are_drawn_as_0():
    here = {0: 0.5} | dict.fromkeys(range(20, 40), 0.5 / 20)
    rows = law(here, here).spec["vconcat"][0]["data"]["values"]
    assert {row["p"] for row in rows if row["outcome"] == 7} == {0.0}


def test_others_stand_by_name_and_the_rest_together():
    here = {(i, None): 2.0 ** -(i + 1) for i in range(40)}
    rows = law(here, here).spec["vconcat"][0]["data"]["values"]
    names = list(dict.fromkeys(row["outcome"] for row in rows))
    assert names[:2] == ["0, –", "1, –"]
    assert names[-1] == "29 others"
    assert math.fsum(row["p"] for row in rows) == pytest.approx(2)


def test_what_is_impossible_at_one_input_has_no_loss():
    lower = law({"a": 1.0}, {"a": 0.5, "b": 0.5}, epsilon=1.0).spec["vconcat"][1]
    assert [row["outcome"] for row in lower["layer"][0]["data"]["values"]] == ["a"]


def test_a_law_needs_outcomes():
    with pytest.raises(InputError, match="at least one outcome"):
        law({}, {})
