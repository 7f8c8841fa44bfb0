"""States that are asked, watched or seized, by the exact law of what is seen."""

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from tests.contracts.states.draws import Machine, words
from tests.contracts.states.judging import Found

from noisette.errors import BudgetError, InputError
from noisette.privacy import Neighbours
from noisette.privacy.sensitivity import Sensitivity
from noisette.releases.streams.alarms import Alarm
from noisette.releases.streams.pan_private import PanPrivateDensity

ONE_WAY, BOTH_WAYS = (0, 1), (-1, 0, 1)


# A state that may be seized


def pan_private(density: PanPrivateDensity, letters: str = "IAR", longest: int = 5) -> Iterator[Found]:
    """One person; I an intrusion, A the person appears (the neighbour: nobody does), R a release.

    A released number is cut off beyond 1 on both sides of what is possible: its ratios are constant there.
    """
    machine = seizable(density)
    for events in words(letters, longest):
        try:
            stated = density.guarantee(releases=events.count("R"), intrusions=events.count("I"))
        except InputError:
            continue  # refused, as more than one intrusion is
        others = tuple("-" if event == "A" else event for event in events)
        yield Found("".join(events), "".join(others), float(stated.epsilon), machine.loss(events, others))


def seizable(density: PanPrivateDensity) -> Machine:
    """The state of one person: its bits, as they are after each event."""
    p = density.chance

    def step(bits: tuple[bool, ...], event: str) -> tuple[Any, tuple[bool, ...]]:
        now = np.array(bits)
        if event == "A":
            return None, tuple(density.see(now, [0]).tolist())
        if event == "R":
            share = density.release(now).share
            return int(np.clip(round((share * (2 * p - 1) + 1 - p) * density.people), -1, 2)), bits
        return bits if event == "I" else None, bits

    return Machine(lambda: tuple(density.begin().tolist()), step)


# Alarms


def alarm(watched: Alarm, numbers: Sequence[int] = (0, 2), steps: int = 3, events: int = 1) -> Iterator[Found]:
    """What comes in each step, and a unit's events more; under replace as many of another unit's are taken away."""
    machine = Machine(lambda: _written(watched.begin().state()), _watched(watched))
    stated = float(watched.guarantee().epsilon)
    replaced = watched.neighbours is Neighbours.REPLACE
    for came in itertools.product(numbers, repeat=steps):
        for more, less in itertools.product(_placed(steps, events), _placed(steps, events if replaced else 0)):
            others = tuple((np.array(came) + more - less).tolist())
            yield Found(came, others, stated, machine.loss(came, others))


def _watched(watched: Alarm) -> Any:
    def step(state: str, came: int) -> tuple[Any, str]:
        watching = watched.resume(json.loads(state))
        seen = watching.step(came)
        return None if seen is None else min(seen, watched.threshold + 3), _written(watching.state())

    return step


def _written(state: Any) -> str:
    return json.dumps(state, sort_keys=True)


def _placed(steps: int, events: int) -> list[Any]:
    """Where up to that many events may come."""
    chosen = itertools.chain.from_iterable(
        itertools.combinations_with_replacement(range(steps), k) for k in range(events + 1)
    )
    return [np.bincount(np.array(at, int), minlength=steps) for at in chosen]


# Queries against a threshold


def sparse(
    mechanism: Any, queries: int = 3, heights: Sequence[int] = (0, 1), together: int | None = None
) -> Iterator[Found]:
    """Queries one by one, each moved by at most 1: all in one direction, where that is what is promised for.

    With `together` all queries are moved by that in all.
    """
    centre = getattr(mechanism, "centre", 0)

    def step(state: Any, query: int) -> tuple[Any, Any]:
        kept: list[Any] = []
        try:
            seen = mechanism.resume(state, keep=kept.append).ask(query)
        except BudgetError:
            return "over", state
        return seen, kept[-1]

    machine = Machine(lambda: mechanism.begin().state(), step)
    far = queries if together is None else together
    moves = Sensitivity(far, far, 1, far, neighbours=Neighbours.ADD_REMOVE)
    stated = float(mechanism.guarantee(1 if together is None else moves).epsilon)
    directions = ONE_WAY if getattr(mechanism, "monotone", False) else BOTH_WAYS
    for asked, others in moved([centre + h for h in heights], queries, directions, far):
        yield Found(asked, others, stated, machine.loss(asked, others))


def moved(heights: Sequence[int], queries: int, directions: Sequence[int], far: int) -> Iterator[tuple[Any, Any]]:
    """All lists of queries of some heights, and all neighbours of each that differ by at most `far` in all."""
    for asked in itertools.product(heights, repeat=queries):
        for moves in itertools.product(directions, repeat=queries):
            if sum(map(abs, moves)) <= far:
                yield asked, tuple(q + d for q, d in zip(asked, moves, strict=True))


def above(offer: Any, queries: int = 3) -> Iterator[Found]:
    """Questions of a stream with one threshold; counts move in one direction if rows are added or removed."""
    made = offer.machine
    d, level = int(offer.sensitivity.linf), offer.above.steps(offer.above.threshold)

    def step(state: Any, query: int) -> tuple[Any, Any]:
        try:
            made.check(state)
        except BudgetError:
            return "over", state
        return made.step(state, (query, level))

    one_way = offer.above.of == "counts" and offer.neighbours is Neighbours.ADD_REMOVE
    heights = [level + offer.mechanism.centre + h for h in (0, 1)]
    directions = (0, d) if one_way else (-d, 0, d)
    machine, stated = Machine(made.begin, step), float(offer.guarantee.epsilon)
    for asked, others in moved(heights, queries, directions, d * queries):
        yield Found(asked, others, stated, machine.loss(asked, others))
