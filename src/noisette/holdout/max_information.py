"""Max-information: how much a sample and what was computed from it depend on each other, in bits.

I_beta(S; Y) is the least k for which P((S, Y) in O) <= 2^k P(S x Y in O) + beta for every event O, where S x Y are
drawn independently. So an event that is rare for a fresh sample stays rare for the sample that was used.
[Dwork-Feldman-Hardt-Pitassi-Reingold-Roth 2015, "Generalization in adaptive data analysis and holdout reuse"]

Vocabulary: as in `bounds`, and u = tau^2 / (n c^2), which is n tau^2 for a mean of values in [0, 1]. Bits and chances
are rounded up, admissible epsilons are exact.
"""

import math
from fractions import Fraction
from typing import Annotated, Any

from noisette.errors import InputError
from noisette.exact.frozen import KW_ONLY, Read, default, frozen
from noisette.exact.number import Number, fraction, inside, nearest_float, whole
from noisette.exact.rational import as_real, float_above, precise
from noisette.holdout.bounds import above_zero, chance, exponent
from noisette.privacy import Pure

__all__ = [
    "MaxInformation",
    "best_beta",
    "composed",
    "iid_max_information",
    "max_information",
    "post_processed",
    "take_one",
    "take_one_epsilon",
    "take_two",
    "take_two_epsilon",
]


def _bits(given: Number, name: str) -> Fraction:
    number = fraction(given, name)
    if number < 0:
        raise InputError(f"{name} must be at least 0.")
    return number


def _beta(given: Number, name: str) -> Fraction:
    number = fraction(given, name)
    if not 0 <= number < 1:
        raise InputError(f"{name} must be at least 0 and below 1.")
    return number


@frozen
class MaxInformation:
    """At most `bits` of beta-approximate max-information.

    `iid` says that the bound holds for samples of independent rows only; otherwise it holds for every law of the
    sample.

    >>> known = iid_max_information("0.01", 10_000, "0.001")
    >>> round(float(known.bits), 3), known.iid
    (3.534, True)
    """

    bits: Annotated[Read[Number, Fraction], _bits]
    beta: Annotated[Read[Number, Fraction], _beta] = default(0)
    _: KW_ONLY
    iid: bool = False

    def bad_event(self, independent: Number) -> float:
        """Return 2^bits p + beta: how likely an event is that has chance p at most for a fresh sample. Rounded up.

        >>> from noisette.holdout.bounds import hoeffding
        >>> iid_max_information("0.01", 10_000, "0.001").bad_event(hoeffding(10_000, "0.05"))
        0.0010000000000000002
        """
        p = _bits(independent, "independent")
        mp = precise(self.bits, self.beta, p)
        return chance(mp.power(2, as_real(mp, self.bits)) * as_real(mp, p) + as_real(mp, self.beta))


def max_information(epsilon: Number, n: int) -> MaxInformation:
    """Return (log2 e) epsilon n bits, for an epsilon-DP program and every law of the sample.

    Two samples of n rows are n replacements apart.   [Dwork et al. 2015]

    >>> round(float(max_information("0.1", 1000).bits), 4)
    144.2695
    """
    return MaxInformation(_in_bits(Pure(epsilon).epsilon * whole(n, "n")))


def iid_max_information(epsilon: Number, n: int, beta: Number) -> MaxInformation:
    """Return (log2 e)(epsilon^2 n/2 + epsilon sqrt(n ln(2/beta)/2)) bits, for independent rows only.

    It does not compose: add up epsilons first and convert once, see `composed`. The general bound is returned where it
    is smaller.   [Dwork et al. 2015]

    >>> round(float(iid_max_information("0.1", 1000, "0.05").bits), 4)
    13.4094
    """
    e, rows, b = Pure(epsilon).epsilon, whole(n, "n"), inside(beta, "beta")
    mp = precise(e, b)
    nats = as_real(mp, e * e * rows / 2) + as_real(mp, e) * mp.sqrt(rows * mp.log(2 / as_real(mp, b)) / 2)
    general = max_information(e, rows)
    bits = Fraction(float_above(nats / mp.log(2)))
    return MaxInformation(bits, b, iid=True) if bits < general.bits else general


def post_processed(known: MaxInformation) -> MaxInformation:
    """Return the same bound: whatever is computed from an output alone depends on the sample no more than the output.

    >>> post_processed(max_information("0.1", 1000)) == max_information("0.1", 1000)
    True
    """
    return known


