"""The curator: holds the data, answers questions with noise, and never lets more be spent than the owner allows."""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, overload

from noisette.answers import Lasting, Release
from noisette.curator.answer_cache import AnswerCache, Locks, key_of, recorded
from noisette.curator.asking import plannable, query_of, question_of
from noisette.curator.budget import Budget
from noisette.curator.explanation import Explanation, cheapest
from noisette.curator.purchases import Purchase, Shop, Terms, What, for_sale, found, purchase_question, settled
from noisette.curator.stream import Watch, begun, watching
from noisette.engines.contract import Source
from noisette.errors import InputError, PrivacyError
from noisette.exact.number import Number, fraction, level_of
from noisette.exact.random import SYSTEM
from noisette.ledger import Ledger, Memory
from noisette.policy.policy import Policy
from noisette.privacy import Approx, Promise, Spend, as_promise
from noisette.privacy.neighbours import common
from noisette.process import here
from noisette.query.expected import SIZES
from noisette.query.frame import Asked, Frame, frame
from noisette.query.kind import Value
from noisette.query.plan import Query
from noisette.query.schema import Schema, Table
from noisette.questions.above import BEGIN, Above, Exactly, Watching
from noisette.questions.contract import Offer, Question
from noisette.text import aligned, as_html

__all__ = ["Curator", "new_secret"]

_FORKED = (
    "This curator belongs to the parent process, and its engine does not survive a fork: open the data again in this "
    "one, with the same ledger file (ledger=...)."
)
_HEAD = ["table", "protects", "columns"]

One: TypeAlias = str | Query | Asked | Question


