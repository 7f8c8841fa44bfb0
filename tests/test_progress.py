"""Steps are fixed words: nothing that is computed can enter them, and other data have the same steps."""

import ast
import re
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

import noisette as nz
from noisette.progress import doing, showing

PACKAGE = Path(nz.__file__).parent


def test_steps_are_shown_as_they_begin_and_the_outer_one_again():
    shown = []
    with showing(shown.append):
        with pytest.raises(KeyError), doing("outer"), doing("inner"):
            raise KeyError
        with doing("next"):
            pass
    with doing("unseen"):
        pass
    assert shown == ["outer", "inner", "outer", "", "next", ""]


def computed_steps(code):
    """The lines of a program where a step is not a constant text, or has a digit in it."""
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    steps = [call for call in calls if "doing" in (getattr(call.func, "id", ""), getattr(call.func, "attr", ""))]
    return [step.lineno for step in steps if not _fixed(step)], len(steps)


def _fixed(call):
    words = [each.value for each in call.args if isinstance(each, ast.Constant)]
    return len(words) == 1 == len(call.args) and not call.keywords and not re.search(r"\d", str(words[0]))


def test_every_step_of_the_package_is_fixed_words():
    found = {str(file): computed_steps(file.read_text(encoding="utf-8")) for file in PACKAGE.rglob("*.py")}
    assert {name: lines for name, (lines, _) in found.items() if lines} == {}
    assert sum(count for _, count in found.values()) >= 8


@pytest.mark.parametrize(
    "twin", ['doing(f"{rows} rows")', "doing(words)", 'doing("stage 2")', "progress.doing(step=x)"]
)
def test_a_step_that_could_hold_data_is_found(twin):
    assert computed_steps(f"with {twin}:\n    pass") == ([1], 1)


def steps(session, folder, rows):
    """The steps of opening a table and asking."""
    path, shown = f"{folder}/{rows}.parquet", []
    parquet.write_table(pyarrow.table({"who": list(range(rows)), "ward": [str(i % 7) for i in range(rows)]}), path)
    with showing(shown.append):
        data = nz.open(
            session, tables={"t": path}, budget="9,0.1", policy={"tables": {"t": {"unit": "who", "rows": 1}}}
        )
        data.sql("SELECT ward, count(*) AS n FROM t GROUP BY ward", spend=nz.Approx(1, "1e-6"))
    return shown


@pytest.mark.slow
def test_other_data_have_the_same_steps(sail, tmp_path):
    steps(sail, tmp_path, 2)  # the first time an executor is tried
    few = steps(sail, tmp_path, 1)
    assert "Spark: bounding and counting on executors" in few
    assert few == steps(sail, tmp_path, 5000)
