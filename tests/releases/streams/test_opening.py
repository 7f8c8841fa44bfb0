"""Keys that open as they come: the chance of opening by one unit alone, and the law of all releases, enumerated."""

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from tests import coins

from noisette.errors import InputError
from noisette.exact import vector
from noisette.mechanisms import Geometric
from noisette.privacy import ZCDP, Approx, Neighbours, Pure
from noisette.releases.streams.opening import Opening, OpeningCounter, reaching
from noisette.releases.streams.participation import Participation

SPEND = Approx(4, "1e-6")


# The threshold


def opens(counter, number):
    """P(Gaussian + Laplace of scale 1/32 >= number - 1/2), summed over steps, by another way than the threshold is."""
    total = 0.0
    for step in range(1, counter.horizon + 1):
        wide = float(counter.sigma) * math.sqrt(float(counter.buffers.noise(step)))

        def density(r, wide=wide):
            return 16 * math.exp(-32 * abs(r)) * norm.sf((number - 0.5 - r) / wide)

        total += quad(density, -2, 0)[0] + quad(density, 0, 2)[0]
    return total


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("neighbours", list(Neighbours), ids=str)
def test_the_threshold_is_the_least_that_holds(steps, neighbours):
    """One less is convicted: with it, what one unit alone has opens more often than delta says."""
    made = OpeningCounter.calibrated(SPEND, horizon=steps, neighbours=neighbours)
    keys = 1 if neighbours is Neighbours.ADD_REMOVE else 2
    assert made.delta == Fraction(1, 2 * 10**6)
    assert keys * opens(made.counter, made.threshold - 1) <= made.delta
    assert keys * opens(made.counter, made.threshold - 2) > made.delta
    assert opens(made.counter, made.threshold) == pytest.approx(
        reaching(made.counter, made.threshold, made.delta), rel=0.1
    )


@pytest.mark.slow
def test_what_one_unit_moves_is_below_the_threshold():
    one, ten = (OpeningCounter.calibrated(SPEND, horizon=9, who=Participation(k)) for k in (1, 10))
    assert ten.threshold > 9 * one.threshold
    assert ten.guarantee() <= SPEND


@pytest.mark.parametrize("spend", [Pure(1), ZCDP("1/10")], ids=str)
def test_without_a_delta_nothing_opens(spend):
    with pytest.raises(InputError, match="needs a delta"):
        OpeningCounter.calibrated(spend, horizon=9)
    with pytest.raises(InputError, match="at least 1e-200"):
        OpeningCounter.calibrated(Approx(1, Fraction(1, 10**250)), horizon=9)
    with pytest.raises(InputError, match="at most 1,024 steps"):
        OpeningCounter.calibrated(SPEND, horizon=1025)


@pytest.mark.slow
def test_a_tiny_delta_has_a_larger_threshold():
    found = [OpeningCounter.calibrated(Approx(1, Fraction(1, 10**power)), horizon=9) for power in (6, 60, 180)]
    assert found[0].threshold < found[1].threshold < found[2].threshold
    assert found[2].guarantee().neighbours is Neighbours.ADD_REMOVE


# The law of all releases, by the code that runs

EPSILON, FAR = 1.0, 14
CHANCE = {z: float(Geometric(1).law.pmf(z)) for z in range(-FAR, FAR + 1)}
REST = 4 * (1 - sum(CHANCE.values()))  # what the enumeration leaves out, of two draws and two streams


class Given:
    """A counter whose noise is given: noise number t is that of the sum after step t."""

    horizon = 2

    def __init__(self, path):
        self.path = path

    def begin(self, many=1):
        return self.resume({"sums": [0] * many, "steps": 0})

    def resume(self, state):
        return GivenSums(self.path, list(state["sums"]), state["steps"])

    def joined(self, one, other):
        return {"sums": [*one["sums"], *other["sums"]], "steps": other["steps"]}


class GivenSums:
    def __init__(self, path, sums, steps):
        self.path, self.sums, self.steps = path, sums, steps

    def step(self, x, rng=None):
        self.sums, self.steps = [a + int(b) for a, b in zip(self.sums, x, strict=True)], self.steps + 1
        return np.array(self.sums) + self.path[self.steps - 1]

    def state(self):
        return {"sums": self.sums, "steps": self.steps}


def law(stream, threshold):
    """P(all that is released) of two steps of one key, where each event moves both nodes: noise z1, then z1 + z2."""
    found = {}
    for one, two in itertools.product(CHANCE, repeat=2):
        running = OpeningCounter(Given((one, one + two)), threshold, Fraction(0)).begin()
        released = tuple(tuple(running.step({"key": n} if n is not None else {})) for n in stream)
        found[released] = found.get(released, 0.0) + CHANCE[one] * CHANCE[two]
    return found


