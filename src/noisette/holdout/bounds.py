"""How far a mean on a sample is from the truth: for a question fixed in advance, and for one chosen privately.

Vocabulary: `n` independent rows · `tau` the deviation that would be too much · `beta` the chance of a bad event ·
`c` how far one row moves a function of the sample · `epsilon` the pure guarantee, under replace, of whatever chose the
question. Arguments are read exactly. Chances, deviations and sizes are rounded up, admissible epsilons down.
"""

from fractions import Fraction
from typing import Any

from noisette.errors import InputError
from noisette.exact.number import Number, fraction, inside, whole
from noisette.exact.rational import as_real, float_above, float_below, precise
from noisette.privacy import Pure

__all__ = [
    "bad_event",
    "bad_output",
    "bad_output_epsilon",
    "chosen_query",
    "hoeffding",
    "hoeffding_deviation",
    "hoeffding_size",
    "mcdiarmid",
    "mcdiarmid_deviation",
    "mcdiarmid_size",
    "statistical_query",
    "statistical_query_epsilon",
]


# A question that was fixed in advance


def hoeffding(n: int, tau: Number) -> float:
    """Return 2 e^(-2 n tau^2): the chance that a mean of n values in [0, 1] is off by tau or more.   [Hoeffding 1963]

    >>> f"{hoeffding(10_000, '0.05'):.4g}"
    '3.857e-22'
    """
    return mcdiarmid(n, inside(tau, "tau"), Fraction(1, whole(n, "n")))


def hoeffding_deviation(n: int, beta: Number) -> float:
    """Return the deviation of a mean of n values in [0, 1] that is reached with a chance of at most beta.

    >>> f"{hoeffding_deviation(10_000, '0.05'):.4g}"
    '0.01358'
    """
    return mcdiarmid_deviation(n, beta, Fraction(1, whole(n, "n")))


def hoeffding_size(tau: Number, beta: Number) -> int:
    """Return the least n for which a mean of values in [0, 1] is off by tau or more with a chance of at most beta.

    >>> hoeffding_size("0.05", "0.05")
    738
    """
    return mcdiarmid_size(inside(tau, "tau"), beta, 1)


def mcdiarmid(n: int, tau: Number, c: Number) -> float:
    """Return 2 e^(-2 tau^2 / (n c^2)): the chance that a function of n rows is off its mean by tau or more.

    One row moves the function by at most c. At most 1 is returned.   [McDiarmid 1989]

    >>> mcdiarmid(10_000, "0.05", "1/10000") == hoeffding(10_000, "0.05")
    True
    """
    u = exponent(n, tau, c)
    mp = precise(u)
    return chance(2 * mp.exp(-2 * as_real(mp, u)))


def mcdiarmid_deviation(n: int, beta: Number, c: Number) -> float:
    """Return c sqrt(n ln(2/beta) / 2), which a function of n rows deviates from its mean with a chance of beta at most.

    >>> f"{mcdiarmid_deviation(10_000, '0.05', '1/10000'):.4g}"
    '0.01358'
    """
    rows, b, step = whole(n, "n"), inside(beta, "beta"), above_zero(c, "c")
    mp = precise(b, step)
    return float_above(as_real(mp, step) * mp.sqrt(rows * mp.log(2 / as_real(mp, b)) / 2))


def mcdiarmid_size(tau: Number, beta: Number, width: Number) -> int:
    """Return the least n for a function that one of n rows moves by at most width / n, such as a mean of that range.

    >>> mcdiarmid_size("0.05", "0.05", 1), mcdiarmid_size("0.1", "0.05", 2)
    (738, 738)
    """
    t, b, w = above_zero(tau, "tau"), inside(beta, "beta"), above_zero(width, "width")
    mp = precise(t, b, w)
    return int(mp.ceil(mp.log(2 / as_real(mp, b)) * as_real(mp, (w / t) ** 2 / 2)))


# A question that an epsilon-DP program chose after it saw the sample


def bad_output_epsilon(n: int, beta: Number) -> float:
    """Return sqrt(ln(1/beta) / (2n)): up to this epsilon `bad_output` holds. Rounded down.

    [Dwork-Feldman-Hardt-Pitassi-Reingold-Roth 2015, "Preserving statistical validity in adaptive data analysis"]

    >>> f"{bad_output_epsilon(10_000, '1e-6'):.4g}"
    '0.02628'
    """
    rows, b = whole(n, "n"), inside(beta, "beta")
    mp = precise(b)
    return float_below(mp.sqrt(-mp.log(as_real(mp, b)) / (2 * rows)))


