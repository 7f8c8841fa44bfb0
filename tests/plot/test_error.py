import itertools
import sys
import time

import pytest

from noisette import accuracy, plot
from noisette.errors import InputError
from noisette.plot.error import _COLOURS
from noisette.plot.style import GAP, apart
from noisette.privacy import ZCDP, Approx, sensitivity

PROMISE = Approx(1, "1e-6")


def texts(figure) -> list[str]:
    axes = figure.axes[0]
    return [axes.get_title(loc="left"), axes.get_xlabel(), *(text.get_text() for text in axes.texts)]


def test_lines_are_named_and_the_budget_is_marked():
    c = accuracy.compare(sensitivity.counts(20), PROMISE, answers=20)
    figure = plot.error(c)
    assert texts(figure)[:3] == [
        "20 answers: largest error of all answers (95 %), δ = 1e-6",
        "ε, the privacy budget",
        "ε = 1",
    ]
    assert set(texts(figure)[3:]) == {row.name for row in c.rows}
    assert figure.axes[0].get_legend() is None
    assert figure.axes[0].get_xscale() == figure.axes[0].get_yscale() == "log"


def test_lines_pass_through_the_rows():
    c = accuracy.compare(sensitivity.counts(4), PROMISE, answers=4)
    lines = {line.get_color(): line for line in plot.error(c).axes[0].lines if len(line.get_xdata()) > 2}
    for row in c.rows:
        line = lines[_COLOURS[row.name]]
        at = {round(float(x), 9): float(y) for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)}
        assert at[1.0] == pytest.approx(row.largest, rel=1e-9)


def test_whole_numbers_may_have_no_error_at_all():
    c = accuracy.compare(sensitivity.count(), 4, answers=1, grid=1)
    assert texts(plot.error(c))[0] == "One answer: error (95 %)"


def test_zcdp_and_other_columns():
    c = accuracy.compare(sensitivity.counts(3), ZCDP("1/10"), answers=3, by="sd")
    assert texts(plot.error(c))[:3] == ["3 answers: standard deviation", "ρ, the privacy budget (zCDP)", "ρ = 0.1"]


@pytest.mark.parametrize(("name", "start"), [("a.svg", b"<?xml"), ("a.png", b"\x89PNG"), ("A.PDF", b"%PDF")])
def test_saved_by_the_ending(tmp_path, name, start):
    c = accuracy.compare(sensitivity.counts(3), 1, answers=3)
    plot.error(c, tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)


def test_other_endings_are_refused(tmp_path):
    c = accuracy.compare(sensitivity.counts(3), 1, answers=3)
    with pytest.raises(InputError, match=r"\.svg"):
        plot.error(c, tmp_path / "a.txt")


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(InputError, match=r"pip install 'noisette\[plot\]'"):
        plot.error(accuracy.compare(sensitivity.counts(3), 1, answers=3))


def test_names_keep_their_distance():
    heights = apart([0, 0.01, 0.02, 0.5, 0.51, 1])
    assert all(b - a >= GAP - 1e-12 for a, b in itertools.pairwise(heights))
    assert heights[-1] == 1


@pytest.mark.slow
@pytest.mark.parametrize(("grid", "seconds"), [(None, 5), (1, 10)])
def test_drawn_in_seconds(grid, seconds):
    c = accuracy.compare(sensitivity.counts(10_000), PROMISE, answers=10_000, grid=grid)
    start = time.process_time()
    plot.error(c)
    assert time.process_time() - start < seconds
