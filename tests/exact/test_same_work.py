"""Single draws do the same work for every value: the same lines, the same coins; the specification does not.

Nothing is timed here, so there is no false alarm. `benchmarks.independence` measures what is left in time.
"""

import gc
import sys
from fractions import Fraction

import numpy as np
import pytest

from noisette.exact import samplers, vector
from noisette.exact.gaussian_arrays import GaussianTable
from noisette.exact.geometric_arrays import GeometricTable
from noisette.exact.random import SYSTEM

LAWS = {
    "Laplace 10": lambda: GeometricTable(Fraction(10), two_sided=True),
    "Laplace 1000": lambda: GeometricTable(Fraction(1000), two_sided=True),
    "geometric 7": lambda: GeometricTable(Fraction(7), two_sided=False),
    "Gaussian 10": lambda: GaussianTable(Fraction(100)),
}


class Tape:
    """Coins that say a given word first, and then others; it counts what is asked of it."""

    secure = False

    def __init__(self, word):
        self.word, self.asked = word, []

    def words(self, count, dtype):
        self.asked.append(("words", count))
        word, self.word = self.word, 2**63 + 12345
        return np.full(count, word, dtype)

    def bits(self, count):
        self.asked.append(("bits", count))
        return int(count > 0)

    def below(self, n):
        return self.bits(n.bit_length()) % n

    def flip(self, numerator, denominator):
        return self.below(denominator) < numerator


def work(draw, rng):
    """What is drawn, and the lines that were run for it."""
    lines = []

    def trace(frame, event, _):
        if event == "line":
            lines.append((frame.f_code.co_name, frame.f_lineno))
        return trace

    before = sys.gettrace()
    gc.disable()  # others may have functions that run whenever garbage is collected
    sys.settrace(trace)
    try:
        value = draw(rng)
    finally:
        sys.settrace(before)
        gc.enable()
    return value, lines


def words():
    """From one part in a million to the middle and back: common values and rare ones of either sign."""
    return [int(2**64 * p) for p in (1e-6, 1e-4, 0.01, 0.2, 0.4999, 0.5001, 0.7, 0.99, 0.9999, 1 - 1e-6)]


@pytest.mark.parametrize("name", LAWS)
def test_every_value_runs_the_same_lines_and_takes_the_same_coins(name):
    table = LAWS[name]()
    law = vector._Law(lambda: table, lambda _: 0, worth=0)
    law.draw(None, SYSTEM)
    found = []
    for word in words():
        tape = Tape(word)
        value, lines = work(lambda rng: law.draw(None, rng), tape)
        found.append((value, lines, tape.asked))
    assert len({value for value, _, _ in found}) >= 5
    assert all(lines == found[0][1] for _, lines, _ in found)
    assert all(asked == found[0][2] for _, _, asked in found)
    assert found[0][2][-1] == ("bits", vector._IDLE_BITS), "the wait is drawn last"


def test_the_specification_is_convicted():
    runs = {len(work(lambda rng: samplers.discrete_laplace(Fraction(10), rng), SYSTEM)[1]) for _ in range(64)}
    assert len(runs) > 1  # all alike with a probability below 1e-9: the first attempt fails one time in three


def test_a_single_draw_looks_at_every_cut():
    """A search stops early where it often goes; the law is what the cuts say either way."""
    table = LAWS["Laplace 10"]().top
    for word in words():
        assert table.one(Tape(word)) == table.first + int(np.searchsorted(table._cut, np.uint64(word)))
    assert "bisect" not in type(table).one.__code__.co_names
    assert "searchsorted" not in type(table).one.__code__.co_names


def test_the_wait_is_uniform_and_independent_of_the_draw():
    tape = Tape(2**63)
    vector._idle(tape)
    assert tape.asked == [("bits", vector._IDLE_BITS)]
    assert 2**vector._IDLE_BITS >= 512
