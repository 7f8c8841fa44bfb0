"""Guarantees: what a mechanism promises, with the arithmetic of promises.

    Guarantee = Pure | Approx | ZCDP | Profile

`a + b` is what holds when both are released, `a * k` when k like it are, `a <= b` that a implies b, `.delta(epsilon)`
and `.epsilon(delta)` the tightest pair that is known to follow, rounded up.

What a sum states is basic composition, exact sums of exact rationals: Pure("0.1") * 3 == Pure("0.3"). What it knows is
more: it keeps the privacy losses of all that was added, with their counts, and composes them tightly when asked for
delta or epsilon. Where no plain statement holds for all parts the sum is a `Profile`, which has nothing but that.

The releases may depend on each other's results, but what each of them promises must be settled in advance; where later
promises depend on earlier answers, use a filter.   [Rogers-Roth-Ullman-Vadhan 2016]
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from noisette.errors import InputError, PrivacyError
from noisette.exact.number import Number, fraction, nearest_float, whole
from noisette.privacy import convert, tight
from noisette.privacy.loss import Loss, Response
from noisette.privacy.neighbours import Neighbours, common

__all__ = ["ZCDP", "Approx", "Guarantee", "Profile", "Promise", "Pure"]

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


@dataclass(frozen=True)
class Ledger:
    """Losses with their counts, and the rho of what is known by zCDP alone."""

    parts: tuple[tuple[Loss, int], ...]
    rho: Fraction = Fraction(0)

    def __add__(self, other: Ledger) -> Ledger:
        together = dict(self.parts)
        for loss, k in other.parts:
            together[loss] = together.get(loss, 0) + k
        return Ledger(tuple(sorted(together.items(), key=repr)), self.rho + other.rho)

    def __mul__(self, k: int) -> Ledger:
        return Ledger(tuple((loss, k * count) for loss, count in self.parts if k), k * self.rho)


def once(loss: Loss | None) -> Ledger | None:
    """Return the ledger of a single release, if its loss is known."""
    return None if loss is None else Ledger(((loss, 1),))


class _Algebra:
    """What all guarantees share; `neighbours` is None where the relation does not matter."""

    neighbours: Neighbours | None

    def __add__(self, other: object) -> Guarantee:
        """Return what holds when both are released."""
        if not isinstance(other, Pure | Approx | ZCDP | Profile):
            return NotImplemented
        return _sum(_known(self), other)

    def __mul__(self, k: int) -> Guarantee:
        """Return what holds when k like this are released."""
        return _times(_known(self), whole(k, "k", least=0))

    __rmul__ = __mul__

    def __le__(self, other: object) -> bool:
        """Tell whether this guarantee implies the other."""
        if not isinstance(other, Pure | Approx | ZCDP | Profile):
            return NotImplemented
        common(self.neighbours, other.neighbours)
        return _implies(_known(self), other)

    def delta(self, epsilon: Number) -> float:
        """Return the smallest delta known with (epsilon, delta)-DP, rounded up."""
        return _known_delta(_known(self), _epsilon(epsilon))

    def epsilon(self, delta: Number = 0) -> float:
        """Return the smallest epsilon known with (epsilon, delta)-DP, rounded up; infinite if there is none."""
        return _known_epsilon(_known(self), _delta(delta))

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
        numbers = [repr(str(v)) for k, v in vars(self).items() if k not in ("neighbours", "ledger")]
        relation = [f"neighbours={self.neighbours.name}"] if self.neighbours else []
        return f"{type(self).__name__}({', '.join(numbers + relation)})"


def _known(guarantee: object) -> Guarantee:
    assert isinstance(guarantee, Pure | Approx | ZCDP | Profile)
    return guarantee


@dataclass(frozen=True, repr=False)
class Pure(_Algebra):
    """eps-differential privacy: P(M(x) in S) <= e^eps P(M(x') in S) for all neighbours x, x' and all S.

    >>> Pure("0.1") * 3 == Pure("0.3"), Pure(1).delta(1), Pure(1) <= Approx(1, "1e-6")
    (True, 0.0, True)
    """

    eps: Fraction
    neighbours: Neighbours | None = field(default=None, kw_only=True)
    ledger: Ledger | None = field(default=None, kw_only=True, compare=False)

    def __init__(self, eps: Number, *, neighbours: Neighbours | None = None, ledger: Ledger | None = None) -> None:
        object.__setattr__(self, "eps", _epsilon(eps))
        object.__setattr__(self, "neighbours", neighbours)
        object.__setattr__(self, "ledger", ledger)

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
    ledger: Ledger | None = field(default=None, kw_only=True, compare=False)

    def __init__(
        self, eps: Number, delta: Number, *, neighbours: Neighbours | None = None, ledger: Ledger | None = None
    ) -> None:
        object.__setattr__(self, "eps", _epsilon(eps))
        object.__setattr__(self, "delta0", _delta(delta))
        object.__setattr__(self, "neighbours", neighbours)
        object.__setattr__(self, "ledger", ledger)

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
    ledger: Ledger | None = field(default=None, kw_only=True, compare=False)

    def __init__(self, rho: Number, *, neighbours: Neighbours | None = None, ledger: Ledger | None = None) -> None:
        number = fraction(rho, "rho")
        if not 0 <= number <= LARGEST_EPSILON:
            raise InputError(f"rho must lie between 0 and {LARGEST_EPSILON:,}: a usual one is between 0.001 and 1.")
        object.__setattr__(self, "rho", number)
        object.__setattr__(self, "neighbours", neighbours)
        object.__setattr__(self, "ledger", ledger)

    def __str__(self) -> str:
        return f"{_short(self.rho)}-zCDP{_under(self.neighbours)}"


@dataclass(frozen=True, repr=False)
class Profile(_Algebra):
    """Several releases together for which neither a pure, an approximate nor a zCDP guarantee holds for all.

    >>> g = Approx(1, "1e-9") + ZCDP("0.1")
    >>> type(g).__name__, round(g.epsilon("1e-6"), 3)
    ('Profile', 3.112)
    """

    ledger: Ledger
    neighbours: Neighbours | None = field(default=None, kw_only=True)

    def __str__(self) -> str:
        releases = sum(k for _, k in self.ledger.parts)
        rest = f" and {_short(self.ledger.rho)}-zCDP" if self.ledger.rho else ""
        return f"{releases} releases{rest} together{_under(self.neighbours)}"

    def __repr__(self) -> str:
        return f"Profile({self.ledger!r}{_under(self.neighbours)})"


Promise: TypeAlias = Pure | Approx | ZCDP
"""A guarantee that can be asked for."""

Guarantee: TypeAlias = Pure | Approx | ZCDP | Profile


def _short(number: Fraction) -> str:
    text = f"{float(number):.6g}"
    return text if Fraction(text) == number else f"{text}…"


def _under(neighbours: Neighbours | None) -> str:
    return f" under {neighbours}" if neighbours else ""


def _ledger(a: Guarantee) -> Ledger:
    """What a guarantee knows; without more, randomized response stands for (epsilon, delta)."""
    if a.ledger is not None:
        return a.ledger
    if isinstance(a, ZCDP):
        return Ledger((), a.rho)
    return Ledger(((Response(a.eps, _own_delta(a)), 1),) if a.eps or _own_delta(a) else ())


def _sum(a: Guarantee, b: Guarantee) -> Guarantee:
    relation, together = common(a.neighbours, b.neighbours), _ledger(a) + _ledger(b)
    if isinstance(a, Pure | Approx) and isinstance(b, Pure | Approx):
        return _stated(a.eps + b.eps, _own_delta(a) + _own_delta(b), None, relation, together)
    rho, more = _rho(a), _rho(b)
    return _stated(None, None, None if rho is None or more is None else rho + more, relation, together)


def _times(a: Guarantee, k: int) -> Guarantee:
    together = _ledger(a) * k
    if isinstance(a, Pure | Approx):
        return _stated(k * a.eps, k * _own_delta(a), None, a.neighbours, together)
    return _stated(None, None, k * a.rho if isinstance(a, ZCDP) else None, a.neighbours, together)


def _stated(
    eps: Fraction | None, delta: Fraction | None, rho: Fraction | None, neighbours: Neighbours | None, ledger: Ledger
) -> Guarantee:
    """The plain statement of basic composition, or a profile where it would say nothing."""
    if eps is not None and delta is not None and eps <= LARGEST_EPSILON and delta < 1:
        if delta:
            return Approx(eps, delta, neighbours=neighbours, ledger=ledger)
        return Pure(eps, neighbours=neighbours, ledger=ledger)
    if rho is not None and rho <= LARGEST_EPSILON:
        return ZCDP(rho, neighbours=neighbours, ledger=ledger)
    return Profile(ledger, neighbours=neighbours)


def _group(a: Guarantee, k: int) -> Guarantee:
    """k eps; delta (e^(k eps) - 1)/(e^eps - 1), rounded up; k^2 rho.   [Dwork-Roth 2014; Bun-Steinke 2016]"""
    match a:
        case Pure():
            return Pure(k * a.eps, neighbours=a.neighbours)
        case Approx():
            return Approx(k * a.eps, convert.group_delta(a.eps, a.delta0, k), neighbours=a.neighbours)
        case ZCDP():
            return ZCDP(k * k * a.rho, neighbours=a.neighbours)
        case Profile():
            raise PrivacyError("For groups, add up what each mechanism guarantees at the group's distance instead.")


def _own_delta(a: Pure | Approx) -> Fraction:
    return a.delta0 if isinstance(a, Approx) else Fraction(0)


def _rho(a: Guarantee) -> Fraction | None:
    """The least rho known: what is stated, or the sum over the ledger; None where a part has none."""
    stated = convert.pure_to_zcdp(a.eps) if isinstance(a, Pure) else a.rho if isinstance(a, ZCDP) else None
    known = None if a.ledger is None else tight.rho_bound(a.ledger.parts, a.ledger.rho)
    return min((rho for rho in (stated, known) if rho is not None), default=None)


def _with(a: Guarantee, neighbours: Neighbours | None) -> Guarantee:
    match a:
        case Pure():
            return Pure(a.eps, neighbours=neighbours, ledger=a.ledger)
        case Approx():
            return Approx(a.eps, a.delta0, neighbours=neighbours, ledger=a.ledger)
        case ZCDP():
            return ZCDP(a.rho, neighbours=neighbours, ledger=a.ledger)
        case Profile():
            return Profile(a.ledger, neighbours=neighbours)


def _known_delta(a: Guarantee, e: Fraction) -> float:
    """The least of what the guarantee states and what it knows imply."""
    bounds = []
    if not isinstance(a, ZCDP | Profile):
        bounds.append(nearest_float(convert.approx_delta(a.eps, _own_delta(a), e), up=True))
    if isinstance(a, ZCDP):
        bounds.append(convert.zcdp_delta(a.rho, e) if a.rho else 0.0)
    if a.ledger is not None and min(bounds, default=1.0) > 0:
        bounds.append(tight.tight_delta(a.ledger.parts, a.ledger.rho, e))
    return min(bounds)


def _known_epsilon(a: Guarantee, d: Fraction) -> float:
    bounds = []
    if not isinstance(a, ZCDP | Profile):
        bounds.append(convert.approx_epsilon(a.eps, _own_delta(a), d))
    if isinstance(a, ZCDP):
        bounds.append(convert.zcdp_epsilon(a.rho, d) if a.rho else 0.0)
    if a.ledger is not None and d > 0:
        bounds.append(tight.tight_epsilon(a.ledger.parts, a.ledger.rho, d))
    return min(bounds, default=math.inf)


def _implies(a: Guarantee, b: Guarantee) -> bool:
    match b:
        case Pure():
            return (isinstance(a, Pure | Approx) and a.eps <= b.eps and _own_delta(a) == 0) or _is_nothing(a)
        case Approx():
            plainly = isinstance(a, Pure | Approx) and convert.approx_delta(a.eps, _own_delta(a), b.eps) <= b.delta0
            return plainly or Fraction(_known_delta(a, b.eps)) <= b.delta0
        case ZCDP():
            least = _rho(a)
            return (least is not None and least <= b.rho) or _is_nothing(a)
        case Profile():
            raise PrivacyError("Compare with a Pure, Approx or ZCDP guarantee: a profile is not a budget.")


def _is_nothing(a: Guarantee) -> bool:
    return a.rho == 0 if isinstance(a, ZCDP) else not isinstance(a, Profile) and a.eps == 0 == _own_delta(a)
