"""How far one unit moves the numbers behind a question, under either relation, and that all of them are paid for."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from noisette.exact.random import SYSTEM
from noisette.mechanisms import Geometric
from noisette.privacy import Neighbours, Pure
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.measure import Contribution, Measure
from noisette.questions import self_join, trimmed_mean
from noisette.questions.cube import Counting
from noisette.questions.oracle import Consulting
from noisette.questions.parts.noisy_number import _size_moved
from noisette.questions.parts.per_unit import UnitCells
from noisette.questions.parts.records import changed
from noisette.questions.parts.value_cells import ValueCells
from noisette.questions.stream import Publishing

ADD_REMOVE, REPLACE = Neighbours
PREPARED = SimpleNamespace(part=Contribution(1, 3, 3))


def sized(l1, l2_squared, linf, l0, neighbours):
    return Sensitivity(Fraction(l1), Fraction(l2_squared), Fraction(linf), l0, neighbours=neighbours)


def test_a_replaced_unit_changes_twice_as_many_records():
    assert changed(PREPARED, ADD_REMOVE) == sized(3, 9, 3, 3, ADD_REMOVE)
    assert changed(PREPARED, REPLACE) == sized(6, 36, 6, 6, ADD_REMOVE)


def test_cells_of_units_move_by_all_steps_of_a_unit():
    cells = SimpleNamespace(steps=4)
    assert UnitCells.sensitivity(cells, ADD_REMOVE) == sized(4, 16, 4, 2, ADD_REMOVE)
    assert UnitCells.sensitivity(cells, REPLACE) == sized(8, 32, 4, 4, REPLACE)


def test_cells_of_values_move_by_all_rows_of_a_unit():
    cells = SimpleNamespace(measure=Measure("histogram", low=0, high=9), prepared=PREPARED)
    assert ValueCells.sensitivity(cells, ADD_REMOVE) == sized(3, 9, 3, 3, ADD_REMOVE)
    assert ValueCells.sensitivity(cells, REPLACE) == sized(6, 18, 3, 6, REPLACE)


def test_a_cube_moves_by_all_rows_of_a_unit():
    for neighbours, known in ((ADD_REMOVE, (3, 9, 3, 3)), (REPLACE, (6, 18, 3, 6))):
        counting = SimpleNamespace(prepared=PREPARED, neighbours=neighbours)
        assert Counting.sensitivity.fget(counting) == sized(*known, neighbours)


def test_the_size_behind_a_number_moves_with_every_row():
    moved = _size_moved(SimpleNamespace(size_change=2), sized(3, 9, 3, 3, ADD_REMOVE))
    assert moved == sized(6, 36, 6, 1, ADD_REMOVE)


def test_the_first_count_of_an_oracle_is_paid_for():
    moved = sized(8, 32, 4, 2, ADD_REMOVE)
    assert Consulting.counted.fget(SimpleNamespace(sensitivity=moved)) == sized(4, 16, 4, 1, ADD_REMOVE)
    pays = SimpleNamespace(guarantee=lambda moved: Pure("1/2", neighbours=ADD_REMOVE))
    consulting = SimpleNamespace(mechanism=pays, counting=pays, sensitivity=moved, counted=moved)
    assert Consulting.guarantee.fget(consulting) == Pure(1, neighbours=ADD_REMOVE)


@pytest.mark.parametrize("epsilon", ["1/2", "3"])
def test_a_stream_states_what_its_counter_does(epsilon):
    part = SimpleNamespace(guarantee=lambda moved: Pure("1/9"))
    counter = SimpleNamespace(guarantee=lambda: Pure(epsilon), parts=[(part, None)])
    assert Publishing.guarantee.fget(SimpleNamespace(counter=counter)) == Pure(epsilon)


# What is read and drawn


def test_pairs_are_drawn_with_the_noise_of_each_limit(monkeypatch):
    monkeypatch.setattr(self_join, "_valued", lambda prepared, exact: exact)
    monkeypatch.setattr(self_join, "truncated", lambda exact, limits: [5, 5])
    race = SimpleNamespace(prepared=SimpleNamespace(request=None), limits=(1, 2), noise=[Geometric(10**9)] * 2)
    source = SimpleNamespace(aggregate=lambda *asked: None)
    drawn = self_join.Race.draw(race, source, {}, b"", SYSTEM)["pairs"].to_pylist()
    assert 5 not in drawn  # fails with p < 1e-8, and these coins are fixed


def test_records_of_a_trimmed_mean_lie_within_the_bounds(monkeypatch):
    monkeypatch.setattr(trimmed_mean, "read_records", lambda *asked: np.array([-100, 3, 5, 100]))
    means = SimpleNamespace(ruler=SimpleNamespace(bounds=(2, 10)))
    assert trimmed_mean.Means.records(means, None, None, {}, b"").tolist() == [0, 1, 3, 8]
