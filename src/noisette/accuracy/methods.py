"""Ways to answer k shares of n people privately: each states its chance to fail, and the closed form of textbooks.

Vocabulary: `k` queries · `n` people · `alpha` error of a share · `beta` chance to fail · `l1`, `l2`, `linf` sensitivity
of the k counts under replace, so that a share moves by 1/n of it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from noisette.accuracy.error import of_any
from noisette.errors import InputError
from noisette.exact.number import fraction
from noisette.laws import DiscreteLaplace
from noisette.mechanisms import Gaussian, calibrate
from noisette.privacy import Approx
from noisette.privacy.sensitivity import Sensitivity

__all__ = ["METHODS", "Target", "closed_form"]

Failure: TypeAlias = Callable[[int], float]
"""n -> the chance that one of the k shares is off by more than alpha."""


@dataclass(frozen=True)
class Target:
    """What is asked: k shares, all within alpha with probability 1 - beta, under epsilon (and delta)."""

    k: int
    epsilon: float
    alpha: Fraction
    beta: float
    delta: Fraction | None
    counts: Sensitivity

    @property
    def sigma(self) -> float:
        """The noise that Gaussian counts need."""
        if not self.delta:
            raise InputError("Gaussian noise keeps no pure guarantee: give a delta such as '1e-6'.")
        return float(_sigma(fraction(self.epsilon, "epsilon"), self.delta) * self.counts.l2)


def _sigma(epsilon: Fraction, delta: Fraction) -> Fraction:
    return calibrate(Gaussian, Approx(epsilon, delta), sensitivity=1).sigma


# With a curator: the exact chance that one of k shares of n people is off by more than alpha.


def _laplace(t: Target) -> Failure:
    """Laplace noise of scale l1/(n epsilon): P(|Z| > alpha) = e^(-alpha n epsilon / l1), k independent ones."""
    rate = float(t.alpha) * t.epsilon / float(t.counts.l1)
    return lambda n: of_any(math.exp(-rate * n), t.k)


def _geometric(t: Target) -> Failure:
    """Whole noise of scale l1/epsilon on the counts, which fail above floor(alpha n)."""
    law = DiscreteLaplace(t.counts.l1 / fraction(t.epsilon, "epsilon"))
    return lambda n: of_any(float(law.tail(math.floor(t.alpha * n))), t.k)


def _gaussian(t: Target) -> Failure:
    """Normal noise of deviation sigma l2 / n, sigma by the analytic curve.   [Balle-Wang 2018]"""
    sigma = t.sigma
    return lambda n: of_any(math.erfc(float(t.alpha) * n / (sigma * math.sqrt(2))), t.k)


def _linf(t: Target) -> Failure:
    """l∞-norm noise: its largest coordinate is linf/(n epsilon) times a Gamma(k) variable.   [Hardt-Talwar 2010]"""
    from scipy.special import gammaincc

    rate = float(t.alpha) * t.epsilon / float(t.counts.linf)
    return lambda n: float(gammaincc(t.k, rate * n))


# Randomized response: upper bounds by Hoeffding's inequality and the union over queries.


def _split_people(t: Target) -> Failure:
    """Each person answers one query, drawn at random, with all of epsilon; groups differ by at most one person.

    m reports miss by alpha with at most 2 e^(-2 m (alpha tanh(epsilon/2))^2); drawing the groups without replacement
    is included.   [Hoeffding 1963, Theorems 2 and 4]
    """
    rate = 2 * (float(t.alpha) * math.tanh(t.epsilon / 2)) ** 2

    def failure(n: int) -> float:
        size, larger = divmod(n, t.k)
        return min(1.0, 2 * math.exp(-rate * size) * (t.k - larger + larger * math.exp(-rate)))

    return failure


def _split_budget(t: Target) -> Failure:
    """Each person answers all k queries with epsilon/k each: 2k e^(-2 n (alpha tanh(epsilon/2k))^2)."""
    rate = 2 * (float(t.alpha) * math.tanh(t.epsilon / (2 * t.k))) ** 2
    return lambda n: min(1.0, 2 * t.k * math.exp(-rate * n))


# Closed forms of textbooks: each tail bounded, then the union over queries.


def closed_form(method: str, t: Target) -> float:
    """Return the number of people, not yet rounded up, that the textbook's formula asks for."""
    alpha, log_k = float(t.alpha), math.log(t.k / t.beta)
    match method:
        case "laplace":
            return float(t.counts.l1) / (t.epsilon * alpha) * log_k
        case "geometric":
            scale = float(t.counts.l1) / t.epsilon
            return scale / alpha * (log_k + math.log(2 / (1 + math.exp(-1 / scale))))
        case "gaussian":
            return t.sigma * math.sqrt(2 * (log_k + math.log(2))) / alpha
        case "linf":  # a Gamma(k) variable is below k + sqrt(2 k u) + u but for e^-u  [Boucheron-Lugosi-Massart 2013]
            u = -math.log(t.beta)
            return float(t.counts.linf) / (t.epsilon * alpha) * (t.k + math.sqrt(2 * t.k * u) + u)
        case "response, people split":
            return t.k * (log_k + math.log(2)) / (2 * (alpha * math.tanh(t.epsilon / 2)) ** 2)
        case _:
            return (log_k + math.log(2)) / (2 * (alpha * math.tanh(t.epsilon / (2 * t.k))) ** 2)


METHODS: dict[str, tuple[Callable[[Target], Failure], str]] = {
    "laplace": (_laplace, "exact; needs a curator"),
    "geometric": (_geometric, "exact, whole noise on the counts; needs a curator"),
    "gaussian": (_gaussian, "exact; needs a curator and a delta"),
    "linf": (_linf, "exact; K-norm noise, needs a curator"),
    "response, people split": (_split_people, "Hoeffding; no curator, each person answers one query"),
    "response, budget split": (_split_budget, "Hoeffding; no curator, each person answers every query"),
}
