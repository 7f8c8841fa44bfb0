"""How far one unit moves what is measured, by its definition, and that all parts of a release are paid for."""

from fractions import Fraction
from types import SimpleNamespace

import pytest

from noisette.mechanisms import Gaussian
from noisette.privacy import Approx, Neighbours, Pure
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.measure import Contribution
from noisette.releases.blocks.votes import Vote
from noisette.releases.sketches.distinct import _moved as moved_numbers
from noisette.releases.sketches.misra_gries import moved_shared
from noisette.releases.sketches.projection import Projection
from noisette.releases.strategies.product import _multiplied
from noisette.releases.streams.alarms import Alarm
from noisette.releases.streams.buffered import BufferedCounter
from noisette.releases.streams.buffered import _moved as moved_buffers
from noisette.releases.streams.opening import OpeningCounter
from noisette.releases.streams.participation import Participation
from noisette.releases.streams.windows import _repeated

ADD_REMOVE, REPLACE = Neighbours


def sized(l1, l2_squared, linf, l0, neighbours=ADD_REMOVE):
    return Sensitivity(Fraction(l1), Fraction(l2_squared), Fraction(linf), l0, neighbours=neighbours)


def test_numbers_that_move_together_move_farther_than_one():
    assert moved_numbers(2, 3, ADD_REMOVE) == sized(6, 12, 2, 3)
    assert _repeated(sized(6, 12, 2, 3), 4) == sized(24, 48, 2, 12)
    assert _multiplied([sized(2, 2, 1, 2), sized(6, 12, 2, 3)], ADD_REMOVE) == sized(12, 24, 2, 6)


@pytest.mark.parametrize(
    ("merged", "neighbours", "most"), [(True, REPLACE, 30), (False, REPLACE, 15), (True, ADD_REMOVE, 15)]
)
def test_a_replaced_unit_moves_both_sides_of_merged_sketches(merged, neighbours, most):
    assert moved_shared(4, rows=3, merged=merged, neighbours=neighbours) == sized(most, most**2, most, 1, neighbours)


def test_a_replaced_unit_turns_signs_in_a_projection():
    sketch, part = SimpleNamespace(dimension=4), Contribution(2, 3, 3)
    assert Projection.sensitivity(sketch, part, ADD_REMOVE) == sized(12, 36, 3, 4)
    assert Projection.sensitivity(sketch, part, REPLACE) == sized(24, 144, 6, 4, REPLACE)


def test_a_vote_states_what_a_unit_can_move():
    terms = SimpleNamespace(for_units=lambda cost: cost, sensitivity=3)
    assert Vote.guarantee.fget(SimpleNamespace(terms=terms, mechanism=SimpleNamespace(guarantee=Pure))) == Pure(3)


# Streams


@pytest.mark.parametrize(("neighbours", "most"), [(ADD_REMOVE, 3), (REPLACE, 6)])
def test_an_alarm_counts_the_comparison_that_rises_most(neighbours, most):
    alarm = Alarm.calibrated(1, drift=1, threshold=9, events=3, neighbours=neighbours)
    assert alarm.moved == sized(2 * most, 2 * most**2, most, 2)


@pytest.mark.parametrize("times", [1, 2, 7])
def test_a_replaced_unit_moves_the_buffers_of_a_stream_farther(times):
    moved = moved_buffers(10.0, Fraction(times), 5, REPLACE)
    assert moved.l2_squared == 10 * times


def test_the_rounding_of_a_stream_is_paid_for():
    counter = BufferedCounter.calibrated(Approx(1, "1e-6"), horizon=8, buffers=1)
    (noise, moved), (rounding, rounded) = counter.parts
    assert counter.guarantee() == noise.guarantee(moved) + rounding.guarantee(rounded)


def test_keys_that_open_take_a_delta_for_each_key_of_a_unit():
    one = OpeningCounter.calibrated(Approx(1, "1e-6"), horizon=4)
    assert one.guarantee().delta_at(60) >= 5e-7
    assert isinstance(one.charged.parts[0][0], Gaussian)
    several = OpeningCounter.calibrated(Approx(1, "1e-6"), horizon=4, who=Participation(groups=5))
    assert several.charged.many == 5
    assert OpeningCounter.calibrated(Approx(1, "1e-6"), horizon=4, neighbours=REPLACE).charged.many == 2
