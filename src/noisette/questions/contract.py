"""A question, and the offer that is made for it. Read this first, then `top.py`, the smallest real question.

    question.offer(schema, spend, neighbours, level) -> Offer     reads nothing and costs nothing
    offer.draw(source, schema, secret) -> drawn                   after the charge: reads once and adds the noise
    offer.answers(drawn) -> columns of each answer                free
    offer.pack(drawn) -> bytes, offer.unpack(bytes) -> drawn      how the ledger keeps what was drawn

A question is one file of this package: a frozen dataclass that derives from `JsonQuestion` (`data.py`), is named like
the file (`left_out.py` holds `LeftOut`), and has a module-level list `examples` about the made-up hospital of the demo.
Package names, JSON, the command line, the documentation and the contract suite find it by themselves.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from noisette.answers import Column, Lasting
from noisette.engines.contract import Source
from noisette.exact.random import SYSTEM, Random
from noisette.privacy import Guarantee, Neighbours, Promise
from noisette.query.expected import SIZES, Expected
from noisette.query.schema import Schema
from noisette.questions.parts.tables import columns_of, pack_table, unpack_table

__all__ = ["TABLE", "Offer", "Packing", "Procedure", "Question", "StreamQuestion"]


class Procedure(Protocol):
    """How an answer is released. Unless it says otherwise, what is drawn is one Arrow table."""

    def expected(self, sizes: tuple[int, ...]) -> list[tuple[Expected, ...]]:
        """The error to expect, for each column of each answer."""
        ...

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random) -> Any:
        """Read the data and draw the noise."""
        ...

    def answers(self, drawn: Any) -> list[tuple[Column, ...]]:
        """The columns of each answer: by default those of the table, where x_low and x_high are the error bar of x."""
        return [columns_of(drawn)]


@dataclass(frozen=True)
class Packing:
    """What was drawn as bytes, and back."""

    pack: Callable[[Any], bytes]
    unpack: Callable[[bytes], Any]


TABLE = Packing(pack_table, unpack_table)


@dataclass(frozen=True)
class Offer:
    """What would be released for a promise: all of it is public, and computed once.

    `text` what is measured, however the question was written: answers are kept by it, so it never changes ·
    `guarantee` what holds once it is drawn, at most what was to be spent · `unit` whose data is protected ·
    `why` this noise and no other, in a sentence · `parts` the mechanisms with their sensitivity, for the record ·
    `caveats` what each answer leaves out before any noise, and what ± covers · `value` makes what goes on answering,
    such as a histogram, of what was drawn
    """

    text: str
    guarantee: Guarantee
    unit: str
    why: str
    parts: list[dict[str, Any]]
    caveats: list[tuple[str, ...]]
    procedure: Procedure
    packing: Packing = TABLE
    value: Callable[[Any], Lasting] | None = None

    def expected(self, sizes: tuple[int, ...] = SIZES) -> list[tuple[Expected, ...]]:
        """The error to expect, for each column of each answer."""
        return self.procedure.expected(sizes)

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random = SYSTEM) -> Any:
        """Read the data and draw the noise: to be called after the charge."""
        return self.procedure.draw(source, schema, secret, rng)

    def answers(self, drawn: Any) -> list[tuple[Column, ...]]:
        """The columns of each answer."""
        return self.procedure.answers(drawn)

    def pack(self, drawn: Any) -> bytes:
        """What was drawn as bytes."""
        return self.packing.pack(drawn)

    def unpack(self, kept: bytes) -> Any:
        """What was drawn, from its bytes."""
        return self.packing.unpack(kept)


class Question(Protocol):
    """Something with an answer, or several."""

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """What would be released for a promise, or a sentence on why it cannot be asked."""
        ...


class StreamQuestion(Protocol):
    """Something that is paid for once and then asked again and again; `above.py` is the only one."""

    def stream(self, schema: Schema, spend: Promise, neighbours: Neighbours) -> Any:
        """What such a stream would be for a promise: its costs, and what may be asked of it."""
        ...
