"""Wherever something is worked through in pieces, it makes no difference how large these are.

The sizes are found by walking the package (`seams/discovery.py`), and each has a case that compares what is found with
what is so by definition (`seams/table.py`): with pieces of 1, 2, 3 and 7, and with the size as it is. A case runs every
function that reads the size. Its twin is the same function that leaves something out at each seam.
"""

import importlib
import sys
from pathlib import Path

import pytest
from tests.contracts.seams.discovery import found
from tests.contracts.seams.judging import function_of, leaky
from tests.contracts.seams.table import JUDGED, OTHERS, SEAMS

SIZES = (1, 2, 3, 7)
TESTS = Path(__file__).resolve().parents[1]


def cut(monkeypatch, place, size):
    """Make all pieces of one place so large; a size that is some bytes long stays one."""
    module, _, name = place.partition(":")
    module = importlib.import_module(f"noisette.{module}")
    monkeypatch.setattr(module, name, bytes(size) if isinstance(getattr(module, name), bytes) else size)


def faults(place):
    """What a case finds that is not so."""
    return [(got, expected) for got, expected in SEAMS[place]() if got != expected]


def missing(places):
    """A sentence for each size that no case is about."""
    return [
        f"{place} says how large pieces are: add a case of what is found in them to tests/contracts/seams/table.py."
        for place in sorted(places)
        if place not in {**SEAMS, **JUDGED, **OTHERS}
    ]


def test_every_size_has_a_case():
    assert missing(found()) == []
    assert sorted({**SEAMS, **JUDGED, **OTHERS}) == sorted(found())
    assert missing(["query.new:_CHUNK"])[0].startswith("query.new:_CHUNK says how large pieces are: add a case")


@pytest.mark.parametrize("place", JUDGED)
def test_other_tests_set_the_smallest_size(place):
    path, _, name = JUDGED[place].partition("::")
    after = (TESTS / path).read_text(encoding="utf-8").partition(f"def {name}(")[2]
    assert place.partition(":")[2] in after.partition("\ndef ")[0]


@pytest.mark.parametrize("size", [None, *SIZES])
@pytest.mark.parametrize("place", SEAMS)
def test_pieces_of_any_size_give_the_same(monkeypatch, place, size):
    if size is not None:
        cut(monkeypatch, place, size)
    assert faults(place) == []


def entered(run, files):
    """The functions of some files that a call enters."""
    seen = set()

    def profiled(frame, event, _):
        if event == "call" and frame.f_code.co_filename in files:
            seen.add((frame.f_code.co_filename, frame.f_code.co_qualname))

    before = sys.getprofile()
    sys.setprofile(profiled)
    try:
        run()
    finally:
        sys.setprofile(before)
    return seen


@pytest.mark.parametrize("place", SEAMS)
def test_a_case_enters_all_functions_that_read_the_size(monkeypatch, place):
    cut(monkeypatch, place, 3)
    readers = {
        (f.__code__.co_filename, f.__code__.co_qualname): reader
        for reader in found()[place]
        for f in [function_of(reader)]
    }
    assert set(readers) <= entered(lambda: faults(place), {file for file, _ in readers})


def twins():
    """All loops that can leave something out, by their size."""
    return [(place, reader) for place in SEAMS for reader in sorted(found()[place]) if leaky(reader, place)]


def test_a_loop_that_leaves_something_out_at_each_seam_is_convicted():
    passed = []
    for place, reader in twins():
        with pytest.MonkeyPatch.context() as patch:
            cut(patch, place, 2)
            patch.setattr(function_of(reader), "__code__", leaky(reader, place))
            try:
                if not faults(place):
                    passed.append((place, reader))
            except Exception:
                continue
    assert passed == []
    assert len(twins()) > 30
