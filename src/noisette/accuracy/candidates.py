"""The mechanisms that a workload can choose from, each calibrated in its own norm; one that does not apply says why."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from noisette.errors import InputError
from noisette.mechanisms import Gaussian, Geometric, KNorm, Laplace, Mechanism, Staircase, calibrate
from noisette.privacy import Promise
from noisette.privacy.sensitivity import Sensitivity

__all__ = ["KINDS", "Task"]


@dataclass(frozen=True)
class Task:
    """What is to be released: a workload's sensitivity, its number of answers, the grid, the level of the errors."""

    workload: Sensitivity
    answers: int
    grid: Fraction | None
    level: float


def _plain(kind: type[Mechanism]) -> Callable[[Task, Promise], Mechanism]:
    return lambda task, promise: calibrate(kind, promise, sensitivity=task.workload, grid=task.grid)


def _geometric(task: Task, promise: Promise) -> Mechanism:
    if task.grid != 1:
        raise InputError("For whole numbers only: pass grid=1 if the answers are.")
    return calibrate(Geometric, promise, sensitivity=task.workload)


def _laplace(task: Task, promise: Promise) -> Mechanism:
    if task.grid == 1:
        raise InputError("The geometric mechanism, where answers are whole numbers.")
    return _plain(Laplace)(task, promise)


def _staircase(task: Task, promise: Promise) -> Mechanism:
    moves = task.workload
    if task.grid == moves.linf == 1 and moves.l1 == moves.l0:
        raise InputError("The same law as Geometric, since steps are one number wide.")
    return _plain(Staircase)(task, promise)


def _ball(norm: float) -> Callable[[Task, Promise], Mechanism]:
    def made(task: Task, promise: Promise) -> Mechanism:
        if norm == 1:
            raise InputError(f"The same law as {'Geometric' if task.grid == 1 else 'Laplace'}.")
        if task.answers == 1:
            raise InputError("The same law as in l1, since there is one answer.")
        return calibrate(KNorm, promise, sensitivity=task.workload, norm=norm, dimension=task.answers, grid=task.grid)

    return made


KINDS: dict[str, Callable[[Task, Promise], Mechanism]] = {
    "Geometric": _geometric,
    "Laplace": _laplace,
    "Gaussian": _plain(Gaussian),
    "Staircase": _staircase,
    "KNorm l1": _ball(1),
    "KNorm l2": _ball(2),
    "KNorm l∞": _ball(math.inf),
}
