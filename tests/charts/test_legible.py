"""Texts of strangers in charts: whatever a key holds, the chart is data that can be drawn, and no process ends."""

import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisette import charts
from noisette.charts import legible as module
from noisette.charts.chart import Chart
from noisette.charts.legible import LONGEST, legible

HOSTILE = {
    "escape": "a\x1bb",
    "nul": "a\x00b",
    "not a character": "a\ufffeb\uffff",
    "half a character": "a\ud800b",
    "long": "x" * 200_000,
    "joined": "👩\u200d" * 1000,
    "emoji": "a" + "👩" * 60,
    "combining": "a" + "\u0301" * 2000,
    "markup": "</script><b>&\x9b\u202e",
}
NUMBER = ([1, 2, 3], [0, 1, 2], [2, 3, 4])
THREE = {"k": ["a", "b", "c"]}
PLACES = {
    "key": lambda t: charts.answer({"k": [t, "b", "c"]}, {"n": NUMBER}),
    "column": lambda t: charts.answer({t: ["a", "b", "c"]}, {"n": NUMBER}),
    "alias": lambda t: charts.answer(THREE, {t: NUMBER, "m": NUMBER}),
    "note": lambda t: charts.answer(THREE, {"n": NUMBER}, note=t),
    "panel": lambda t: charts.answer({"k": [t, t, "c"], "s": ["x", "y", "x"]}, {"n": NUMBER}),
    "line": lambda t: charts.curves({t: [(1, 4), (2, 2)]}, x=t, y=t, title=t, mark=(1, t)),
    "law": lambda t: charts.law({t: 0.5, "b": 0.5}, {t: 0.4, "b": 0.6}, epsilon=0.3, title=t, outcome=t, note=t),
    "map": lambda t: charts.heats({t: [[1, 2]]}, unit=t, title=t, note=t),
    "dots": lambda t: charts.deviations([t, "b"], [12, 3], [10, 1], [14, 5], [11, 9], title=t, note=t),
}
DRAWN = """
import io, sys, tempfile
from pathlib import Path
from test_legible import HOSTILE, PLACES
names, path = sys.argv[1:], Path(tempfile.mkdtemp()) / "a.png"
for name in names:
    for place, make in PLACES.items():
        print(name, place, flush=True)
        chart = make(HOSTILE[name])
        assert chart.save(path)._repr_mimebundle_()["image/svg+xml"].startswith("<svg")
        chart.to_json().encode(), repr(chart).encode()
print("all drawn")
"""


def texts(spec):
    return set(module._texts(spec))


def is_legible(text):
    """Char of XML 1.0, written down once more, and the length."""
    known = all(
        c in "\t\n\r" or " " <= c <= "\ud7ff" or "\ue000" <= c <= "\ufffd" or "\U00010000" <= c <= "\U0010ffff"
        for c in text
    )
    return known and len(text) <= LONGEST


def drawn(*names):
    """Draw in a process of its own, since what is convicted here ends it."""
    pytest.importorskip("vl_convert", reason="pictures need the extra plot")
    ended = subprocess.run(
        [sys.executable, "-c", DRAWN, *names],
        cwd=__file__.rpartition("/")[0], capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr[-500:]
    assert ended.stdout.endswith("all drawn\n")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", HOSTILE)
def test_every_text_of_a_chart_is_legible(name, place):
    chart = PLACES[place](HOSTILE[name])
    assert all(map(is_legible, texts(chart.spec)))


@given(
    st.sampled_from(sorted(PLACES)),
    st.text(st.characters(codec=None, categories=None)) | st.text("a\x1b", min_size=LONGEST - 1),
)
def test_whatever_the_text_is(place, text):
    chart = PLACES[place](text)
    assert all(map(is_legible, texts(chart.spec)))


@given(st.lists(st.text("ab\x00\x1b�", max_size=3) | st.just("(2)"), unique=True, min_size=2))
def test_texts_that_differ_still_do_afterwards(given):
    made = legible(given)
    assert len(set(made)) == len(given)
    assert all(old == new for old, new in zip(given, made, strict=True) if is_legible(old))
    assert legible(made) == made


def test_long_keys_that_differ_at_their_ends_are_two_marks():
    keys = ["k" * 1000 + end for end in "ab"]
    chart = charts.answer({"k": keys}, {"n": ([1, 2], None, None)})
    labels = [row["label"] for row in chart.values]
    assert len(set(labels)) == 2
    assert all(label.startswith("kkk") and len(label) <= LONGEST for label in labels)
    assert chart.spec["layer"][0]["encoding"]["y"]["scale"]["domain"] == labels  # and each still has its place


def test_keys_that_are_alike_are_numbered_one_after_the_other():
    keys = [f"{'k' * 1000}{i}" for i in range(2000)]
    made = legible(keys)
    assert len(set(made)) == len(keys)
    assert all(len(text) <= LONGEST for text in made)
    numbers = [int(text.rpartition("(")[2].rstrip(")")) for text in made[1:]]
    assert all(b == a + 1 for a, b in pairwise(numbers))


def test_a_chart_that_is_legible_is_left_alone():
    spec = {"mark": "point", "data": {"values": [{"x": "é 👩 \n"}]}}
    assert legible(spec) is spec


def test_a_renderer_that_fails_is_one_sentence(monkeypatch):
    class Failing:
        def vegalite_to_svg(self, spec, **_):
            raise ValueError("words of the renderer")

    monkeypatch.setattr("noisette.charts.chart.renderer", Failing)
    chart = PLACES["key"]("a")
    with pytest.raises(ValueError, match=r"^The renderer cannot draw this chart: save it as \.json or \.html"):
        chart.svg()
    assert "image/svg+xml" not in chart._repr_mimebundle_()


@pytest.mark.slow
def test_no_text_ends_the_process_or_raises():
    drawn(*HOSTILE)


@pytest.mark.slow
def test_the_suite_convicts_a_chart_that_takes_texts_as_they_are():
    spec = PLACES["key"]("a").spec
    chart = Chart(spec)
    object.__setattr__(chart, "spec", {**spec, "title": {"text": HOSTILE["escape"]}})
    assert not all(map(is_legible, texts(chart.spec)))
    pytest.importorskip("vl_convert", reason="pictures need the extra plot")
    code = f"import vl_convert; vl_convert.vegalite_to_svg({chart.to_json()!r}, vl_version='5.20')"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, timeout=100)
    assert ended.returncode < 0  # the renderer aborts; when it no longer does, this file can be simpler
