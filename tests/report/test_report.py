"""Reports: what comes from data is shown, never read as markup; colours can be read on light and dark screens."""

import re

import numpy as np
import pyarrow
import pytest

import noisette as nz
from noisette import report
from noisette.answers import Column, Release
from noisette.report.style import STYLE
from noisette.report.svg import ticks
from noisette.report.tables import true_texts

EVIL = "<script>alert('&')</script>"


def release(keys, values, half=2.0):
    numbers = np.array(values)
    columns = (
        Column("key", pyarrow.array(keys)),
        Column(EVIL, pyarrow.array(values), numbers - half, numbers + half),
    )
    return Release(columns, 0.95, nz.Pure(1), "id", nz.Pure(1), nz.Pure(1))


@pytest.mark.parametrize(
    "markup",
    [
        report.answer(release([EVIL], [3]), {EVIL: np.array([4.0])}),
        report.table([EVIL], [[EVIL]]),
        report.deviations([EVIL], [3], [1], [5], [4], title=EVIL),
        report.columns([EVIL], [3], title=EVIL),
        report.lines({EVIL: [(1, 2), (2, 1)]}, {EVIL: [(1, 1)]}, axis=EVIL, title=EVIL),
        report.page(EVIL, EVIL, [report.card(EVIL, EVIL, report.code(EVIL), report.said(EVIL), note=EVIL)]),
        report.more(EVIL, EVIL) + report.tiles([(EVIL, EVIL)]),
    ],
)
def test_markup_in_keys_and_names_is_escaped(markup):
    assert "<script" not in markup
    assert "&lt;script&gt;" in markup
    assert "('&')" not in markup


def test_an_answer_shows_its_error_bar_and_the_truth():
    shown = report.answer(release(["a", "b"], [1234.5, 2.0], half=12.0), {EVIL: np.array([1230.2, 3.0])})
    assert "1,234 <span" in shown or "1,235 <span" in shown
    assert shown.count("± 12") == 2
    assert '<td class="number truth">1,230</td>' in shown
    assert "truth" not in report.answer(release(["a"], [1.0]))


def test_the_truth_of_a_count_is_a_whole_number():
    column = Column("n", pyarrow.array([130]), np.array([120.0]), np.array([140.0]))
    assert true_texts(column, np.array([131.0])) == ["131"]


def test_a_bar_that_misses_has_another_colour():
    held, missed = (report.deviations(["a"], [10], [8], [12], [truth], title="") for truth in (9, 13))
    assert "miss" not in held
    assert "miss" in missed


@pytest.mark.parametrize("values", [[], [0.0], [-3.0, 5.0], [1e9, 1.0]])
def test_odd_numbers_can_be_drawn(values):
    labels = [str(i) for i in range(len(values))]
    drawn = report.columns(labels, values, title="") + report.deviations(
        labels, values, values, values, values, title=""
    )
    assert "nan" not in drawn
    assert "inf" not in drawn


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-240, 240), (0, 3), (-1e6, 7e6), (0.001, 0.002)])
def test_ticks_are_few_and_inside(low, high):
    found = ticks(low, high, 5)
    assert 2 <= len(found) <= 5
    assert all(low <= tick <= high for tick in found)


# Colours


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def themes():
    light, dark = STYLE.split("prefers-color-scheme: dark")
    return [dict(re.findall(r"--(\w+): (#\w{6})", part)) for part in (light, dark)]


@pytest.mark.parametrize("theme", themes())
def test_texts_can_be_read(theme):
    for text in ("ink", "soft", "blue", "orange", "nut"):
        for ground in ("card", "paper", "code"):
            assert contrast(theme[text], theme[ground]) >= 4.5, (text, ground)


def test_grey_on_grey_would_be_found():
    assert contrast("#888888", "#aaaaaa") < 4.5
