"""Releases: tables with error bars, for people, for programs and for lawyers."""

import datetime
import json
from fractions import Fraction

import numpy as np
import pyarrow
import pytest

import noisette as nz
from noisette.errors import InputError
from noisette.privacy import ZCDP, Approx, Neighbours, Pure
from noisette.releases import Column, Release


def release(*columns, guarantee=None, **more):
    given = Pure(1, neighbours=Neighbours.ADD_REMOVE) if guarantee is None else guarantee
    return Release(columns, 0.95, given, "patient_id", Approx(1, "1e-6"), Approx(1, "1e-8"), **more)


def number(name, values, half):
    array = np.asarray(values, dtype=float)
    return Column(name, pyarrow.array(values), array - half, array + half)


WARDS = Column("ward", pyarrow.array(["north", "<b>", None]))
COUNTS = number("n", [1968, -5, 12], 3)
MEANS = number("mean", [58.041, 7.5, float("nan")], 0.16)


def test_numbers_stand_below_each_other():
    lines = repr(release(WARDS, COUNTS, MEANS)).splitlines()
    assert lines == [
        "ward           n  mean",
        "north  1,968 ± 3    58.04 ± 0.16",
        "<b>       -5 ± 3     7.50 ± 0.16",
        "NULL      12 ± 3  unknown",
        "ε = 1 · 95% error bars · left: ε = 1",
    ]


def test_keys_stay_on_one_line():
    odd = Column("key", pyarrow.array(["a\nb", "x" * 99]))
    assert repr(release(odd)).splitlines()[1:3] == ["a·b", "x" * 39 + "…"]
    dated = Column("day", pyarrow.array([datetime.date(2024, 1, 2)]))
    assert "2024-01-02" in repr(release(dated))


def test_many_rows_are_cut():
    shown = repr(release(number("n", list(range(100)), 1)))
    assert "... and 60 more rows" in shown
    assert len(shown.splitlines()) == 43


def test_in_a_notebook():
    html = release(WARDS, COUNTS)._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert '<td style="text-align:right">1,968 <span style="color:#888">± 3</span></td>' in html


def test_as_tables():
    made = release(WARDS, COUNTS)
    assert made.to_arrow().column_names == ["ward", "n", "n_low", "n_high"]
    assert made.rows()[1] == {"ward": "<b>", "n": -5, "n_low": -8.0, "n_high": -2.0}
    assert pyarrow.table(made).num_rows == len(made) == 3
    with pytest.raises(InputError, match="The answer has no column x: it has ward, n"):
        made["x"]


@pytest.mark.parametrize(("method", "library"), [("to_pandas", "pandas"), ("to_polars", "polars")])
def test_as_frames(method, library):
    pytest.importorskip(library)
    assert list(getattr(release(WARDS, COUNTS), method)().columns) == ["ward", "n", "n_low", "n_high"]


# The statement


def test_the_statement_says_what_a_lawyer_asks():
    said = release(COUNTS).statement
    for part in (
        "all data of any one patient_id had been left out",
        "for every patient_id and against anyone",
        "ε = 1 under the relation add/remove",
        "2.72 times as likely",
        "ε = 1 of the owner's budget",
        "Not promised",
        "95%",
        "clamped",
    ):
        assert part in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("guarantee", "part"),
    [
        (Approx(1, "1e-9", neighbours=Neighbours.ADD_REMOVE), "but for a probability of 1e-9"),
        (ZCDP("0.1", neighbours=Neighbours.REPLACE), "replaced by other data"),
        (Approx(1, "1e-9") + ZCDP("0.1"), "but for a probability of 1e-6"),
        (Pure(1000), "e^1,000 times"),
    ],
)
def test_statements_of_other_guarantees(guarantee, part):
    assert part in release(COUNTS, guarantee=guarantee).statement


# The record


def test_the_record_is_complete_and_plain_json():
    record = json.loads(release(WARDS, MEANS, record={"question": "q", "mechanisms": []}).to_json())
    assert {"version", "question", "mechanisms", "guarantee", "neighbours", "unit", "level", "secure", "rows"} <= set(
        record
    )
    assert (record["version"], record["secure"], record["unit"]) == (nz.__version__, True, "patient_id")
    assert record["guarantee"] == {"kind": "Pure", "epsilon": "1"}
    assert record["rows"][2]["mean"] is None


def test_guarantees_are_recorded_exactly():
    exact = Approx(Fraction(1, 3), Fraction(1, 7 * 10**9))
    found = json.loads(release(COUNTS, guarantee=exact).to_json())["guarantee"]
    assert found == {"kind": "Approx", "epsilon": "1/3", "delta": "1/7000000000"}


def test_the_chart(tmp_path):
    pytest.importorskip("matplotlib")
    figure = release(WARDS, COUNTS).plot(str(tmp_path / "n.png"))
    assert (tmp_path / "n.png").stat().st_size > 1000
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["north", "<b>", "NULL"]
