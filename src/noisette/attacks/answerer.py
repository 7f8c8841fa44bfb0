"""Who answers: truthfully, or through a mechanism for as long as the budget lasts; and what no attack on it can exceed.

    ask(true answer) -> given answer

`exact`, every mechanism and every `Answerer` can be asked; an `Answerer` also counts what its answers cost.
"""

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import BudgetError, InputError
from noisette.exact.number import Number, positive, whole
from noisette.mechanisms import Mechanism
from noisette.mechanisms.contract import Distance
from noisette.privacy import ZCDP, Guarantee, Promise, Pure, Spend, as_promise

__all__ = ["Answerer", "Ask", "exact", "given", "guessing_ceiling", "rate", "spent_by", "tracing_ceiling", "tracing_mu"]

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


# What no attack can exceed, whatever it computes: ceilings that follow from the guarantee alone


def guessing_ceiling(epsilon: Number, choices: int = 2) -> float:
    """Return the best chance to guess a secret that is uniform among k choices from an epsilon-DP answer.

    e^eps / (e^eps + k - 1), where epsilon is for replacing one choice by another. Proof: with p_v the chance to guess
    v when it is v, every secret w has 1 >= p_w + sum over v != w of e^-eps p_v; average over w. For k = 2 it is what
    randomized response attains, and the number of independent bits that one answer gives away is at most
    binomial with this chance.   [Steinke-Nasr-Jagielski 2023]

    >>> [round(guessing_ceiling(epsilon), 3) for epsilon in (0, 1, 5)], round(guessing_ceiling(1, 6), 3)
    ([0.5, 0.731, 0.993], 0.352)
    """
    eps = float(Pure(epsilon).epsilon)
    return 1 / (1 + (whole(choices, "choices", least=2) - 1) * math.exp(-eps))


def tracing_mu(people: int, attributes: int, sigma: Number) -> float:
    """Return mu = sqrt(d) / (n sigma): how many standard deviations one of n people moves d means of values in [0, 1].

    Independent Gaussian noise of sd sigma on each mean; replacing one person moves them by at most sqrt(d)/n in all.

    >>> round(tracing_mu(100, 20_000, 0.3), 2)
    4.71
    """
    n, d = whole(people, "people"), whole(attributes, "attributes")
    return math.sqrt(d) / (n * float(positive(sigma, "sigma")))


def tracing_ceiling(mu: float, fpr: float) -> float:
    """Return the largest share of members that any test finds while it accuses a share `fpr` of the others.

    Phi(Phi^-1(fpr) + mu), by the lemma of Neyman and Pearson: with and without a person, the answers are at best two
    Gaussians mu apart.   [Dong-Roth-Su 2022]

    >>> [round(tracing_ceiling(mu, 0.01), 3) for mu in (0, 0.5, 1, 4.71)]
    [0.01, 0.034, 0.092, 0.991]
    """
    if not mu >= 0:
        raise InputError("mu must be at least 0: see tracing_mu.")
    return NormalDist().cdf(NormalDist().inv_cdf(rate(fpr)) + mu) if mu < math.inf else 1.0


def rate(fpr: float) -> float:
    """Read a false-positive rate."""
    if not 0 < fpr < 1:
        raise InputError("fpr must lie strictly between 0 and 1: a usual one is 0.01.")
    return float(fpr)
