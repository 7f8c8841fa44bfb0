"""The best of several private answers: each can be asked by itself, and the one with the highest score is released.

A number K of runs is drawn in secret. Each run draws one of the candidates evenly and asks it for a part of the price;
of the K answers the one with the highest score is released, the others are forgotten (`BestOf`). A run is private, and
so is a candidate that is drawn evenly, so it costs what `BestOf` states: less than three runs, however many there are.
[Liu-Talwar 2019, Papernot-Steinke 2022]

K must stay secret, and time would reveal it. So there is always the same number of runs, and those after the first K
are thrown away; K is larger than that once in a thousand million times, and then it takes longer. What engines compute
is kept between runs. Candidates that take different times show how often each was drawn, which no guarantee covers: let
them be alike, or answer on a fixed schedule.

Error bars hold after the choice, too: bars of single runs are made so wide that, with the stated probability, none of
all K misses. Their misses add up to E K = `runs` times one.

Vocabulary: `runs` how many to expect · `always` how many there are · `label` what a candidate is called.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

import pyarrow

from noisette.answers import Column
from noisette.engines.contract import Source
from noisette.errors import InputError
from noisette.exact.number import Number, positive
from noisette.exact.random import Random
from noisette.mechanisms import BestOf
from noisette.privacy import Neighbours, Promise, Pure
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.design import recorded
from noisette.query.expected import Expected
from noisette.query.frame import Asked
from noisette.query.measure import Exact, Measure, Request
from noisette.query.plan import Query, Relation
from noisette.query.schema import Schema, Table
from noisette.questions.contract import Offer, Question, begin_instead
from noisette.questions.data import JsonQuestion, from_data
from noisette.questions.parts.chosen_limits import WithinLimits
from noisette.questions.parts.queries import Queries, measuring, query_of, query_text
from noisette.questions.sql import Sql
from noisette.sandbox.running import bar

__all__ = ["Best"]

Label: TypeAlias = str | int

_MOST = 1_000  # candidates
_MOST_RUNS = 100_000
_EACH = 20  # runs for each candidate, if nothing else is said: one is left out once in twenty times
_LONGER = 2.0**-30  # the chance that it takes longer
_BITS = 40


@dataclass(frozen=True)
class Best(JsonQuestion):
    """The answer with the highest number in the column `by`, of candidates that are questions, and which one it is.

    Candidates are SQL, questions made with a table's methods, or values such as Apply(...), in a list or by name. Each
    gives one row, for a pure epsilon. There are about `runs` private runs, each of a candidate that is drawn evenly.

    >>> cut = "SELECT COUNT(*) - {0} AS score FROM visits WHERE age >= {0}"
    >>> Best({f"from {age}": cut.format(age) for age in (18, 30, 65)}, by="score").runs
    Fraction(60, 1)
    """

    candidates: tuple[tuple[Label, Any], ...]
    by: str
    runs: Fraction

    def __init__(self, candidates: Mapping[str, Any] | Iterable[Any], *, by: str, runs: Number | None = None) -> None:
        if not isinstance(candidates, Iterable) or isinstance(candidates, str | bytes):
            raise InputError("Name candidates as a list, or as a dictionary of names and questions.")
        named = candidates.items() if isinstance(candidates, Mapping) else enumerate(candidates)
        found = tuple((label, _asked(one)) for label, one in named)
        if not 2 <= len(found) <= _MOST:
            raise InputError(f"Name between 2 and {_MOST:,} candidates.")
        if not isinstance(by, str) or not by:
            raise InputError("by must be the name of the column that holds the score of a candidate.")
        if isinstance(candidates, Mapping) and not all(isinstance(label, str) for label, _ in found):
            raise InputError("Names of candidates must be texts.")
        object.__setattr__(self, "candidates", found)
        object.__setattr__(self, "by", by)
        object.__setattr__(self, "runs", _runs(_EACH * len(found) if runs is None else runs))

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """Make the offers of all candidates for the price of one run."""
        most = BestOf.calibrated(spend, scale=self.runs)
        mechanism = BestOf(self.runs, each=Fraction(math.floor(most.each * 2**_BITS), 2**_BITS))
        kept, surer = Pure(mechanism.each), 1 - (1 - level) / float(self.runs)
        offers = [
            (label, WithinLimits(_question(one, schema)).offer(schema, kept, neighbours, surer))
            for label, one in self.candidates
        ]
        for _, offer in offers:
            _check(offer, self.by, Pure(mechanism.each, neighbours=neighbours))
        named = sorted(offers, key=lambda one: (str(one[0]), one[1].text))  # as the text has them: places are kept
        unit = Sensitivity(1, 1, 1, 1, neighbours=neighbours)  # what it can move is in each run's price
        parts = recorded(mechanism, Measure("units"), unit)
        return Offer(
            self._text(named),
            mechanism.guarantee(unit),
            " and ".join(sorted({offer.unit for _, offer in named})),
            "The best of a secret number of runs costs less than three of them, however many there are.",
            [{**parts, "candidates": {str(label): offer.parts for label, offer in named}}],
            [_caveats([offer for _, offer in named])],
            Runs(tuple(named), self.by, mechanism, level),
        )

    def _text(self, offers: list[tuple[Label, Offer]]) -> str:
        """What all candidates measure, and how they are scored: that decides which one is the best."""
        asked = [(str(label), offer.text, _scored(offer, self.by)) for label, offer in offers]
        return json.dumps({"question": f"best of about {self.runs}", "by": self.by, "asked": asked})

    def fields(self) -> Any:
        """The fields, with candidates by name if they have names."""
        named = [label for label, _ in self.candidates] != list(range(len(self.candidates)))
        candidates = dict(self.candidates) if named else [one for _, one in self.candidates]
        runs = {} if self.runs == _EACH * len(self.candidates) else {"runs": self.runs}
        return {"candidates": candidates, "by": self.by, **runs}


def _runs(runs: Number) -> Fraction:
    return positive(runs, "runs", least=Fraction(1), most=_MOST_RUNS)


def _asked(one: Any) -> Any:
    """A candidate as it is kept: SQL as a text, JSON as the question that it describes."""
    if isinstance(one, dict):
        one = from_data(one)
    if isinstance(one, Sql):
        return one.text
    if isinstance(one, str | Query | Asked):
        return query_text(one)
    if hasattr(one, "stream"):
        raise InputError(begin_instead(one))
    if not hasattr(one, "offer"):
        raise InputError("A candidate must be a question: SQL, one made with a table's methods, or a value.")
    return one


def _question(asked: Any, schema: Schema) -> Question:
    if isinstance(asked, str | Query):
        return Queries((query_of(asked, schema),))
    return asked  # type: ignore[no-any-return]


def _check(offer: Offer, by: str, kept: Pure) -> None:
    if not offer.guarantee <= kept:
        raise InputError("Each candidate must keep a pure epsilon: this one does not.")
    queries = measuring(offer.procedure)
    if queries is not None and any(one.query.keys for one in queries.prepared):
        raise InputError("A candidate must give one row: leave GROUP BY out.")
    names = [column.name for column in offer.expected()[0]]
    if by not in names:
        raise InputError(f"The answer of a candidate has no number {by}: it has {', '.join(names)}.")


def _caveats(offers: list[Offer]) -> tuple[str, ...]:
    """What any of the candidates leaves out, each sentence once."""
    found = dict.fromkeys(sentence for offer in offers for sentence in offer.caveats[0])
    return tuple(sorted(found, key=lambda sentence: sentence.startswith(("±", "The owner"))))


def _scored(offer: Offer, by: str) -> str:
    """What a query does with its numbers to get the score; its text has the numbers alone."""
    queries = measuring(offer.procedure)
    if queries is None:
        return ""
    return repr([(dict(q.query.outputs)[by], q.query.having, q.query.limit) for q in queries.prepared])


@dataclass(frozen=True)
class Runs:
    """The offers of all candidates, one of which is drawn from, again and again."""

    offers: tuple[tuple[Label, Offer], ...]
    by: str
    mechanism: BestOf
    level: float

    @property
    def always(self) -> int:
        """How many runs there are."""
        if self.mechanism.scale == 1:
            return 1
        return math.ceil(math.log(_LONGER) / math.log1p(-float(self.mechanism.gamma)))

    def expected(self, sizes: tuple[int, ...]) -> list[tuple[Expected, ...]]:
        """What to expect of the score: that of the candidate with the widest error bar."""
        scores = [next(c for c in offer.expected(sizes)[0] if c.name == self.by) for _, offer in self.offers]
        widest = max(scores, key=_width)
        better, runs = self.mechanism.interval(self.level), float(self.mechanism.scale)
        how = f"the best of about {runs:,.4g} runs, each by {widest.mechanism}"
        note = f"at most {better:.0%} of single runs would score higher; {widest.assumes}".rstrip("; ")
        return [(replace(widest, mechanism=how, assumes=note),)]

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random) -> pyarrow.Table:
        """Run as many times as ever, and keep the best of the first K."""
        once, progress = _Once(source), bar(self.always, what="runs")
        runs = 0

        def run(rng: Random) -> tuple[float, tuple[int, Any]]:
            nonlocal runs
            runs += 1
            which = rng.below(len(self.offers))
            offer = self.offers[which][1]
            drawn = offer.draw(once, schema, secret, rng)
            if runs <= self.always:  # more there are once in a thousand million times
                progress(runs)
            return _score(offer.answers(drawn)[0], self.by), (which, drawn)

        _, (which, drawn) = self.mechanism(run, rng)
        while runs < self.always:
            run(rng)
        return pyarrow.table({"best": [which], "answer": [self.offers[which][1].pack(drawn)]})

    def answers(self, drawn: pyarrow.Table) -> list[tuple[Column, ...]]:
        """Which candidate is best, and its answer."""
        [row] = drawn.to_pylist()
        label, offer = self.offers[row["best"]]
        [columns] = offer.answers(offer.unpack(row["answer"]))
        name = "candidate" if any(column.name == "best" for column in columns) else "best"
        return [(Column(name, pyarrow.array([label])), *columns)]


def _width(column: Expected) -> float:
    return column.half_width or column.ranks or max(column.by_size.values(), default=math.inf)


def _score(columns: tuple[Column, ...], by: str) -> float:
    """The score of an answer; what is no number, or not one, is worse than all: an error would tell of a run."""
    found = [value for column in columns if column.name == by for value in column.values.to_pylist()]
    if len(found) != 1 or isinstance(found[0], bool) or not isinstance(found[0], int | float) or math.isnan(found[0]):
        return -math.inf
    return found[0]


class _Once(Source):
    """A source that computes everything once."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._kept: dict[Any, Any] = {}

    def _known(self, key: Any, compute: Callable[[], Any]) -> Any:
        if key not in self._kept:
            self._kept[key] = compute()
        return self._kept[key]

    def aggregate(self, request: Request, schema: Schema, secret: bytes) -> Exact:
        """The exact measures."""
        limits = tuple((name, table.limits) for name, table in sorted(schema.items()))
        found: Exact = self._known((request, limits), lambda: self._source.aggregate(request, schema, secret))
        return found

    def rows(self, relation: Relation, columns: Mapping[str, str], schema: Schema, secret: bytes) -> pyarrow.Table:
        """Columns of a relation."""
        key = relation, tuple(columns.items()), tuple((name, table.limits) for name, table in sorted(schema.items()))
        return self._known(key, lambda: self._source.rows(relation, columns, schema, secret))

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        return self._source.tables

    def stored(self, table: str) -> dict[str, str]:
        """The columns of a table."""
        return self._source.stored(table)

    def repeats(self, table: Table) -> dict[str, int]:
        """For each column of a public table, in how many rows one value stands, at most."""
        return self._source.repeats(table)

    def unique(self, table: Table, columns: Sequence[str]) -> bool:
        """Whether no two rows have equal values in the columns."""
        return self._source.unique(table, columns)


_CUT = "SELECT SUM({0}) AS score, AVG(age) AS age FROM visits WHERE age < {0}"

examples = [
    Best({f"below {age}": _CUT.format(age) for age in (30, 60)}, by="score", runs=2),
    Best([{"order_statistic": {"column": "age"}}, {"order_statistic": {"column": "age", "q": 1}}], by="value", runs=2),
]
