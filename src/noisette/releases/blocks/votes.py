"""Private modes of what the blocks gave: each block has one vote for a label.

mode     the label with about the most votes, out of a public list: permute and flip or the exponential mechanism,
         whichever errs less. One unit changes the votes of its r blocks.
stable   the label with the most votes, exactly, or nothing: it is released if it leads by far, r times as far as
         where one unit has one vote. Labels may be any short texts, but a delta is needed.
         [Smith-Thakurta 2013, "Differentially private feature selection via stability arguments", where a unit is in
         each of m subsamples with probability q: here in exactly r of them; docs/proofs/stability.md]

A block that fails has no vote, unless the question names a label for it.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pyarrow

from noisette.exact.random import Random
from noisette.mechanisms import Exponential, PermuteAndFlip
from noisette.mechanisms.stability.stable_mode import StableMode
from noisette.privacy import Guarantee
from noisette.query.caveats import Omission
from noisette.query.expected import Expected
from noisette.releases.blocks.terms import Terms, recorded

__all__ = ["LONGEST", "Vote", "mode", "stable"]

_ALL = Fraction(1)
_USUAL = 0.95
LONGEST = 200
"""The most bytes that a label may have."""


@dataclass(frozen=True)
class Vote:
    """One of the labels; without `labels`, any text."""

    mechanism: PermuteAndFlip | Exponential | StableMode
    labels: tuple[str, ...] | None
    default: str | None
    terms: Terms

    @property
    def guarantee(self) -> Guarantee:
        """What the choice is worth."""
        return self.terms.for_units(self.mechanism.guarantee(self.terms.sensitivity))

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The mechanism, for the record."""
        return [recorded(self.mechanism, "votes of blocks", self.terms.sensitivity)]

    @property
    def lead(self) -> float | None:
        """Of a stable mode: the lead, in votes, beyond which a label is released with the level as its chance."""
        return 2 * self.mechanism.interval(self.terms.level) if isinstance(self.mechanism, StableMode) else None

    @property
    def why(self) -> str:
        """Why this mechanism."""
        if self.lead is not None:
            return "The stable mode: the exact label, released if few blocks could not have changed it."
        return "The choice among listed labels that errs least for this promise."

    @property
    def omitted(self) -> tuple[Omission, ...]:
        """What a block counts as that gives no label."""
        vote = "has no vote" if self.default is None else f"votes for {self.default}"
        return (Omission(f"A block that fails, or gives no label that is known, {vote}."),)

    def expected(self) -> tuple[Expected, ...]:
        """By how many votes the label may lie behind the best, or must lead to be released."""
        kind = "random choice" if self.lead is None else "stable mode"
        return (
            Expected(
                "label",
                f"{kind} of {self.terms.blocks:,} votes",
                f"votes: {self.terms.each}",
                self.mechanism.interval(self.terms.level),
                {},
                None,
                self._meant(),
            ),
        )

    def _meant(self) -> str:
        """What the number of votes says."""
        if self.lead is None:
            return "the error is by how many votes the answer lies behind the most frequent label"
        when = f"released with this chance if the label leads by more than {self.lead:.6g} votes, and nothing otherwise"
        few = f"; {self.terms.blocks:,} votes are too few for that: name more blocks"
        return when if self.lead < self.terms.blocks else when + few

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


def mode(labels: tuple[str, ...], default: str | None, terms: Terms) -> Vote:
    """The better of two mechanisms that choose among a public list."""
    kinds = PermuteAndFlip, Exponential
    made = [kind.calibrated(terms.part(_ALL), terms.sensitivity, candidates=len(labels)) for kind in kinds]
    best = min(made, key=lambda one: one.interval(_USUAL))  # at one level for all: what is kept was drawn by it
    return Vote(best, labels, default, terms)


def stable(labels: tuple[str, ...] | None, default: str | None, terms: Terms) -> Vote:
    """The mode, where it is stable."""
    candidates = None if labels is None else len(labels)
    return Vote(
        StableMode.calibrated(terms.part(_ALL), terms.sensitivity, candidates=candidates), labels, default, terms
    )
