"""Every file is in one part of `make check`, and the parts are alike."""

from pathlib import Path

from tests import quick

ROOT = Path(quick.__file__).parents[1]


def test_every_file_is_in_one_part(monkeypatch):
    files = [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("src/**/*.py")]
    found = []
    for part in ("1/2", "2/2"):
        monkeypatch.setenv("NOISETTE_PART", part)
        found.append({file for file in files if not quick.of_another_part(file)})
    assert not found[0] & found[1]
    assert found[0] | found[1] == set(files)
    sizes = [sum(file.stat().st_size for file in part) for part in found]
    assert abs(sizes[0] - sizes[1]) < 0.01 * sum(sizes)


def test_folders_and_helpers_are_in_every_part(monkeypatch):
    monkeypatch.setenv("NOISETTE_PART", "1/2")
    assert not any(map(quick.of_another_part, (ROOT / "tests", ROOT / "tests" / "conftest.py", ROOT / "src")))


def test_without_a_part_there_is_one(monkeypatch):
    monkeypatch.delenv("NOISETTE_PART", raising=False)
    assert not quick.of_another_part(Path(__file__))
