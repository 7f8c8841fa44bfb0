"""Private and accurate on the sample, hence accurate in truth: the transfer theorem for (epsilon, delta).

An analyst asks questions phi in [0, 1] one after the other, each after seeing all answers so far. Let Q be the law of
the sample given all answers. A mean over Q is close to the true mean because the answers are private (`posterior_gap`);
an answer is close to the mean over Q because it is close to the mean on the sample (`resampling_error`,
`gaussian_error`, `laplace_error`). [The argument is that of Jung-Ligett-Neel-Roth-Sharifi-Malvajerdi-Shenfeld 2020; our
constants are smaller and proved in docs/proofs/generalisation.md.]

Guarantees are read under replace. Every result is rounded up.
"""

import math
from collections.abc import Callable
from fractions import Fraction

from noisette.errors import InputError
from noisette.exact.number import Number, fraction, inside, whole
from noisette.exact.rational import as_real, float_above, precise
from noisette.holdout.bounds import above_zero
from noisette.privacy import Approx, Guarantee, Neighbours, Pure

__all__ = [
    "expected_gap",
    "gap_at",
    "gaussian_error",
    "laplace_error",
    "posterior_gap",
    "resampling_error",
    "transfer",
]

_SHARES = 16  # in how many parts the chance of failure is split in search of a good split


def expected_gap(guarantee: Guarantee) -> float:
    """Return how far a mean over the law of the sample given the answers is from the true mean at most, on average.

    It is the least of T + delta (1 - T) with T = tanh(epsilon/4), over all (epsilon, delta) that the guarantee implies.
    So the mean of a chosen phi on the sample exceeds its true mean by no more, on average. The usual statement is
    e^epsilon - 1 + delta.   [Dwork et al. 2015; Bassily-Nissim-Smith-Steinke-Stemmer-Ullman 2016]

    >>> round(expected_gap(Approx("0.1", "1e-6")), 6), round(math.expm1(0.1) + 1e-6, 6)
    (0.024996, 0.105172)
    """
    known = guarantee.under(Neighbours.REPLACE)
    return min(_average_gap(e, known.delta_at(e)) for e in _epsilons(known, Fraction(1), _average_gap))


def _average_gap(epsilon: Number, delta: Number) -> float:
    one = Approx(epsilon, delta)
    mp = precise(one.epsilon, one.delta)
    T = mp.tanh(as_real(mp, one.epsilon / 4))
    return min(1.0, float_above(T + as_real(mp, one.delta) * (1 - T)))


def gap_at(epsilon: Number, delta: Number, beta: Number) -> float:
    """Return 1 - 2v/(1 + sqrt(e^epsilon v + 1 - v)) with v = 1 - delta/beta: tanh(epsilon/4) if delta is 0.

    Except with a chance of at most beta, no mean of a chosen phi over the law of the sample given the answers is
    further from its true mean. For delta = 0 it is attained, by randomized response.

    >>> round(gap_at("0.1", 0, "0.05"), 6), round(gap_at("0.1", "1e-4", "0.05"), 6)
    (0.024995, 0.026897)
    """
    one, b = Approx(epsilon, delta), inside(beta, "beta")
    if one.delta >= b:
        return 1.0
    mp = precise(one.epsilon, one.delta, b)
    v = as_real(mp, 1 - one.delta / b)
    return float_above(1 - 2 * v / (1 + mp.sqrt(mp.exp(as_real(mp, one.epsilon)) * v + 1 - v)))


def posterior_gap(guarantee: Guarantee, beta: Number) -> float:
    """Return the least `gap_at` over all (epsilon, delta) that a guarantee implies.

    >>> from noisette.privacy import ZCDP
    >>> round(posterior_gap(Pure("0.1"), "0.05"), 6), round(posterior_gap(ZCDP("0.0005"), "0.05"), 4)
    (0.024995, 0.0234)
    """
    b, known = inside(beta, "beta"), guarantee.under(Neighbours.REPLACE)

    def gap(epsilon: Number, delta: Number) -> float:
        return gap_at(epsilon, delta, b)

    return min(gap(e, known.delta_at(e)) for e in _epsilons(known, b, gap))


