"""Calendar periods in which rows can lie: what conditions confine to some of them, and how many of them a key joins.

Of a table with a limit per period (`RowsPerPeriod`) at most `most` rows of one unit are retained in each period that
meets the bounds of its date. What computes with that date alone is looked at in one period after the other, by the
rules that hold for its operations (`kind_of`): a condition that can be true in p periods leaves p · most rows of a
unit; keys that are equal in at most k periods join at most k · most rows of it in one group. What is not certain is
possible.

Other columns are never looked at: a column may hold values that are none of its declared keys. Neither are real
numbers, whose rounding depends on bounds; years, months and days are whole numbers and exact.

Vocabulary: `span` the first and the last value of a period, days or microseconds since 1970 · `names` the columns of a
relation that are computed from the date alone, as expressions of it.
"""

import datetime
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from itertools import islice, product
from typing import TypeAlias

from noisette.errors import InputError
from noisette.query import moments
from noisette.query.expression import Call, Expression, Literal, Name, Operation, columns_of, replaced
from noisette.query.kind import Kind, Type, Value
from noisette.query.known import since_1970
from noisette.query.operations import declared, kind_of
from noisette.query.plan import Named
from noisette.query.requirements import moment
from noisette.query.schema import RowsPerPeriod
from noisette.query.variants import within

__all__ = ["MOST_PERIODS", "PERIODS", "Periods", "number_of_periods", "periods_of"]

PERIODS = moments.UNITS[:5]
"""What a limit can be per: year, quarter, month, week, day."""

MOST_PERIODS = 10_000
"""So many of them meet the bounds of a date, at most: the days of 27 years."""

_AT, _DAY = "at", "day"
_LISTED = 40_000  # days between the bounds whose values are listed one by one
_MICROSECONDS = 86_400_000_000

Span: TypeAlias = tuple[int, int]
Scope: TypeAlias = Mapping[str, Kind]


