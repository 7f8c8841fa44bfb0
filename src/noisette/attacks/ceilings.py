"""What no attack can exceed, whatever it computes: ceilings that follow from the guarantee alone."""

import math
from statistics import NormalDist

from noisette.errors import InputError
from noisette.exact.number import Number, positive, whole
from noisette.privacy import Pure

__all__ = ["guessing_ceiling", "rate", "tracing_ceiling", "tracing_mu"]


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