def composed(first: MaxInformation, *later: MaxInformation) -> MaxInformation:
    """Return the sum of bits and betas of programs; each may depend on the outputs of those before.

    After one output the rows are no longer independent, so each later bound must hold for every law; bounds for
    independent rows are refused there (errata E23). The sum is for independent rows if the first bound is.
    [Dwork et al. 2015; Rogers-Roth-Smith-Thakkar 2016 about the condition; docs/proofs/generalisation.md]

    >>> float(composed(max_information("0.1", 1000), max_information("0.2", 1000)).bits) > 432.8
    True
    >>> composed(max_information("0.1", 1000), iid_max_information("0.1", 1000, "0.05"))
    Traceback (most recent call last):
        ...
    noisette.errors.InputError: A bound for independent rows does not hold after a first output: ...
    """
    if any(one.iid for one in later):
        raise InputError(
            "A bound for independent rows does not hold after a first output: add up the epsilons and convert once, "
            "or give max_information(epsilon, n), which holds for every law."
        )
    parts = (first, *later)
    beta = sum((one.beta for one in parts), Fraction(0))
    if beta >= 1:
        raise InputError("The betas add up to 1 or more, which says nothing: choose smaller ones.")
    return MaxInformation(sum((one.bits for one in parts), Fraction(0)), beta, iid=first.iid)


# The function of the sample that a private program chose: one row moves it by at most c


def take_one_epsilon(n: int, tau: Number, c: Number) -> Fraction:
    """Return tau^2 / (n^2 c^2): up to this epsilon `take_one` holds with beta = 0. Exact.

    >>> take_one_epsilon(10_000, "0.05", "1/10000")
    Fraction(1, 400)
    """
    return exponent(n, tau, c) / n


def take_one(n: int, tau: Number, c: Number, known: MaxInformation) -> float:
    """Return 2 e^-u + beta, for at most (log2 e) u bits: the chance that the function is off its mean by tau or more.

    [Bassi 2019, "Generalization via max-information"; McDiarmid's inequality and `MaxInformation.bad_event`]

    >>> f"{take_one(10_000, '0.05', '1/10000', max_information('0.0024', 10_000)):.3g}"
    '2.78e-11'
    """
    u = exponent(n, tau, c)
    mp = precise(u, known.bits)
    if as_real(mp, known.bits) * mp.log(2) > as_real(mp, u):
        bits = nearest_float(u, up=False) / math.log(2)
        raise InputError(f"The theorem allows at most {bits:.4g} bits here: use known.bad_event(mcdiarmid(n, tau, c)).")
    return chance(2 * mp.exp(-as_real(mp, u)) + as_real(mp, known.beta))


def take_two_epsilon(n: int, tau: Number, c: Number) -> Fraction:
    """Return tau / (n c): up to this epsilon `take_two` holds. Exact.

    >>> take_two_epsilon(10_000, "0.05", "1/10000")
    Fraction(1, 20)
    """
    return above_zero(tau, "tau") / (whole(n, "n") * above_zero(c, "c"))


def take_two(n: int, tau: Number, c: Number) -> float:
    """Return 2 e^((1/sqrt 2 - 3/2) u) + 2 e^-u, for a (tau / (n c))-DP choice from independent rows.

    For u >= 5.958 it is at most 2 e^(-3u/4) (errata E23). `best_beta` is never above.   [Bassi 2019, "take 2"]

    >>> f"{take_two(10_000, '0.05', '1/10000'):.3g}"
    '4.95e-09'
    """
    u = exponent(n, tau, c)
    mp = precise(u)
    x = as_real(mp, u)
    return chance(2 * mp.exp((1 / mp.sqrt(2) - mp.mpf(3) / 2) * x) + 2 * mp.exp(-x))


def best_beta(n: int, tau: Number, c: Number, epsilon: Number) -> tuple[float, float]:
    """Return the least over beta of 2^k 2 e^(-2u) + beta, with k of `iid_max_information`, and that beta.

    Each beta gives a bound; the search only looks for a good one. `take_two` is the bound at beta = 2 e^-u.

    >>> [f"{value:.3g}" for value in best_beta(10_000, "0.05", "1/10000", "0.05")]
    ['2.2e-09', '6.04e-10']
    """
    u, e = exponent(n, tau, c), Pure(epsilon).epsilon
    beta = min(Fraction(1, 2), Fraction(_good_beta(float(u), float(e) * math.sqrt(n / 2))))
    fresh = precise(u)
    tail = Fraction(float_above(2 * fresh.exp(-2 * as_real(fresh, u))))
    return iid_max_information(e, n, beta).bad_event(tail), float(beta)


def _good_beta(u: float, a: float) -> float:
    """Minimise 2 e^(-2u + a^2 + a sqrt(x)) + 2 e^-x over x; beta = 2 e^-x, and a = epsilon sqrt(n/2)."""
    import numpy as np
    from scipy.optimize import minimize_scalar

    def log_bound(x: float) -> Any:
        return np.logaddexp(a * a + a * math.sqrt(x) - 2 * u, -x)

    x = float(minimize_scalar(log_bound, bounds=(0, 2 * u + 2), method="bounded").x)
    return max(2 * math.exp(-x), 1e-300)


def _in_bits(nats: Fraction) -> Fraction:
    mp = precise(nats)
    return Fraction(float_above(as_real(mp, nats) / mp.log(2))) if nats else Fraction(0)
