"""Who answers: truthfully, or through a mechanism for as long as the budget lasts.

    ask(true answer) -> given answer

`exact`, every mechanism and every `Answerer` can be asked; an `Answerer` also counts what its answers cost.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import BudgetError, InputError
from noisette.mechanisms import Mechanism
from noisette.mechanisms.contract import Distance
from noisette.privacy import ZCDP, Guarantee, Promise, Spend, as_promise

__all__ = ["Answerer", "Ask", "exact", "given", "spent_by"]

Ask: TypeAlias = Callable[[Any], Any]
"""Turns the true answer of a question into the answer that is given."""


def exact(x: Any) -> Any:
    """Give the true answer away.

    >>> exact(42)
    42
    """
    return x


class Answerer:
    """Answers through a mechanism; charges each answer before it is drawn and refuses what the budget does not hold.

    A price is the mechanism's guarantee for `sensitivity`, which is how far one person moves one question's answer.
    Prices add up by composition (a question that fails stays charged). In memory and for one thread: it shows what
    a budget does to an attack, it is not a ledger.

    >>> from noisette.mechanisms import Geometric
    >>> from noisette.privacy import Pure
    >>> ask = Answerer(Geometric(2), Pure("3/2"))
    >>> [type(ask(130)).__name__ for _ in range(3)], ask.spent
    (['int', 'int', 'int'], Pure('3/2'))
    >>> ask(130)
    Traceback (most recent call last):
        ...
    noisette.errors.BudgetError: The budget of 1.5-DP does not hold another answer of 0.5-DP: stop asking.
    """

    def __init__(self, mechanism: Mechanism, budget: Spend, *, sensitivity: Distance = 1) -> None:
        self.mechanism = mechanism
        self.budget: Promise = as_promise(budget, "budget")
        self.price: Guarantee = mechanism.guarantee(sensitivity)
        self.spent: Guarantee = self.price * 0
        if isinstance(self.budget, ZCDP):  # where rhos add up, a pure price counts with its rho from the first answer
            self.spent += ZCDP(0)

    def __call__(self, x: Any) -> Any:
        """Charge, then draw; or refuse."""
        after = self.spent + self.price
        if not after <= self.budget:
            raise BudgetError(f"The budget of {self.budget} does not hold another answer of {self.price}: stop asking.")
        self.spent = after
        return self.mechanism(x)


def spent_by(ask: Ask) -> Guarantee | None:
    """Return what an answerer has spent so far; None for one that keeps no budget.

    >>> spent_by(exact) is None
    True
    """
    return ask.spent if isinstance(ask, Answerer) else None


def given(ask: Ask, truth: NDArray[Any]) -> NDArray[np.float64]:
    """Ask for many numbers at once; there must be one finite answer for each.

    >>> given(exact, np.array([1, 2]))
    array([1., 2.])
    """
    answers = np.asarray(ask(truth), dtype=float)
    if answers.shape != truth.shape or not np.isfinite(answers).all():
        raise InputError("ask must return one finite number for each number that it is asked for.")
    return answers