class Curator:
    """Answers questions about the tables it holds; `nz.open` makes one. Any number of threads may ask it.

    Every question is charged before the data is touched. The same question for the same spend gets the same answer
    again, for free; so does one that failed (`answer_cache`). `analyst` says who asks, where the owner has given shares
    of the budget. `secret` keys the choice of rows where a unit has more than may count; `state` names the state of the
    data that answers are about; `purchases` are those that were made before the ledger held them.
    """

    def __init__(
        self,
        source: Source,
        policy: Policy,
        schema: Schema,
        ledger: Ledger | None = None,
        *,
        secret: bytes | None = None,
        state: str = "",
        purchases: Iterable[Purchase] = (),
        cache: AnswerCache | None = None,
    ) -> None:
        self.policy = policy
        self.ledger: Ledger = Memory(policy.budget) if ledger is None else ledger
        self._source, self._state, self._process = source, state, here()
        self._secret = new_secret() if secret is None else secret
        self._shop, self._buying = Shop(schema, purchases), Locks()
        self._answers = AnswerCache() if cache is None else cache

    @property
    def schema(self) -> Schema:
        """The tables as they are described: what the owner declares, and what was bought."""
        return self._shop.schema(self.ledger)

    @property
    def budget(self) -> Budget:
        """What is spent and what is left."""
        return Budget.of(self.ledger)

    def budget_of(self, analyst: str) -> Budget:
        """The same for an analyst: with that share alone, where the budget is shared out."""
        return Budget.of(self.ledger, analyst)

    def table(self, name: str) -> Frame:
        """A table, to be asked in Python: where, group_by, count."""
        return frame(self.schema, name, curator=self)

    def sql(self, text: str, *, spend: Spend, level: float = 0.95, analyst: str | None = None) -> Release:
        """Ask in SQL."""
        return self.ask(text, spend=spend, level=level, analyst=analyst)

    @overload
    def ask(
        self, question: list[Any], *, spend: Spend, level: float = 0.95, analyst: str | None = None
    ) -> list[Release]: ...
    @overload
    def ask(self, question: One, *, spend: Spend, level: float = 0.95, analyst: str | None = None) -> Release: ...
    def ask(self, question: Any, *, spend: Spend, level: float = 0.95, analyst: str | None = None) -> Any:
        """Answer a question, or several that are planned together, for what is to be spent."""
        level_of(level)
        if isinstance(question, Above):
            raise InputError(BEGIN)
        promise, schema = self._promise(spend), self.schema
        _, answers = self._answered(question_of(question, schema), schema, promise, level, analyst)
        return answers if isinstance(question, list) else answers[0]

    def explain(
        self,
        question: Any,
        *,
        spend: Spend | None = None,
        error: float | None = None,
        rows: int | None = None,
        delta: Number | None = None,
        level: float = 0.95,
        analyst: str | None = None,
    ) -> Explanation:
        """The cost and the error to expect; with `error`, the epsilon for it. Reads nothing and spends nothing.

        Some errors depend on how many rows a group has: name a number of `rows` to solve for those.
        """
        if (spend is None) == (error is None):
            raise InputError("Say either what to spend or which error you can live with: spend=0.1 or error=50.")
        level_of(level)
        explained = self._explainer(question, level, SIZES if rows is None else (rows,), analyst)
        if spend is not None:
            return explained(self._promise(spend))
        assert error is not None
        share = None if delta is None else fraction(delta, "delta")
        plannable(Approx(1, share or 0))
        return explained(cheapest(lambda promise: explained(promise).error, error, share))

    def stream(self, above: Above, *, spend: Spend, analyst: str | None = None) -> Watch:
        """Begin a stream of questions against a threshold, or go on with it: all of it is charged, once."""
        promise = self._promise(spend)
        offer = watching(above).stream(self.schema, promise, self.policy.neighbours)
        self._check_process()
        line = begun(self.ledger, offer, self._key(offer, promise, analyst), self._secret, analyst=analyst)
        return Watch(offer, line, self._exactly)

    # Purchases: each is paid once and serves all who ask from then on

    def bounds(
        self, column: str, *, spend: Spend, analyst: str | None = None, again: bool = False
    ) -> tuple[Value, Value]:
        """Buy the bounds of a column whose policy says bounds = "private"; later questions use them."""
        low, high = self.buy("bounds", column, spend=spend, analyst=analyst, again=again).values
        return low, high

    def keys(self, column: str, *, spend: Spend, analyst: str | None = None, again: bool = False) -> list[Value]:
        """Buy the keys of a column whose policy says keys = "private"; needs a delta. Later questions use them."""
        return list(self.buy("keys", column, spend=spend, analyst=analyst, again=again).values)

    def rows(
        self,
        table: str | None = None,
        *,
        spend: Spend,
        most: int | None = None,
        for_spend: Spend | None = None,
        analyst: str | None = None,
        again: bool = False,
    ) -> int:
        """Buy the limit on rows of a table whose policy says rows = "private"; later questions use it.

        It is at most `most` (8192 by default), and chosen for questions that spend `for_spend` (by default nine times
        its own price).
        """
        terms = Terms(most, None if for_spend is None else self._promise(for_spend))
        [limit] = self.buy("rows", table, spend=spend, analyst=analyst, again=again, terms=terms).values
        assert isinstance(limit, int)
        return limit

    def buy(
        self,
        what: What,
        name: str | None,
        *,
        spend: Spend,
        analyst: str | None = None,
        again: bool = False,
        terms: Terms | None = None,
    ) -> Purchase:
        """Buy bounds, keys or rows; the same purchase is free, another one needs `again` and replaces the first."""
        price, asked = self._promise(spend), terms or Terms()
        place = for_sale(self._shop.declared, what, name)
        self._check_process()
        with self._buying(repr(place)):
            old = self._shop.purchases(self.ledger).get(place)
            if old is not None and not again:
                return settled(old, price, asked.text)
            schema = self._shop.schema(self.ledger, without=place)
            key, [answer] = self._answered(purchase_question(schema, place, asked), schema, price, 0.95, analyst)
            new = Purchase(place, found(schema, place, answer), price, analyst, asked.text)
            self.ledger.record_purchase(key, new.body)
            return new

    # What the methods above share

    def _promise(self, spend: Spend) -> Promise:
        """What to spend as a promise that a plan can be made for; a bare number is a pure epsilon."""
        made = as_promise(spend)
        common(made.neighbours, self.policy.neighbours)
        plannable(made)
        return made

    def _answered(
        self, question: Question, schema: Schema, spend: Promise, level: float, analyst: str | None
    ) -> tuple[str, list[Release]]:
        """The key of a question and its answers: those that were drawn before, or else charge, then draw."""
        offer = question.offer(schema, spend, self.policy.neighbours, level)
        caveats = offer.caveats  # before anything is charged: they follow from declarations alone
        key = self._key(offer, spend, analyst)
        self._check_process()
        drawn = self._answers.drawn(self.ledger, offer, key, lambda: self._draw(offer, schema), analyst=analyst)
        pairs = zip(offer.answers(drawn), caveats, strict=True)
        released = offer.value(drawn) if offer.value else None
        releases = [self._release(offer, columns, level, sentences, released) for columns, sentences in pairs]
        return key, recorded(self.ledger, key, releases)

    def _key(self, offer: Offer | Watching, spend: Promise, analyst: str | None = None) -> str:
        return key_of(self._state, offer.text, repr(spend), str(self.policy.neighbours), analyst)

    def _check_process(self) -> None:
        """Refuse a copy of this curator that a fork made, before anything is charged; a lock may be held for ever."""
        if here() != self._process:
            raise PrivacyError(_FORKED)

    def _exactly(self, offer: Watching, question: Any) -> tuple[Exactly, Callable[[], int]]:
        """A question of a stream, and how to compute it: both rest on the same declarations."""
        self._check_process()
        schema = self.schema
        exactly = offer.exactly(query_of(question, schema), schema)
        return exactly, lambda: self._draw(exactly, schema)

    def _draw(self, offer: Any, schema: Schema) -> Any:
        return offer.draw(self._source, schema, self._secret)

    def _release(
        self, offer: Offer, columns: Any, level: float, caveats: tuple[str, ...], released: Lasting | None
    ) -> Release:
        """The release before it is recorded, which settles what is spent and left."""
        record = {
            "question": offer.text,
            "guarantee": repr(offer.guarantee),
            "neighbours": str(self.policy.neighbours),
            "unit": offer.unit,
            "mechanisms": offer.parts,
        }
        budget = self.policy.budget
        return Release(columns, level, offer.guarantee, offer.unit, budget, budget, record, caveats, released)

    def _explainer(
        self, question: Any, level: float, sizes: tuple[int, ...], analyst: str | None
    ) -> Callable[[Promise], Explanation]:
        schema = self.schema
        terms = question.stream if isinstance(question, Above) else question_of(question, schema).offer

        def explained(spend: Promise) -> Explanation:
            offer = terms(schema, spend, self.policy.neighbours, level)
            allowed = self.ledger.allows(offer.guarantee, analyst=analyst)
            return Explanation(offer, spend, level, tuple(offer.expected(sizes)), offer.why, allowed, explained)

        return explained

    # For people: tables and budget, no data

    def __repr__(self) -> str:
        tables = aligned(_HEAD, _overview(self.schema))
        return f"{tables}\n{self.budget!r}"

    def _repr_html_(self) -> str:
        return as_html("", _HEAD, _overview(self.schema)) + self.budget._repr_html_()


def new_secret() -> bytes:
    """A key for the choice of rows."""
    return SYSTEM.bits(128).to_bytes(16, "big")


def _overview(schema: Schema) -> list[list[str]]:
    return [[name, _protects(table), ", ".join(c.name for c in table.columns)] for name, table in schema.items()]


def _protects(table: Table) -> str:
    return "nobody (public)" if table.public else table.unit or "each row"