@dataclass(frozen=True)
class Periods:
    """The periods in which rows of a relation can lie, with at most `most` rows of one unit in each of them.

    >>> from noisette.query.schema import RowsPerPeriod
    >>> days = Kind("date", Fraction(18262), Fraction(19100))  # 2020-01-01 to 2022-04-18
    >>> found = periods_of(days, RowsPerPeriod(8, "year", "d"), "t.d")
    >>> year = Call("year", (Name("t.d"),))
    >>> found.total, found.where(Call("equal", (year, Literal(2021)))).total, found.spread((year,))
    (24, 8, (3, 8))
    """

    most: int
    type: Type
    spans: tuple[Span, ...]
    names: Mapping[str, Expression] = field(hash=False)

    @property
    def total(self) -> int:
        """The most rows of one unit."""
        return self.most * len(self.spans)

    def times(self, copies: int) -> "Periods":
        """The same where each row is there so many times."""
        return replace(self, most=self.most * copies)

    def of(self, columns: Sequence[Named]) -> "Periods":
        """The same under other columns."""
        made = {name: replaced(e, self.names) for name, e in columns if self._of_date(e)}
        return replace(self, names=made)

    def where(self, condition: Expression) -> "Periods":
        """The periods in which a condition can be true, and one of them where it cannot."""
        if not self.names.keys() & set(columns_of(condition)):
            return self
        test = self._test(condition)
        return replace(self, spans=tuple(s for s in self.spans if test(self._scope(s), True)) or self.spans[:1])

    def spread(self, keys: Sequence[Expression]) -> tuple[int, int]:
        """In how many groups one unit can be, and how many rows it can have in one of them."""
        found = [self._values(key) for key in keys]
        together = [_together(kinds) for kinds in found if kinds is not None]
        groups = self._groups(found)
        known = set().union(*(there for there in groups if there is not None))
        return len(known) + self.most * groups.count(None), self.most * min(together, default=len(self.spans))

    def per_unit(self, keys: Sequence[Named]) -> "Periods":
        """The same where a unit has one row for each combination of keys: each stands for one of the unit's rows."""
        groups = self._groups([self._values(e) for _, e in keys])
        return replace(self, most=max(self.most if there is None else len(there) for there in groups)).of(keys)

    def _groups(self, found: Sequence[Sequence[Kind] | None]) -> list[set[tuple[Value, ...]] | None]:
        """For each period the groups of its rows; None where they are not known, or more than a unit has rows."""
        groups: list[set[tuple[Value, ...]] | None] = []
        for i in range(len(self.spans)):
            listed = [None if kinds is None else _listed(kinds[i], self.most) for kinds in found]
            values = [each for each in listed if each is not None]
            there = set(islice(product(*values), self.most + 1))
            groups.append(there if len(values) == len(listed) and len(there) <= self.most else None)
        return groups

    # One period

    def _of_date(self, e: Expression) -> bool:
        return set(columns_of(e)) <= self.names.keys()

    def _own(self, e: Expression) -> Expression | None:
        """An expression of the date alone that computes with no real number; None if it is something else."""
        if not self._of_date(e):
            return None
        made = replaced(e, self.names)
        made = _by_day(made) if self.type == "timestamp" else made
        hull = _scope(self.type, self.spans[0][0], self.spans[-1][1], listed=False)
        return None if _computes_reals(made, hull) else made

    def _scope(self, span: Span) -> Scope:
        day = 1 if self.type == "date" else _MICROSECONDS
        listed = (self.spans[-1][1] - self.spans[0][0]) // day < _LISTED
        return _scope(self.type, *span, listed=listed)

    def _values(self, e: Expression) -> list[Kind] | None:
        """What an expression can be in each period; None if that is not known."""
        own = self._own(e)
        if own is None:
            return None
        found = [_kind(own, self._scope(span)) for span in self.spans]
        return None if None in found else [kind for kind in found if kind is not None]

    def _test(self, e: Expression) -> "Callable[[Scope, bool], bool]":
        """Whether a condition can be true, or false, in a period."""
        match e:
            case Call("and" | "or", arguments):
                parts = [self._test(part) for part in arguments]
                every = e.operation == "and"
                return lambda at, want: (all if every == want else any)(part(at, want) for part in parts)
            case Call("not", (inner,)):
                test = self._test(inner)
                return lambda at, want: test(at, not want)
            case Call(operation, arguments) if operation in _OPPOSITE or operation == "in":
                sides = [self._own(side) for side in arguments]
                own = [side for side in sides if side is not None]
                if len(own) == len(sides):
                    return lambda at, want: _compared(operation, [_kind(side, at) for side in own], want)
        return lambda at, want: True


def periods_of(kind: Kind, rule: RowsPerPeriod, name: str) -> Periods:
    """The periods that meet the bounds of a date, under the names it has in a relation: rows beyond are left out."""
    low, high = declared(kind).ends
    starts = _starts(kind, rule.per)
    assert starts is not None
    begin = [max(int(since_1970(at)), int(low)) for at in starts]
    ends = [at - 1 for at in begin[1:]] + [int(high)]
    return Periods(
        rule.most, kind.type, tuple(zip(begin, ends, strict=True)), {name: Name(_AT), within(name): Name(_AT)}
    )


def number_of_periods(kind: Kind, per: str) -> int | None:
    """How many periods meet the bounds of a date; None if they are too many.

    >>> number_of_periods(Kind("date", Fraction(18261), Fraction(18262)), "year")  # 2019-12-31 and 2020-01-01
    2
    """
    starts = _starts(kind, per)
    return None if starts is None else len(starts)


def _starts(kind: Kind, per: str) -> list[datetime.date] | None:
    low, high = (moment(end, kind.type) for end in declared(kind).ends)
    return moments.firsts(per, low, high, MOST_PERIODS)


