import doctest
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "accuracy.md"


class Page(doctest.DocTestParser):
    """Reads examples between Markdown's fences."""

    def parse(self, string, name="<string>"):
        return super().parse("\n".join("" if line.startswith("```") else line for line in string.split("\n")), name)


@pytest.mark.slow
def test_the_page_is_true(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # it saves a chart
    result = doctest.testfile(str(PAGE), module_relative=False, parser=Page())
    assert result.failed == 0
    assert result.attempted > 30
    assert (tmp_path / "error.svg").read_text(encoding="utf-8").startswith("<svg")
