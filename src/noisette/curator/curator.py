"""The curator: holds the data, answers questions with noise, and never lets more be spent than the owner allows."""

from threading import Lock
from typing import Any, TypeAlias, overload

from noisette.answers import Release
from noisette.curator.budget import Budget
from noisette.curator.buying import Bounds, keys_query, offered, with_bounds, with_keys
from noisette.curator.buying_rows import MOST_ROWS, Rows, for_sale, with_rows
from noisette.curator.explanation import Explanation, cheapest
from noisette.curator.keeping import key_of, paid, recorded
from noisette.curator.spending import plannable
from noisette.curator.stream import Watch, begun, watching
from noisette.engines.contract import Source
from noisette.errors import InputError, PrivacyError
from noisette.exact.number import Number, fraction, level_of
from noisette.exact.random import SYSTEM
from noisette.ledger import Ledger, Memory
from noisette.policy.policy import Policy
from noisette.privacy import Approx, Guarantee, Promise, Spend, as_promise
from noisette.privacy.neighbours import common
from noisette.process import here
from noisette.query.expected import SIZES
from noisette.query.frame import Asked, Frame, frame
from noisette.query.kind import Value
from noisette.query.plan import Query
from noisette.query.schema import Schema
from noisette.query.sql import parse
from noisette.questions.above import BEGIN, Above, Exactly, Watching
from noisette.questions.contract import Offer, Question
from noisette.questions.parts.queries import Queries

__all__ = ["Curator", "new_secret"]

_FORKED = (
    "This curator belongs to the parent process, and its engine does not survive a fork: open the data again in this "
    "one, with the same ledger file (ledger=...)."
)

One: TypeAlias = str | Query | Asked | Question


