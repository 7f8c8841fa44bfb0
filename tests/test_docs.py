"""Every Python example in the README and the docs runs, and every snippet of the README's table gives something."""

import doctest
import re
from pathlib import Path

import numpy as np
import pytest

import noisette as nz

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
SNIPPET = re.compile(r"`((?:print\()?nz\..+?)` \|$", re.MULTILINE)


def blocks() -> list[tuple[str, str]]:
    return [(page.name, code) for page in PAGES for code in FENCE.findall(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize(("page", "code"), blocks())
def test_examples_run(page, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # an example may write a picture
    if ">>>" in code:
        test = doctest.DocTestParser().get_doctest(code, {"nz": nz}, page, page, 0)
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        assert doctest.DocTestRunner(optionflags=flags).run(test).failed == 0
    else:
        exec(compile(code, page, "exec"), {})


@pytest.mark.parametrize("snippet", SNIPPET.findall((ROOT / "README.md").read_text(encoding="utf-8")))
def test_the_readmes_table_runs(snippet):
    given = {"nz": nz, "x": np.zeros(50 if "counts(50)" in snippet else 10), "answers": np.arange(5)}
    assert eval(snippet, given) is not None or snippet.startswith("print")


def test_the_readmes_numbers_are_true():
    m = nz.calibrate(nz.Geometric, nz.Pure("1/2"), sensitivity=1)
    assert m.interval(0.95) == 6.0
    assert repr(m.guarantee(1)) == "Pure('1/2')"
    assert "# 6.0: the error" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_gallery_is_up_to_date():
    from noisette.audit.gallery import gallery

    page = (ROOT / "docs" / "mechanisms.md").read_text(encoding="utf-8")
    assert page == gallery(), "run python -m noisette.audit.gallery > docs/mechanisms.md"
