"""Every claim of the threat model and of the trust page names a test that is there, and a module that is there."""

import re
from collections import Counter

import pytest
from tests.attack.__main__ import BEGIN, END, Report, on_page
from tests.pages import has_test, module_is_there, named_modules, named_tests, page

PAGES = {name: page(name) for name in ("docs/threat-model.md", "docs/trust.md")}
TESTS = sorted({found for text in PAGES.values() for found in named_tests(text)})
MODULES = sorted({found for text in PAGES.values() for found in named_modules(text)})


@pytest.mark.parametrize(("file", "name"), TESTS)
def test_the_test_is_there(file, name):
    assert has_test(file, name)


def test_a_test_that_is_not_there_is_missed():
    assert not has_test("tests/curator/test_threats.py", "test_nothing_of_the_kind")
    assert not has_test("tests/curator/test_nothing.py", "test_the_test_is_there")


@pytest.mark.parametrize("name", MODULES)
def test_the_module_is_there(name):
    assert module_is_there(name)


def test_there_are_many():
    threats = PAGES["docs/threat-model.md"]
    assert len(named_tests(threats)) > 25
    assert len(MODULES) > 12
    assert all("`tests/" in line for line in threats.splitlines() if re.match(r"\| .* \| `noisette", line))


def test_every_promise_of_the_trust_page_names_a_test():
    promises = PAGES["docs/trust.md"].partition(BEGIN)[0]
    rows = [
        line
        for line in promises.splitlines()
        if line.startswith("| ") and "---" not in line and "would turn red" not in line
    ]
    assert len(rows) > 25
    assert all(named_tests(line) for line in rows), [line for line in rows if not named_tests(line)]


def test_the_report_goes_between_its_markers(tmp_path):
    path, report = tmp_path / "page.md", Report(1)
    path.write_text(PAGES["docs/trust.md"], encoding="utf-8")
    report.add("tables", Counter(worlds=1, questions=12, answered=8, refused=4))
    on_page(path, report.table())
    text = path.read_text(encoding="utf-8")
    assert text.count(BEGIN) == text.count(END) == 1
    assert f"{BEGIN}\n{report.table()}\n{END}" in text
    assert text.partition(BEGIN)[0] == PAGES["docs/trust.md"].partition(BEGIN)[0]
