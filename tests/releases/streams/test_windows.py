"""Windows: known figures, exact sums without noise, the law of their errors, and one block for one event."""

import itertools
import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ellipk

from noisette.errors import InputError
from noisette.mechanisms import Geometric
from noisette.privacy import ZCDP, Approx, Neighbours
from noisette.releases.streams.buffered import BufferedCounter, _buffers
from noisette.releases.streams.buffers import best_buffers
from noisette.releases.streams.participation import Participation
from noisette.releases.streams.square_root import SquareRootCounter
from noisette.releases.streams.tree_counter import TreeCounter
from noisette.releases.streams.windows import SlidingWindow


@pytest.mark.parametrize(("width", "most", "mean"), [(64, 3.669, 3.540), (1024, 5.207, 5.087)])
def test_windows_have_their_known_deviations(width, most, mean):
    window = SlidingWindow(SquareRootCounter.calibrated(ZCDP("1/2"), horizon=width))
    found = window.deviations(np.arange(width + 1, 2 * width + 1))
    assert found.max() == pytest.approx(most, rel=1e-3)
    assert np.sqrt((found**2).mean()) == pytest.approx(mean, rel=1e-3)


@pytest.mark.parametrize(("width", "below", "above"), [(7, 7, 9), (64, 24, 32), (1024, 64, 128)])
def test_from_how_many_windows_on_blocks_are_better(width, below, above):
    blocks = SlidingWindow(SquareRootCounter.calibrated(ZCDP("1/2"), horizon=width))
    worst = float(blocks.deviations(np.arange(width + 1, 2 * width + 1)).max())
    for windows, better in [(below, False), (above, True)]:
        long = SquareRootCounter.calibrated(ZCDP("1/2"), horizon=width * windows)
        assert (worst < float(long.between([width * (windows - 1)], [width * windows])[0])) is better


@pytest.mark.parametrize(("windows", "expected", "blocks_win"), [(16, 3.571, False), (1024, 4.233, True)])
def test_the_difference_of_two_sums_is_better_in_short_streams_only(windows, expected, blocks_win):
    """Two sums of one stream share most of their noise: the difference has less than sqrt(2) times that of one."""
    blocks = SlidingWindow(SquareRootCounter.calibrated(ZCDP("1/2"), horizon=64))
    worst = float(blocks.deviations(np.arange(65, 129)).max())
    long = SquareRootCounter.calibrated(ZCDP("1/2"), horizon=64 * windows)
    difference = float(long.between([64 * windows - 64], [64 * windows])[0])
    assert difference == pytest.approx(expected, rel=1e-3)
    assert (worst < difference) is blocks_win


def test_without_noise_windows_are_exact():
    counter = TreeCounter.calibrated(1, horizon=7)
    window = SlidingWindow(TreeCounter(Geometric("1/1000"), counter.moved, 3, 7))
    running, came = window.begin(2), []
    for step in range(40):
        came.append([step % 5, step])
        assert running.step(came[-1]).tolist() == np.sum(came[-7:], axis=0).tolist()
    again = window.resume(json.loads(json.dumps(running.state())))
    came.append([3, 3])
    assert again.step([3, 3]).tolist() == np.sum(came[-7:], axis=0).tolist()


@pytest.mark.slow
def test_errors_of_windows_are_as_stated():
    """12 000 draws have a relative error of .0065: 8 % are beyond a chance of 1e-9."""
    many, width = 12_000, 6
    window = SlidingWindow(BufferedCounter.calibrated(Approx(1, "1e-9"), horizon=width, many=many))
    running = window.begin(many)
    for step in range(1, 16):
        errors = running.step(np.full(many, 2)) - 2.0 * min(step, width)
        assert errors.std() == pytest.approx(float(window.deviations([step])[0]), rel=0.08)


def test_an_event_is_in_one_block_and_so_costs_one():
    counter = TreeCounter.calibrated(1, horizon=7)
    assert SlidingWindow(counter).guarantee() == counter.guarantee()


def test_several_events_pay_for_what_each_of_their_blocks_rounds():
    counter = BufferedCounter.calibrated(ZCDP("1/10"), horizon=7, who=Participation(3))
    replaced = BufferedCounter.calibrated(ZCDP("1/10"), horizon=7, who=Participation(3), neighbours=Neighbours.REPLACE)
    one = replace(counter, who=Participation(1))
    windows = [*map(SlidingWindow, (counter, one, replaced)), SlidingWindow(replaced, 5), SlidingWindow(one, 5)]
    assert [window.parts[1][1].l1 / 28 for window in windows] == [3, 1, 6, 5, 1]  # in no more blocks than there are
    assert counter.guarantee() <= SlidingWindow(counter).guarantee() <= ZCDP("1/10")


def test_events_in_several_blocks_cost_no_more_than_all_in_one():
    """All ways to put four events into blocks of five steps, at the worst place in each: squares of moves add up."""
    matrix = np.array([np.pad(best_buffers(5, 2).weights(5), (j, 0))[:5] for j in range(5)]).T
    stated = best_buffers(5, 2).square(5, Participation(4))
    for parts in ([4], [3, 1], [2, 2], [2, 1, 1], [1, 1, 1, 1]):
        worst = sum(max((matrix[:, list(p)].sum(axis=1) ** 2).sum() for p in patterns(many)) for many in parts)
        assert worst <= stated * (1 if parts == [4] else 0.7)


