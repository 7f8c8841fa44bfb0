"""The mechanisms that a workload can choose from: every one for numbers, and every one for vectors in each norm.

Each is calibrated in its own norm; one that does not apply says why.
"""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from typing import Any

from noisette.errors import InputError
from noisette.laws import DiscreteLaplace, DiscreteStaircase, NormBall
from noisette.mechanisms.calibration import calibrate
from noisette.mechanisms.catalogue import mechanisms
from noisette.mechanisms.contract import Output
from noisette.privacy import Promise
from noisette.privacy.sensitivity import Sensitivity

__all__ = ["Setting", "candidates", "same_law"]

_NORMS = {1: "l1", 2: "l2", math.inf: "l∞"}


@dataclass(frozen=True)
class Setting:
    """What is to be released: a workload's sensitivity, its number of answers, the grid, the level of the errors."""

    workload: Sensitivity
    answers: int
    grid: Fraction | None
    level: float


@cache
def candidates() -> dict[str, Callable[[Setting, Promise], Any]]:
    """Return by name what makes a mechanism for a task and a promise.

    >>> list(candidates())
    ['Gaussian', 'Geometric', 'Laplace', 'Staircase', 'KNorm l1', 'KNorm l2', 'KNorm l∞']
    """
    found = mechanisms().values()
    numbers = {kind.__name__: partial(_numbers, kind) for kind in found if kind.kind is Output.NUMBERS}
    vectors = {
        f"{kind.__name__} {name}": partial(_vector, kind, norm)
        for kind in found
        if kind.kind is Output.VECTOR
        for norm, name in _NORMS.items()
    }
    return {**numbers, **vectors}


def _numbers(kind: Any, task: Setting, promise: Promise) -> Any:
    if "grid" in inspect.signature(kind.calibrated).parameters:
        return calibrate(kind, promise, sensitivity=task.workload, grid=task.grid)
    if task.grid != 1:
        raise InputError("For whole numbers only: pass grid=1 if the answers are.")
    return calibrate(kind, promise, sensitivity=task.workload)


def _vector(kind: Any, norm: float, task: Setting, promise: Promise) -> Any:
    return calibrate(kind, promise, sensitivity=task.workload, norm=norm, dimension=task.answers, grid=task.grid)


def same_law(a: Any, b: Any) -> bool:
    """Tell whether the noise of two mechanisms has the same law, up to the fineness of their lattices.

    >>> from noisette.mechanisms import Geometric, KNorm, Laplace
    >>> same_law(Laplace(2), KNorm(1, 2, dimension=5)), same_law(Geometric(2), Laplace(2))
    (True, False)
    """
    return _shape(a) == _shape(b)


def _shape(m: Any) -> tuple[Any, ...]:
    step = m.step if m.kind is Output.VECTOR else m.grid
    match m.law:
        case DiscreteLaplace(scale=scale):
            return _laplace(scale * step, m.grid)
        case NormBall(norm=norm, scale=scale, dimension=dimension) if norm == 1 or dimension == 1:
            return _laplace(scale * step, m.grid)
        case DiscreteStaircase(epsilon=epsilon, width=1):
            return _laplace(step / epsilon, m.grid)
        case law:
            return type(m), law, step


def _laplace(scale: Fraction, grid: Fraction) -> tuple[Any, ...]:
    return DiscreteLaplace, float(f"{float(scale):.6g}"), grid == 1
