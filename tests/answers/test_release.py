"""Releases: tables with error bars, for people, for programs and for lawyers."""

import csv
import datetime
import io
import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import noisette as nz
from noisette.answers import Column, Release, figures, record
from noisette.errors import InputError
from noisette.privacy import ZCDP, Approx, Neighbours, Pure


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
    lines = repr(release(WARDS, COUNTS, MEANS, caveats=("Rows are left out.",))).splitlines()
    assert lines == [
        "ward           n  mean",
        "north  1,968 ± 3      58.04 ± 0.16",
        "<b>       -5 ± 3       7.50 ± 0.16",
        "NULL      12 ± 3  no answer",
        "ε = 1 · 95% error bars · left: ε = 1",
        "Rows are left out.",
    ]


# Ends of error bars within what declarations allow


def test_numbers_that_add_up_stay_as_drawn_and_their_bars_reach_to_them():
    moved = replace(COUNTS, adds=True).within((0.0, 10.0))
    assert (moved.low.tolist(), moved.high.tolist()) == ([7.0, -5.0, 7.0], [1968.0, 3.0, 12.0])
    assert moved.values.equals(COUNTS.values)
    assert moved.half.tolist() == [3.0, 3.0, 3.0]
    assert [part.tolist() for part in moved.unmoved] == [COUNTS.low.tolist(), COUNTS.high.tolist()]
    assert repr(release(WARDS, moved)).splitlines()[:4] == repr(release(WARDS, COUNTS)).splitlines()[:4]


def test_other_numbers_move_to_the_end_of_what_is_possible():
    moved = COUNTS.within((0.0, 10.0))
    assert moved.values.to_pylist() == [10, 0, 10]
    assert (moved.low.tolist(), moved.high.tolist()) == ([7.0, 0.0, 7.0], [10.0, 3.0, 10.0])


@given(
    st.floats(-1e6, 1e6),
    st.floats(0, 1e6),
    st.floats(0, 1e6),
    st.floats(-1e6, 1e6),
    st.floats(1e-3, 1e6),
    st.booleans(),
)
def test_moving_holds_what_the_bar_held_and_no_bar_is_a_point(value, below, above, low, width, adds):
    drawn = Column("n", pyarrow.array([value]), np.array([value - below]), np.array([value + above]), adds=adds)
    moved = drawn.within((low, low + width))
    at, a, b = moved.values[0].as_py(), moved.low[0], moved.high[0]
    assert a <= at <= b
    for truth in (low, low + width / 3, low + width, value):
        if value - below <= truth <= value + above and low <= truth <= low + width:
            assert a - 1e-9 <= truth <= b + 1e-9
    if min(below, above) > 1e-3:
        assert b - a > 1e-4
    assert drawn.within((-np.inf, np.inf)).values.equals(drawn.values)


def test_a_number_that_is_not_there_has_all_that_is_possible_as_its_bar():
    number = Column("m", pyarrow.array([None, 4.0]), np.array([-np.inf, 3.0]), np.array([np.inf, 5.0]))
    moved = number.within((0.0, 9.0))
    assert moved.values.to_pylist() == [None, 4.0]
    assert (moved.low.tolist(), moved.high.tolist()) == ([0.0, 3.0], [9.0, 5.0])
    made = release(WARDS.take(np.array([0, 1])), moved)
    assert "no answer" in repr(made)
    assert made.warnings == (
        "m: in 1 of 2 rows no answer, since too few rows vouch for one; spend more, or ask for larger groups.",
    )
    assert json.loads(made.to_json())["rows"][0] == {"ward": "north", "m": None, "m_low": 0.0, "m_high": 9.0}


def test_moved_columns_are_sorted_with_their_bars():
    moved = replace(COUNTS, adds=True).within((0.0, 10.0)).take(np.array([2, 0]))
    assert moved.values.to_pylist() == [12, 1968]
    assert (moved.low.tolist(), moved.high.tolist(), moved.half.tolist()) == ([7.0, 7.0], [12.0, 1968.0], [3.0, 3.0])
    assert [part.tolist() for part in moved.unmoved] == [[9.0, 1965.0], [15.0, 1971.0]]


