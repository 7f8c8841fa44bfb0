"""Guarantees: what a mechanism promises, with the arithmetic of promises.

    Guarantee = Pure | Approx | ZCDP

`a + b` is what holds when both are released (adaptively), `a * k` when k like it are, `a <= b` that a implies b,
`.delta(epsilon)` and `.epsilon(delta)` the tightest pair that follows, rounded up. Composition is the basic one: exact
sums of exact rationals; rho's add, and a pure epsilon enters a sum with zCDP as epsilon^2 / 2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from noisette.errors import InputError, PrivacyError
from noisette.exact.number import Number, fraction, nearest_float, whole
from noisette.privacy import convert
from noisette.privacy.neighbours import Neighbours, common

__all__ = ["ZCDP", "Approx", "Guarantee", "Pure"]

LARGEST_EPSILON = 10**6


def _epsilon(value: Number) -> Fraction:
    number = fraction(value, "epsilon")
    if number < 0 or number > LARGEST_EPSILON:
        raise InputError(f"epsilon must lie between 0 and {LARGEST_EPSILON:,}: a usual one is between 0.1 and 10.")
    return number


def _delta(value: Number, *, least: int = 0) -> Fraction:
    number = fraction(value, "delta")
    if not least <= number < 1:
        raise InputError("delta must be at least 0 and below 1: a usual one is '1e-6'.")
    return number


class _Algebra:
    """What all guarantees share; `neighbours` is None where the relation does not matter."""

    neighbours: Neighbours | None

    def __add__(self, other: object) -> Guarantee:
        """Return what holds when both are released."""
        if not isinstance(other, Pure | Approx | ZCDP):
            return NotImplemented
        return _sum(_known(self), other)

    def __mul__(self, k: int) -> Guarantee:
        """Return what holds when k like this are released."""
        return _times(_known(self), whole(k, "k", least=0))

    __rmul__ = __mul__

    def __le__(self, other: object) -> bool:
        """Tell whether this guarantee implies the other."""
        if not isinstance(other, Pure | Approx | ZCDP):
            return NotImplemented
        common(self.neighbours, other.neighbours)
        return _implies(_known(self), other)

    def under(self, neighbours: Neighbours) -> Guarantee:
        """Restate the guarantee for a relation; add/remove becomes replace at the price of a group of two.

        >>> Pure(1, neighbours=Neighbours.ADD_REMOVE).under(Neighbours.REPLACE)
        Pure('2', neighbours=REPLACE)
        """
        if self.neighbours is None or self.neighbours is neighbours:
            return _with(_known(self), neighbours)
        if neighbours is Neighbours.ADD_REMOVE:
            raise PrivacyError(
                "A guarantee under replace says nothing about adding or removing a person: "
                "calibrate the mechanism with an add/remove sensitivity instead."
            )
        return _with(self.group(2), neighbours)

    def group(self, size: int) -> Guarantee:
        """Return what holds for groups of `size` people."""
        return _group(_known(self), whole(size, "size"))

    def __repr__(self) -> str:
        numbers = [repr(str(v)) for k, v in vars(self).items() if k != "neighbours"]
        relation = [f"neighbours={self.neighbours.name}"] if self.neighbours else []
        return f"{type(self).__name__}({', '.join(numbers + relation)})"


def _known(guarantee: object) -> Guarantee:
    assert isinstance(guarantee, Pure | Approx | ZCDP)
    return guarantee


@dataclass(frozen=True, repr=False)
class Pure(_Algebra):
    """eps-differential privacy: P(M(x) in S) <= e^eps P(M(x') in S) for all neighbours x, x' and all S.

    >>> Pure("0.1") * 3 == Pure("0.3"), Pure(1).delta(1), Pure(1) <= Approx(1, "1e-6")
    (True, 0.0, True)
    """

    eps: Fraction
    neighbours: Neighbours | None = field(default=None, kw_only=True)

    def __init__(self, eps: Number, *, neighbours: Neighbours | None = None) -> None:
        object.__setattr__(self, "eps", _epsilon(eps))
        object.__setattr__(self, "neighbours", neighbours)

    def delta(self, epsilon: Number) -> float:
        """Return the smallest delta with (epsilon, delta)-DP, rounded up."""
        return nearest_float(convert.approx_delta(self.eps, Fraction(0), _epsilon(epsilon)), up=True)

    def epsilon(self, delta: Number = 0) -> float:
        """Return the smallest epsilon with (epsilon, delta)-DP, rounded up."""
        return convert.approx_epsilon(self.eps, Fraction(0), _delta(delta))

    def __str__(self) -> str:
        return f"{_short(self.eps)}-DP{_under(self.neighbours)}"


@dataclass(frozen=True, repr=False)
class Approx(_Algebra):
    """(eps, delta)-differential privacy: P(M(x) in S) <= e^eps P(M(x') in S) + delta.

    >>> Approx(1, "1e-6") + Pure("1/2")
    Approx('3/2', '1/1000000')
    """

    eps: Fraction
    delta0: Fraction
    neighbours: Neighbours | None = field(default=None, kw_only=True)

    def __init__(self, eps: Number, delta: Number, *, neighbours: Neighbours | None = None) -> None:
        object.__setattr__(self, "eps", _epsilon(eps))
        object.__setattr__(self, "delta0", _delta(delta))
        object.__setattr__(self, "neighbours", neighbours)

    def delta(self, epsilon: Number) -> float:
        """Return the smallest delta with (epsilon, delta)-DP, rounded up."""
        return nearest_float(convert.approx_delta(self.eps, self.delta0, _epsilon(epsilon)), up=True)

    def epsilon(self, delta: Number) -> float:
        """Return the smallest epsilon with (epsilon, delta)-DP, rounded up; infinite below its own delta."""
        return convert.approx_epsilon(self.eps, self.delta0, _delta(delta))

    def __str__(self) -> str:
        return f"({_short(self.eps)}, {_short(self.delta0)})-DP{_under(self.neighbours)}"


@dataclass(frozen=True, repr=False)
class ZCDP(_Algebra):
    """rho-zero-concentrated differential privacy: Rényi divergence of order a at most rho a, for all a > 1.

    [Bun-Steinke 2016]

    >>> round(ZCDP("0.5").epsilon("1e-6"), 6)
    5.221534
    """

    rho: Fraction
    neighbours: Neighbours | None = field(default=None, kw_only=True)

    def __init__(self, rho: Number, *, neighbours: Neighbours | None = None) -> None:
        number = fraction(rho, "rho")
        if not 0 <= number <= LARGEST_EPSILON:
            raise InputError(f"rho must lie between 0 and {LARGEST_EPSILON:,}: a usual one is between 0.001 and 1.")
        object.__setattr__(self, "rho", number)
        object.__setattr__(self, "neighbours", neighbours)

    def delta(self, epsilon: Number) -> float:
        """Return a delta with (epsilon, delta)-DP: the best known conversion, rounded up."""
        return convert.zcdp_delta(self.rho, _epsilon(epsilon)) if self.rho else 0.0

    def epsilon(self, delta: Number) -> float:
        """Return an epsilon with (epsilon, delta)-DP: the best known conversion, rounded up."""
        return convert.zcdp_epsilon(self.rho, _delta(delta)) if self.rho else 0.0

    def __str__(self) -> str:
        return f"{_short(self.rho)}-zCDP{_under(self.neighbours)}"


Guarantee: TypeAlias = Pure | Approx | ZCDP


def _short(number: Fraction) -> str:
    text = f"{float(number):.6g}"
    return text if Fraction(text) == number else f"{text}…"


def _under(neighbours: Neighbours | None) -> str:
    return f" under {neighbours}" if neighbours else ""


def _sum(a: Guarantee, b: Guarantee) -> Guarantee:
    relation = common(a.neighbours, b.neighbours)
    match a, b:
        case (Pure(), Pure()):
            return Pure(a.eps + b.eps, neighbours=relation)
        case (Pure() | ZCDP(), Pure() | ZCDP()):
            return ZCDP(_rho(a) + _rho(b), neighbours=relation)
        case (Pure() | Approx(), Pure() | Approx()):
            delta0 = _own_delta(a) + _own_delta(b)
            if delta0 >= 1:
                raise PrivacyError("The deltas add up to 1 or more, which promises nothing: use smaller ones.")
            return Approx(a.eps + b.eps, delta0, neighbours=relation)
        case _:
            raise PrivacyError(
                "An (epsilon, delta) guarantee does not add to a zCDP one: "
                "state the zCDP part as Approx(part.epsilon(delta), delta) first."
            )


def _times(a: Guarantee, k: int) -> Guarantee:
    match a:
        case Pure():
            return Pure(k * a.eps, neighbours=a.neighbours)
        case Approx():
            return Approx(k * a.eps, k * a.delta0, neighbours=a.neighbours)
        case ZCDP():
            return ZCDP(k * a.rho, neighbours=a.neighbours)


def _group(a: Guarantee, k: int) -> Guarantee:
    """k eps; delta (e^(k eps) - 1)/(e^eps - 1), rounded up; k^2 rho.   [Dwork-Roth 2014; Bun-Steinke 2016]"""
    match a:
        case Pure():
            return Pure(k * a.eps, neighbours=a.neighbours)
        case Approx():
            return Approx(k * a.eps, convert.group_delta(a.eps, a.delta0, k), neighbours=a.neighbours)
        case ZCDP():
            return ZCDP(k * k * a.rho, neighbours=a.neighbours)


def _rho(a: Pure | ZCDP) -> Fraction:
    return convert.pure_to_zcdp(a.eps) if isinstance(a, Pure) else a.rho


def _own_delta(a: Pure | Approx) -> Fraction:
    return a.delta0 if isinstance(a, Approx) else Fraction(0)


def _with(a: Guarantee, neighbours: Neighbours) -> Guarantee:
    match a:
        case Pure():
            return Pure(a.eps, neighbours=neighbours)
        case Approx():
            return Approx(a.eps, a.delta0, neighbours=neighbours)
        case ZCDP():
            return ZCDP(a.rho, neighbours=neighbours)


def _implies(a: Guarantee, b: Guarantee) -> bool:
    pair = _own_pair(a)
    match b:
        case Pure():
            return pair is not None and pair[0] <= b.eps and pair[1] == 0
        case Approx():
            delta = convert.approx_delta(*pair, b.eps) if pair else Fraction(a.delta(b.eps))
            return delta <= b.delta0
        case ZCDP():
            return not isinstance(a, Approx) and _rho(a) <= b.rho


def _own_pair(a: Guarantee) -> tuple[Fraction, Fraction] | None:
    """The (epsilon, delta) that a guarantee states by itself, if it does."""
    if isinstance(a, ZCDP):
        return None if a.rho else (Fraction(0), Fraction(0))
    return a.eps, _own_delta(a)
