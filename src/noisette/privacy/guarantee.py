"""Guarantees: what a release promises, and how promises compose.

    Guarantee = Pure | Approx | ZCDP | Profile        Promise = Pure | Approx | ZCDP, which can be asked for

    a + b             the guarantee of releasing both
    a * k             the guarantee of k releases like a
    a <= b            whether a implies b
    a.delta_at(e)     the smallest delta known with (e, delta)-DP, rounded up
    a.epsilon_at(d)   the smallest epsilon known with (epsilon, d)-DP, rounded up

A sum states basic composition, in exact rationals: Pure("0.1") * 3 == Pure("0.3"). It also keeps the privacy losses of
its parts with their counts (`Losses`), and `delta_at` and `epsilon_at` compose those tightly. Where no plain statement
holds for all parts, the sum is a `Profile`, which has the losses alone.

A release may depend on the results of earlier ones, but the guarantee of each must be fixed in advance. Where later
guarantees depend on earlier answers, use a `Filter`.   [Rogers-Roth-Ullman-Vadhan 2016]
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce
from itertools import chain, takewhile
from typing import ClassVar, TypeAlias

from noisette.errors import InputError, PrivacyError
from noisette.exact.frozen import set_fields
from noisette.exact.number import Number, fraction, nearest_float, positive, whole
from noisette.exact.rational import exact_sum
from noisette.privacy import convert
from noisette.privacy.convert import LARGEST_EPSILON
from noisette.privacy.neighbours import Neighbours, common
from noisette.privacy.pld import tight
from noisette.privacy.pld.loss import Loss, Normal, Response

__all__ = ["ZCDP", "Approx", "Guarantee", "Losses", "Profile", "Promise", "Pure", "together"]


def _size(value: Number, name: str, usual: str) -> Fraction:
    number = fraction(value, name)
    if not 0 <= number <= LARGEST_EPSILON:
        raise InputError(f"{name} must lie between 0 and {LARGEST_EPSILON:,}: a usual one is between {usual}.")
    return number


def _epsilon(value: Number) -> Fraction:
    return _size(value, "epsilon", "0.1 and 10")


def _rho(value: Number) -> Fraction:
    return _size(value, "rho", "0.001 and 1")


def _delta(value: Number) -> Fraction:
    number = fraction(value, "delta")
    if not 0 <= number < 1:
        raise InputError("delta must be at least 0 and below 1: a usual one is '1e-6'.")
    return number


@dataclass(frozen=True)
class Losses:
    """Privacy losses with their counts, and the total rho of releases that are known by zCDP alone."""

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
    """The operations of all guarantees; `neighbours` is None where the guarantee holds under either relation."""

    neighbours: Neighbours | None

    def __add__(self, other: object) -> Guarantee:
        """Return the guarantee of releasing both."""
        if not isinstance(other, Pure | Approx | ZCDP | Profile):
            return NotImplemented
        return _sum(_known(self), other)

    def __mul__(self, k: int) -> Guarantee:
        """Return the guarantee of k releases like this."""
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
        """Return the guarantee under a relation; add/remove becomes replace as a group of two people.

        >>> Pure(1, neighbours=Neighbours.ADD_REMOVE).under(Neighbours.REPLACE)
        Pure('2', neighbours=REPLACE)
        """
        if self.neighbours is None or self.neighbours is neighbours:
            return self.restated(neighbours)
        if neighbours is Neighbours.ADD_REMOVE:
            raise PrivacyError(
                "A guarantee under replace says nothing about adding or removing a person: "
                "calibrate the mechanism with its add/remove sensitivity."
            )
        return self.group(2).restated(neighbours)

    def restated(self, neighbours: Neighbours | None) -> Guarantee:
        """Return the same guarantee with another relation; the caller must have proved that it holds there.

        >>> Pure(1, neighbours=Neighbours.REPLACE).restated(None)
        Pure('1')
        """
        return replace(_known(self), neighbours=neighbours)

    def group(self, size: int) -> Guarantee:
        """Return the guarantee for groups of `size` people."""
        return _group(_known(self), whole(size, "size"))

    @property
    def numbers(self) -> dict[str, Fraction]:
        """The exact numbers stated, by name; a profile states none.

        >>> {name: str(number) for name, number in Approx("1/3", "1e-6").numbers.items()}
        {'epsilon': '1/3', 'delta': '1/1000000'}
        """
        return {name: value for name, value in vars(self).items() if name not in ("neighbours", "losses")}

    def __repr__(self) -> str:
        numbers = [repr(str(number)) for number in self.numbers.values()]
        relation = [f"neighbours={self.neighbours.name}"] if self.neighbours else []
        return f"{type(self).__name__}({', '.join(numbers + relation)})"


class _Promised(_Algebra):
    """The operations of promises: their size is one number, beside a delta."""

    @property
    def size(self) -> Fraction:
        """Epsilon, or rho under zCDP."""
        made = _known(self)
        assert not isinstance(made, Profile)
        return made.rho if isinstance(made, ZCDP) else made.epsilon

    @property
    def is_pure(self) -> bool:
        """Whether it is an epsilon without a delta."""
        return isinstance(self, Pure) or (isinstance(self, Approx) and self.delta == 0)

    def share(self, part: Number, *, delta: Number | None = None) -> Promise:
        """Return a part of the promise, without a relation; `delta` is the part of its delta, by default the same part.

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
        set_fields(self, epsilon=_epsilon(epsilon), neighbours=neighbours, losses=losses)

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
        set_fields(self, epsilon=_epsilon(epsilon), delta=_delta(delta), neighbours=neighbours, losses=losses)

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
        set_fields(self, rho=_rho(rho), neighbours=neighbours, losses=losses)

    def __str__(self) -> str:
        return f"{_short(self.rho)}-zCDP{_under(self.neighbours)}"


