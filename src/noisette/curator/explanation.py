"""What a question would cost and how far off its answers would be: read off the offer, before anything is paid."""

import math
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from noisette.answers.figures import failure, percent, promise, promised, rounded
from noisette.answers.record import laid_out, stated
from noisette.curator.pricing import MOST, alone, how_often, least_spends
from noisette.ledger import Ledger
from noisette.ledger.accounts import ALL, Standing
from noisette.privacy import ZCDP, Promise
from noisette.query.expected import Expected
from noisette.questions.contract import Offer, StreamOffer
from noisette.text import as_html

if TYPE_CHECKING:
    from pathlib import Path

    from noisette.charts import Chart

__all__ = ["Explanation", "Prices", "cheapest", "priced"]

_SPAN, _POINTS = 16.0, 17  # a chart goes from a sixteenth of what is spent to sixteen times it
_WIDTH = 100
_DRAWN = 1_000  # rows of the group whose error is drawn, where it depends on that


class Prices(NamedTuple):
    """Both prices of a question: epsilon and delta if nothing else were ever asked, and how many like it fit now."""

    epsilon: float
    delta: Fraction
    more: int

    def __str__(self) -> str:
        at = f" at δ = {rounded(self.delta, up=True, digits=3)}" if self.delta and self.epsilon else ""
        fit = f"more than {MOST:,}" if self.more >= MOST else f"about {self.more:,}" if self.more else "none"
        return f"alone ε = {rounded(self.epsilon, up=True, digits=4)}{at} · {fit} like it fit into what is left"


@dataclass(frozen=True, repr=False)
class Explanation:
    """The error to expect of each column, the cost, and what is taken for granted; nothing was read or spent.

    `answers` holds for each question its columns · `allowed` says whether the budget still holds the cost · `rules`
    what the rules of the house say about the spend · `prices` what it would cost alone, and how many like it fit into
    what is left.
    """

    offer: Offer | StreamOffer[Any]
    spend: Promise
    level: float
    answers: tuple[tuple[Expected, ...], ...]
    why: str
    allowed: bool
    again: Callable[[Promise], "Explanation"]
    rules: tuple[str, ...] = ()
    prices: Prices | None = None

    @property
    def columns(self) -> tuple[Expected, ...]:
        """The columns of all answers."""
        return tuple(column for columns in self.answers for column in columns)

    @property
    def error(self) -> float:
        """The widest half-width that holds for every group, in ranks for quantiles; infinite if it depends on rows."""
        return max((_known(column) for column in self.columns), default=0.0)

    def plot(self, path: "str | Path | None" = None) -> "Chart":
        """Draw the error of each column against epsilon; with a path it is saved, which needs the extra `plot`."""
        from noisette.charts.curves import forecast

        factors = [_SPAN ** (2 * i / (_POINTS - 1) - 1) for i in range(_POINTS)]
        along = [self.again(self.spend.share(f"{factor:.4g}", delta=1)) for factor in factors]
        size = float(self.spend.size)
        lines = {
            name: [one.columns[i].by_size.get(rows, math.nan) if rows else one.columns[i].half_width for one in along]
            for i, (name, rows) in enumerate(_lines(self.columns))
        }
        known = {name: [math.nan if w is None else w for w in line] for name, line in lines.items()}
        symbol = "ρ" if isinstance(self.spend, ZCDP) else "ε"
        note = f"for each {self.offer.unit} · {percent(self.level)} error bars"
        chart = forecast([size * f for f in factors], known, now=size, symbol=symbol, note=note)
        return chart if path is None else chart.save(path)

    def _headline(self) -> str:
        full = "" if self.allowed else " · the budget does not hold this cost any more"
        rare = failure(getattr(self.offer, "rules", {}))
        return f"{promise(promised(self.offer.guarantee, self.spend))}{rare} · {percent(self.level)} error bars{full}"

    @property
    def _prices(self) -> list[str]:
        return [] if self.prices is None else [str(self.prices)]

    @property
    def caveats(self) -> tuple[tuple[str, ...], ...]:
        """What each answer leaves out before any noise, in the sentences that will stand below it."""
        return tuple(self.offer.caveats)

    def to_json(self) -> str:
        """All of it as JSON, with exact numbers as texts; what cannot be known before is null."""
        return laid_out(
            {
                "spend": stated(self.spend),
                "guarantee": stated(self.offer.guarantee),
                "allowed": self.allowed,
                "prices": None if self.prices is None else self.prices._asdict() | {"delta": str(self.prices.delta)},
                "level": self.level,
                "unit": self.offer.unit,
                "why": self.why,
                "rules": self.rules,
                "caveats": self.caveats,
                "questions": [[_record(column) for column in columns] for columns in self.answers],
            }
        )

    def __repr__(self) -> str:
        names = max((len(column.name) for column in self.columns), default=0)
        common, several = _common(self.columns), len(self.answers) > 1
        once = len(set(self.caveats)) == 1
        lines = [self._headline(), *self._prices, ""]
        for i, (columns, caveats) in enumerate(zip(self.answers, self.caveats, strict=True), 1):
            lines += [f"question {i}", ""] if several else []
            for column in columns:
                lines += [*_block(column, names, self.offer.unit, common), ""]
            lines += [] if once or not caveats else [*_all_wrapped(caveats), ""]
        notes = [*(f"everywhere {note}" for note in common), *(self.caveats[0] if once else ()), self.why, *self.rules]
        return "\n".join([*lines, *_all_wrapped(notes)])

    def _repr_html_(self) -> str:
        head = ["column", "error bar", "noise", f"one {self.offer.unit} can change", "it rests on"]
        rows = [
            [c.name, width(c), c.mechanism, c.sensitivity, "; ".join(filter(None, [c.warning, c.assumes]))]
            for c in self.columns
        ]
        said = dict.fromkeys(sentence for caveats in self.caveats for sentence in caveats)
        return as_html(self._headline(), head, rows, [*self._prices, *said, self.why, *self.rules])


