"""Holdouts, leaderboards and oracles by the exact law of what they answer about small data, for all questions."""

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
from tests.contracts.states.draws import Machine
from tests.contracts.states.judging import Found

from noisette.errors import BudgetError
from noisette.holdout.leaderboard import Leaderboard, board_machine
from noisette.holdout.machine import Kept
from noisette.holdout.machine import Machine as HoldoutMachine
from noisette.holdout.reusable import ReusableHoldout
from noisette.holdout.thresholdout import Thresholdout

BITS = list(itertools.product((0, 1), repeat=2))
"""All sets of two records, each a bit."""


def reusable(
    mechanism: Thresholdout, made: type = HoldoutMachine, asked: int = 2, only: int = 3, data: Any = BITS
) -> Iterator[Found]:
    """Means of each record, and a sum of all, that are asked in any order; neighbours replace one record."""
    lines = {records: Kept(made(mechanism)) for records in data}
    holdouts = {x: ReusableHoldout(np.array(x), None, np.array([0, 1]), kept=(mechanism, lines[x])) for x in data}
    questions: list[Callable[[Any], Any]] = [
        lambda holdout: holdout.ask(lambda x: x),
        lambda holdout: holdout.ask(lambda x: 1 - x),
        lambda holdout: holdout.ask(np.sum, sensitivity=1, bounds=(-99, 99)),
    ]
    many = min(only, 3 if mechanism.grid > 1 else 2)  # a function of all records is rounded by one of the grid's steps
    yield from _asked(mechanism, lines, lambda x, i: questions[i](holdouts[x]), many, asked, holdouts[data[0]])


def leaderboard(mechanism: Thresholdout, asked: int = 2) -> Iterator[Found]:
    """All submissions for two labels; neighbours replace one label."""
    lines = {labels: Kept(board_machine(mechanism, 0)) for labels in BITS}
    boards = {y: Leaderboard(np.array(y), kept=(mechanism, lines[y])) for y in BITS}
    yield from _asked(mechanism, lines, lambda y, i: boards[y].submit("one", BITS[i]), 4, asked, boards[0, 0])


def _asked(
    mechanism: Thresholdout, lines: Any, ask: Callable[[Any, int], Any], many: int, asked: int, subject: Any
) -> Iterator[Found]:
    """All lists of questions about all pairs of neighbours; an event has the data and the number of the question."""

    def step(state: Any, event: tuple[Any, int]) -> tuple[Any, Any]:
        line = lines[event[0]]
        line._last = state
        try:
            return repr(ask(*event)), line.last
        except BudgetError:
            return "over", line.last

    machine = Machine(HoldoutMachine(mechanism).begin, step)
    pairs = [(one, two) for one, two in itertools.combinations(lines, 2) if np.abs(np.subtract(one, two)).sum() == 1]
    for numbers in itertools.product(range(many), repeat=asked):
        for one, two in pairs:
            loss = machine.loss([(one, i) for i in numbers], [(two, i) for i in numbers])
            yield Found((one, numbers), (two, numbers), float(subject.guarantee.epsilon), loss)


def oracle(offer: Any, asked: int = 2, counts: tuple[int, ...] = (0, 2, 0)) -> Iterator[Found]:
    """All lists of two queries about a column of three cells; the neighbour has one row more, in any cell."""
    made, name = offer.machine, offer.oracle.columns[0]
    boxes = [offer.counts({name: ends}).where for ends in ([0, 0], [1, 2], [0, 2])]

    def step(state: str, event: tuple[tuple[int, ...], int]) -> tuple[Any, str]:
        before, (rows, number) = made.read(json.loads(state)), event
        try:
            made.check(before)
        except BudgetError:
            return "over", state
        [[low, high]] = boxes[number][1][0]
        value = (boxes[number], sum(rows[low : high + 1]), sum(rows))
        seen, after = made.step(before, value)
        return json.dumps([seen, after.rows]), json.dumps(asdict(after))

    machine = Machine(lambda: json.dumps(asdict(made.begin())), step)
    for numbers in itertools.product(range(3), repeat=asked):
        for cell in range(3):
            more = tuple(n + (i == cell) for i, n in enumerate(counts))
            loss = machine.loss([(counts, i) for i in numbers], [(more, i) for i in numbers])
            yield Found((counts, numbers), (more, numbers), float(offer.guarantee.epsilon), loss)
