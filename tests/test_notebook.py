"""The magic for notebooks, in a real IPython shell."""

from fractions import Fraction

import pyarrow
import pytest

import noisette as nz
from noisette.errors import InputError
from noisette.notebook import asked

QUESTION = "SELECT count(*) AS n FROM data"


@pytest.fixture
def people():
    return nz.open(pyarrow.table({"age": [34, 51, 68]}), budget=10)


def test_a_cell_in_a_notebook(people):
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    shell.user_ns["people"] = people
    shell.run_line_magic("load_ext", "noisette")
    answer = shell.run_cell_magic("noisette", "people --spend 0.5 --into counted", QUESTION)
    assert shell.user_ns["counted"] is answer
    assert answer.guarantee.epsilon == Fraction(1, 2)
    assert '<div class="noisette">' in answer._repr_html_()
    assert shell.run_line_magic("noisette", "people") is people


def test_the_only_curator_needs_no_name(people):
    assert asked("--spend 1", QUESTION, {"people": people, "same": people, "_": people, "n": 3}).columns


def test_explain_spends_nothing(people):
    assert asked("people --error 30 --explain", QUESTION, {"people": people}).spend
    assert not people.ledger.entries


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("others --spend 1", "there is more, people"),
        ("--spend 1", "there is more, people"),
        ("people --spand 1", "Unrecognized arguments: --spand 1"),
        ("people --error much", "invalid float value"),
        ("people --spend 1 --into 2b", "--into takes a name"),
    ],
)
def test_bad_lines(people, line, sentence):
    names = {"people": people, "more": nz.open(pyarrow.table({"age": [3]}), budget=1)}
    with pytest.raises(InputError, match=sentence):
        asked(line, QUESTION, names)


def test_no_curator_yet():
    with pytest.raises(InputError, match="open data first"):
        asked("--spend 1", QUESTION, {})
