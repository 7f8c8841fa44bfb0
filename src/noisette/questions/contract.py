"""A question, and the offer that is made for it. Read this first, then `top.py`, the smallest real question.

    question.offer(schema, spend, neighbours, level) -> Offer     reads nothing and costs nothing
    offer.draw(source, schema, secret) -> drawn                   after the charge: reads once and adds the noise
    offer.answers(drawn) -> columns of each answer                free
    offer.pack(drawn) -> bytes, offer.unpack(bytes) -> drawn      how the ledger keeps what was drawn

A question is one file of this package: a frozen dataclass that derives from `JsonQuestion` (`data.py`), is named like
the file (`left_out.py` holds `LeftOut`), and has a module-level list `examples` about the made-up hospital of the demo.
Package names, JSON, the command line, the documentation and the contract suite find it by themselves.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from noisette.answers import Column, Lasting
from noisette.engines.contract import Source
from noisette.exact.random import SYSTEM, Random
from noisette.privacy import Guarantee, Neighbours, Promise
from noisette.query.caveats import Omission
from noisette.query.expected import SIZES, Expected
from noisette.query.plan import Query
from noisette.query.prepare import Prepared
from noisette.query.schema import Limits, Schema
from noisette.questions.parts.tables import columns_of, pack_table, unpack_table

__all__ = [
    "TABLE",
    "Line",
    "Machine",
    "Numbered",
    "Offer",
    "Packing",
    "Procedure",
    "Question",
    "Reads",
    "Shell",
    "StreamOffer",
    "StreamQuestion",
    "begin_instead",
]


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
class Reads:
    """The queries that an offer rests on, and its caveats with other sentences about limits that were chosen."""

    prepared: tuple[Prepared, ...]
    left_out: Callable[[Sequence[Omission], Mapping[str, Limits]], list[tuple[str, ...]]]


@dataclass(frozen=True)
class Offer:
    """What would be released for a promise: all of it is public, and computed once.

    `text` what is measured, however the question was written: answers are kept by it, so it never changes ·
    `guarantee` what holds once it is drawn, at most what was to be spent · `unit` whose data is protected ·
    `why` this noise and no other, in a sentence · `parts` the mechanisms with their sensitivity, for the record ·
    `caveats` what each answer leaves out before any noise, and what ± covers · `value` makes what goes on answering,
    such as a histogram, of what was drawn · `found` are the caveats once it is drawn, where they say more by then ·
    `rules` of the house that it keeps, for the record · `reads` the queries whose limits can be chosen for it
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
    found: Callable[[Any], list[tuple[str, ...]]] | None = None
    rules: Mapping[str, Any] = field(default_factory=dict)
    reads: Reads | None = None

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


class Numbered(Protocol):
    """A state of a stream: a frozen dataclass of plain numbers, texts, lists and dicts."""

    @property
    def asked(self) -> int:
        """Its number: how many questions were asked so far."""
        ...


S = TypeVar("S", bound=Numbered)
State = TypeVar("State", bound=Numbered, covariant=True)


class Machine(Protocol[S]):
    """What a stream does from state to state."""

    def begin(self) -> S:
        """Draw the first state."""
        ...

    def step(self, state: S, value: Any) -> tuple[Any, S]:
        """What is released of a question whose exact answer is `value`, and the next state."""
        ...

    def failed(self, state: S) -> S:
        """The last state: a question failed."""
        ...

    def check(self, state: S) -> None:
        """Raise if nothing may be asked after this state."""
        ...

    def read(self, stored: dict[str, Any]) -> S:
        """The state that `dataclasses.asdict` made this of."""
        ...


class Line(Protocol[State]):
    """One line of states that all who share a ledger go on from (`curator.kept_line`)."""

    @property
    def last(self) -> State:
        """The newest state."""
        ...

    def ask(self, compute: Callable[[], Any], after: int | None = None) -> tuple[Any, State]:
        """What is released of a question and the state after it; a stream that has ended computes nothing.

        A question that makes sense only `after` a number of others is not asked if somebody else was first.
        """
        ...


class Shell(Protocol):
    """What the curator does for the questions of a stream."""

    @property
    def schema(self) -> Schema:
        """The tables as they are described now."""
        ...

    def parsed(self, question: Any) -> tuple[Query, Schema]:
        """A question in SQL or made with a table's methods as a query, and the declarations it rests on."""
        ...

    def check(self) -> None:
        """Raise in a process that a fork made: to be called before the line is asked."""
        ...

    def draw(self, exact: Any, schema: Schema) -> Any:
        """Read the data: `exact.draw(source, schema, secret)`."""
        ...


class StreamOffer(Protocol[S]):
    """What a stream would be for a promise: as an `Offer`, but all of it is charged when it begins."""

    @property
    def text(self) -> str:
        """All that makes it this stream and no other."""
        ...

    @property
    def guarantee(self) -> Guarantee:
        """What the whole stream is worth, however long it is."""
        ...

    @property
    def unit(self) -> str:
        """Whose data is protected."""
        ...

    @property
    def why(self) -> str:
        """Why this noise."""
        ...

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The mechanisms with their sensitivity, for the record."""
        ...

    @property
    def caveats(self) -> list[tuple[str, ...]]:
        """What is left out before any noise."""
        ...

    @property
    def machine(self) -> Machine[S]:
        """What it does from state to state."""
        ...

    @property
    def growing(self) -> bool:
        """Whether the stream goes on while the data changes; otherwise other data is another stream."""
        ...

    def expected(self, sizes: tuple[int, ...] = SIZES) -> list[tuple[Expected, ...]]:
        """The error to expect."""
        ...

    def session(self, line: Line[S], shell: Shell) -> Any:
        """What an analyst asks."""
        ...


class StreamQuestion(Protocol):
    """Something that is paid for once and then asked again and again, such as `Above`."""

    def stream(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float = 0.95) -> StreamOffer[Any]:
        """What such a stream would be for a promise."""
        ...


def begin_instead(question: Any) -> str:
    """What to do instead of asking for a stream."""
    name = type(question).__name__
    return f"{name} is a stream: begin it with curator.stream({name}(...), spend=...), and ask that."
