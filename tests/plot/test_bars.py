"""Charts of released numbers."""

import math

import pytest

from noisette.errors import InputError
from noisette.plot.bars import bars

pytest.importorskip("matplotlib")


def numbers(count, groups=3):
    return {f"x{i}": ([1.0] * groups, [0.5] * groups, [1.5] * groups) for i in range(count)}


def test_one_panel_for_each_number_in_rows_of_three():
    figure = bars(["a", "b", "c"], numbers(5))
    assert [axes.get_visible() for axes in figure.axes] == [True] * 5 + [False]
    wide, high = figure.get_size_inches()
    assert wide / high < 3


def test_the_first_group_is_on_top():
    axes = bars(["a", "b"], numbers(1, groups=2)).axes[0]
    assert axes.get_ylim()[0] > axes.get_ylim()[1]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]


def test_unknown_numbers_leave_a_gap():
    figure = bars(["a", "b"], {"n": ([1.0, math.nan], [0.0, math.nan], [math.inf, math.nan])})
    figure.canvas.draw()


def test_what_cannot_be_drawn():
    with pytest.raises(InputError, match="no number to draw"):
        bars([], {})
    with pytest.raises(InputError, match="At most 60 groups"):
        bars(["a"] * 61, numbers(1, groups=61))
