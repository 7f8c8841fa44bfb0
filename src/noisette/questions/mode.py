"""The most frequent value of a column."""

import json
from dataclasses import dataclass
from fractions import Fraction

import pyarrow

from noisette.engines.contract import Source
from noisette.errors import InputError
from noisette.exact.random import SYSTEM, Random
from noisette.mechanisms import StableMode
from noisette.privacy import Approx, Neighbours, Promise
from noisette.query.canonical import canonical_text
from noisette.query.expected import SIZES, Expected
from noisette.query.frame import Frame
from noisette.query.measure import sensitivity
from noisette.query.prepare import Prepared
from noisette.query.schema import Schema
from noisette.query.types import ARROW
from noisette.questions.choice import Contest
from noisette.questions.contract import Offer, declared
from noisette.questions.scored import Scores, counted
from noisette.questions.told import ByOne

__all__ = ["Mode"]


@dataclass(frozen=True)
class Mode:
    """The value of a column (or of an expression) that most rows have, in the rows of a frame or of a table.

    The value alone is told, not how many rows have it; with `lead` also by how many rows it is ahead of all others, for
    the same price. Where the keys are unknown, it is told exactly if it is well ahead, which needs a delta; otherwise
    the answer is empty.
    """

    column: str
    of: Frame | None = None
    lead: bool = False

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """Choose among the declared keys, or tell the one that is ahead."""
        prepared = counted(self.column, self.of, schema)
        if prepared.opens:
            return _ahead(prepared, spend, neighbours, level, self.lead)
        candidates = pyarrow.array(prepared.request.domains[0], ARROW[prepared.keys[0].type])
        among = Contest("mode", prepared.query.outputs[0][0], candidates, Scores((prepared,), Fraction(1)), "rows")
        return among.offer(spend, neighbours, level, lead=self.lead)


def _ahead(prepared: Prepared, spend: Promise, neighbours: Neighbours, level: float, lead: bool) -> "Ahead":
    if lead:
        raise InputError("The lead is told among declared keys only: declare keys in the policy, or leave lead out.")
    if not isinstance(spend, Approx) or not spend.delta:
        raise InputError(
            "The most frequent of unknown keys is told only where it is well ahead, which needs a delta: "
            'spend Approx("0.1", "1e-8") or declare keys in the policy.'
        )
    reach = sensitivity(prepared.request.measures[0], prepared.part, neighbours)
    promise = Approx(spend.epsilon, spend.delta, neighbours=neighbours)
    return Ahead(prepared, StableMode.calibrated(promise, reach), reach, level)


@dataclass(frozen=True)
class Ahead(ByOne):
    """The most frequent of unknown keys, if it is ahead of all others by enough."""

    @property
    def text(self) -> str:
        """What is measured."""
        asked = canonical_text(self.prepared.query)
        return json.dumps({"question": "mode", "asked": [asked], "declared": declared([self.prepared])})

    @property
    def why(self) -> str:
        """Why it is told exactly, or not at all."""
        return "The keys are unknown: the most frequent one is told as it is, where nobody alone could have made it so."

    def expected(self, sizes: tuple[int, ...] = SIZES) -> list[tuple[Expected, ...]]:
        """By how many rows the first may be ahead and still not be told."""
        lead = self.mechanism.interval(self.level)
        name = self.prepared.query.outputs[0][0]
        note = "the error is by how many rows the most frequent value may be ahead without being told"
        return [(Expected(name, "stability test", f"rows: {float(self.reach.linf):.6g}", lead, {}, None, note),)]

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random = SYSTEM) -> pyarrow.Table:
        """Count the rows of each key, and tell the first or nothing."""
        exact = source.aggregate(self.prepared.request, schema, secret)
        counts = dict(enumerate(exact.measures[0].tolist()))
        found = self.mechanism(counts, rng)
        assert exact.keys is not None
        told = (
            exact.keys.column(0).combine_chunks().take(pyarrow.array([] if found is None else [found], pyarrow.int64()))
        )
        return pyarrow.table({self.prepared.query.outputs[0][0]: told})