class Curator:
    """Answers questions about the tables it holds; `nz.open` makes one.

    Every question is charged before the data is touched. The same question for the same spend gets the same answer
    again, for free; so does one that failed (`keeping`). `secret` keys the choice of rows where a unit has more than
    may count; `state` names the state of the data that answers are about.
    """

    def __init__(
        self,
        source: Source,
        policy: Policy,
        schema: Schema,
        ledger: Ledger | None = None,
        analyst: str | None = None,
        secret: bytes | None = None,
        state: str = "",
    ) -> None:
        self.policy, self.analyst = policy, analyst
        self.ledger: Ledger = Memory(policy.budget) if ledger is None else ledger
        self._source, self._schema = source, schema
        self._secret = new_secret() if secret is None else secret
        self._state = state
        self._kept: dict[str, Any] = {}
        self._lock, self._process = Lock(), here()

    @property
    def schema(self) -> Schema:
        """The tables as they are described."""
        return self._schema

    @property
    def budget(self) -> Budget:
        """What is spent and what is left."""
        return Budget.of(self.ledger, self.analyst)

    def table(self, name: str) -> Frame:
        """A table, to be asked in Python: where, group_by, count."""
        return frame(self._schema, name, curator=self)

    def sql(self, text: str, *, spend: Spend, level: float = 0.95) -> Release:
        """Ask in SQL."""
        return self.ask(text, spend=spend, level=level)

    @overload
    def ask(self, question: list[Any], *, spend: Spend, level: float = 0.95) -> list[Release]: ...
    @overload
    def ask(self, question: One, *, spend: Spend, level: float = 0.95) -> Release: ...
    def ask(self, question: Any, *, spend: Spend, level: float = 0.95) -> Any:
        """Answer a question, or several that are planned together, for what is to be spent."""
        level_of(level)
        if isinstance(question, Above):
            raise InputError(BEGIN)
        promise = self._promise(spend)
        offer = self._offer(question, promise, level)
        caveats = offer.caveats  # before anything is charged: they follow from declarations alone
        drawn = self._drawn(offer, promise)
        pairs = zip(offer.answers(drawn), caveats, strict=True)
        releases = [self._release(offer, columns, level, sentences) for columns, sentences in pairs]
        answers = recorded(self.ledger, self._key(offer, promise), releases)
        return answers if _several(question) else answers[0]

    def explain(
        self,
        question: Any,
        *,
        spend: Spend | None = None,
        error: float | None = None,
        rows: int | None = None,
        delta: Number | None = None,
        level: float = 0.95,
    ) -> Explanation:
        """The cost and the error to expect; with `error`, the epsilon for it. Reads nothing and spends nothing.

        Some errors depend on how many rows a group has: name a number of `rows` to solve for those.
        """
        if (spend is None) == (error is None):
            raise InputError("Say either what to spend or which error you can live with: spend=0.1 or error=50.")
        level_of(level)
        sizes = SIZES if rows is None else (rows,)
        if spend is not None:
            return self._explained(question, self._promise(spend), level, sizes)
        assert error is not None
        share = None if delta is None else fraction(delta, "delta")
        plannable(Approx(1, share or 0))

        def width(promise: Promise) -> float:
            return self._explained(question, promise, level, sizes).error

        return self._explained(question, cheapest(width, error, share), level, sizes)

    def stream(self, above: Above, *, spend: Spend) -> Watch:
        """Begin a stream of questions against a threshold, or go on with it: all of it is charged, once."""
        promise = self._promise(spend)
        offer = watching(above).stream(self._schema, promise, self.policy.neighbours)
        key = self._key(offer, promise)
        self._check_process()
        with self._lock:
            if key not in self._kept:
                line = begun(self.ledger, offer, key, self._secret, analyst=self.analyst)
                self._kept[key] = Watch(offer, line, self._exactly, self._draw)
            return self._kept[key]  # type: ignore[no-any-return]

    def bounds(self, column: str, *, spend: Spend) -> tuple[Value, Value]:
        """Buy the bounds of a column whose policy says bounds = "private"; later questions use them."""
        table, wanted = offered(self._schema, column, "bounds")
        answer = self.ask(Bounds(table, wanted), spend=spend)
        cells = [(row["low"], row["high"]) for row in answer.rows()]
        self._schema, found = with_bounds(self._schema, table, wanted, cells)
        return found

    def keys(self, column: str, *, spend: Spend) -> list[Any]:
        """Buy the keys of a column whose policy says keys = "private"; needs a delta. Later questions use them."""
        table, wanted = offered(self._schema, column, "keys")
        found: list[Any] = self.ask(keys_query(table, wanted), spend=spend).columns[0].values.to_pylist()
        self._schema = with_keys(self._schema, table, wanted, found)
        return found

    def rows(
        self, table: str | None = None, *, spend: Spend, most: int = MOST_ROWS, for_spend: Spend | None = None
    ) -> int:
        """Buy the limit on rows of a table whose policy says rows = "private"; later questions use it.

        It is at most `most`, and chosen for questions that spend `for_spend`: nine times its own price, unless told.
        """
        sold, later = for_sale(self._schema, table), None if for_spend is None else self._promise(for_spend)
        found = int(self.ask(Rows(sold, most, later), spend=spend).columns[0].values[0].as_py())
        self._schema = with_rows(self._schema, sold, found)
        return found

    # What the methods above share

    def _allows(self, cost: Guarantee) -> bool:
        return self.ledger.allows(cost, analyst=self.analyst)

    def _promise(self, spend: Spend) -> Promise:
        """What to spend as a promise that a plan can be made for; a bare number is a pure epsilon."""
        made = as_promise(spend)
        common(made.neighbours, self.policy.neighbours)
        plannable(made)
        return made

    def _offer(self, question: Any, spend: Promise, level: float) -> Offer:
        return self._question(question).offer(self._schema, spend, self.policy.neighbours, level)

    def _terms(self, question: Any, spend: Promise, level: float) -> Offer | Watching:
        """The offer of a question, or what a stream would be: both can be explained."""
        if isinstance(question, Above):
            return question.stream(self._schema, spend, self.policy.neighbours, level)
        return self._offer(question, spend, level)

    def _question(self, question: Any) -> Question:
        """A question of any sort as a value."""
        if _several(question):
            return Queries(tuple(self._query(one) for one in question))
        if isinstance(question, str | Query | Asked):
            return Queries((self._query(question),))
        if hasattr(question, "offer"):
            return question  # type: ignore[no-any-return]
        raise InputError("Ask in SQL, with a table's methods, or with a question such as Histogram('age').")

    def _query(self, question: Any) -> Query:
        if isinstance(question, str):
            return parse(question, self._schema)
        if isinstance(question, Asked):
            return question.query
        if isinstance(question, Query):
            return question
        raise InputError(
            "Questions that are asked together, or of a stream, must be SQL or made with a table's methods."
        )

    def _drawn(self, offer: Offer, spend: Promise) -> Any:
        """What was drawn for the same question and spend before, or else: charge, then draw."""
        key = self._key(offer, spend)
        self._check_process()
        with self._lock:
            if key not in self._kept:
                self._kept[key] = paid(self.ledger, offer, key, self._draw, analyst=self.analyst)
            return self._kept[key]

    def _key(self, offer: Offer | Watching, spend: Promise) -> str:
        return key_of(self._state, offer.text, repr(spend), str(self.policy.neighbours), self.analyst)

    def _check_process(self) -> None:
        """Refuse a copy of this curator that a fork made, before anything is charged; its lock may be held for ever."""
        if here() != self._process:
            raise PrivacyError(_FORKED)

    def _exactly(self, offer: Watching, question: Any) -> Exactly:
        self._check_process()
        return offer.exactly(self._query(question), self._schema)

    def _draw(self, offer: Any) -> Any:
        return offer.draw(self._source, self._schema, self._secret)

    def _release(self, offer: Offer, columns: Any, level: float, caveats: tuple[str, ...]) -> Release:
        """The release before it is recorded, which settles what is spent and left."""
        record = {
            "question": offer.text,
            "guarantee": repr(offer.guarantee),
            "neighbours": str(self.policy.neighbours),
            "unit": offer.unit,
            "mechanisms": offer.parts,
        }
        budget = self.policy.budget
        return Release(columns, level, offer.guarantee, offer.unit, budget, budget, record, caveats)

    def _explained(self, question: Any, spend: Promise, level: float, sizes: tuple[int, ...]) -> Explanation:
        offer = self._terms(question, spend, level)
        answers = tuple(offer.expected(sizes))

        def again(promise: Promise) -> Explanation:
            return self._explained(question, promise, level, sizes)

        return Explanation(offer, spend, level, answers, offer.why, self._allows(offer.guarantee), again)


def new_secret() -> bytes:
    """A key for the choice of rows."""
    return SYSTEM.bits(128).to_bytes(16, "big")


def _several(question: Any) -> bool:
    return isinstance(question, list)
