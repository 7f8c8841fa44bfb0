"""Releases that can be accounted for: their names, and their parameters as they are written."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

from noisette.errors import InputError
from noisette.exact.number import Number, positive
from noisette.mechanisms import Gaussian, Geometric, Laplace, RandomizedResponse, Staircase
from noisette.privacy import ZCDP, Approx, Guarantee, Neighbours, Profile, Pure
from noisette.privacy.guarantee import Losses, losses_of
from noisette.privacy.pld.loss import Loss, Response, Subsampled

__all__ = ["KNOWN", "Term"]

_MOST_SAMPLED = 1000  # epsilon


@dataclass(frozen=True)
class Term:
    """A release as it was written, what one of them promises, and how many there are."""

    text: str
    one: Guarantee
    count: int = 1

    @property
    def together(self) -> Guarantee:
        """What all of them promise."""
        return self.one * self.count


def _laplace(scale: Number, distance: Number = 1) -> Guarantee:
    return Laplace(scale).guarantee(distance)


def _geometric(scale: Number, distance: Number = 1) -> Guarantee:
    return Geometric(scale).guarantee(distance)


def _gaussian(sigma: Number, distance: Number = 1) -> Guarantee:
    return Gaussian(sigma).guarantee(distance)


def _response(eps: Number, categories: Fraction = Fraction(2), distance: Number = 1) -> Guarantee:
    if categories.denominator != 1:
        raise InputError("categories must be a whole number, at least 2.")
    return RandomizedResponse(eps, categories=int(categories)).guarantee(distance)


def _staircase(eps: Number, sensitivity: Number = 1, distance: Number | None = None) -> Guarantee:
    return Staircase(eps, sensitivity=sensitivity).guarantee(distance)


def _pure(eps: Number) -> Guarantee:
    return Pure(eps)


def _approx(eps: Number, delta: Number) -> Guarantee:
    return Approx(eps, delta)


def _zcdp(rho: Number) -> Guarantee:
    return ZCDP(rho)


def _subsampled(release: list[Term], rate: Number) -> Guarantee:
    """One release on a Poisson sample of the people, under add/remove."""
    q = positive(rate, "rate", most=1)
    one = release[0].one
    parts = losses_of(one).parts
    if len(release) > 1 or release[0].count > 1 or len(parts) != 1 or parts[0][1] != 1 or losses_of(one).rho:
        raise InputError("subsampled takes one release whose loss is known: multiply outside, subsampled(…, rate)*100.")
    if one.neighbours is Neighbours.REPLACE:
        raise InputError("subsampled holds under add/remove, and this release promises nothing there.")
    loss = parts[0][0]
    if isinstance(loss, Subsampled):
        raise InputError("A sample of a sample is one sample: multiply the rates instead.")
    if isinstance(one, Pure | Approx) and one.epsilon > _MOST_SAMPLED:
        raise InputError(f"subsampled takes releases of epsilon {_MOST_SAMPLED:,} or less: sampling hides no more.")
    return _stated(loss, q)


def _stated(base: Loss, rate: Fraction) -> Guarantee:
    """(eps, delta) becomes (ln(1 + q(e^eps - 1)), q delta); what has no plain statement is a profile."""
    loss = Subsampled(base, rate)
    losses, bound = Losses(((cast("Loss", loss), 1),)), loss.pure()
    if bound is not None:
        return Pure(bound, neighbours=Neighbours.ADD_REMOVE, losses=losses)
    if isinstance(base, Response):
        eps = Subsampled(Response(base.epsilon), rate).pure() or 0
        return Approx(eps, rate * base.delta, neighbours=Neighbours.ADD_REMOVE, losses=losses)
    return Profile(losses, neighbours=Neighbours.ADD_REMOVE)


KNOWN: dict[str, Callable[..., Guarantee]] = {
    "pure": _pure,
    "approx": _approx,
    "zcdp": _zcdp,
    "laplace": _laplace,
    "geometric": _geometric,
    "gaussian": _gaussian,
    "response": _response,
    "staircase": _staircase,
    "subsampled": _subsampled,
}