def _known(column: Expected) -> float:
    known = column.ranks if column.half_width is None else column.half_width
    return math.inf if known is None else known


def _record(column: Expected) -> dict[str, Any]:
    return {
        "column": column.name,
        "half_width": column.half_width,
        "half_width_by_rows": {str(rows): width for rows, width in column.by_size.items()},
        "ranks": column.ranks,
        "mechanism": column.mechanism,
        "sensitivity": column.sensitivity,
        "assumes": column.assumes,
        "warning": column.warning,
        **({"by_limit": {name: _record(one) for name, one in column.by_limit.items()}} if column.by_limit else {}),
    }


def _all_wrapped(notes: Sequence[str]) -> list[str]:
    return [line for note in notes for line in _wrapped(note, 2)]


def _common(columns: tuple[Expected, ...]) -> list[str]:
    """What all columns take for granted, if there are several: it is printed once."""
    first, *others = [column.assumes.split("; ") for column in columns] or [[]]
    return [note for note in first if note and others and all(note in other for other in others)]


def _block(column: Expected, names: int, unit: str, common: list[str]) -> Iterator[str]:
    """A column, its error bar, and below it what that rests on."""
    yield from _wrapped(f"{column.name.ljust(names)}  {width(column)}", names + 2)
    changes = [
        f"one {unit} can change {part.replace(': ', ' by ', 1)}" for part in column.sensitivity.split("; ") if part
    ]
    own = [note for note in column.assumes.split("; ") if note and note not in common]
    warning = f"warning: {column.warning}" if column.warning else ""
    limits = [f"{width(one)} at a limit of {name}" for name, one in column.by_limit.items()]
    for line in filter(None, [warning, *limits, *column.mechanism.split("; "), *changes, *own]):
        yield from _wrapped(" " * (names + 2) + line, names + 4)


def _wrapped(line: str, indent: int) -> list[str]:
    return textwrap.wrap(line, _WIDTH, subsequent_indent=" " * indent, drop_whitespace=True, break_on_hyphens=False)