@lru_cache(maxsize=MOST_PERIODS)
def _scope(type: Type, low: int, high: int, *, listed: bool) -> Scope:
    """What is known of the date, and of a timestamp's day, in one period."""
    first, last = (low, high) if type == "date" else (low // _MICROSECONDS, high // _MICROSECONDS)
    days = range(first, last + 1) if listed else ()
    keys = tuple(datetime.date(1970, 1, 1) + datetime.timedelta(day) for day in days) or None
    day = Kind("date", Fraction(first), Fraction(last), keys=keys, nullable=False)
    return {_AT: day if type == "date" else Kind(type, Fraction(low), Fraction(high), nullable=False), _DAY: day}


_PARTS = frozenset(("year", "quarter", "month", "week", "day", "day_of_year", "weekday", "day_number"))


def _by_day(e: Expression) -> Expression:
    """The same of a timestamp's day, wherever it depends on that alone: days can be listed."""
    at, day = Name(_AT), Name(_DAY)
    match e:
        case Call("as_date", (one,)) if one == at:
            return day
        case Call(operation, (one,)) if one == at and operation in _PARTS:
            return Call(operation, (day,))
        case Call("date_trunc", (Literal(unit), one)) if one == at and unit in PERIODS:
            return Call("as_timestamp", (Call("date_trunc", (Literal(unit), day)),))
        case Call("strftime", (one, Literal(str(form)))) if one == at and moments.finest(form) in (None, *PERIODS):
            return Call("strftime", (day, Literal(form)))
        case Call(operation, arguments):
            return Call(operation, tuple(map(_by_day, arguments)))
        case _:
            return e


def _kind(e: Expression, scope: Scope) -> Kind | None:
    try:
        return kind_of(e, scope)
    except InputError:  # of what is nested too deeply once names are replaced
        return None


def _computes_reals(e: Expression, scope: Scope) -> bool:
    if not isinstance(e, Call):
        return False
    kind = _kind(e, scope)
    return kind is None or kind.type == "real" or any(_computes_reals(part, scope) for part in e.arguments)


# What values have in common


def _together(kinds: Sequence[Kind]) -> int:
    """In how many periods a key can have one and the same value."""
    unknown = sum(kind.nullable for kind in kinds)
    if all(kind.keys is not None for kind in kinds):
        return max(unknown, *Counter(key for kind in kinds for key in kind.keys or ()).values(), 1)
    ends = [_ends(kind) for kind in kinds]
    if None in ends:
        return len(kinds)
    steps = sorted(step for low, high in filter(None, ends) for step in ((low, -1), (high, 1)))
    count = most = 0
    for _, step in steps:  # what begins comes before what ends at the same value
        count -= step
        most = max(most, count)
    return max(unknown, most)


def _listed(kind: Kind, most: int) -> tuple[Value, ...] | None:
    """All values of a key in a period; None where they are not known, or more than a unit has rows."""
    return None if kind.count is None or kind.count > most else kind.values()


def _ends(kind: Kind) -> tuple[Fraction, Fraction] | None:
    return kind.ends if kind.bounded and kind.type != "text" else None


_OPPOSITE: Mapping[Operation, Operation] = {
    "equal": "unequal",
    "unequal": "equal",
    "less": "at_least",
    "at_least": "less",
    "more": "at_most",
    "at_most": "more",
}


def _compared(operation: Operation, kinds: Sequence[Kind | None], want: bool) -> bool:
    """Whether a comparison can be true, or false; `in` compares the first with each of the others."""
    a, *others = kinds
    if operation == "in":
        return (any if want else all)(_compared("equal", (a, other), want) for other in others)
    b = others[0]
    if a is None or b is None or (a.type != b.type and not (a.number and b.number)):
        return True
    done = operation if want else _OPPOSITE[operation]
    if done == "equal" and a.keys is not None and b.keys is not None:
        return not set(a.keys).isdisjoint(b.keys)
    if done == "unequal" and a.keys is not None and b.keys is not None:
        return len({*a.keys, *b.keys}) > 1
    ends, far = _ends(a), _ends(b)
    if ends is None or far is None:
        return True
    (low, high), (least, most) = ends, far
    possible = {
        "equal": low <= most and least <= high,
        "unequal": not low == high == least == most,
        "less": low < most,
        "at_most": low <= most,
        "more": high > least,
        "at_least": high >= least,
    }
    return possible[done]