def test_a_bar_without_end_shows_the_one_that_declarations_leave():
    endless = Column("a", pyarrow.array([40.0]), np.array([-np.inf]), np.array([np.inf])).within((0.0, 100.0))
    assert "40 ± 60" in repr(release(endless))


def test_the_record_keeps_the_bars_as_they_were_drawn():
    record = json.loads(release(WARDS, COUNTS.within((0.0, 10.0)), caveats=("Rows are left out.",)).to_json())
    assert record["rows"][0] == {"ward": "north", "n": 10, "n_low": 7.0, "n_high": 10.0}
    assert record["unclipped"] == {"n": {"low": [1965.0, -8.0, 9.0], "high": [1971.0, -2.0, 15.0]}}
    assert record["caveats"] == ["Rows are left out."]
    assert json.loads(release(WARDS, COUNTS.within((-9.0, 2000.0))).to_json())["unclipped"] == {}


# Warnings


def warned(values, half, span, guarantee=None):
    return list(release(number("n", values, half).within(span), guarantee=guarantee).warnings)


def test_bars_that_say_nothing_are_pointed_out():
    everything = (
        "n: the error bar is no narrower than all that is possible, 0 to 20; for ± 2 spend about 240 times as much."
    )
    assert warned([89], 479, (0.0, 20.0)) == [everything]
    assert warned([10], 9.9, (0.0, 20.0)) == []
    assert warned([10], 10, (0.0, 20.0)) == [everything.replace("240", "5")]
    squared = warned([89], 479, (0.0, 20.0), ZCDP("0.1"))
    assert squared == [everything.replace("about 240", "more than 10,000")]
    assert warned([0.5], 1, (0.0, 1.0))[0].endswith("0 to 1; for ± 0.1 spend about 10 times as much.")


def test_bars_that_exceed_their_number_are_pointed_out():
    beyond = "n: the error bar exceeds the number itself; for a fifth of it spend about 20 times as much."
    assert warned([24], 96, (0.0, np.inf)) == [beyond]
    assert warned([-24], 96, (-np.inf, np.inf)) == [beyond]
    assert warned([97], 96, (0.0, np.inf)) == []
    assert warned([1], 4, (-10.0, 10.0)) == []  # a mean about 0 may well be smaller than its bar
    [half] = warned([1], 6, (-10.0, 10.0))
    assert half.startswith("n: the error bar spans more than half of all that is possible; for a tenth of that spend ")
    assert warned([0], 4, (0.0, np.inf))[0].endswith("spend more than 10,000 times as much.")
    said = release(WARDS, number("n", [24, 500, 24], 96)).warnings[0]
    assert said.startswith("n: in 2 of 3 rows the error bar exceeds the number itself;")
    assert said.endswith(", or ask for larger groups.")


def test_warnings_stand_below_the_table_and_in_the_record():
    made = release(number("n", [3], 9), caveats=("Rows are left out.",))
    assert repr(made).splitlines()[-2:] == [made.warnings[0], "Rows are left out."]
    assert all(note in made._repr_html_() for note in made.notes)
    assert json.loads(made.to_json())["warnings"] == list(made.warnings)


def test_keys_stay_on_one_line():
    odd = Column("key", pyarrow.array(["a\nb", "x" * 99]))
    assert repr(release(odd)).splitlines()[1:3] == ["a\\nb", "x" * 39 + "…"]
    dated = Column("day", pyarrow.array([datetime.date(2024, 1, 2)]))
    assert "2024-01-02" in repr(release(dated))


def test_names_of_columns_stay_on_one_line():
    odd = Column("a\x1b[31m\nb" + "x" * 5000, pyarrow.array([1]))
    shown = release(odd)
    assert repr(shown).splitlines()[0].startswith("a\\u001b[31m\\nbxxx")
    assert len(repr(shown).splitlines()[0]) == 100
    assert "\x1b" not in shown._repr_html_()


def test_many_rows_are_cut():
    shown = repr(release(number("n", list(range(100)), 1)))
    assert "... and 60 more rows" in shown
    assert len(shown.splitlines()) == 44  # the last line says that 0 ± 1 says little


