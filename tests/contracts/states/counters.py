"""Running sums, with their noise recorded: how it must move for a neighbour's numbers to be released as well.

What is released is linear in the noise. So a neighbour's numbers come out of noise that is moved by s, where B s is the
difference of what is released, and B is what each draw alone does to it: the package's own steps say both. The least s
is the privacy loss: sum |s_i|/scale_i for Laplace noise, which is reached far out, and |s|/sigma as the mu of Gaussian
noise. An enumeration of draws is out of reach: a Gaussian has too many values, and a tree too many nodes.
"""

import itertools
import json
import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
from scipy.optimize import brentq, linprog
from scipy.special import ndtr
from tests.contracts.states.draws import decided
from tests.contracts.states.judging import Found
from tests.contracts.states.loudness import part

from noisette.mechanisms import Gaussian, Geometric
from noisette.privacy import Neighbours
from noisette.releases.streams import buffered
from noisette.releases.streams.opening import OpeningCounter
from noisette.releases.streams.participation import Participation

UNIT = 1 << 20  # what comes, and what is drawn, in the runs that are compared: what is rounded does not count
DELTA = 1e-6


class Recorded:
    """Draws in their order, each with its scale: 0, except one."""

    def __init__(self, loud: int | None = None) -> None:
        self.loud, self.scales = loud, list[float]()

    def draw(self, size: int, scale: float) -> Any:
        """That many numbers."""
        first = len(self.scales)
        self.scales += [scale * float(part())] * size
        return np.array([UNIT if first + i == self.loud else 0 for i in range(size)], np.int64)


@contextmanager
def recorded(noise: Recorded) -> Iterator[None]:
    """Counters draw what is recorded; the Laplace noise by which buffers round is charged by itself."""

    def called(self: Any, x: Any, rng: Any = None) -> Any:
        x = np.asarray(x)
        scale = self.sigma if isinstance(self, Gaussian) else self.scale
        return x + noise.draw(x.size, float(scale)).reshape(x.shape)

    def fine(sigma: Any, bits: int, lanes: Any, rng: Any = None) -> Any:
        return lanes.times(lanes.of(noise.draw(lanes.many, float(sigma))), 1 << bits)

    def rounding(scale: Any, size: int, *, rng: Any = None) -> Any:
        return np.zeros(size, np.int64)

    with decided(), ExitStack() as stack:
        for place, name, instead in (
            (Geometric, "__call__", called),
            (Gaussian, "__call__", called),
            (buffered, "fine_gaussian", fine),
            (buffered, "discrete_laplace", rounding),
        ):
            stack.enter_context(mock.patch.object(place, name, instead))
        yield


def released(counter: Any, came: Any, noise: Recorded) -> Any:
    """All sums of a stream, which is written and read again after every step."""
    with recorded(noise):
        state, found = counter.begin(came.shape[1]).state(), []
        for row in came:
            running = counter.resume(json.loads(json.dumps(state)))
            found.append(running.step(row))
            state = running.state()
    return np.concatenate(found) / UNIT


def shifts(run: Any, shape: tuple[int, int]) -> tuple[Any, Any]:
    """What each draw alone does to what is released, and the scale of each."""
    quiet = Recorded()
    nothing = run(np.zeros(shape, np.int64), quiet)
    columns = [run(np.zeros(shape, np.int64), Recorded(i)) - nothing for i in range(len(quiet.scales))]
    return np.stack(columns, axis=1), np.array(quiet.scales)


def counter(subject: Any, steps: int = 4, many: int = 1) -> Iterator[Found]:
    """All that one unit may do in some steps; under replace, another one's instead."""
    yield from moves(subject, subject.who, lambda came, noise: released(subject, came, noise), steps, many)


def window(subject: Any, steps: int = 5, many: int = 1) -> Iterator[Found]:
    """The same for windows, over more than two blocks."""
    who = subject.counter.who
    yield from moves(subject, who, lambda came, noise: released(subject, came, noise), steps, many)


def moves(subject: Any, who: Participation, run: Any, steps: int, many: int) -> Iterator[Found]:
    """What a unit's events do to all that is released, against what is stated."""
    B, scales = shifts(run, (steps, many))
    noise, moved = subject.parts[0]
    events = units(who, steps, many)
    if moved.neighbours is Neighbours.REPLACE:
        events = np.unique((events[:, None] - events[None]).reshape(-1, steps * many), axis=0)
    each = [run(row.reshape(steps, many) * UNIT, Recorded()) for row in np.eye(steps * many, dtype=np.int64)]
    quiet = run(np.zeros((steps, many), np.int64), Recorded())
    differences = events @ (np.stack(each) - quiet)
    for came, difference in zip(events, differences, strict=True):
        if came.any():
            yield Found(shown(came, many), "without", *losses(subject, noise, B, scales, difference))


def losses(subject: Any, noise: Any, B: Any, scales: Any, difference: Any) -> tuple[float, float]:
    """The stated epsilon and the true one; with Gaussian noise at delta, where also its part for rounding counts."""
    guarantee = subject.guarantee() if callable(subject.guarantee) else subject.guarantee
    if isinstance(noise, Gaussian):
        return guarantee.epsilon_at(DELTA), gaussian_epsilon(least(B * scales, difference, 2))
    return float(guarantee.epsilon), least(B * scales, difference, 1)


