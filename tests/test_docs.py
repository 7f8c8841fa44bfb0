"""Every Python example in the README and the docs runs, and every snippet of the toolbox gives something."""

import doctest
import re
from pathlib import Path

import numpy as np
import pytest

import noisette as nz

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
DEAR = {
    "accuracy.md",
    "analysts-guide.md",
    "apply.md",
    "asking.md",
    "attacks.md",
    "choosing.md",
    "filters.md",
    "generalisation.md",
    "holdout.md",
    "ledger.md",
    "local.md",
    "local-mobility.md",
    "maps.md",
    "multiplicative-weights.md",
    "nearest.md",
    "owners-guide.md",
    "postgresql.md",
    "privacy.md",
    "smooth-sensitivity.md",
    "spark.md",
    "streams.md",
    "synthetic.md",
    "tutorial.md",
}  # pages of `docs` whose examples take long
FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
SNIPPET = re.compile(r"`((?:print\()?nz\..+?)` \|$", re.MULTILINE)


def with_examples():
    for page in PAGES:
        if FENCE.search(page.read_text(encoding="utf-8")):
            slow = page.parent.name == "docs" and page.name in DEAR
            yield pytest.param(page, id=str(page.relative_to(ROOT)), marks=[pytest.mark.slow] if slow else [])


@pytest.mark.parametrize("page", list(with_examples()))
def test_examples_run(page, tmp_path, monkeypatch, request):
    """The examples of a page with prompts follow each other; programs without prompts stand alone."""
    if page.name == "spark.md":
        request.getfixturevalue("sail")  # skips where it cannot be started
    monkeypatch.chdir(tmp_path)  # an example may write a picture
    known = {"nz": nz}
    for code in FENCE.findall(page.read_text(encoding="utf-8")):
        if ">>>" in code:
            test = doctest.DocTestParser().get_doctest(code, known, page.name, page.name, 0)
            flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            assert doctest.DocTestRunner(optionflags=flags).run(test, clear_globs=False).failed == 0
            known = test.globs
        else:
            exec(compile(code, page.name, "exec"), {})


@pytest.mark.parametrize("snippet", SNIPPET.findall((ROOT / "docs" / "toolbox.md").read_text(encoding="utf-8")))
def test_the_toolbox_runs(snippet):
    given = {"nz": nz, "x": np.zeros(50 if "counts(50)" in snippet else 10), "answers": np.arange(5)}
    assert eval(snippet, given) is not None or snippet.startswith("print")


def test_the_readmes_numbers_are_true():
    m = nz.calibrate(nz.Geometric, nz.Pure("1/2"), sensitivity=1)
    assert m.interval(0.95) == 6.0
    assert repr(m.guarantee(1)) == "Pure('1/2')"
    assert "# 6.0: the error" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_gallery_is_up_to_date():
    from noisette.report.gallery import pages, pictures, stamp

    folder, charts = ROOT / "docs" / "gallery", pictures()
    written = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    drawn = {name: written.pop(name, "") for name in charts}
    assert written == pages(), "run python -m noisette.report.gallery docs/gallery"
    old = [name for name, chart in charts.items() if stamp(chart) not in drawn[name]]
    assert not old, "run python -m noisette.report.gallery docs/gallery"


def test_pictures_are_small():
    pictures = [*(ROOT / "docs").rglob("*.svg"), *(ROOT / "docs").rglob("*.png")]
    assert len(pictures) > 40
    assert sum(path.stat().st_size for path in pictures) < 3_000_000


def test_the_calls_that_make_pictures_stand_beside_them():
    pages = {"odds.svg": "privacy", "tradeoff.svg": "privacy", "nearest.png": "nearest", "sketches.svg": "sketches"}
    pages |= dict.fromkeys(("city.png", "flows.png", "maps.png"), "maps")
    pages["synthetic.svg"] = "synthetic"
    pages |= {"cubes.png": "cubes", **dict.fromkeys(("strategies.svg", "wavelet.svg", "fourier.svg"), "many-answers")}
    pages["rounds.svg"] = "multiplicative-weights"
    drawn = ("subset-means.svg", "features-noise.svg", "features-signal.svg", "rows-needed.svg")
    pages |= dict.fromkeys(drawn, "generalisation")
    pages |= {"local-epsilon.svg": "local", "local-domain.svg": "local"}
    pages |= dict.fromkeys(("streams.png", "counters.svg"), "streams")
    pages |= {"local-mobility.svg": "local-mobility", "local-flows.svg": "local-mobility"}
    for name, page in (pages | {"medians.svg": "smooth-sensitivity", "apply.png": "apply"}).items():
        text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
        assert f"(pictures/{name})" in text
        assert f'.save("{name}")' in text


def test_every_mechanism_says_when_to_use_it_and_where_it_is_taught():
    for page in (ROOT / "docs" / "gallery").glob("*.md"):
        if page.name != "README.md":
            text = page.read_text(encoding="utf-8")
            assert re.search(r"\*\*When to use it:\*\* \w", text), page.name
            assert re.search(r"\*\*Textbook:\*\* \w", text), page.name
