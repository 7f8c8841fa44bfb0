"""The differencing attack: two harmless questions about everyone, asked with and without one person.

With n people of average a, and n - 1 others of average a', the person's value is n a - (n - 1) a'.
[the smokers' table of Bassi's lecture; Dwork-Roth 2014, section 1]
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from noisette.attacks.answerer import Ask, given, spent_by
from noisette.errors import BudgetError, InputError
from noisette.exact.number import whole
from noisette.privacy import Guarantee

__all__ = ["Differencing", "differencing"]

Answers = tuple[float, float]


@dataclass(frozen=True)
class Differencing:
    """What the attacker learned, as (participants, cigarettes in all), and what follows for the person."""

    person: str
    truth: int
    everyone: Answers | None
    others: Answers | None
    spent: Guarantee | None

    @property
    def estimate(self) -> float | None:
        """n a - n' a', which is the difference of the two totals; None if an answer was refused."""
        if self.everyone is None or self.others is None:
            return None
        return float(Fraction(self.everyone[1]) - Fraction(self.others[1]))

    @property
    def error(self) -> float | None:
        """How far off the attacker is."""
        return None if self.estimate is None else abs(self.estimate - self.truth)

    @property
    def revealed(self) -> bool:
        """Whether the nearest whole number is the person's value."""
        return self.estimate is not None and round(self.estimate) == self.truth

    @property
    def verdict(self) -> str:
        """One sentence."""
        cost = f", {self.spent} spent" if self.spent is not None else ""
        if self.estimate is None:
            return f"The budget refused an answer, so {self.person}'s value stays unknown{cost}."
        outcome = "revealed" if self.revealed else f"off by {self.error:g}"
        return f"{self.person}'s value is {self.truth}, the attack says {self.estimate:g}: {outcome}{cost}."

    def __str__(self) -> str:
        return self.verdict


def differencing(table: Mapping[str, int], person: str, ask: Ask) -> Differencing:
    """Ask for the participants and their average, with one person and without, and solve for the person's value.

    An average is answered as a total and a count, as any private answerer must if the count is private; dividing them
    is left to the analyst. So `ask` gets two whole numbers at a time, of which one person moves the first by 1 and the
    second by at most the largest value: l1 = 1 + largest value.

    >>> from noisette.attacks import SMOKERS, Answerer, exact
    >>> differencing(SMOKERS, "Bob", exact).revealed
    True
    >>> from noisette.mechanisms import Geometric
    >>> attack = differencing(SMOKERS, "Bob", Answerer(Geometric(12), 1, sensitivity=6))      # two answers, 1/2 each
    >>> attack.spent
    Pure('1')
    """
    values = {name: whole(value, "Every value of the table", least=0) for name, value in table.items()}
    if person not in values or len(values) < 2:
        raise InputError("person must be a name in a table of at least two people.")
    others = [value for name, value in values.items() if name != person]
    answers = _asked(list(values.values()), ask), _asked(others, ask)
    return Differencing(person, values[person], *answers, spent_by(ask))


def _asked(values: list[int], ask: Ask) -> Answers | None:
    try:
        count, total = given(ask, np.array([len(values), sum(values)]))
    except BudgetError:
        return None
    return float(count), float(total)