def patterns(many):
    return itertools.combinations_with_replacement(range(5), many)


def test_windows_that_tile_the_time_cost_what_one_number_does():
    """Hops are steps: a window of four weeks after every week has window=4, one that tiles has window=1."""
    tiles = SlidingWindow(SquareRootCounter.calibrated(ZCDP("1/2"), horizon=1))
    assert tiles.deviations([1, 2, 50]) == pytest.approx([1.0] * 3, rel=1e-4)


@pytest.mark.parametrize(("most", "within"), [(2, 3), (3, 3), (2, 5)])
def test_events_within_a_window_are_protected_up_to_a_cap(most, within):
    """Event-window level: all that `most` events in any `within` steps of ten do; without a cap there is no bound."""
    matrix = np.array([np.pad(best_buffers(10, 2).weights(10), (j, 0))[:10] for j in range(10)]).T

    def worst(patterns):
        inside = [p for p in patterns if max(p) - min(p) < within]
        return max(float((matrix[:, list(p)].sum(axis=1) ** 2).sum()) for p in inside)

    several = worst(itertools.combinations_with_replacement(range(10), most))
    once = worst(itertools.combinations(range(10), most))  # at most one event a step
    square = best_buffers(10, 2).square
    assert several == pytest.approx(square(10, Participation(most)))
    assert once == pytest.approx(square(10, Participation(most, apart=1)))
    assert worst(itertools.combinations_with_replacement(range(10), most + 1)) > square(10, Participation(most))


def test_events_that_are_apart_may_lie_in_several_blocks_and_are_refused():
    with pytest.raises(InputError, match="apart=0"):
        SlidingWindow(BufferedCounter.calibrated(ZCDP("1/10"), horizon=7, who=Participation(3, apart=7)))


# Sums that fade


def kept(half_life):
    """What sums keep of themselves in a step."""
    return 2.0 ** (-1 / half_life)


@pytest.mark.parametrize(("half_life", "expected"), [(1, 1.0732), (7, 1.4681), (30, 1.8828), (365, 2.6591)])
def test_sums_that_fade_cost_what_the_square_root_of_their_weights_does(half_life, expected):
    """(1 - g z)^(-1/2) has squares that add up to 2 K(g)/pi, and noise on each step would have 1/sqrt(1 - g^2)."""
    made = _buffers(10**6, None, half_life)
    found = np.sqrt(made.column(10**6) * float(made.noise(10**6)))
    assert expected == pytest.approx(2 / np.pi * ellipk(kept(half_life) ** 2), rel=1e-4)
    assert expected < found < 1.003 * expected
    assert found < 1 / np.sqrt(1 - kept(half_life) ** 2)


def test_without_noise_sums_that_fade_are_exact():
    counter = BufferedCounter.calibrated(ZCDP("1/2"), horizon=40, half_life=3)
    running, total = replace(counter, sigma=Fraction(1, 10**9)).begin(), 0.0
    for step in range(40):
        total = total * kept(3) + 1000 * (step % 7) - 900
        assert abs(float(running.step([1000 * (step % 7) - 900])[0]) - total) < 1.01


def test_no_pattern_of_events_moves_sums_that_fade_further():
    made = _buffers(6, 2, 2)
    matrix = np.array([np.pad(made.weights(6), (j, 0))[:6] for j in range(6)]).T
    patterns = itertools.combinations_with_replacement(range(6), 3)
    worst = max(float((matrix[:, list(pattern)].sum(axis=1) ** 2).sum()) for pattern in patterns)
    assert worst <= made.square(6, Participation(3)) <= worst * (1 + 1e-6)


@pytest.mark.slow
def test_errors_of_sums_that_fade_are_as_stated():
    """12 000 draws have a relative error of .0065: 8 % are beyond a chance of 1e-9."""
    many = 12_000
    counter = BufferedCounter.calibrated(Approx(1, "1e-9"), horizon=20, many=many, half_life=2)
    running, errors = counter.begin(many), []
    for step in range(1, 13):
        errors.append(running.step(np.full(many, 8)) - 8 * (1 - kept(2) ** step) / (1 - kept(2)))
        assert errors[-1].std() == pytest.approx(float(counter.deviations([step])[0]), rel=0.08)
    assert (errors[11] - errors[6]).std() == pytest.approx(float(counter.between([7], [12])[0]), rel=0.08)


def test_a_state_goes_on_with_the_buffers_it_was_begun_with():
    """Another version of what finds the best buffers finds others: noise that is drawn so far belongs to the first."""
    counter = BufferedCounter.calibrated(ZCDP("1/2"), horizon=40)
    running = counter.begin()
    running.step([3])
    other = BufferedCounter.calibrated(ZCDP("1/8"), horizon=40, buffers=1)
    again = other.resume(json.loads(json.dumps(running.state())))
    assert again._counter.buffers == counter.buffers
    assert again._counter.sigma == counter.sigma
