"""All tests of contribution bounding, with pieces of 1, 2, 3 and 7 as well: then there is a seam at every place.

A module of such tests imports `pieces` and `pytest_generate_tests`; the definition in plain Python stays the judge.
"""

import zlib

import pytest
from tests.contracts.seams.discovery import NAMED

from noisette.engines.bounding import choice, keys, words

SIZES = (1, 2, 3, 7)


def in_one_piece(test):
    """Mark a test of a large table, or of none: small pieces would take long there, or make no difference."""
    test.in_one_piece = True
    return test


def pytest_generate_tests(metafunc):
    if not (drawn(metafunc.function) or hasattr(metafunc.function, "in_one_piece")):
        metafunc.parametrize("pieces", ["all", *SIZES], indirect=True)


def drawn(test):
    """Whether a test draws its tables: it has many of them, so one size is enough, which its name chooses."""
    return getattr(test, "is_hypothesis_test", False)


@pytest.fixture(autouse=True)
def pieces(request, monkeypatch):
    """Set all sizes of pieces of the package, which are found by their names."""
    found = [(module, name) for module in (choice, keys, words) for name in vars(module) if NAMED.fullmatch(name)]
    assert (words, "_CHUNK") in found
    size = getattr(request, "param", "all")
    if drawn(request.function):
        size = SIZES[zlib.crc32(request.function.__name__.encode()) % len(SIZES)]
    for module, name in found if size != "all" else ():
        monkeypatch.setattr(module, name, size)
