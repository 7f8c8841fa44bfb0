"""What is suppressed leaves no trace: groups of unknown keys are gone, numbers of declared ones are NaN."""

from fractions import Fraction

import numpy as np
import pyarrow

from noisette.query.draw import Noised
from noisette.query.measure import Measure

ROWS, HALF = Measure("rows"), (Measure("rows"), Fraction(1, 2))
HIDDEN = np.array([True, False, True])


def noised(keys):
    numbers = np.array([1.0, 2.0, 3.0])
    return Noised(keys, 3, {ROWS: numbers}, {HALF: (numbers, numbers - 1, numbers + 1)})


def test_hidden_groups_of_unknown_keys_are_left_out():
    shown = noised(pyarrow.table({"key": ["a", "b", "c"]})).without(HIDDEN)
    assert (shown.size, shown.keys.to_pydict()) == (1, {"key": ["b"]})
    assert shown.measures[ROWS].tolist() == [2]
    assert [ends.tolist() for ends in shown.quantiles[HALF]] == [[2], [1], [3]]


def test_hidden_groups_of_declared_keys_have_no_numbers():
    shown = noised(None).without(HIDDEN)
    assert shown.numbered.tolist() == [False, True, False]
    for numbers in (shown.measures[ROWS], *shown.quantiles[HALF]):
        assert np.isnan(numbers).tolist() == HIDDEN.tolist()