@dataclass(frozen=True, repr=False)
class Profile(_Algebra):
    """Several releases for which no single pure, approximate or zCDP statement holds; their losses are kept.

    >>> g = Approx(1, "1e-9") + ZCDP("0.1")
    >>> type(g).__name__, round(g.epsilon_at("1e-6"), 3)
    ('Profile', 3.112)
    """

    losses: Losses
    neighbours: Neighbours | None = field(default=None, kw_only=True)

    @classmethod
    def gaussian(cls, mu: Number, *, neighbours: Neighbours | None = None) -> Profile:
        """Return mu-Gaussian differential privacy: neighbours are as hard to tell apart as N(0, 1) and N(mu, 1).

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


def _short(number: Fraction) -> str:
    text = f"{float(number):.6g}"
    return text if Fraction(text) == number else f"{text}…"


def _under(neighbours: Neighbours | None) -> str:
    return f" under {neighbours}" if neighbours else ""


def losses_of(a: Guarantee) -> Losses:
    """The losses of a guarantee; if it keeps none, randomized response for (epsilon, delta)."""
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


def together(parts: Iterable[Guarantee]) -> Guarantee:
    """The guarantee of releasing all of several: what `a + b + ...` is, in time that grows with their number alone.

    >>> together([Pure("0.1"), Pure("0.2")]) == Pure("0.3")
    True
    """
    known = list(parts)
    plain = list(takewhile(lambda part: isinstance(part, Pure | Approx), known))
    others = known[len(plain) :]
    if not others:
        return _plainly(plain)
    rhos = [_least_rho(part) for part in ([_plainly(plain)] if plain else []) + others]
    if len(rhos) == 1:
        return others[0]
    rho = None if None in rhos else exact_sum(rho for rho in rhos if rho is not None)
    return _stated(None, None, rho, reduce(common, (part.neighbours for part in known)), _merged(known))


def _plainly(parts: Sequence[Guarantee]) -> Guarantee:
    """The same of those that have an epsilon and a delta."""
    stated = [(part.epsilon, part.delta) for part in parts if isinstance(part, Pure | Approx)]
    if len(parts) == 1:
        return parts[0]
    relation = reduce(common, (part.neighbours for part in parts), None)
    return _stated(exact_sum(e for e, _ in stated), exact_sum(d for _, d in stated), None, relation, _merged(parts))


def _merged(parts: Iterable[Guarantee]) -> Losses:
    found = [losses_of(part) for part in parts]
    counts: dict[Loss, int] = {}
    for loss, k in chain.from_iterable(losses.parts for losses in found):
        counts[loss] = counts.get(loss, 0) + k
    return Losses(tuple(sorted(counts.items(), key=repr)), exact_sum(losses.rho for losses in found))


def _times(a: Guarantee, k: int) -> Guarantee:
    together = losses_of(a) * k
    if isinstance(a, Pure | Approx):
        return _stated(k * a.epsilon, k * a.delta, None, a.neighbours, together)
    rho = _least_rho(a)
    return _stated(None, None, None if rho is None else k * rho, a.neighbours, together)


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
            raise PrivacyError("A profile has no group guarantee: add its mechanisms' guarantees at that distance.")


def _least_rho(a: Guarantee) -> Fraction | None:
    """The smallest rho known, from the statement or the losses; None if a part has none."""
    stated = None
    if isinstance(a, ZCDP):
        stated = a.rho
    elif isinstance(a, Pure | Approx) and a.is_pure:
        stated = convert.pure_to_zcdp(a.epsilon)
    known = None if a.losses is None else tight.rho_bound(a.losses.parts, a.losses.rho)
    return min((rho for rho in (stated, known) if rho is not None), default=None)


def _known_delta(a: Guarantee, e: Fraction) -> float:
    """The smaller delta of the two that the statement and the losses imply."""
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
            if plainly or Fraction(_known_delta(a, b.epsilon)) <= b.delta:
                return True
            return b.epsilon >= _known_epsilon(a, b.delta)  # their lattices differ, so either may be nearer
        case ZCDP():
            least = _least_rho(a)
            return (least is not None and least <= b.rho) or _is_nothing(a)
        case Profile():
            raise PrivacyError("A profile is not a budget: compare with a Pure, Approx or ZCDP.")


def _is_nothing(a: Guarantee) -> bool:
    return not isinstance(a, Profile) and a.size == 0 == a.delta
