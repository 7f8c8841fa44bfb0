"""Every kind of chart: a whole specification without holes, a picture of it, files by their endings."""

import datetime
import json
import math
import re
import sys

import pytest

import noisette as nz
from noisette import accuracy, charts
from noisette.errors import InputError
from noisette.privacy import sensitivity

DAYS = [datetime.date(2024, 1, 1) + datetime.timedelta(days=i) for i in range(6)]
WIDE = (
    [3.0, 5.0, math.nan, 1e7, -4.0, 0.0],
    [1.0, 3.0, math.nan, 9e6, -math.inf, 0.0],
    [5.0, 7.0, math.nan, 2e7, 0.0, 0.0],
)
TWO = {"n": WIDE, "m": WIDE}
MANY = [float(i) for i in range(200)]
EVEN = {"columns": (0, 1), "rows": (0, 1), "place": (0, 1)}

KINDS = {
    "bars": lambda: charts.answer({"w": ["a", None, "NULL", "<b>", "e" * 99, "f"]}, TWO, note="ε = 1"),
    "single": lambda: charts.answer({}, {"n": ([3], [1], [5])}),
    "histogram": lambda: charts.answer({"age": [0, 10, 20, 30, 40, 50]}, TWO),
    "time": lambda: charts.answer({"day": DAYS}, {"n": WIDE}),
    "panels": lambda: charts.answer({"w": ["a", "a", "b"], "s": ["x", "y", "x"]}, {"n": ([3, 5, 4], None, None)}),
    "panels over time": lambda: charts.answer({"w": ["a"] * 3 + ["b"] * 3, "d": DAYS}, TWO),
    "many": lambda: charts.answer({"zip": [f"z{i}" for i in range(200)]}, {"n": (MANY, MANY, MANY)}),
    "curves": lambda: charts.curves(
        {"a": [(1, 4), (2, 2)], "b": [(1, 4), (2, math.inf)]}, x="x", y="y", dots={"a": [(1, 3)]}
    ),
    "forecast": lambda: charts.forecast([0.1, 1.0], {"n": [30.0, 3.0]}, now=0.1),
    "error": lambda: charts.error(accuracy.compare(sensitivity.counts(3), 1, answers=3)),
    "composition": lambda: charts.composition(1, "1e-6", 3),
    "tradeoff": lambda: charts.tradeoff(1, nz.ZCDP("0.1")),
    "odds": lambda: charts.odds("0.5", 1, mark="0.1"),
    "law of numbers": lambda: charts.law(dict.fromkeys(range(10), 0.1), dict.fromkeys(range(20), 0.05), epsilon=1.0),
    "law of names": lambda: charts.law({(0, None): 0.5, None: 0.5}, {(0, None): 0.4, None: 0.6}, epsilon=0.3),
    "beside": lambda: charts.beside(["age", "hours"], ([3.1, 2.0], [2.5, 1.4], [3.7, 2.6]), [2.9, 2.2]),
    "deviations": lambda: charts.deviations(["a", "b"], [12, 3], [10, 1], [14, 5], [11, 9]),
    "nearest": lambda: charts.nearest([(0, 0), (1, 1)], {"even": [[0.25, 0.25], [0.25, 0.25]]}, **EVEN),
}


def parts(spec):
    """Every dictionary inside a specification."""
    if isinstance(spec, dict):
        yield spec
        for part in spec.values():
            yield from parts(part)
    elif isinstance(spec, list):
        for part in spec:
            yield from parts(part)


@pytest.mark.parametrize("kind", KINDS)
def test_a_chart_is_plain_data_that_fits_its_fields(kind):
    chart = KINDS[kind]()
    assert json.loads(chart.to_json()) == chart.spec  # no NaN, no NumPy
    known = {name for row in chart.values for name in row}
    used = {part["field"] for part in parts(chart.spec) if "field" in part}
    assert used <= known
    assert known <= used | {"text", "holds"}
    assert "url" not in json.dumps(chart.spec)


@pytest.mark.parametrize("kind", KINDS)
def test_a_chart_renders_and_can_be_read(kind):
    pytest.importorskip("vl_convert", reason="pictures need the extra plot")
    svg = KINDS[kind]().svg()
    assert not re.search(r"NaN|Infinity|undefined|null", svg)
    written = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    assert 2 <= len(written) <= 130
    assert max(map(len, written)) <= 100
    assert len(re.findall(r"<(?:path|rect|circle|line)", svg)) > 5


@pytest.mark.parametrize("kind", ["bars", "tradeoff"])
@pytest.mark.parametrize(
    ("ending", "start"),
    [
        ("svg", b"<svg"),
        ("PNG", b"\x89PNG"),
        ("json", b"{"),
        pytest.param("html", b"<!DOCTYPE html>", marks=pytest.mark.slow),
    ],
)
def test_the_same_chart_is_the_same_file(tmp_path, kind, ending, start):
    pytest.importorskip("vl_convert", reason="pictures need the extra plot")
    made = []
    for name in ("a", "b"):
        assert isinstance(KINDS[kind]().save(tmp_path / f"{name}.{ending}"), charts.Chart)
        made.append((tmp_path / f"{name}.{ending}").read_bytes())
    assert made[0].strip().startswith(start)
    assert made[0] == made[1]


@pytest.mark.slow
def test_a_page_needs_no_network(tmp_path):
    pytest.importorskip("vl_convert", reason="pictures need the extra plot")
    page = KINDS["bars"]().save(tmp_path / "a.html") and (tmp_path / "a.html").read_text(encoding="utf-8")
    around = re.sub(r"(<script[^>]*>).*?</script>", r"\1", page, flags=re.DOTALL)
    assert not re.search(r"src=|href=|@import|url\(", around)
    assert "{actions: false" in page  # no menu with a link to an editor


@pytest.mark.slow
def test_no_text_of_the_data_can_leave_the_script(tmp_path):
    pytest.importorskip("vl_convert", reason="pictures need the extra plot")
    evil = "</script><script>alert('x')</script><!--"
    chart = charts.bars([evil], {evil: ([1], [0], [2])}, name=evil, title=evil, note=evil).save(tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert page.count("</script>") == len(re.findall(r"<script type", page)) == 2
    assert "<script>alert" not in page + chart.svg()
    spec = re.search(r'draw\("#chart", (.*), \{actions', page).group(1)
    assert json.loads(spec) == chart.spec


@pytest.mark.parametrize("name", ["a.txt", "a", "svg"])
def test_other_endings_are_refused(tmp_path, name):
    with pytest.raises(InputError, match=r"\.svg"):
        KINDS["bars"]().save(tmp_path / name)


@pytest.mark.parametrize("kind", KINDS)
def test_without_the_extra_charts_are_still_data(tmp_path, monkeypatch, kind):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    chart = KINDS[kind]()
    assert chart.save(tmp_path / "a.json") is chart
    assert set(chart._repr_mimebundle_()) == {"application/vnd.vegalite.v5+json", "text/plain"}
    with pytest.raises(InputError, match=r"pip install 'noisette\[plot\]'"):
        chart.save(tmp_path / "a.svg")
    assert not (tmp_path / "a.svg").exists()


def test_notebooks_get_the_data_and_a_picture():
    pytest.importorskip("vl_convert", reason="pictures need the extra plot")
    chart = KINDS["bars"]()
    bundle = chart._repr_mimebundle_()
    assert bundle["application/vnd.vegalite.v5+json"] == chart.spec
    assert bundle["image/svg+xml"].startswith("<svg")
    assert bundle["text/plain"] == "Chart('n, m by w')"