def least(B: Any, difference: Any, norm: int) -> float:
    """The least norm of s with B s = difference; infinite where no noise makes that difference."""
    s, *_ = np.linalg.lstsq(B, difference, rcond=None)
    if np.abs(B @ s - difference).max() > 1e-6:
        return math.inf
    if norm == 2:
        return float(np.linalg.norm(s))
    n = B.shape[1]
    both = np.hstack([B, -B])
    return float(linprog(np.ones(2 * n), A_eq=both, b_eq=difference, bounds=(0, None)).fun)


def gaussian_epsilon(mu: float) -> float:
    """The epsilon at DELTA of two Gaussians that are mu deviations apart."""
    if not math.isfinite(mu) or not mu:
        return mu

    def over(epsilon: float) -> float:
        return float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)) - DELTA

    return float(brentq(over, 0, 50 + mu * mu, xtol=1e-12)) if over(0) > 0 else 0.0


def units(who: Participation, steps: int, many: int) -> Any:
    """All that one unit may add in each step and key, and take away."""
    adds = [c for k in range(who.events + 1) for c in itertools.combinations_with_replacement(range(steps), k)]
    adds = [c for c in adds if all(b - a >= who.apart for a, b in itertools.pairwise(c))]
    takes = [c for k in range(who.taken + 1) for c in itertools.combinations_with_replacement(range(steps), k)]
    one = [np.bincount(np.array(a, int), minlength=steps) - np.bincount(np.array(t, int), minlength=steps)
           for a in adds for t in takes]  # fmt: skip
    found = []
    for keys in itertools.combinations(range(many), min(who.groups, many)):
        for chosen in itertools.product(one, repeat=len(keys)):
            came = np.zeros((steps, many), np.int64)
            came[:, list(keys)] = np.stack(chosen, axis=1)
            found.append(came.ravel())
    return np.unique(np.stack(found), axis=0)


def shown(came: Any, many: int) -> tuple[Any, ...]:
    """The events of each step."""
    return tuple(came.tolist()) if many == 1 else tuple(map(tuple, came.reshape(-1, many).tolist()))


# Keys that open


def opening(subject: OpeningCounter, steps: int = 2) -> Iterator[Found]:
    """Sums of keys that others have, too, which all open; then a key of one unit alone, and how often it opens."""
    who, many = subject.charged.who, subject.charged.many
    eager = replace(subject, threshold=-(1 << 60))
    yield from moves(subject, who, lambda came, noise: opened(eager, came, noise), steps, many)
    yield from alone(subject, who)


def opened(subject: OpeningCounter, came: Any, noise: Recorded) -> Any:
    """The sums of all keys after every step, in the order of the keys."""
    names = [f"k{i}" for i in range(came.shape[1])]
    with recorded(noise):
        state, found = subject.begin().state(), []
        for row in came:
            running = subject.resume(json.loads(json.dumps(state)))
            sums = dict(zip(names, running.step(dict(zip(names, map(int, row), strict=True))), strict=True))
            found += [sums[name] for name in names]
            state = running.state()
    return np.array(found) / UNIT


def alone(subject: OpeningCounter, who: Participation) -> Iterator[Found]:
    """The noise from which on a key of one unit alone opens in the first step, and how often there is as much."""

    def opens(noise: int) -> bool:
        def fine(sigma: Any, bits: int, lanes: Any, rng: Any = None) -> Any:
            return lanes.times(lanes.of(np.full(lanes.many, noise, np.int64)), 1 << bits)

        running = subject.begin()
        with recorded(Recorded()), mock.patch.object(buffered, "fine_gaussian", fine):
            running.step({"alone": who.events})
        return bool(running.opened)

    low, high = 0, 1 << 30
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if opens(middle) else (middle, high)
    keys = who.groups * (1 if subject.parts[0][1].neighbours is Neighbours.ADD_REMOVE else 2)
    chance = float(ndtr(-high / float(subject.counter.sigma * part())))
    yield Found("a key alone", "none", float(subject.delta), 1 - (1 - chance) ** keys)


# A stream of a table that grows


def publishing(offer: Any, machine: Any = None, steps: int = 3, most: int = 2) -> Iterator[Found]:
    """All counts of a group so far, and the same without a unit whose part of them never falls."""
    made, limit = machine or offer.machine, offer.who.events

    def run(sofar: Any, noise: Recorded) -> Any:
        with recorded(noise):
            state, found = made.begin(), []
            for row in sofar:
                seen, state = made.step(made.read(json.loads(json.dumps(vars(state)))), row.tolist())
                found.append(seen)
        return np.concatenate(found) / UNIT

    B, scales = shifts(run, (steps, made.many))
    for counts in itertools.product(range(most + 1), repeat=steps):
        for own in itertools.product(range(limit + 1), repeat=steps):
            if all(a <= b for a, b in itertools.pairwise(own)) and all(
                u <= n for u, n in zip(own, counts, strict=True)
            ):
                both = [run(np.array(rows)[:, None] * UNIT, Recorded()) for rows in (counts, np.subtract(counts, own))]
                stated, true = losses(offer, offer.counter.parts[0][0], B, scales, both[0] - both[1])
                yield Found(counts, tuple(np.subtract(counts, own).tolist()), stated, true)