def width(column: Expected) -> str:
    """An error bar in a few words.

    >>> width(Expected("age", "", "", None, {100: 5.4, 1000: 0.54}, None, ""))
    'about ± 540 / rows (± 5.4 at 100 rows, ± 0.54 at 1,000)'
    >>> width(Expected("age", "", "", None, {100: math.inf, 1000: 0.54}, None, ""))
    'no answer at 100 rows, ± 0.54 at 1,000'
    >>> width(Expected("age", "", "", None, {100: math.inf, 1000: math.inf}, None, ""))
    'no answer at 100 rows, no answer at 1,000'
    """
    if column.by_limit:
        ends = [width(one) for one in column.by_limit.values()]
        return f"{ends[0]} to {ends[-1]}, depending on the limit that is chosen"
    if column.half_width is not None:
        return f"± {_short(column.half_width)}"
    if column.ranks is not None:
        return f"± {_short(column.ranks)} ranks"
    if not column.by_size:
        return "cannot be known before"
    sizes = sorted(column.by_size.items())
    known = [f"{f'± {_short(e)}' if math.isfinite(e) else 'no answer'} at {rows:,}" for rows, e in sizes]
    known[0] += " rows"
    *_, before, last = [0.0, 0.0, *(rows * error for rows, error in sizes if math.isfinite(error))]
    if last and abs(last - before) <= 0.05 * last:  # in large groups it falls as 1 / rows
        return f"about ± {_short(last)} / rows ({known[0]}, {known[-1]})"
    return ", ".join(known)


def _short(number: float) -> str:
    """Three digits, or all of a whole number.

    >>> _short(0.05391), _short(1234567.8)
    ('0.0539', '1,234,568')
    """
    return f"{number:,.0f}" if number >= 100 or number == int(number) else f"{number:.3g}"


def _lines(columns: tuple[Expected, ...]) -> Iterator[tuple[str, int | None]]:
    """What is drawn of each column: its name, and the rows of the group where the error depends on that."""
    for column in columns:
        if column.half_width is not None or not column.by_size:
            yield column.name, None
        else:
            rows = min(column.by_size, key=lambda n: abs(math.log(n / _DRAWN)))
            yield f"{column.name} of {rows:,} rows", rows


def priced(found: Explanation, standing: Standing, analyst: str | None) -> Explanation:
    """The explanation with both prices: alone at the delta of the budget, and from what is left of it."""
    cost = found.offer.guarantee
    more = how_often(partial(standing.allows, analyst=analyst), cost)
    return replace(found, prices=Prices(*alone(cost, standing.accounts[ALL].budget.delta), more))


def cheapest(
    explained: Callable[[Promise], Explanation],
    error: float,
    delta: Fraction | None,
    ledger: Ledger,
    analyst: str | None,
    *,
    key: Callable[[Any, Promise], str],
    admitted: Callable[[Promise], bool],
    most: Fraction | None = None,
) -> Explanation:
    """The explanation of the spend that keeps an error and takes least of what is left.

    Which spends are compared depends on question and budget alone; if one of them was answered before, it is free, and
    what the rules of the house admit goes before what they do not. They admit a delta of `most`, if that is limited.
    """
    standing = ledger.standing(analyst)
    account = standing.accounts[ALL]
    own = account.parts.own * account.budget.delta
    width = lambda spend: explained(spend).error  # noqa: E731
    spends = least_spends(width, error, budget=account.budget, delta=delta, keys_delta=own, most_delta=most)
    found = [priced(explained(spend), standing, analyst) for spend in spends]
    free = [one for one in found if ledger.answer(key(one.offer, one.spend)) is not None]
    usable = free or [one for one in found if admitted(one.spend)] or found
    best, *others = sorted(usable, key=_room, reverse=True)
    said = [f"{promise(one.spend)} fits {one.prices.more:,} times" for one in others if one.prices]
    least = f" It takes least of what is left: for the same error, {' and '.join(said)}." if said else ""
    return replace(best, why=best.why + least)


def _room(one: Explanation) -> tuple[int, float]:
    """How often it fits; of those that fit equally often, which are large, the least epsilon alone comes first."""
    return (one.prices.more, -one.prices.epsilon) if one.prices else (0, 0.0)
