"""The most frequent value of a column."""

import json
from dataclasses import dataclass
from fractions import Fraction

import pyarrow

from noisette.engines.contract import Source
from noisette.errors import InputError
from noisette.exact.random import Random
from noisette.mechanisms import StableMode
from noisette.privacy import Approx, Neighbours, Promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.canonical import canonical_text
from noisette.query.design import recorded
from noisette.query.expected import Expected
from noisette.query.measure import sensitivity
from noisette.query.prepare import Prepared
from noisette.query.schema import Schema
from noisette.query.types import ARROW
from noisette.questions.contract import Offer, Procedure
from noisette.questions.data import JsonQuestion
from noisette.questions.parts.choice import Contest, Scores
from noisette.questions.parts.offers import about, declared
from noisette.questions.parts.rows import Rows, counted

__all__ = ["Mode"]


@dataclass(frozen=True)
class Mode(JsonQuestion):
    """The value of a column (or of an expression) that most rows have, among the rows `of` a table or a frame.

    Only the value is released, not its number of rows; with `lead` also by how many rows it is ahead of all others, for
    the same price. Where the keys are unknown, the exact value is released if it is well ahead, which needs a delta;
    otherwise the answer is empty.
    """

    column: str
    of: Rows = None
    lead: bool = False

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """Choose among the declared keys, or release the one that is well ahead."""
        prepared = counted(self.column, self.of, schema)
        if prepared.opens:
            return _of_unknown_keys(prepared, spend, neighbours, level, self.lead)
        candidates = pyarrow.array(prepared.request.domains[0], ARROW[prepared.keys[0].type])
        among = Contest("mode", prepared.query.outputs[0][0], candidates, Scores((prepared,), Fraction(1)), "rows")
        return among.one(spend, neighbours, level, lead=self.lead)


def _of_unknown_keys(prepared: Prepared, spend: Promise, neighbours: Neighbours, level: float, lead: bool) -> Offer:
    if lead:
        raise InputError("The lead needs declared keys: declare keys in the policy, or leave lead out.")
    if not isinstance(spend, Approx) or not spend.delta:
        raise InputError(
            "Of unknown keys the most frequent one is released only if it is well ahead, and that needs a delta: "
            'spend="0.1,1e-8", or declare keys in the policy.'
        )
    measure = prepared.request.measures[0]
    moved = sensitivity(measure, prepared.part, neighbours)
    promise = Approx(spend.epsilon, spend.delta, neighbours=neighbours)
    mechanism = StableMode.calibrated(promise, moved)
    asked = canonical_text(prepared.query)
    return about(
        prepared,
        Ahead(prepared, mechanism, moved, level),
        text=json.dumps({"question": "mode", "asked": [asked], "declared": declared([prepared])}),
        why="The keys are unknown: the exact value is released if no single person could have made it the first.",
        guarantee=mechanism.guarantee(moved),
        parts=[recorded(mechanism, measure, moved)],
    )


@dataclass(frozen=True)
class Ahead(Procedure):
    """The most frequent of unknown keys, if it is ahead of all others by enough."""

    prepared: Prepared
    mechanism: StableMode
    sensitivity: Sensitivity
    level: float

    @property
    def _name(self) -> str:
        return self.prepared.query.outputs[0][0]

    def expected(self, sizes: tuple[int, ...]) -> list[tuple[Expected, ...]]:
        """By how many rows the first may be ahead and still not be released."""
        lead = self.mechanism.interval(self.level)
        note = "the error is by how many rows the most frequent value may be ahead without being released"
        moved = f"rows: {float(self.sensitivity.linf):.6g}"
        return [(Expected(self._name, "stability test", moved, lead, {}, None, note),)]

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random) -> pyarrow.Table:
        """Count the rows of each key, and release the first or nothing."""
        exact = source.aggregate(self.prepared.request, schema, secret)
        found = self.mechanism(dict(enumerate(exact.measures[0].tolist())), rng)
        assert exact.keys is not None
        places = pyarrow.array([] if found is None else [found], pyarrow.int64())
        return pyarrow.table({self._name: exact.keys.column(0).combine_chunks().take(places)})


examples = [
    Mode("ward"),
    Mode("FLOOR(age / 10)"),
    Mode("ward", of="SELECT * FROM visits WHERE age >= 65", lead=True),
    Mode("diagnosis"),
]
