"""The documentation becomes a site without a warning, with every page and every public name in it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import noisette as nz

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "docs", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.nightly("builds all pages: `make test-site`, a step of .ci/run")
def test_every_page_is_there_and_nothing_comes_from_a_network(site):
    for page in (ROOT / "docs").rglob("*.md"):
        if "_build" not in page.parts:
            assert (site / page.relative_to(ROOT / "docs")).with_suffix(".html").exists(), page.name
    index = (site / "index.html").read_text(encoding="utf-8")
    assert re.findall(r'(?:src|<link[^>]*href)="(?:https?:)?//[^"]*"', index) == []


@pytest.mark.nightly("builds all pages: `make test-site`, a step of .ci/run")
def test_every_public_name_is_in_the_reference_and_can_be_searched(site):
    found = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(found.removeprefix("Search.setIndex(").rstrip(")"))
    listed = {name for names in index["objects"].values() for _, _, _, _, name in names}
    for name in ("Histogram", "Geometric", "Approx", "Curator", "open"):
        assert name in listed
    assert set(nz.questions.FILES.values()) <= listed
    assert any("differenti" in word for word in index["terms"])
