"""A rare value of the data is nowhere to be seen: not in words, logs, files, nor where an engine leaves its bytes."""

import struct

import pytest
from tests.attack import twins
from tests.attack.attacks import NUMBER
from tests.attack.canaries import canaries, sings
from tests.attack.trial import Convicted
from tests.attack.twins import CANARY


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_marker_is_nowhere(shelf, seed):
    assert canaries(seed, shelf)["answered"] > 9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("twin", "where"),
    [
        (twins.Logging, "a log"),
        (twins.Warning, "a warning"),
        (twins.Printing, "the error stream"),
        (twins.Writing, "the file tmp"),
    ],
)
def test_a_source_that_leaves_it_somewhere_is_convicted(shelf, twin, where):
    with pytest.raises(Convicted, match=f"the marker is in {where}"):
        canaries(0, shelf, twin)


@pytest.mark.slow
@pytest.mark.parametrize("teller", [twins.Quoting, twins.Chaining])
def test_a_curator_that_says_it_is_convicted(shelf, teller):
    with pytest.raises(Convicted, match="the marker is in what is said of"):
        canaries(0, shelf, teller=teller)


def test_every_way_to_write_it_is_known():
    assert sings(f"... {CANARY} ...")
    assert sings(CANARY.encode("utf-16-le"))
    assert sings(f"{NUMBER:,}")
    assert sings(b"\1" + struct.pack("<q", NUMBER) + b"\2")
    assert sings(b"\1" + struct.pack("<d", NUMBER) + b"\2")
    assert not sings("canary 314159")
