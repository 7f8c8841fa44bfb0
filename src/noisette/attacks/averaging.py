"""The averaging attack: ask the same question again and again; the noise averages out, and the bill grows.

t answers with noise of variance v have a mean of sd sqrt(v / t). Each costs epsilon, so t of them cost t epsilon, or
about sqrt(t) times as much at a small delta: accuracy is never free.   [Dwork-Roth 2014, section 3.5]
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from noisette.attacks.answerer import Answerer, Ask, exact, spent_by
from noisette.errors import BudgetError, InputError
from noisette.exact.number import Number, fraction, whole
from noisette.mechanisms.contract import Distance, Probabilities
from noisette.privacy import Guarantee
from noisette.text import aligned

__all__ = ["Averaging", "Forecast", "averaging", "averaging_forecast"]


@dataclass(frozen=True)
class Averaging:
    """How many answers were given of those wanted, their mean, its sd as the mechanism states it, and the bill."""

    truth: float
    estimate: float | None
    answers: int
    wanted: int
    sd: float | None
    spent: Guarantee | None

    @property
    def error(self) -> float | None:
        """How far off the attacker is."""
        return None if self.estimate is None else abs(self.estimate - self.truth)

    @property
    def refused(self) -> bool:
        """Whether the budget ended the attack."""
        return self.answers < self.wanted

    @property
    def verdict(self) -> str:
        """One sentence."""
        cost = f", {self.spent} spent" if self.spent is not None else ""
        stop = f", then the budget refused{cost}" if self.refused else cost
        if self.estimate is None:
            return f"No answer was given{stop}."
        sd = f" (sd {self.sd:.2g})" if self.sd is not None else ""
        return f"{self.answers:,} answers average to {self.estimate:.6g}, off by {self.error:.2g}{sd}{stop}."

    def __str__(self) -> str:
        return self.verdict


def averaging(truth: float, ask: Ask, times: int) -> Averaging:
    """Ask one question up to `times` times and average what is given.

    >>> from noisette.mechanisms import Geometric
    >>> attack = averaging(130, Answerer(Geometric(2), 5), 1000)              # 1/2 each, 5 in all
    >>> attack.answers, attack.refused, attack.spent, round(attack.sd, 3)
    (10, True, Pure('5'), 0.885)
    """
    times, answers = whole(times, "times"), []
    try:
        for _ in range(times):
            answers.append(float(ask(truth)))
    except BudgetError:
        pass
    mean = math.fsum(answers) / len(answers) if answers else None
    return Averaging(float(truth), mean, len(answers), times, _sd(ask, len(answers)), spent_by(ask))


def _sd(ask: Ask, answers: int) -> float | None:
    """The sd of a mean of answers, where it is known who made them."""
    mechanism = ask.mechanism if isinstance(ask, Answerer) else ask
    if not answers or (mechanism is not exact and not isinstance(mechanism, Probabilities)):
        return None
    return math.sqrt(mechanism.variance() / answers) if isinstance(mechanism, Probabilities) else 0.0


@dataclass(frozen=True)
class Forecast:
    """Rows (answers, sd of their mean, epsilon by adding up, least epsilon at delta), all known before asking."""

    mechanism: Probabilities
    delta: float
    rows: tuple[tuple[int, float, float, float], ...]

    def __str__(self) -> str:
        header = ["answers", "sd of the mean", "epsilon", f"epsilon at delta {self.delta:g}"]
        rows = [[f"{t:,}", *(f"{value:.4g}" if value < math.inf else "none" for value in row)] for t, *row in self.rows]
        return aligned(header, rows)


def averaging_forecast(
    mechanism: Probabilities,
    times: Sequence[int] = (1, 10, 100, 1000),
    *,
    sensitivity: Distance = 1,
    delta: Number = "1e-6",
) -> Forecast:
    """Return how the sd falls as 1/sqrt(t) while the accounted epsilon grows: t epsilon, or less at a small delta.

    >>> from noisette.mechanisms import Geometric
    >>> print(averaging_forecast(Geometric(10)))
    answers  sd of the mean  epsilon  epsilon at delta 1e-06
          1           14.14      0.1                     0.1
         10            4.47        1                  0.9994
        100           1.414       10                   4.775
      1,000           0.447      100                   19.34
    """
    price = mechanism.guarantee(sensitivity)
    if not 0 < fraction(delta, "delta") < 1:
        raise InputError("delta must lie strictly between 0 and 1: a usual one is '1e-6'.")
    rows = [_row(mechanism, price, whole(t, "times"), delta) for t in times]
    return Forecast(mechanism, float(fraction(delta, "delta")), tuple(rows))


def _row(mechanism: Probabilities, price: Guarantee, t: int, delta: Number) -> tuple[int, float, float, float]:
    together = price * t
    return t, math.sqrt(mechanism.variance() / t), together.epsilon_at(), together.epsilon_at(delta)