def bad_output(n: int, beta: Number, epsilon: Number) -> float:
    """Return 3 sqrt(beta): how likely the output of a private program is bad for its own sample.

    Each output is bad for a fresh sample with a chance of at most beta. The theorem needs epsilon <= sqrt(ln(1/beta) /
    (2n)).   [Dwork et al. 2015, as in `bad_output_epsilon`; `bad_event` is three times smaller, for every epsilon]

    >>> f"{bad_output(10_000, '1e-6', '0.026'):.4g}"
    '0.003'
    """
    most = bad_output_epsilon(n, beta)
    if Pure(epsilon).epsilon > Fraction(most):
        raise InputError(f"The theorem needs an epsilon of at most {most:.4g} here: use bad_event for a larger one.")
    b = inside(beta, "beta")
    mp = precise(b)
    return chance(3 * mp.sqrt(as_real(mp, b)))


def bad_event(n: int, beta: Number, epsilon: Number) -> float:
    """Return beta e^(epsilon sqrt(n ln(1/beta) / 2)), at most 1: the same chance for every epsilon.

    ln P(y | S) moves by epsilon with a row, so by McDiarmid's lemma its moments are bounded; Hölder's inequality does
    the rest (docs/proofs/generalisation.md). At the epsilon of `bad_output_epsilon` it is sqrt(beta).

    >>> f"{bad_event(10_000, '1e-6', '0.026'):.4g}", bad_event(10_000, "1e-6", 1)
    ('0.0009284', 1.0)
    """
    b, e = inside(beta, "beta"), Pure(epsilon).epsilon
    mp = precise(b, e)
    return _tilted(mp, whole(n, "n"), -mp.log(as_real(mp, b)), e)


def _tilted(mp: Any, n: int, L: Any, epsilon: Fraction) -> float:
    """`bad_event` for beta = e^-L."""
    return chance(mp.exp(as_real(mp, epsilon) * mp.sqrt(n * L / 2) - L)) if L > 0 else 1.0


def statistical_query_epsilon(n: int, tau: Number) -> float:
    """Return sqrt(tau^2 - ln 2 / (2n)): up to this epsilon `statistical_query` holds. Rounded down, 0 if there is none.

    >>> f"{statistical_query_epsilon(10_000, '0.05'):.4g}"
    '0.04965'
    """
    rows, t = whole(n, "n"), inside(tau, "tau")
    mp = precise(t)
    return max(0.0, float_below(mp.sqrt(max(mp.zero, as_real(mp, t * t) - mp.log(2) / (2 * rows)))))


def statistical_query(n: int, tau: Number, epsilon: Number) -> float:
    """Return 3 sqrt(2) e^(-n tau^2): the chance that the mean of a privately chosen phi in [0, 1] is off by tau.

    The theorem needs epsilon <= sqrt(tau^2 - ln 2 / (2n)).   [Dwork et al. 2015, as in `bad_output_epsilon`]

    >>> f"{statistical_query(10_000, '0.05', '0.0496'):.3g}"
    '5.89e-11'
    """
    most, t = statistical_query_epsilon(n, tau), inside(tau, "tau")
    if Pure(epsilon).epsilon > Fraction(most):
        raise InputError(f"The theorem needs an epsilon of at most {most:.4g} here: use chosen_query for a larger one.")
    mp = precise(t)
    return chance(3 * mp.sqrt(2) * mp.exp(-n * as_real(mp, t * t)))


def chosen_query(n: int, tau: Number, epsilon: Number) -> float:
    """Return `bad_event` for Hoeffding's beta: the same chance for every epsilon, and three times smaller.

    >>> f"{chosen_query(10_000, '0.05', '0.0496'):.3g}", f"{chosen_query(10_000, '0.05', '0.08'):.3g}"
    ('1.91e-11', '6.87e-05')
    """
    rows, t, e = whole(n, "n"), inside(tau, "tau"), Pure(epsilon).epsilon
    mp = precise(t, e)
    return _tilted(mp, rows, 2 * rows * as_real(mp, t * t) - mp.log(2), e)


# Reading and rounding


def exponent(n: int, tau: Number, c: Number) -> Fraction:
    """Return u = tau^2 / (n c^2), which is n tau^2 for a mean of values in [0, 1].

    >>> exponent(10_000, "0.05", "1/10000")
    Fraction(25, 1)
    """
    return above_zero(tau, "tau") ** 2 / (whole(n, "n") * above_zero(c, "c") ** 2)


def above_zero(value: Number, name: str) -> Fraction:
    """Read a number that must be above 0."""
    number = fraction(value, name)
    if number <= 0:
        raise InputError(f"{name} must be above 0.")
    return number


def chance(value: Any) -> float:
    """Round a chance up to a float; at most 1."""
    return min(1.0, float_above(value))