def test_in_a_notebook():
    html = release(WARDS, COUNTS)._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert '<td class="number">1,968 <span class="light">± 3</span></td>' in html


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
    said = release(COUNTS, caveats=("At most 8 rows count.", "± covers the noise only.")).statement
    for part in (
        "all data of any one patient_id had been left out",
        "for every patient_id and against anyone",
        "ε = 1 under the relation add/remove",
        "2.72 times as likely",
        "ε = 1 of the owner's budget",
        "Not promised",
        "holds the number without noise with a probability of 95%",
        "At most 8 rows count. ± covers the noise only.",
    ):
        assert part in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("guarantee", "part"),
    [
        (Approx(1, "1e-9", neighbours=Neighbours.ADD_REMOVE), "except with a probability of 1e-9"),
        (ZCDP("0.1", neighbours=Neighbours.REPLACE), "replaced by other data"),
        (Approx(1, "1e-9") + ZCDP("0.1"), "except with a probability of 1e-6"),
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
    chart = release(WARDS, COUNTS).plot(str(tmp_path / "n.json"))
    assert json.loads((tmp_path / "n.json").read_text(encoding="utf-8")) == chart.spec
    assert [row["label"] for row in chart.values] == ["north", "<b>", "NULL"]
    assert chart.title == "n by ward\nε = 1 for each patient_id · 95% error bars"


def test_the_chart_carries_nothing_but_what_was_released():
    made = release(WARDS, COUNTS, MEANS, record={"question": "secret question"})
    rows = made.rows()
    released = {value for row in rows for value in row.values() if value is not None and value == value}
    for row in made.plot().values:
        assert {value for name, value in row.items() if name != "label" and value is not None} <= released
    assert "secret question" not in made.plot().to_json()


def test_a_profile_is_stated_at_a_delta_that_it_has():
    profile = Approx(1, "1e-3") + ZCDP("0.1")
    delta, epsilon = figures.at_some_delta(profile)
    assert (delta, epsilon) == ("0.01", profile.epsilon_at("0.01"))
    assert figures.promise(profile).endswith("at δ = 0.01")
    assert record.stated(profile)["at"] == {"0.01": epsilon}
    assert figures.at_some_delta(Approx(1, "0.9999999") + ZCDP("0.1")) == ("1", 0.0)


# Files


HOSTILE = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", 'a "b", c', "a=b", "", None]


def test_csv_holds_error_bars_and_no_formula():
    keys = Column("=cmd()", pyarrow.array(HOSTILE))
    made = release(keys, number("n", [-1, 2, -3, 4, -5, 6, -7, 8, -9, 10], 0.5))
    text = made.to_csv()
    head, *rows = list(csv.reader(io.StringIO(text, newline="")))
    assert head == ["'=cmd()", "n", "n_low", "n_high"]
    assert [row[0] for row in rows] == [f"'{key}" if key and key[0] in "=+-@\t\r" else key or "" for key in HOSTILE]
    assert [row[1:] for row in rows][:2] == [["-1", "-1.5", "-0.5"], ["2", "1.5", "2.5"]]  # numbers as they are


def test_files_hold_what_was_released_and_nothing_else(tmp_path):
    made = release(WARDS, COUNTS, MEANS, caveats=("Rows are left out.",))
    assert made.to_csv(tmp_path / "a.csv") == made.to_csv() == (tmp_path / "a.csv").read_bytes().decode()
    made.to_parquet(tmp_path / "a.parquet")
    found = pyarrow.parquet.read_table(tmp_path / "a.parquet")
    assert found.schema.metadata == {
        b"noisette.statement": made.statement.encode(),
        b"noisette.warnings": b"[]",
        b"noisette.caveats": b'["Rows are left out."]',
        b"noisette.level": b"0.95",
    }
    assert json.loads((tmp_path / "a.csv-metadata.json").read_text())["notes"] == [made.about]
    assert made.to_pandas().attrs == made.about
    assert found.column_names == made.to_arrow().column_names
    assert found.column("n").to_pylist() == [1968, -5, 12]
    for write in (made.to_csv, made.to_parquet):
        with pytest.raises(InputError, match=r"a\.csv cannot be written"):
            write(tmp_path / "nowhere" / "a.csv")
