"""Guarantees: what a mechanism promises, with the algebra of promises.

    Guarantee = Pure | Approx | ZCDP | Profile        Promise = Pure | Approx | ZCDP: what can be asked for

`a + b` holds when both are released, `a * k` when k like it are, and `a <= b` says that a implies b.
`delta_at(epsilon)` and `epsilon_at(delta)` return the tightest pair known to follow, rounded up.

A sum states basic composition, exact sums of exact rationals: Pure("0.1") * 3 == Pure("0.3"). It knows more: it keeps
the privacy losses of all its parts with their counts (`Losses`), and composes them tightly when asked for a delta or an
epsilon. Where no plain statement holds for all parts, the sum is a `Profile`, which has the losses alone.

The releases may depend on each other's results, but what each of them promises must be settled in advance; where later
promises depend on earlier answers, use a filter.   [Rogers-Roth-Ullman-Vadhan 2016]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, TypeAlias

from noisette.errors import InputError, PrivacyError
from noisette.exact.number import Number, fraction, nearest_float, positive, whole
from noisette.privacy import convert
from noisette.privacy.neighbours import Neighbours, common
from noisette.privacy.pld import tight
from noisette.privacy.pld.loss import Loss, Normal, Response

__all__ = ["ZCDP", "Approx", "Guarantee", "Losses", "Profile", "Promise", "Pure", "Spend", "as_promise"]

LARGEST_EPSILON = 10**6


def _epsilon(value: Number) -> Fraction:
    number = fraction(value, "epsilon")
    if number < 0 or number > LARGEST_EPSILON:
        raise InputError(f"epsilon must lie between 0 and {LARGEST_EPSILON:,}: a usual one is between 0.1 and 10.")
    return number


def _delta(value: Number) -> Fraction:
    number = fraction(value, "delta")
    if not 0 <= number < 1:
        raise InputError("delta must be at least 0 and below 1: a usual one is '1e-6'.")
    return number


def _rho(value: Number) -> Fraction:
    number = fraction(value, "rho")
    if not 0 <= number <= LARGEST_EPSILON:
        raise InputError(f"rho must lie between 0 and {LARGEST_EPSILON:,}: a usual one is between 0.001 and 1.")
    return number


@dataclass(frozen=True)
class Losses:
    """Privacy losses with their counts, and the rho of what is known by zCDP alone."""

    parts: tuple[tuple[Loss, int], ...]
    rho: Fraction = Fraction(0)

    def __add__(self, other: Losses) -> Losses:
        together = dict(self.parts)
        for loss, k in other.parts:
            together[loss] = together.get(loss, 0) + k
        return Losses(tuple(sorted(together.items(), key=repr)), self.rho + other.rho)

    def __mul__(self, k: int) -> Losses:
        return Losses(tuple((loss, k * count) for loss, count in self.parts if k), k * self.rho)


def once(loss: Loss | None) -> Losses | None:
    """Return the losses of a single release, if its loss is known."""
    return None if loss is None else Losses(((loss, 1),))


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
        """Return whether this guarantee implies the other."""
        if not isinstance(other, Pure | Approx | ZCDP | Profile):
            return NotImplemented
        common(self.neighbours, other.neighbours)
        return _implies(_known(self), other)

    def delta_at(self, epsilon: Number) -> float:
        """Return the smallest delta known with (epsilon, delta)-DP, rounded up."""
        return _known_delta(_known(self), _epsilon(epsilon))

    def epsilon_at(self, delta: Number = 0) -> float:
        """Return the smallest epsilon known with (epsilon, delta)-DP, rounded up; infinite if there is none."""
        return _known_epsilon(_known(self), _delta(delta))

    def under(self, neighbours: Neighbours) -> Guarantee:
        """Return what holds under a relation; add/remove becomes replace at the price of a group of two.

        >>> Pure(1, neighbours=Neighbours.ADD_REMOVE).under(Neighbours.REPLACE)
        Pure('2', neighbours=REPLACE)
        """
        if self.neighbours is None or self.neighbours is neighbours:
            return self.restated(neighbours)
        if neighbours is Neighbours.ADD_REMOVE:
            raise PrivacyError(
                "A guarantee under replace says nothing about adding or removing a person: "
                "calibrate the mechanism with an add/remove sensitivity instead."
            )
        return self.group(2).restated(neighbours)

    def restated(self, neighbours: Neighbours | None) -> Guarantee:
        """Return the same numbers and losses under another relation, for callers who have proved that they hold.

        >>> Pure(1, neighbours=Neighbours.REPLACE).restated(None)
        Pure('1')
        """
        match _known(self):
            case Pure(epsilon, losses=losses):
                return Pure(epsilon, neighbours=neighbours, losses=losses)
            case Approx(epsilon, delta, losses=losses):
                return Approx(epsilon, delta, neighbours=neighbours, losses=losses)
            case ZCDP(rho, losses=losses):
                return ZCDP(rho, neighbours=neighbours, losses=losses)
            case Profile(losses):
                return Profile(losses, neighbours=neighbours)

    def group(self, size: int) -> Guarantee:
        """Return what holds for groups of `size` people."""
        return _group(_known(self), whole(size, "size"))

    @property
    def numbers(self) -> dict[str, Fraction]:
        """The exact numbers that it states, by name; none of a profile.

        >>> {name: str(number) for name, number in Approx("1/3", "1e-6").numbers.items()}
        {'epsilon': '1/3', 'delta': '1/1000000'}
        """
        return {name: value for name, value in vars(self).items() if name not in ("neighbours", "losses")}

    def __repr__(self) -> str:
        numbers = [repr(str(number)) for number in self.numbers.values()]
        relation = [f"neighbours={self.neighbours.name}"] if self.neighbours else []
        return f"{type(self).__name__}({', '.join(numbers + relation)})"


class _Promised(_Algebra):
    """What the guarantees share that can be asked for: one number, `size`, says how much, beside a delta."""

    @property
    def size(self) -> Fraction:
        """Epsilon, or rho under zCDP."""
        made = _known(self)
        assert not isinstance(made, Profile)
        return made.rho if isinstance(made, ZCDP) else made.epsilon

    @property
    def is_pure(self) -> bool:
        """Whether it is an epsilon with no delta."""
        return isinstance(self, Pure) or (isinstance(self, Approx) and self.delta == 0)

    def share(self, part: Number, *, delta: Number | None = None) -> Promise:
        """Return a part of the promise that names no relation; `delta` is the part of delta, the same unless given.

        >>> Approx(1, "1e-6").share("1/2"), Approx(1, "1e-6").share("1/2", delta=1), Approx(1, "1e-6").share(1, delta=0)
        (Approx('1/2', '1/2000000'), Approx('1/2', '1/1000000'), Pure('1'))
        """
        factor = fraction(part, "part")
        match _known(self):
            case ZCDP(rho):
                return ZCDP(rho * factor)
            case Approx(epsilon, own) if delta is None or delta != 0:
                return Approx(epsilon * factor, own * (factor if delta is None else fraction(delta, "delta")))
            case Pure(epsilon) | Approx(epsilon):
                return Pure(epsilon * factor)
            case _:
                raise AssertionError


def _known(guarantee: object) -> Guarantee:
    assert isinstance(guarantee, Pure | Approx | ZCDP | Profile)
    return guarantee


def _set(made: object, **values: object) -> None:
    for name, value in values.items():
        object.__setattr__(made, name, value)


@dataclass(frozen=True, repr=False)
class Pure(_Promised):
    """epsilon-differential privacy: P(M(x) in S) <= e^epsilon P(M(x') in S) for all neighbours x, x' and all S.

    >>> Pure("0.1") * 3 == Pure("0.3"), Pure(1).delta_at(1), Pure(1) <= Approx(1, "1e-6")
    (True, 0.0, True)
    """

    delta: ClassVar[Fraction] = Fraction(0)
    epsilon: Fraction
    neighbours: Neighbours | None = field(default=None, kw_only=True)
    losses: Losses | None = field(default=None, kw_only=True, compare=False)

    def __init__(self, epsilon: Number, *, neighbours: Neighbours | None = None, losses: Losses | None = None) -> None:
        _set(self, epsilon=_epsilon(epsilon), neighbours=neighbours, losses=losses)

    def __str__(self) -> str:
        return f"{_short(self.epsilon)}-DP{_under(self.neighbours)}"


@dataclass(frozen=True, repr=False)
class Approx(_Promised):
    """(epsilon, delta)-differential privacy: P(M(x) in S) <= e^epsilon P(M(x') in S) + delta.

    >>> Approx(1, "1e-6") + Pure("1/2"), Approx(1, "1e-6").epsilon
    (Approx('3/2', '1/1000000'), Fraction(1, 1))
    """

    epsilon: Fraction
    delta: Fraction
    neighbours: Neighbours | None = field(default=None, kw_only=True)
    losses: Losses | None = field(default=None, kw_only=True, compare=False)

    def __init__(
        self, epsilon: Number, delta: Number, *, neighbours: Neighbours | None = None, losses: Losses | None = None
    ) -> None:
        _set(self, epsilon=_epsilon(epsilon), delta=_delta(delta), neighbours=neighbours, losses=losses)

    def __str__(self) -> str:
        return f"({_short(self.epsilon)}, {_short(self.delta)})-DP{_under(self.neighbours)}"


@dataclass(frozen=True, repr=False)
class ZCDP(_Promised):
    """rho-zero-concentrated differential privacy: Rényi divergence of order a at most rho a, for all a > 1.

    [Bun-Steinke 2016]

    >>> round(ZCDP("0.5").epsilon_at("1e-6"), 6)
    5.221534
    """

    delta: ClassVar[Fraction] = Fraction(0)
    rho: Fraction
    neighbours: Neighbours | None = field(default=None, kw_only=True)
    losses: Losses | None = field(default=None, kw_only=True, compare=False)

    def __init__(self, rho: Number, *, neighbours: Neighbours | None = None, losses: Losses | None = None) -> None:
        _set(self, rho=_rho(rho), neighbours=neighbours, losses=losses)

    def __str__(self) -> str:
        return f"{_short(self.rho)}-zCDP{_under(self.neighbours)}"


@dataclass(frozen=True, repr=False)
class Profile(_Algebra):
    """Several releases together for which neither a pure, an approximate nor a zCDP guarantee holds for all.

    >>> g = Approx(1, "1e-9") + ZCDP("0.1")
    >>> type(g).__name__, round(g.epsilon_at("1e-6"), 3)
    ('Profile', 3.112)
    """

    losses: Losses
    neighbours: Neighbours | None = field(default=None, kw_only=True)

    @classmethod
    def gaussian(cls, mu: Number, *, neighbours: Neighbours | None = None) -> Profile:
        """Return mu-Gaussian differential privacy: no easier to tell apart than N(0, 1) from N(mu, 1).

        [Dong-Roth-Su 2022]

        >>> round(Profile.gaussian(1).delta_at(1), 6)
        0.126937
        """
        return cls(Losses(((Normal(positive(mu, "mu")), 1),)), neighbours=neighbours)

    def __str__(self) -> str:
        releases = sum(k for _, k in self.losses.parts)
        rest = f" and {_short(self.losses.rho)}-zCDP" if self.losses.rho else ""
        return f"{releases} releases{rest} together{_under(self.neighbours)}"

    def __repr__(self) -> str:
        return f"Profile({self.losses!r}{_under(self.neighbours)})"


Promise: TypeAlias = Pure | Approx | ZCDP
"""A guarantee that can be asked for."""

Guarantee: TypeAlias = Pure | Approx | ZCDP | Profile

Spend: TypeAlias = Promise | Number | tuple[Number, Number]
"""A promise as people write it; see `as_promise`."""


def as_promise(value: Spend, name: str = "spend") -> Promise:
    """Return the promise that a value means; `name` is what the error calls it.

    A bare number is a pure epsilon; a pair, or a text with a comma, is an epsilon and a delta.

    >>> as_promise(0.1), as_promise("2,1e-6"), as_promise((2, "1e-6")), as_promise("rho=0.01")
    (Pure('1/10'), Approx('2', '1/1000000'), Approx('2', '1/1000000'), ZCDP('1/100'))
    """
    if isinstance(value, Pure | Approx | ZCDP):
        return value
    written = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
    parts: Sequence[Number] = written if isinstance(written, list | tuple) else [written]
    try:
        match parts:
            case [str(one)] if one.startswith("rho="):
                return ZCDP(one.removeprefix("rho="))
            case [one]:
                return Pure(one)
            case [epsilon, delta]:
                return Approx(epsilon, delta)
            case _:
                raise InputError("it has too many parts.")
    except InputError as fault:
        forms = "an epsilon (0.1), an epsilon and a delta ('0.1,1e-8') or a rho ('rho=0.01')"
        raise InputError(f"{name} must be {forms}: {fault}") from None


def _short(number: Fraction) -> str:
    text = f"{float(number):.6g}"
    return text if Fraction(text) == number else f"{text}…"


def _under(neighbours: Neighbours | None) -> str:
    return f" under {neighbours}" if neighbours else ""


def losses_of(a: Guarantee) -> Losses:
    """What a guarantee knows; without more, randomized response stands for (epsilon, delta)."""
    if a.losses is not None:
        return a.losses
    if isinstance(a, ZCDP):
        return Losses((), a.rho)
    return Losses(((Response(a.epsilon, a.delta), 1),) if a.epsilon or a.delta else ())


def _sum(a: Guarantee, b: Guarantee) -> Guarantee:
    relation, together = common(a.neighbours, b.neighbours), losses_of(a) + losses_of(b)
    if isinstance(a, Pure | Approx) and isinstance(b, Pure | Approx):
        return _stated(a.epsilon + b.epsilon, a.delta + b.delta, None, relation, together)
    rho, more = _least_rho(a), _least_rho(b)
    return _stated(None, None, None if rho is None or more is None else rho + more, relation, together)


def _times(a: Guarantee, k: int) -> Guarantee:
    together = losses_of(a) * k
    if isinstance(a, Pure | Approx):
        return _stated(k * a.epsilon, k * a.delta, None, a.neighbours, together)
    return _stated(None, None, k * a.rho if isinstance(a, ZCDP) else None, a.neighbours, together)


def _stated(
    epsilon: Fraction | None,
    delta: Fraction | None,
    rho: Fraction | None,
    neighbours: Neighbours | None,
    losses: Losses,
) -> Guarantee:
    """The plain statement of basic composition, or a profile where it would say nothing."""
    if epsilon is not None and delta is not None and epsilon <= LARGEST_EPSILON and delta < 1:
        if delta:
            return Approx(epsilon, delta, neighbours=neighbours, losses=losses)
        return Pure(epsilon, neighbours=neighbours, losses=losses)
    if rho is not None and rho <= LARGEST_EPSILON:
        return ZCDP(rho, neighbours=neighbours, losses=losses)
    return Profile(losses, neighbours=neighbours)


def _group(a: Guarantee, k: int) -> Guarantee:
    """k e, with delta (e^(k e) - 1)/(e^e - 1), rounded up; k^2 rho.   [Dwork-Roth 2014; Bun-Steinke 2016]"""
    match a:
        case Pure():
            return Pure(k * a.epsilon, neighbours=a.neighbours)
        case Approx():
            return Approx(k * a.epsilon, convert.group_delta(a.epsilon, a.delta, k), neighbours=a.neighbours)
        case ZCDP():
            return ZCDP(k * k * a.rho, neighbours=a.neighbours)
        case Profile():
            raise PrivacyError("For groups, add up what each mechanism guarantees at the group's distance instead.")


def _least_rho(a: Guarantee) -> Fraction | None:
    """The least rho known: what is stated, or the sum over the losses; None where a part has none."""
    stated = convert.pure_to_zcdp(a.epsilon) if isinstance(a, Pure) else a.rho if isinstance(a, ZCDP) else None
    known = None if a.losses is None else tight.rho_bound(a.losses.parts, a.losses.rho)
    return min((rho for rho in (stated, known) if rho is not None), default=None)


def _known_delta(a: Guarantee, e: Fraction) -> float:
    """The least of what the guarantee states and what it knows imply."""
    bounds = []
    if not isinstance(a, ZCDP | Profile):
        bounds.append(nearest_float(convert.approx_delta(a.epsilon, a.delta, e), up=True))
    if isinstance(a, ZCDP):
        bounds.append(convert.zcdp_delta(a.rho, e) if a.rho else 0.0)
    if a.losses is not None and min(bounds, default=1.0) > 0:
        bounds.append(tight.tight_delta(a.losses.parts, a.losses.rho, e))
    return min(bounds)


def _known_epsilon(a: Guarantee, d: Fraction) -> float:
    bounds = []
    if not isinstance(a, ZCDP | Profile):
        bounds.append(convert.approx_epsilon(a.epsilon, a.delta, d))
    if isinstance(a, ZCDP):
        bounds.append(convert.zcdp_epsilon(a.rho, d) if a.rho else 0.0)
    if a.losses is not None and d > 0:
        bounds.append(tight.tight_epsilon(a.losses.parts, a.losses.rho, d))
    return min(bounds, default=math.inf)


def _implies(a: Guarantee, b: Guarantee) -> bool:
    match b:
        case Pure():
            return (isinstance(a, Pure | Approx) and a.epsilon <= b.epsilon and a.delta == 0) or _is_nothing(a)
        case Approx():
            plainly = isinstance(a, Pure | Approx) and convert.approx_delta(a.epsilon, a.delta, b.epsilon) <= b.delta
            return plainly or Fraction(_known_delta(a, b.epsilon)) <= b.delta
        case ZCDP():
            least = _least_rho(a)
            return (least is not None and least <= b.rho) or _is_nothing(a)
        case Profile():
            raise PrivacyError("Compare with a Pure, Approx or ZCDP guarantee: a profile is not a budget.")


def _is_nothing(a: Guarantee) -> bool:
    return not isinstance(a, Profile) and a.size == 0 == a.delta
