"""docs/errata.md and the tests beside this file name each other, and the page's bold numbers stand in the tests."""

import ast
import re
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "errata.md"
HEADING = re.compile(r"^### (E\d+)\. (.+)$", re.MULTILINE)
TEST = re.compile(r"`(test_\w+)`")
BOLD = re.compile(r"\*\*(-?\d[\d,.e-]*)\*\*")
LINK = re.compile(r"\[(E\d+)\]\(#([\w-]+)\)")
PARTS = ["Says", "Right", "Shown by", "Noisette", "Tests"]


def sources():
    """Every test of this directory: its name and its text, parameters included."""
    found = {}
    for path in sorted(HERE.glob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                found[node.name] = "\n".join(text.split("\n")[first - 1 : node.end_lineno])
    return found


def slug(heading):
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def entries(page):
    """Every entry: its name, its heading and its text."""
    marks = list(HEADING.finditer(page))
    ends = [mark.start() for mark in marks[1:]] + [len(page)]
    return [(m[1], m[0].removeprefix("### "), page[m.end() : end]) for m, end in zip(marks, ends, strict=True)]


def stands_in(number, text):
    """True if a number stands in a test, written as a number that is neither longer nor shorter."""
    plain = text.replace("_", "")
    return re.search(rf"(?<![\d.]){re.escape(number.replace(',', ''))}0*(?![\d.]*\d)", plain) is not None


def faults(page, tests):
    """Where page and tests disagree, one sentence each."""
    found = []
    listed = entries(page)
    if [name for name, _, _ in listed] != [f"E{n}" for n in range(1, 25)]:
        found.append("the entries are not E1 to E24")
    if LINK.findall(page) != [(name, slug(heading)) for name, heading, _ in listed]:
        found.append("the contents do not link to the entries, in order")
    for name, _, text in listed:
        named = TEST.findall(text)
        if re.findall(r"^- \*([\w ]+):\*", text, re.MULTILINE) != PARTS:
            found.append(f"{name} does not have its five parts")
        if not named or any(not test.startswith(f"test_{name.lower()}_") for test in named):
            found.append(f"{name} names no test of its own, or one of another")
        code = "\n".join(tests.get(test, "") for test in named)
        found += [f"{name}: {n} stands in none of its tests" for n in BOLD.findall(text) if not stands_in(n, code)]
    found += [f"{test} does not exist" for test in TEST.findall(page) if test not in tests]
    found += [f"{test} is not on the page" for test in tests if test not in TEST.findall(page)]
    return found


def test_the_page_and_its_tests_agree():
    assert faults(PAGE.read_text(encoding="utf-8"), sources()) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("### E7. ", "### E77. ", "the entries are not E1 to E24"),
        ("(#e12-wavelets)", "(#e12-waves)", "the contents do not link to the entries, in order"),
        ("*Right:* the bubble", "the bubble", "E1 does not have its five parts"),
        ("`test_e11_the_split_itself_is_right`", "`test_e12_wavelets`", "test_e12_wavelets does not exist"),
        ("`test_e4_propose_test_release_costs_test_and_answer`", "", "E4 names no test of its own, or one of another"),
        (", `test_e20_no_shift_does_worse`", "", "test_e20_no_shift_does_worse is not on the page"),
        ("**36.1**", "**36.2**", "E1: 36.2 stands in none of its tests"),
        ("**2,139,968**", "**2,139,96**", "E18: 2,139,96 stands in none of its tests"),
        ("**-38.74**", "**-38.7**", "E19: -38.7 stands in none of its tests"),
    ],
)
def test_faults_of_a_page_are_found(old, new, fault):
    page = PAGE.read_text(encoding="utf-8")
    assert page.count(old) == 1
    assert fault in faults(page.replace(old, new), sources())
