"""From the error that is wanted to the budget that it takes.

`epsilon_for` inverts `largest_error` by bisection on `calibrate`, whose noise shrinks as epsilon grows. What comes back
is a decimal of nine digits, rounded up: calibrating with it keeps the error, and less than 1e-8 of it is waste.
"""

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

from noisette.accuracy.error import chance_above
from noisette.errors import InputError
from noisette.exact.number import Number, level_of, positive
from noisette.mechanisms import Gaussian
from noisette.mechanisms.calibration import calibrate
from noisette.mechanisms.contract import Distance, Mechanism, Output
from noisette.privacy import ZCDP, Approx, Promise, Pure

__all__ = ["epsilon_for", "rho_for"]

_LEAST, _MOST = 1e-9, 1e6
_DIGITS = 9


def epsilon_for(
    mechanism: type[Mechanism],
    *,
    error: Number,
    level: float = 0.95,
    sensitivity: Distance = 1,
    answers: int = 1,
    delta: Number | None = None,
    **options: Any,
) -> float:
    """Return the smallest epsilon with which all of several answers err by at most `error`, with probability `level`.

    The answers share the sensitivity, which is a number in the mechanism's norm or a `Sensitivity`. With a delta the
    guarantee is Approx(epsilon, delta); Gaussian noise needs one. Options go to `calibrate`.

    >>> from noisette.mechanisms import Geometric, Laplace
    >>> epsilon_for(Laplace, error=10)                         # ln(20) / 10
    0.299573228
    >>> epsilon_for(Geometric, error=10), epsilon_for(Gaussian, error=10, delta="1e-6")
    (0.284348513, 0.816180576)
    """
    holds = _promise(mechanism, error, level, sensitivity, answers, options, lambda e: _guarantee(e, delta))
    if not mechanism.own_curve or delta is None:
        return _smallest(holds, "epsilon")
    rho = _smallest(_promise(mechanism, error, level, sensitivity, answers, options, ZCDP), "rho")  # quick to find
    near = calibrate(mechanism, ZCDP(rho), sensitivity=sensitivity, **options).epsilon_at(delta, sensitivity)
    return _smallest(holds, "epsilon", guess=min(max(near, _LEAST), _MOST), factor=1 + 1e-8)


def rho_for(
    *, error: Number, level: float = 0.95, sensitivity: Distance = 1, answers: int = 1, **options: Any
) -> float:
    """Return the smallest rho (zCDP) with which Gaussian noise makes all answers err by at most `error`.

    For one answer it is about (Delta z / error)^2 / 2, z the normal quantile of (1 + level)/2.

    >>> rho_for(error=10)                                      # (1.959964 / 10)^2 / 2
    0.0192072942
    """
    return _smallest(_promise(Gaussian, error, level, sensitivity, answers, options, ZCDP), "rho")


def _guarantee(epsilon: float, delta: Number | None) -> Promise:
    return Pure(epsilon) if delta is None else Approx(epsilon, delta)


def _promise(
    mechanism: type[Mechanism],
    error: Number,
    level: float,
    sensitivity: Distance,
    answers: int,
    options: dict[str, Any],
    guarantee: Callable[[float], Promise],
) -> Callable[[float], bool]:
    """The condition that a budget is enough; it also refuses what no budget can reach."""
    target = float(positive(error, "error"))
    level_of(level)
    if mechanism.kind is Output.VECTOR:
        options = {"dimension": answers, **options}
    grid = options.get("grid")
    if grid is not None and (step := positive(grid, "grid")) != 1 and target < step / 2:
        raise InputError("error is below half the grid, which rounding alone can cost: choose a finer grid.")

    def holds(budget: float) -> bool:
        m = calibrate(mechanism, guarantee(budget), sensitivity=sensitivity, **options)
        return chance_above(m, target, answers) <= 1 - level

    return holds


def _smallest(holds: Callable[[float], bool], name: str, *, guess: float = 1.0, factor: float = 2.0) -> float:
    """Return a budget, rounded up to nine digits, from which on a monotone condition holds."""
    low, high = _bracket(holds, name, guess, factor)
    while high > low * (1 + 1e-9):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if _allowed(holds, middle) else (middle, high)
    result = _rounded_up(high)
    while not holds(result):  # grids are powers of two, which may turn by one step between two budgets
        result = _rounded_up(math.nextafter(result, math.inf))
    return result


def _bracket(holds: Callable[[float], bool], name: str, guess: float, factor: float) -> tuple[float, float]:
    """Return budgets of which the lower is too small and the upper is enough."""
    low = high = guess
    if holds(guess):
        while low > _LEAST and _allowed(holds, low):
            low, high, factor = low / factor, low, factor**2
        return low, high
    while not _allowed(holds, high):
        low, high, factor = high, high * factor, min(factor**2, 4.0)
        if high > _MOST:
            raise InputError(
                f"No {name} that this mechanism allows brings the error down so far: ask for a larger error."
            )
    return low, high


def _allowed(holds: Callable[[float], bool], budget: float) -> bool:
    """Whether a budget is enough; one that the mechanism refuses as too small or too large is not."""
    try:
        return holds(budget)
    except InputError:
        return False


def _rounded_up(value: float) -> float:
    return float(Context(prec=_DIGITS, rounding=ROUND_CEILING).plus(Decimal(value)))