def stated(threshold):
    """The chance that a key of one unit opens, summed over both steps."""
    once = sum(p for z, p in CHANCE.items() if z + 1 >= threshold)
    twice = sum(CHANCE[a] * CHANCE[b] for a, b in itertools.product(CHANCE, repeat=2) if a + b + 1 >= threshold)
    return once + twice


def worst(one, two):
    """The largest delta at epsilon, both ways."""
    return max(
        sum(max(0.0, p.get(k, 0.0) - math.exp(EPSILON) * q.get(k, 0.0)) for k in p) for p, q in [(one, two), (two, one)]
    )


ALONE = ((1, 0), (None, None))  # a key of one unit, and nobody's
SHARED = ((1, 1), (None, 1))  # somebody else comes in the second step
LATE = ((None, 2), (None, 1))


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("pair", [ALONE, SHARED, LATE], ids=["alone", "shared", "late"])
def test_all_releases_keep_epsilon_and_delta(pair):
    """Noise of scale 1 is worth epsilon 1 for an event that one node holds: none of these moves z1 and z2 apart."""
    threshold = 6
    found = worst(*(law(stream, threshold) for stream in pair))
    assert found <= stated(threshold) + REST
    if pair is ALONE:
        assert worst(*(law(stream, threshold - 1) for stream in pair)) > stated(threshold) + REST


@pytest.mark.slow
def test_noise_that_begins_when_a_key_is_first_seen_is_convicted(monkeypatch):
    """The twin has no silent steps: the noise of a key tells since when it is there."""
    monkeypatch.setattr(Opening, "_silent", lambda self, many, rng: self._made.counter.begin(many).state())
    threshold = 6
    assert worst(*(law(stream, threshold) for stream in SHARED)) > stated(threshold) + REST


def test_keys_open_once_and_stay_and_a_state_goes_on_after_json():
    made = OpeningCounter(Given((0, 0)), 3, Fraction(0))
    running = made.begin()
    assert running.step({"b": 5, "a": 4, "rare": 1}) == [4, 5]  # in an order that tells nothing about rows
    again = made.resume(json.loads(json.dumps(running.state())))
    assert again.step({"rare": 3, "new": 9}) == [4, 5, 9, 4]
    assert again.opened == ["a", "b", "new", "rare"]


def test_what_is_rounded_is_charged_for_the_keys_that_one_unit_may_have():
    one, two = (OpeningCounter.calibrated(SPEND, horizon=9, neighbours=relation) for relation in Neighbours)
    assert [made.parts[1][1].l1 for made in (one, two)] == [4 * 9, 2 * 4 * 9]
    assert two.guarantee() <= SPEND.restated(Neighbours.REPLACE)


def test_other_keys_are_the_same_to_the_last_bit():
    """With the same coins, the noise of a key does not depend on what comes in another."""
    made, found = OpeningCounter.calibrated(SPEND, horizon=9).counter, []
    for other in (0, 1):
        coins.fix("other keys")
        for each in vars(vector).values():
            if hasattr(each, "cache_clear"):
                each.cache_clear()  # after some draws of a law a table draws it, with other coins
        running = made.begin(2)
        found.append([(int(running.step([3, other])[0]), running.state()["sums"][1]) for _ in range(5)])
    assert found[0] == found[1]


def test_every_step_draws_the_past_of_a_sum_whether_or_not_there_are_new_keys(monkeypatch):
    drawn, silent = [], Opening._silent
    monkeypatch.setattr(Opening, "_silent", lambda self, many, rng: drawn.append(many) or silent(self, many, rng))
    running = OpeningCounter(Given([0] * 9), 3, Fraction(0)).begin()
    for came in ({}, {"a": 1}, {"a": 2}, {"b": 1, "c": 1}):
        running.step(came)
    assert drawn == [1, 1, 1, 2]


def test_joined_states_go_on_as_each_by_itself():
    """With the noise of all keys close to 0, sums of both go on exactly."""
    made = OpeningCounter.calibrated(SPEND, horizon=9).counter
    quiet = replace(made, sigma=Fraction(1, 10**9))
    one, two = quiet.begin(2), quiet.begin(1)
    for _ in range(3):
        one.step([5, -7])
        two.step([100])
    together = quiet.resume(json.loads(json.dumps(quiet.joined(one.state(), two.state()))))
    assert together.steps == 3
    assert np.abs(np.asarray(together.step([1, 1, 1])) - [16, -20, 301]).max() <= 1  # rounded, seldom by 1
