"""What an aggregate has to keep: a promise for one unit, which is in `each` of a public number of blocks.

A unit changes what its own blocks give and nothing else. So neighbouring tables, under add/remove or under replace,
differ by `each` replaced records, and what is stated for those holds for both relations. (docs/proofs/stability.md)
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from noisette.mechanisms.record import to_record
from noisette.privacy import Guarantee, Neighbours, Promise
from noisette.privacy.sensitivity import Sensitivity, histogram

__all__ = ["Terms", "recorded"]


@dataclass(frozen=True)
class Terms:
    """The number of blocks, of which `each` hold a unit; what may be spent, the relation, and the level of bars."""

    blocks: int
    each: int
    spend: Promise
    neighbours: Neighbours
    level: float

    @property
    def sensitivity(self) -> Sensitivity:
        """Of a histogram of what the blocks give: up to `each` of them leave one count for another one."""
        return histogram(neighbours=Neighbours.REPLACE).times(self.each)

    @property
    def held(self) -> str:
        """How many of the blocks a unit is in, in words."""
        return "one of which holds a unit" if self.each == 1 else f"{self.each:,} of which hold a unit"

    def part(self, share: Fraction, *, pure: bool = False) -> Promise:
        """A share of the promise, with all of its delta or, if it is to be pure, with none."""
        return self.spend.share(share, delta=0 if pure else 1)

    def for_units(self, guarantee: Guarantee) -> Guarantee:
        """What holds for `each` blocks that give something else, stated for one unit."""
        return guarantee.restated(self.neighbours)


def recorded(mechanism: Any, measure: str, moved: Sensitivity) -> dict[str, Any]:
    """A mechanism with what it is applied to, for the record; sensitivities are those of replaced blocks."""
    return {**to_record(mechanism, measure, moved), "relation": str(moved.neighbours)}
