"""The curator: holds the data, answers questions with noise, and never lets more be spent than the owner allows."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias, overload

from noisette.answers import Lasting, Release
from noisette.curator.answer_cache import AnswerCache, Locks, key_of, recorded
from noisette.curator.asking import plannable, query_of, question_of
from noisette.curator.budget import Budget
from noisette.curator.cancelling import Cancel, check_cancelled
from noisette.curator.differences import without_small_differences
from noisette.curator.explanation import Explanation, cheapest, priced
from noisette.curator.house import Asking, admissible, admit, check_stream, kept, most_delta, notes, rounded, widened
from noisette.curator.kept_line import Seal, begun
from noisette.curator.purchases import Purchase, Shop, Terms, What, for_sale, found, purchase_question, settled
from noisette.engines.contract import Source
from noisette.errors import InputError, PrivacyError
from noisette.exact.number import Number, fraction, level_of
from noisette.exact.random import SYSTEM
from noisette.laws.law import smallest
from noisette.ledger import Ledger, Memory
from noisette.ledger.pins import UNPINNED, State
from noisette.policy.policy import Policy
from noisette.privacy import Approx, Promise, Spend, as_promise
from noisette.privacy.neighbours import common
from noisette.process import here
from noisette.query.expected import SIZES
from noisette.query.frame import Asked, Frame, frame
from noisette.query.kind import Value
from noisette.query.plan import Query
from noisette.query.schema import COLUMN_HEAD, Schema, Table, protected, shown
from noisette.query.units import in_words
from noisette.questions.contract import Offer, Question, StreamOffer, begin_instead
from noisette.questions.parts.chosen_limits import usual_numbers
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
    of the budget; a curator that is made for one asks for that one alone. `secret` keys the choice of rows where a unit
    has more than may count; `pin` says in which state the data are (see `pins`), anew for each question; `purchases`
    are those that were made before the ledger held them.
    """

    def __init__(
        self,
        source: Source,
        policy: Policy,
        schema: Schema,
        ledger: Ledger | None = None,
        *,
        secret: bytes | None = None,
        pin: Callable[[], str | None] | None = None,
        purchases: Iterable[Purchase] = (),
        cache: AnswerCache | None = None,
        analyst: str | None = None,
    ) -> None:
        self.policy = policy
        self.ledger: Ledger = Memory(policy.budget) if ledger is None else ledger
        self._source, self._pin, self._process = source, pin, here()
        self._secret = new_secret() if secret is None else secret
        self._shop, self._buying = Shop(schema, purchases), Locks()
        self._answers = AnswerCache() if cache is None else cache
        self._analyst = analyst

    @property
    def schema(self) -> Schema:
        """The tables as they are described: what the owner declares, and what was bought."""
        return self._shop.schema(self.ledger)

    @property
    def budget(self) -> Budget:
        """What is spent and what is left."""
        return Budget.of(self.ledger, self._analyst)

    def budget_of(self, analyst: str) -> Budget:
        """The same for an analyst: with that share alone, where the budget is shared out."""
        return Budget.of(self.ledger, self._who(analyst))

    def table(self, name: str) -> Frame:
        """A table, to be asked in Python: where, group_by, count."""
        return frame(self.schema, name, curator=self)

    def sql(self, text: str, *, spend: Spend | None = None, **options: Any) -> Release:
        """Ask in SQL; the options are those of `ask`."""
        return self.ask(text, spend=spend, **options)

    @overload
    def ask(self, question: list[Any], *, spend: Spend | None = None, **options: Any) -> list[Release]: ...
    @overload
    def ask(self, question: One, *, spend: Spend | None = None, **options: Any) -> Release: ...
    def ask(
        self,
        question: Any,
        *,
        spend: Spend | None = None,
        error: float | None = None,
        level: float = 0.95,
        analyst: str | None = None,
        cancel: Cancel | None = None,
        **how: Any,
    ) -> Any:
        """Answer a question, or several that are planned together, for what is to be spent.

        With `error` instead, noise is chosen that keeps the error and takes least of what is left, as `explain` says
        with the same options (`rows`, `delta`). `cancel` is an event, such as `threading.Event()`, that cancels it:
        before the charge it costs nothing, after it the answer is finished and kept (`cancelling`).
        """
        level_of(level)
        analyst = self._who(analyst)
        if hasattr(question, "stream"):
            raise InputError(begin_instead(question))
        if spend is None or error is not None or how:
            spend = self.explain(question, spend=spend, error=error, level=level, analyst=analyst, **how).spend
        promise, schema = self._promise(spend), self.schema
        check_cancelled(cancel)
        _, answers = self._answered(question_of(question, schema), schema, promise, level, analyst, cancel=cancel)
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
        """The cost and the error to expect; with `error`, the least cost for it. Reads nothing and spends nothing.

        Some errors depend on how many rows a group has: name a number of `rows` to solve for those. That of a quantile
        is counted in ranks. `delta` is one to spend beside an epsilon; without it, unknown keys take a hundredth of
        what the ledger has for them, and no more than the rules of the house admit.
        """
        if (spend is None) == (error is None):
            raise InputError("Say either what to spend or which error you can live with: spend=0.1 or error=50.")
        level_of(level)
        analyst = self._who(analyst)
        explained = self._explainer(question, level, SIZES if rows is None else (rows,), analyst)
        if spend is not None:
            return priced(explained(self._promise(spend)), self.ledger.standing(analyst), analyst)
        assert error is not None
        share = None if delta is None else fraction(delta, "delta")
        plannable(Approx(1, share or 0))
        key, admitted = partial(self._key, analyst=analyst, about=self._about()), partial(admissible, self.policy)
        most = most_delta(self.policy)
        return cheapest(explained, error, share, self.ledger, analyst, key=key, admitted=admitted, most=most)

    def stream(self, question: Any, *, spend: Spend, analyst: str | None = None) -> Any:
        """Begin a stream of questions, such as `Above`, or go on with it: all of it is charged, once."""
        if not hasattr(question, "stream"):
            raise InputError("Say what the stream is for: stream(Above(1000, positives=3), spend=0.5).")
        promise, analyst = self._promise(spend), self._who(analyst)
        check_stream(self.policy.rules)
        with usual_numbers():
            offer: StreamOffer[Any] = question.stream(self.schema, promise, self.policy.neighbours)
        self._check_process()
        about = None if offer.growing else self._about()
        key = self._key(offer, promise, analyst, about)
        if self.ledger.latest(Seal(self._secret, key).key) is None:
            admit(self.policy, self.ledger, Asking(offer.text, promise, analyst, key))
        line = begun(self.ledger, offer, key, self._secret, analyst=analyst, about=about)
        return offer.session(line, _Shell(self))

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
        price, asked, analyst = self._promise(spend), terms or Terms(), self._who(analyst)
        place = for_sale(self._shop.declared, what, name)
        self._check_process()
        with self._buying(repr(place)):
            old = self._shop.purchases(self.ledger).get(place)
            if old is not None and not again:
                return settled(old, price, asked.text)
            schema = self._shop.schema(self.ledger, without=place)
            wanted = question_of(purchase_question(schema, place, asked), schema)
            key, [answer] = self._answered(wanted, schema, price, 0.95, analyst, bought=True)
            new = Purchase(place, found(schema, place, answer), price, analyst, asked.text)
            self.ledger.record_purchase(key, new.body)
            return new

    # What the methods above share

    def _who(self, analyst: str | None) -> str | None:
        """Who asks: the one who is named, or for whom the data were opened; nobody asks for somebody else."""
        if analyst is not None and self._analyst not in (None, analyst):
            raise InputError(f"These data were opened for {self._analyst}: open them again for another analyst.")
        return self._analyst if analyst is None else analyst

    def _promise(self, spend: Spend) -> Promise:
        """What to spend as a promise that a plan can be made for; a bare number is a pure epsilon."""
        made = as_promise(spend)
        common(made.neighbours, self.policy.neighbours)
        plannable(made)
        return made

    def _answered(
        self,
        question: Question,
        schema: Schema,
        spend: Promise,
        level: float,
        analyst: str | None,
        *,
        bought: bool = False,
        cancel: Cancel | None = None,
    ) -> tuple[str, list[Release]]:
        """The key of a question and its answers: those that were drawn before, or else charge, then draw."""
        offer, rules = question.offer(schema, spend, self.policy.neighbours, level), self.policy.rules
        offer = offer if bought else kept(self.policy, offer)
        caveats = offer.caveats  # before anything is charged: they follow from declarations alone
        self._check_process()
        about = self._about()
        key = self._key(offer, spend, analyst, about)
        admit(self.policy, self.ledger, Asking(offer.text, spend, analyst, key))
        draw = partial(self._draw, offer, schema)
        drawn = self._answers.drawn(self.ledger, offer, key, draw, analyst=analyst, about=about, cancel=cancel)
        if rules.least_difference is not None:
            drawn = without_small_differences(self.ledger, offer.procedure, key, drawn, rules.least_difference)
        caveats = caveats if offer.found is None else offer.found(drawn)
        pairs = zip(offer.answers(drawn), caveats, strict=True)
        released = offer.value(drawn) if offer.value else None
        releases = [
            self._release(offer, spend, columns, level, sentences, released, about) for columns, sentences in pairs
        ]
        return key, recorded(self.ledger, key, releases)

    def _about(self) -> State | None:
        """The state of the data as they are now; None where nobody says how to find it."""
        return None if self._pin is None else self.ledger.pinned(self._pin())

    def _key(
        self, offer: Offer | StreamOffer[Any], spend: Promise, analyst: str | None = None, about: State | None = None
    ) -> str:
        """What names the question in the ledger; about data that nothing pins, no question has the name of another."""
        growing = not isinstance(offer, Offer) and offer.growing
        name = "" if about is None or growing else about.name
        asked = offer.text, repr(spend), str(self.policy.neighbours), analyst
        if name != UNPINNED or not isinstance(offer, Offer):
            return key_of(name, *asked)
        times = smallest(lambda n: self.ledger.answer(key_of(f"{name} {n}", *asked)) is None)
        return key_of(f"{name} {times}", *asked)

    def _check_process(self) -> None:
        """Refuse a copy of this curator that a fork made, before anything is charged; a lock may be held for ever."""
        if here() != self._process:
            raise PrivacyError(_FORKED)

    def _draw(self, offer: Any, schema: Schema) -> Any:
        return offer.draw(self._source, schema, self._secret)

    def _release(
        self,
        offer: Offer,
        spend: Promise,
        columns: Any,
        level: float,
        caveats: tuple[str, ...],
        released: Lasting | None,
        about: State | None,
    ) -> Release:
        """The release before it is recorded, which settles what is spent and left."""
        record = {
            "question": offer.text,
            "guarantee": repr(offer.guarantee),
            "neighbours": str(self.policy.neighbours),
            "unit": offer.unit,
            "mechanisms": offer.parts,
            **({} if about is None else {"state": about.name}),
            **({"rules": dict(offer.rules)} if offer.rules else {}),
        }
        budget, step = self.policy.budget, Fraction(offer.rules["rounding"]) if "rounding" in offer.rules else None
        columns, released = rounded(columns, step), released if step is None else None
        found = Release(columns, level, offer.guarantee, offer.unit, budget, budget, record, caveats, released)
        return replace(found, asked=spend)

    def _explainer(
        self, question: Any, level: float, sizes: tuple[int, ...], analyst: str | None
    ) -> Callable[[Promise], Explanation]:
        schema, rules, about = self.schema, self.policy.rules, self._about()
        if hasattr(question, "stream"):
            check_stream(rules)
        terms = question.stream if hasattr(question, "stream") else question_of(question, schema).offer

        def explained(spend: Promise) -> Explanation:
            offer = terms(schema, spend, self.policy.neighbours, level)
            offer = kept(self.policy, offer) if isinstance(offer, Offer) else offer
            allowed = self.ledger.allows(offer.guarantee, analyst=analyst)
            answers = tuple(widened(columns, rules.rounding) for columns in offer.expected(sizes))
            key = self._key(offer, spend, analyst, about)
            said = notes(self.policy, self.ledger, Asking(offer.text, spend, analyst, key))
            return Explanation(offer, spend, level, answers, offer.why, allowed, explained, said)

        return explained

    # For people: tables and budget, no data

    def __repr__(self) -> str:
        return "\n\n".join([*map(_block, self.schema.values()), repr(self.budget)])

    def _repr_html_(self) -> str:
        return as_html("", _HEAD, _overview(self.schema)) + self.budget._repr_html_()


