"""Reports: what comes from data is shown, never read as markup; colours can be read on light and dark screens."""

import re
import sys

import numpy as np
import pyarrow
import pytest

import noisette as nz
from noisette import charts, report
from noisette.answers import Column, Release
from noisette.charts.theme import DARK, PAPER, RULE
from noisette.report.page import STYLE, true_texts

EVIL = "<script>alert('&')</script>"


def release(keys, values, half=2.0):
    numbers = np.array(values)
    columns = (
        Column("key", pyarrow.array(keys)),
        Column(EVIL, pyarrow.array(values), numbers - half, numbers + half),
    )
    return Release(columns, 0.95, nz.Pure(1), "id", nz.Pure(1), nz.Pure(1))


@pytest.mark.parametrize(
    "write",
    [
        lambda: report.answer(release([EVIL], [3]), {EVIL: np.array([4.0])}),
        lambda: report.table([EVIL], [[EVIL]]),
        lambda: report.figure(charts.deviations([EVIL], [3], [1], [5], [4], title=EVIL), EVIL),
        lambda: report.figure(charts.bars([EVIL], {EVIL: ([3], [1], [5])}, name=EVIL, title=EVIL, note=EVIL)),
        lambda: report.figure(
            charts.curves({EVIL: [(1, 2), (2, 1)]}, dots={EVIL: [(1, 1)]}, x=EVIL, y=EVIL, title=EVIL)
        ),
        lambda: report.figure(release([EVIL], [3]).plot()),
        lambda: report.page(EVIL, EVIL, [report.card(EVIL, EVIL, report.code(EVIL), report.said(EVIL), note=EVIL)]),
        lambda: report.more(EVIL, EVIL) + report.tiles([(EVIL, EVIL)]),
    ],
)
def test_markup_in_keys_and_names_is_escaped(write):
    markup = write()
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


def test_a_figure_leads_nowhere():
    markup = report.figure(release(["a", "b"], [3, 4]).plot(), "caption")
    assert not any(word in markup for word in ("http:", "https:", "href", "<script", "<image", "<use", "url("))
    assert markup.count("<svg") == markup.count("</svg>") == 1
    assert "<figcaption>caption</figcaption>" in markup


def test_without_the_extra_a_page_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    markup = report.figure(release(["<a>"], [3]).plot())
    assert "pip install &#x27;noisette[plot]&#x27;" in markup
    assert "<svg" not in markup


# Colours


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def themes():
    light, dark, _ = STYLE.split("prefers-color-scheme: dark")
    return [dict(re.findall(r"--(\w+): (#\w{6})", part)) for part in (light, dark)]


@pytest.mark.parametrize("theme", themes())
def test_texts_can_be_read(theme):
    for text in ("ink", "soft", "blue", "orange", "nut"):
        for ground in ("card", "paper", "code"):
            assert contrast(theme[text], theme[ground]) >= 4.5, (text, ground)


def test_charts_take_the_colours_of_a_dark_page():
    light, dark = themes()
    for name in ("ink", "soft", "rule", "blue", "orange"):
        assert DARK[light[name]] == dark[name]
    for colour, instead in DARK.items():
        assert f'svg [fill="{colour}"] {{ fill: {instead}; }}' in STYLE


@pytest.mark.parametrize("screen", [{name: name for name in DARK}, DARK], ids=["light", "dark"])
def test_lines_and_their_names_can_be_told_from_the_paper(screen):
    for colour in set(DARK) - {PAPER, RULE}:
        assert contrast(screen[colour], screen[PAPER]) >= 3, colour


def test_grey_on_grey_would_be_found():
    assert contrast("#888888", "#aaaaaa") < 4.5
