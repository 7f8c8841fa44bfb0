"""Every claim of the threat model names a test that is there, and a module that can be imported."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
TESTS = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))
MODULES = sorted(set(re.findall(r"`(noisette\.[a-z_.]+)`", PAGE)))


@pytest.mark.parametrize(("file", "name"), TESTS)
def test_the_test_is_there(file, name):
    assert re.search(rf"^def {name}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("name", MODULES)
def test_the_module_is_there(name):
    assert importlib.import_module(name)


def test_there_are_many():
    assert len(TESTS) > 25
    assert len(MODULES) > 12
    assert all("`tests/" in line for line in PAGE.splitlines() if re.match(r"\| .* \| `noisette", line))
