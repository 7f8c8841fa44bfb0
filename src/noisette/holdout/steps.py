"""Questions in whole steps: how numbers become steps and back, and functions of all records at once.

Numbers are rounded halves up, so that two that are d whole steps apart stay so.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from noisette.errors import InputError
from noisette.exact.number import Number, fraction, nearest_float
from noisette.holdout.answer import Answer, Origin
from noisette.holdout.machine import Released, State
from noisette.holdout.records import Records, quiet
from noisette.holdout.thresholdout import Thresholdout

__all__ = ["Scaled", "answered", "on_holdout", "on_training", "read_bounds", "read_guess", "rounded"]

_MOST = 1e300  # what a function may return; an infinite number is put there


@dataclass(frozen=True)
class Scaled:
    """The steps of a question: a step is `unit`, 0 steps are `offset`; rounding moves an answer by `slack` steps."""

    unit: Fraction
    threshold: int
    slack: Fraction
    bounds: tuple[float, float]
    offset: Fraction = Fraction(0)

    def steps(self, value: Fraction) -> int:
        """A public number in steps."""
        return _within(round((value - self.offset) / self.unit))

    def number(self, steps: Fraction | int) -> float:
        """A number of steps as a value, inside of the bounds."""
        return min(max(nearest_float(self.offset + steps * self.unit, up=steps > 0), self.bounds[0]), self.bounds[1])


def answered(
    m: Thresholdout,
    released: Released | None,
    after: State,
    scaled: Scaled,
    guess: Fraction,
    source: Origin,
    level: float,
) -> Answer:
    """What is released as an answer with its error bar; `after` is the state after the question."""
    left = max(0, m.budget - after.given)
    if released is None:
        near, off = (guess - scaled.offset) / scaled.unit, scaled.threshold + m.silent_end(level) + scaled.slack
        low, high = scaled.number(near - off), scaled.number(near + off)
        return Answer(scaled.number(near), low, high, float(level), source, 0, left)
    low_off, high_off = m.released_ends(released.sign, released.gap, after.asked, level)
    ends = (released.steps + low_off - scaled.slack, released.steps + high_off + scaled.slack)
    low, high = (scaled.number(end) for end in ends)
    value = min(max(scaled.number(released.steps), low), high)
    return Answer(value, low, high, float(level), "holdout", 1, left)


# Functions of all records


def on_training(f: Callable[..., Any], records: Records, bounds: tuple[float, float]) -> Fraction:
    """The number on the training set, or a sentence on what is wrong with the function."""
    try:
        value = float(f(*records.all()))
    except Exception as fault:
        kind = type(fault).__name__
    else:
        if bounds[0] <= value <= bounds[1] and math.isfinite(value):
            return Fraction(value)
        raise InputError("The function leaves its bounds on the training set: declare wider ones.")
    raise InputError(f"The function raised {kind} on the training set: make it return one number.")


def on_holdout(f: Callable[..., Any], records: Records, bounds: tuple[float, float], unit: Fraction) -> int:
    """A number in steps, halves up, within the bounds; what is no number counts as 0."""
    try:
        with quiet():
            value = float(f(*records.all()))
    except BaseException:
        value = 0.0
    inside = np.clip(0.0 if math.isnan(value) else value, max(bounds[0], -_MOST), min(bounds[1], _MOST))
    return _within(rounded(Fraction(float(inside)) / unit))


def rounded(steps: Fraction) -> int:
    """A whole number of steps, halves up.

    >>> rounded(Fraction(5, 2)), rounded(Fraction(-5, 2))
    (3, -2)
    """
    return math.floor(steps + Fraction(1, 2))


def _within(steps: int) -> int:
    """Steps that can be compared in 64 bits; larger ones are clamped."""
    return max(-(2**60), min(2**60, steps))


def read_bounds(bounds: tuple[float, float]) -> tuple[float, float]:
    """Two ends, the lower one first."""
    try:
        low, high = (float(end) for end in bounds)
    except (TypeError, ValueError):
        low = high = math.nan
    if not low < high:
        raise InputError("bounds must be two numbers, the lower one first: bounds=(0, 1).")
    return low, high


def read_guess(guess: Number, bounds: tuple[float, float]) -> Fraction:
    """A public number that an answer can have."""
    number = fraction(guess, "guess")
    if not bounds[0] <= number <= bounds[1]:
        raise InputError(f"guess must lie between {bounds[0]:g} and {bounds[1]:g}, as the answer does.")
    return number
