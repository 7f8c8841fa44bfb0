"""Charts of the error to expect."""

import math

import pytest

from noisette.errors import InputError
from noisette.plot.forecast import forecast

pytest.importorskip("matplotlib")

BUDGETS = [0.1, 1.0, 10.0]


def test_a_line_ends_where_the_error_is_0():
    axes = forecast(BUDGETS, {"n": [30.0, 3.0, 0.0]}, now=1.0).axes[0]
    drawn = [w for w in axes.lines[0].get_ydata() if not math.isnan(w)]
    assert drawn == [30.0, 3.0]
    assert "n" in [text.get_text() for text in axes.texts]


def test_the_budget_in_question_is_marked():
    axes = forecast(BUDGETS, {"n": [30.0, 3.0, 0.3]}, now=1.0, symbol="ρ").axes[0]
    assert list(axes.lines[1].get_ydata()) == [3.0]
    assert "ρ = 1" in [text.get_text() for text in axes.texts]


def test_nothing_to_draw():
    with pytest.raises(InputError, match="No column of this question has an error that can be drawn"):
        forecast(BUDGETS, {"n": [0.0, 0.0, 0.0], "m": [math.nan] * 3}, now=1.0)
