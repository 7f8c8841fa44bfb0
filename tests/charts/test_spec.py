"""Words of the specification."""

import datetime
import itertools
import math

import pytest

from noisette.charts.spec import apart, cell, decades, labels, titled


def test_names_keep_their_distance():
    heights = apart([0, 0.01, 0.02, 0.5, 0.51, 1], 0.06)
    assert all(b - a >= 0.06 - 1e-12 for a, b in itertools.pairwise(heights))
    assert heights[-1] == 1


@pytest.mark.parametrize(("low", "high"), [(1, 9), (0.001, 1e9), (0.5, 0.6), (3, 3e30), (99, 101)])
def test_ticks_are_few_and_inside(low, high):
    found = decades(low, high)
    assert 1 <= len(found) <= 11
    assert all(low * 0.999 <= tick <= high * 1.001 for tick in found)


def test_times_are_written_in_utc():
    east = datetime.timezone(datetime.timedelta(hours=5))
    assert cell(datetime.datetime(2024, 1, 1, 3, tzinfo=east)) == "2023-12-31T22:00:00Z"
    assert cell(datetime.datetime(2024, 1, 1, 3)) == "2024-01-01T03:00:00Z"
    assert [cell(value) for value in (math.inf, -math.inf, math.nan, True)] == [None, None, None, True]


def test_two_groups_never_share_a_place():
    given = ["a", None, "NULL", "a", "a (2)", 1, "1"]
    assert len(set(labels(given))) == len(given)


def test_titles_are_short():
    assert len(titled("x" * 500, "y" * 500)["text"]) <= 90
