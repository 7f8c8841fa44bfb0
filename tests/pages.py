"""Pages that name tests and modules: which of them are there."""

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def page(name: str) -> str:
    """The text of a page."""
    return (ROOT / name).read_text(encoding="utf-8")


def named_tests(text: str) -> list[tuple[str, str]]:
    """Files and functions of the tests that a text names."""
    return sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)))


def named_modules(text: str) -> list[str]:
    """Modules of the package that a text names."""
    return sorted(set(re.findall(r"`(noisette\.[a-z_.]+)`", text)))


def has_test(file: str, name: str) -> bool:
    """Whether a file of the tests has a test of that name."""
    path = ROOT / file
    return path.is_file() and re.search(rf"^def {name}\(", path.read_text(encoding="utf-8"), re.MULTILINE) is not None


def module_is_there(name: str) -> bool:
    """Whether a module can be found."""
    return importlib.util.find_spec(name) is not None
