"""Parallel composition: several releases, each on its own part of the people.

Vocabulary: `top` a guarantee that covers all others, both in its statement and in its losses.
"""

from collections.abc import Sequence
from fractions import Fraction

from noisette.errors import InputError, PrivacyError
from noisette.privacy.guarantee import Guarantee, Losses, Promise
from noisette.privacy.neighbours import Neighbours
from noisette.privacy.pld.loss import LatticeLaplace, Loss, Normal, Response

__all__ = ["parallel"]


def parallel(*guarantees: Guarantee, neighbours: Neighbours | None = None) -> Guarantee:
    """The guarantee of releases on disjoint parts of the data, where each record alone decides its part.

    Each argument is the guarantee of one release as a mechanism on the whole table. Under add/remove one record touches
    one part, so the largest guarantee holds. Under replace it can leave one part and enter another, so the two largest
    add up.
    [McSherry 2009, Theorem 4, holds for add/remove alone]

    The parts must not depend on other records: "the ten oldest" is not such a part, "born before 1950" is. Under
    replace, a guarantee that takes the size of the part as public does not hold for the whole table: calibrate it
    again.

    >>> from noisette.privacy import Pure
    >>> parallel(Pure("0.5"), Pure(1), Pure("0.2"), neighbours=Neighbours.ADD_REMOVE)
    Pure('1', neighbours=ADD_REMOVE)
    >>> parallel(Pure("0.5"), Pure(1), Pure("0.2"), neighbours=Neighbours.REPLACE)
    Pure('3/2', neighbours=REPLACE)
    """
    if not guarantees:
        raise InputError("parallel needs the guarantee of at least one part.")
    relation = _relation(guarantees, neighbours)
    alike = _of_one_kind(guarantees)
    touched = 1 if relation is Neighbours.ADD_REMOVE else 2
    return _knowing(alike, touched, relation) or _stated(alike, touched, relation)


def _relation(guarantees: Sequence[Guarantee], neighbours: Neighbours | None) -> Neighbours:
    named = {g.neighbours for g in guarantees if isinstance(g, Promise)} | {neighbours}
    found = [relation for relation in named if relation is not None]
    if not found:
        raise InputError(
            "Pass neighbours=: disjoint parts cost their maximum under add/remove, their two largest under replace."
        )
    if len(found) > 1:
        raise PrivacyError(
            "The parts' guarantees hold under different relations: compose them under add/remove, "
            "then restate the result with .under(Neighbours.REPLACE)."
        )
    return found[0]


def _of_one_kind(guarantees: Sequence[Guarantee]) -> list[Promise]:
    alike = [g for g in guarantees if isinstance(g, Promise)]
    if len(alike) < len(guarantees) or len({type(g) for g in alike}) > 1:
        raise InputError("The guarantees must all be Pure, all Approx or all ZCDP: convert them to one kind.")
    return alike


def _knowing(alike: list[Promise], touched: int, relation: Neighbours) -> Guarantee | None:
    """The sum of the `touched` largest guarantees with their losses; None where no guarantee covers the others."""
    rest = list(alike)
    tops: list[Guarantee] = []
    while rest and len(tops) < touched:
        place = next((i for i, g in enumerate(rest) if all(_covers(g, other) for other in rest)), None)
        if place is None:
            return None
        tops.append(rest.pop(place).under(relation))
    return tops[0] if len(tops) == 1 else tops[0] + tops[1]


def _stated(alike: list[Promise], touched: int, relation: Neighbours) -> Promise:
    """The same from the statements alone, component by component."""
    columns = zip(*(g.numbers.values() for g in alike), strict=True)
    sums = [sum(sorted(column)[-touched:], Fraction(0)) for column in columns]
    return type(alike[0])(*sums, neighbours=relation)


def _covers(top: Promise, other: Promise) -> bool:
    """Whether `top` states at least as much as `other`, and its losses dominate the other's."""
    if not all(a >= b for a, b in zip(top.numbers.values(), other.numbers.values(), strict=True)):
        return False
    if top.losses is None:  # it stands for all mechanisms with these numbers
        return True
    return other.losses is not None and _dominates(top.losses, other.losses)


def _dominates(a: Losses, b: Losses) -> bool:
    """Whether a's releases include b's, or both have one loss and a's is the larger."""
    if len(a.parts) == len(b.parts) == 1 and not a.rho and not b.rho:
        (mine, k), (other, n) = a.parts[0], b.parts[0]
        return k >= n and _larger(mine, other)
    counts = dict(a.parts)
    return b.rho <= a.rho and all(counts.get(loss, 0) >= count for loss, count in b.parts)


def _larger(a: Loss, b: Loss) -> bool:
    """Whether a's pair dominates b's: the larger noise is the smaller plus independent noise."""
    match a, b:
        case Response(), Response():
            return a.epsilon >= b.epsilon and a.delta >= b.delta
        case Normal(), Normal():
            return a.mu >= b.mu and a.variation >= b.variation
        case LatticeLaplace(), LatticeLaplace():
            return a.steps == b.steps and a.epsilon >= b.epsilon
        case _:
            return a == b
