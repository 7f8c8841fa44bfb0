"""The command `python -m tests.mutants` itself, on a small tree, and the table that it reads."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.mutants.change import StaleError, changed, mutated
from tests.mutants.critical import places, reasons
from tests.mutants.table import Mutant, mutants, read

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_every_entry_fits_the_sources():
    for mutant in mutants():
        assert changed(mutant), mutant.place


@pytest.mark.slow
def test_every_critical_place_has_a_mutation_or_a_reason():
    critical, known = places(), {mutant.place for mutant in mutants()}
    assert not set(critical) - known - set(reasons()), (
        "add a mutation to tests/mutants/table, or a reason to without.md"
    )
    assert set(reasons()) <= set(critical) - known, "these need no reason"


def test_no_entry_stands_twice():
    keys = [(each.place, each.was, each.now) for each in mutants()]
    assert len(set(keys)) == len(keys)


def test_entries_are_read():
    [one] = read("# Words.\n\na.py::f\n    - x +\n    - y\n    + x\n    It is\n    wrong.\n    by tests/a tests/b\n")
    assert one == Mutant("a.py::f", "x +\ny", "x", "It is wrong.", ("tests/a", "tests/b"))
    assert one.critical
    assert not Mutant("a.py::f", "x", "y", "Utility: slower.").critical


@pytest.mark.parametrize(
    "text", ["a.py\n    - x\n    + y\n    Why.", "a.py::f\n    - x\n    + y", "a.py::f\n    + y\n    Why."]
)
def test_entries_without_a_part_are_refused(text):
    with pytest.raises(ValueError, match="needs file::function"):
        list(read(text))


@pytest.mark.parametrize(
    ("was", "now", "why"),
    [("nothing", "x", "0 times"), ("a", "b", "2 times"), ("number * 2", "number*2", "the same code")],
)
def test_a_stale_entry_is_refused(tmp_path, was, now, why):
    (tmp_path / "one.py").write_text("def f(number):\n    a = number * 2\n    return a\n")
    with pytest.raises(StaleError, match=why):
        changed(Mutant("one.py::f", was, now, "Why."), tmp_path)


def test_only_the_named_function_changes(tmp_path):
    (tmp_path / "one.py").write_text("def f():\n    return 1\n\n\nclass A:\n    def f(self):\n        return 1\n")
    mutant = Mutant("one.py::A.f", "return 1", "return 2", "Why.")
    assert mutated(mutant, tmp_path).endswith("return 1\n\n\nclass A:\n    def f(self):\n        return 2\n")
    assert [sound.co_qualname for sound, _ in changed(mutant, tmp_path)] == ["A.f"]


# The command, on a tree of one module

TINY = """
import functools, os

def halved(x):
    return x / 2

def endless(n):
    while n > 0:
        n -= 1
    return n

def dies(n):
    return n or os._exit(3)

@functools.cache
def remembered():
    return 1

def unwatched(n):
    return n + 1

def shown(values):
    return sorted(values, key=lambda value: -value)

def doubtful():
    return 1

FIRST = remembered()
"""
TESTS = """
import pytest
from tiny.one import *

def test_halved():
    assert halved(4) == 2

def test_endless():
    assert endless(3) == 0

def test_dies():
    assert dies(1) == 1

def test_remembered():
    assert remembered() == 1

def test_unwatched():
    unwatched(1)

@pytest.fixture(scope="module")
def made():
    return shown([1, 2])

def test_other(made):
    pass

def test_shown(made):
    assert made == [2, 1]

def test_doubtful():
    assert doubtful() == 2
"""
TABLE = """
one.py::halved
    - x / 2
    + x / 3
    Too little.

one.py::endless
    - n -= 1
    + n -= 0
    It never ends.

one.py::dies
    - n or
    + n - 1 or
    The process dies.

one.py::remembered
    - return 1
    + return 2
    It is remembered.

one.py::unwatched
    - n + 1
    + n + 2
    Nobody looks.

one.py::shown
    - -value
    + value
    In no order.

one.py::doubtful
    - return 1
    + return 3
    Its test fails anyhow.
"""
SCRIPT = """
import sys
from pathlib import Path
import pytest
from tests.mutants.__main__ import PLAIN, report
from tests.mutants.cases import Record
from tests.mutants.court import Court
from tests.mutants.table import read

root = Path(sys.argv[1])
record = Record(root, root / "src" / "tiny", root / "cache")
court = Court(list(read((root / "table.txt").read_text())), record, workers=2, seconds=9, say=lambda line: None)
pytest.main([*PLAIN, "-c", "/dev/null", "--rootdir", str(root), str(root / "tests")], plugins=[court])
for one in court.verdicts:
    print(one.mutant.function, one.case and one.case.partition("::")[2], one.how, sep="|")
sys.exit(report(court, 1))
"""


@pytest.fixture(scope="module")
def tried(tmp_path_factory):
    root = tmp_path_factory.mktemp("tiny")
    for name, text in (("src/tiny/one.py", TINY), ("tests/test_one.py", TESTS), ("table.txt", TABLE)):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    known = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "src"), str(ROOT), str(ROOT / "src")])}
    return subprocess.run([sys.executable, "-c", SCRIPT, str(root)], env=known, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "case", "how"),
    [
        ("halved", "test_halved", "assert"),
        ("endless", "test_endless", "needs far more time"),
        ("dies", "test_dies", "its process was ended"),
        ("remembered", "test_remembered", "assert 2 == 1"),
        ("shown", "test_shown", "assert [1, 2] == [2, 1]"),
    ],
)
def test_a_mutant_is_convicted(tried, function, case, how):
    [found] = [line for line in tried.stdout.splitlines() if line.startswith(f"{function}|")]
    assert found.startswith(f"{function}|{case}|")
    assert how in found


@pytest.mark.slow
def test_a_mutant_that_nothing_convicts_survives(tried):
    assert "unwatched|None|" in tried.stdout
    assert (
        "    - n + 1\n    + n + 2\n    Nobody looks.\n    survives 1 of the 1 quick cases that enter it" in tried.stdout
    )
    assert tried.returncode == 1


@pytest.mark.slow
def test_a_case_that_fails_anyhow_convicts_nothing_and_is_named(tried):
    assert "doubtful|None|" in tried.stdout
    assert (
        "1 cases fail without any mutation, so they convict nothing:\n    tests/test_one.py::test_doubtful"
        in tried.stdout
    )