def _epsilons(known: Guarantee, beta: Fraction, gap: Callable[[Number, Number], float]) -> list[Fraction]:
    """Good places to look for a small gap: 0, what is stated, and about the best in between."""
    from scipy.optimize import minimize_scalar

    stated = [known.epsilon] if isinstance(known, Pure | Approx) else []
    reached = (known.epsilon_at(beta / 10**k) for k in (5, 4, 3, 2, 1))
    most = next((e for e in reached if math.isfinite(e)), 0.0)
    if not most:
        return [Fraction(0), *stated]
    best = minimize_scalar(lambda e: gap(e, known.delta_at(e)), bounds=(0, most), method="bounded").x
    return [Fraction(0), Fraction(most), Fraction(float(best)), *stated]


def resampling_error(alpha: Number, sampled: Number, beta: Number) -> float:
    """Return alpha + sampled/beta: how far answers are from means over the law of the sample given the answers.

    All answers lie in [0, 1] and within alpha of the means on the sample, except with a chance of at most `sampled`;
    the result holds except with a chance of at most beta. Draw the sample again from its law given the answers: the
    pair has the same law as before.   [Jung et al. 2020]

    >>> resampling_error("0.02", "1e-6", "0.01")
    0.020100000000000003
    """
    a, s, b = above_zero(alpha, "alpha"), inside(sampled, "sampled"), inside(beta, "beta")
    mp = precise(a, s, b)
    return float_above(as_real(mp, a + s / b))


def transfer(guarantee: Guarantee, alpha: Number, sampled: Number, beta: Number) -> float:
    """Return how far all answers are from the truth at most, except with a chance of at most beta.

    On the sample they are within alpha except with a chance of `sampled`; beta is split well between
    `resampling_error` and `posterior_gap`.

    >>> round(transfer(Pure("0.04"), "0.02", "1e-6", "0.05"), 4)
    0.03
    """
    b = inside(beta, "beta")
    if fraction(sampled, "sampled") >= b:
        raise InputError("sampled must be below beta: the sample itself may already be missed that often.")
    shares = (b * k / _SHARES for k in range(1, _SHARES))
    return min(
        sum_above(resampling_error(alpha, sampled, b - share), posterior_gap(guarantee, share)) for share in shares
    )


def gaussian_error(sigma: Number, answers: int, beta: Number) -> float:
    """Return sigma sqrt(2 ln(2 answers/beta)): how far noised sums are from their means given all answers.

    The noise is Gaussian, whole or not: E e^(t Z) <= e^(t^2 sigma^2 / 2). By Jensen's inequality the mean of the noise
    given the answers has no heavier tail than Chernoff's bound for the noise itself, so nothing is lost to resampling.

    >>> round(gaussian_error(100, 50, "0.05"), 2)
    389.89
    """
    s, m, b = above_zero(sigma, "sigma"), whole(answers, "answers"), inside(beta, "beta")
    mp = precise(s, b)
    return float_above(as_real(mp, s) * mp.sqrt(2 * mp.log(2 * m / as_real(mp, b))))


def laplace_error(scale: Number, answers: int, beta: Number) -> float:
    """Return scale (1 + ln(answers/beta)): the same for Laplace noise, whole or not.

    Jensen's inequality for max(|Z| - a, 0) with a one scale below the result.

    >>> round(laplace_error(100, 50, "0.05"), 2)
    790.78
    """
    s, m, b = above_zero(scale, "scale"), whole(answers, "answers"), inside(beta, "beta")
    mp = precise(s, b)
    return float_above(as_real(mp, s) * (1 + mp.log(m / as_real(mp, b))))


def sum_above(*parts: float) -> float:
    """Return a sum of floats, rounded up."""
    return math.nextafter(math.fsum(parts), math.inf)