class _Shell:
    """What a curator does for the questions of its streams."""

    def __init__(self, curator: Curator) -> None:
        self._curator = curator

    @property
    def schema(self) -> Schema:
        """The tables as they are described now."""
        self.check()
        return self._curator.schema

    def parsed(self, question: Any) -> tuple[Query, Schema]:
        """A question as a query, and the declarations it rests on."""
        schema = self.schema
        return query_of(question, schema), schema

    def check(self) -> None:
        """Refuse a process that a fork made."""
        self._curator._check_process()

    def draw(self, exact: Any, schema: Schema) -> Any:
        """Read the data."""
        return self._curator._draw(exact, schema)


def new_secret() -> bytes:
    """A key for the choice of rows."""
    return SYSTEM.bits(128).to_bytes(16, "big")


def _block(table: Table) -> str:
    """A table as it is declared, column by column."""
    return f"{table.name}: {protected(table)}\n{aligned(COLUMN_HEAD, [shown(column) for column in table.columns])}"


def _overview(schema: Schema) -> list[list[str]]:
    return [[name, _protects(table), ", ".join(c.name for c in table.columns)] for name, table in schema.items()]


def _protects(table: Table) -> str:
    return "nobody (public)" if table.public else in_words(table.unit) if table.unit else "each row"
