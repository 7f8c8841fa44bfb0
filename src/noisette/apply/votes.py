"""Private modes of what the blocks gave: each block has one vote for a label.

mode     the label with about the most votes, out of a public list: permute and flip or the exponential mechanism,
         whichever errs less. One unit changes one vote.
stable   the label with the most votes, exactly, or nothing: it is told if it leads by far. Labels may be any short
         texts, but a delta is needed. [Smith-Thakurta 2013, with disjoint blocks; erratum E5]

A block that fails has no vote, unless the question names a label for it.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pyarrow

from noisette.apply.noise import BLOCK, for_units, part, recorded
from noisette.exact.random import Random
from noisette.mechanisms import Exponential, PermuteAndFlip
from noisette.mechanisms.stable_mode import StableMode
from noisette.privacy import Guarantee, Neighbours, Promise
from noisette.query.expected import Expected

__all__ = ["LONGEST", "Vote", "mode", "stable"]

_ALL = Fraction(1)
LONGEST = 200
"""The most bytes that a label may have."""


@dataclass(frozen=True)
class Vote:
    """One of the labels; without `labels`, any text."""

    mechanism: PermuteAndFlip | Exponential | StableMode
    labels: tuple[str, ...] | None
    default: str | None
    blocks: int
    neighbours: Neighbours
    level: float

    @property
    def guarantee(self) -> Guarantee:
        """What the choice is worth."""
        return for_units(self.mechanism.guarantee(BLOCK), self.neighbours)

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The mechanism, for the record."""
        return [recorded(self.mechanism, "votes of blocks", BLOCK)]

    @property
    def _told_exactly(self) -> bool:
        return isinstance(self.mechanism, StableMode)

    @property
    def why(self) -> str:
        """Why this mechanism."""
        if self._told_exactly:
            return "The stable mode: exact where it is told, and told where no few blocks could alter it."
        return "The choice among listed labels that errs least for this promise."

    def expected(self) -> tuple[Expected, ...]:
        """By how many votes the label may lie behind the best, or must lead to be told."""
        within = self.mechanism.interval(self.level)
        one = "the error is by how many votes what is told lies behind the most frequent"
        if self._told_exactly:
            one = f"told with this chance if the label leads by more than {2 * within:.6g} votes, and nothing otherwise"
        failed = "a block that fails has no vote" if self.default is None else "a block that fails has the default"
        name = "stable mode" if self._told_exactly else "random choice"
        return (
            Expected("label", f"{name} of {self.blocks:,} votes", "votes: 1", within, {}, None, f"{one}; {failed}"),
        )

    def draw(self, outputs: Sequence[bytes], rng: Random) -> pyarrow.Table:
        """Count the votes and choose."""
        votes = Counter(label for one in outputs if (label := self._label(one)) is not None)
        if self.labels is None:
            chosen = self.mechanism(dict(votes), rng)
        else:
            place: Any = self.mechanism([votes[label] for label in self.labels], rng)
            chosen = None if place is None else self.labels[place]
        return pyarrow.table({"label": pyarrow.array([chosen], pyarrow.string())})

    def _label(self, output: bytes) -> str | None:
        """The label that a block gave, if it is one."""
        try:
            text = output.decode() if len(output) <= LONGEST else ""
        except UnicodeDecodeError:
            text = ""
        known = text in self.labels if self.labels is not None else bool(text) and text.isprintable()
        return text if known else self.default


def mode(
    labels: tuple[str, ...], default: str | None, blocks: int, spend: Promise, neighbours: Neighbours, level: float
) -> Vote:
    """The better of two mechanisms that choose among a public list."""
    kinds = PermuteAndFlip, Exponential
    made = [kind.calibrated(part(spend, _ALL), BLOCK, candidates=len(labels)) for kind in kinds]
    return Vote(min(made, key=lambda one: one.interval(level)), labels, default, blocks, neighbours, level)


def stable(
    labels: tuple[str, ...] | None,
    default: str | None,
    blocks: int,
    spend: Promise,
    neighbours: Neighbours,
    level: float,
) -> Vote:
    """The mode, where it is stable."""
    made = StableMode.calibrated(part(spend, _ALL), BLOCK, candidates=None if labels is None else len(labels))
    return Vote(made, labels, default, blocks, neighbours, level)
