"""What a question leaves out before any noise: sentences that explanations, answers, statements and records share.

Error bars cover the noise. They do not cover rows that contribution bounding drops, values beyond their
declared bounds, or groups whose keys are not declared. Each sentence is read off the request that the engine computes
(`Request.limits`, the declared kinds of the columns that it reads, its domains), so that it cannot say anything else.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from noisette.answers.figures import bound, promise
from noisette.answers.figures import rounded as figure
from noisette.mechanisms import Keep, Threshold
from noisette.privacy import Guarantee
from noisette.query.expression import Call, Expression, Name, Operation
from noisette.query.frequency import MinimumFrequency
from noisette.query.kind import Kind
from noisette.query.operations import declared, kind_of
from noisette.query.plan import Copies, Join, PerUnit, Query, Relation, Scan, Select, Where, aggregates_in
from noisette.query.prepare import Prepared
from noisette.query.requirements import moment
from noisette.query.rules import case_parts
from noisette.query.schema import Limits
from noisette.query.shape import RetainedPerPeriod, Shape
from noisette.query.uses import Use, Uses, impossible, uses_of_query

__all__ = [
    "NOISE",
    "Omission",
    "beyond_bounds",
    "caveats",
    "incomplete",
    "minimum_frequency",
    "omissions",
    "retained",
    "selected",
    "sentences",
    "small_groups",
]

NOISE = "± covers the noise only"
"""What error bars of added noise cover."""

_RAISE, _WIDEN, _DECLARE = "raise the limits", "widen the bounds", "declare more keys"


@dataclass(frozen=True)
class Omission:
    """A sentence about what is left out or moved, and what the owner can do about it in the policy, if anything."""

    sentence: str
    cure: str = ""


def caveats(prepared: Iterable[Prepared], covers: str = NOISE) -> tuple[str, ...]:
    """The sentences that go with an answer to these queries; `covers` says what ± covers, or is empty without bars.

    >>> sentences([Omission("At most 8 rows of each patient are used; further rows are left out.", _RAISE)], NOISE)[1]
    '± covers the noise only, not what this leaves out; the owner can raise the limits in the policy.'
    """
    return sentences([part for one in prepared for part in omissions(one)], covers)


def sentences(found: Iterable[Omission], covers: str) -> tuple[str, ...]:
    """Each sentence once, and below them what ± does not cover and what would help; nothing if nothing is left out."""
    parts = list(dict.fromkeys(found))
    if not parts:
        return ()
    cures = list(dict.fromkeys(part.cure for part in parts if part.cure))
    closing = [f"{covers}, {'nor' if ', not ' in covers else 'not'} what this leaves out"] if covers else []
    closing += [f"the owner can {_listed(cures)} in the policy"] if cures else []
    last = "; ".join(closing)
    return (*(part.sentence for part in parts), *([f"{last[0].upper()}{last[1:]}."] if last else []))


def omissions(prepared: Prepared) -> Iterator[Omission]:
    """What one query leaves out: rows beyond the limits, values beyond bounds, values that are no declared keys."""
    limits = prepared.request.limits
    yield from retained(prepared.shape)
    if limits is not None and prepared.shape.rows is None:  # else joins retain no more than these
        used = _limited(limits, prepared.shape.whose)
        verb = "is" if used.startswith("1 row of") else "are"
        yield Omission(f"At most {used} {verb} used; further rows are left out.", _RAISE)
    yield from _leading_nowhere(prepared.shape)
    read = dict(prepared.read)
    uses = uses_of_query(prepared.query, read, nearest=prepared.request.nearest)
    yield from beyond_bounds(uses, read, prepared.shape)
    yield from _never_met(prepared.query, read)
    yield from _recoded(read)
    yield from _undeclared(prepared)


def selected(prepared: Prepared) -> tuple[str, ...]:
    """What to know of rows that were selected by noisy numbers, if any."""
    if prepared.among == 1:
        return ()
    groups = "all groups" if prepared.opens else f"all {prepared.among:,} groups"
    return (f"Rows are selected by noisy numbers, so error bars are so wide that they hold for {groups} at once.",)


# Contribution bounding


def retained(shape: Shape) -> Iterator[Omission]:
    """What tables with a limit per period and joins retain of the rows of each unit.

    >>> from noisette.query.shape import Retained
    >>> [part.sentence for part in retained(Shape({}, "id", 30, retained=(Retained(("orders",), 30),)))]
    ['At most 30 rows of each id in orders are joined; further rows are left out.']
    """
    for part in shape.retained:
        if isinstance(part, RetainedPerPeriod):
            yield from _per_period(part, shape.whose)
            continue
        rows, verb = _counted(part.rows, "row"), "is" if part.rows == 1 else "are"
        if part.by:
            same = f"of {_listed(list(part.tables))} with the same {_listed(list(part.by))}"
            yield Omission(f"At most {rows} {same} {verb} joined; further rows are left out.", _RAISE)
            continue
        used = f"used of the join of {_listed(list(part.tables))}" if part.joined else "joined"
        place = "" if part.joined else f" in {_listed(list(part.tables))}"
        sentence = f"At most {rows} of each {shape.whose}{place} {verb} {used}; further rows are left out."
        yield Omission(sentence, "" if part.joined else _RAISE)


def _per_period(part: RetainedPerPeriod, unit: str) -> Iterator[Omission]:
    """What is retained of a table in each period.

    >>> from noisette.query.schema import RowsPerPeriod
    >>> part = RetainedPerPeriod("visits", RowsPerPeriod(8, "year", "admitted"), ("2020-01-01", "2022-12-31"))
    >>> [omission.sentence for omission in _per_period(part, "patient_id")][0]
    'At most 8 rows of each patient_id per year of admitted are used; further rows are left out.'
    """
    limit, (low, high) = part.limit, part.bounds
    rows, verb = _counted(limit.most, "row"), "is" if limit.most == 1 else "are"
    used = f"At most {rows} of each {unit} per {limit.per} of {limit.of} {verb} used"
    yield Omission(f"{used}; further rows are left out.", _RAISE)
    yield Omission(f"Rows of {part.table} whose {limit.of} is NULL or beyond [{low}, {high}] are left out.", _WIDEN)


def _leading_nowhere(shape: Shape) -> Iterator[Omission]:
    """The tables whose foreign keys say whose a row is: those of some rows may be NULL, or refer to no row."""
    for table, links in shape.through:
        steps = _listed([link.table for link in links])
        yield Omission(f"Rows of {table} that lead to no {shape.whose} through {steps} are left out.")


def _limited(limits: Limits, unit: str) -> str:
    """The limits of one unit in words, without those that follow from others.

    >>> _limited(Limits(rows=8, rows_per_group=9), "patient"), _limited(Limits(groups=3, rows_per_group=1), "patient")
    ('8 rows of each patient', '3 groups and 1 row per group of each patient')
    """
    rows, groups, each = limits.rows, limits.groups, limits.rows_per_group
    parts = [] if rows is None else [_counted(rows, "row")]
    if groups is not None and (rows is None or groups < rows):
        parts.append(_counted(groups, "group"))
    if each is not None and (rows is None or each < rows):
        parts.append(f"{_counted(each, 'row')} per group")
    return f"{_listed(parts)} of each {unit}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _listed(parts: Sequence[str]) -> str:
    """Words with commas and an "and".

    >>> _listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


# Values beyond the bounds


def beyond_bounds(uses: Uses, read: Mapping[str, Kind], shape: Shape | None = None) -> Iterator[Omission]:
    """What becomes of values beyond the bounds, by what is done with the columns `table.column` that have some.

    Of a date by which rows are retained there are none: rows beyond its bounds are left out.

    >>> age = Kind("integer", Fraction(0), Fraction(99))
    >>> found = beyond_bounds((("comparison", "visits.age"), ("key", "visits.age")), {"visits.age": age})
    >>> [part.sentence for part in found]
    ['Rows whose age lies beyond [0, 99] are in no group.', 'No comparison with a value of age beyond [0, 99] holds.']
    """
    short, kept = _short(read), () if shape is None else shape.retained
    dates = {f"{part.table}.{part.limit.of}" for part in kept if isinstance(part, RetainedPerPeriod)}

    def listed(use: Use, between: str) -> list[str]:
        return [
            f"{short[name]}{between} {_ends(declared(read[name]))}"
            for found, name in uses
            if found == use and name not in dates
        ]

    if parts := listed("number", ""):
        yield Omission(f"Values of {_listed(parts)} count as the nearer bound.", _WIDEN)
    if parts := listed("key", " lies"):
        yield Omission(f"Rows whose {' or whose '.join(parts)} are in no group.", _WIDEN)
    if parts := listed("distinct", ""):
        yield Omission(f"COUNT(DISTINCT ...) counts no value of {' or of '.join(parts)}.", _WIDEN)
    if parts := listed("comparison", ""):
        yield Omission(f"No comparison with a value of {' or of '.join(parts)} holds.", _WIDEN)


def _never_met(query: Query, read: Mapping[str, Kind]) -> Iterator[Omission]:
    """Conditions on what lies beyond the bounds."""
    from noisette.query.sql.writer import expression_sql

    for condition, names in impossible(query, read):
        text = expression_sql(condition)
        yield Omission(f"No row can meet {text}: that asks for values beyond the bounds of {_listed(names)}.", _WIDEN)


def _short(names: Iterable[str]) -> dict[str, str]:
    """Names of columns without their table, where no other table has one of that name."""
    names = list(names)
    alone = [name.rpartition(".")[2] for name in names]
    return {name: short if alone.count(short) == 1 else name for name, short in zip(names, alone, strict=True)}


def _ends(kind: Kind) -> str:
    low, high = (None if end is None else _end(kind, end) for end in (kind.low, kind.high))
    if low is not None and high is not None:
        return f"beyond [{low}, {high}]"
    return f"below {low}" if low is not None else f"above {high}" if high is not None else ""


def _end(kind: Kind, end: Fraction) -> str:
    return bound(end if kind.number else moment(end, kind.type))


# Keys


def small_groups(rule: Keep | Threshold, unit: str) -> Omission:
    """Groups whose keys are not declared: which of them are released is decided by their noisy number of units."""
    least = rule.least(0.5) if isinstance(rule, Keep) else rule.threshold
    text = f"Groups of fewer than about {least:,} {unit}s are left out, because their keys are not declared."
    return Omission(text, "declare the keys")


def minimum_frequency(
    rule: MinimumFrequency, least: int, unit: str, price: Guarantee | None, *, declared: bool
) -> tuple[Omission, ...]:
    """Groups that a minimum frequency suppresses, and what the number of units that decides costs, if anything.

    >>> rule = MinimumFrequency(10, Fraction(1, 10**6))
    >>> minimum_frequency(rule, 23, "patient", None, declared=True)[1].sentence
    'The question releases that number anyway, so the rule costs nothing more.'
    """
    what = "suppressed, and listed without numbers" if declared else "left out"
    failure = figure(rule.failure, up=True, digits=3)
    first = (
        f"By a rule of the policy, groups whose noisy number of {unit}s is below {least:,} are {what}: a group of "
        f"fewer than {rule.units:,} {unit}s is shown with probability at most {failure}, part of neither ε nor δ."
    )
    cost = "The question releases that number anyway, so the rule costs nothing more."
    if price is not None:
        why = "is bought for the rule" if declared else "also decides about keys that are not declared"
        cost = f"That number {why}: {promise(price)} of what this question spends."
    return Omission(first), Omission(cost)


def _recoded(read: Mapping[str, Kind]) -> Iterator[Omission]:
    """Columns whose texts the policy cleans, or reads as numbers or dates.

    >>> from noisette.query.recode import Recode
    >>> how = Recode(trim=True, fold=True, other="other")
    >>> [part.sentence for part in _recoded({"visits.ward": Kind("text", recode=how)})]
    ['Texts of ward count without blanks at their ends and without upper and lower case; those of no key are "other".']
    >>> [part.sentence for part in _recoded({"visits.cost": Kind("real", text=True)})]
    ['Texts of cost that are no real count as NULL.']
    """
    for name, kind in read.items():
        if kind.text:
            written = "" if kind.format is None else f" by {kind.format}"
            yield Omission(f"Texts of {name.rpartition('.')[2]} that are no {kind.type}{written} count as NULL.")
        if (how := kind.recode) is not None:
            without = ["without blanks at their ends"] * how.trim + ["without upper and lower case"] * how.fold
            merged = any(len(texts) > 1 for _, texts in how.names)
            parts = [f"count {_listed(without)}"] * bool(without) + ["are merged by a list of the policy"] * merged
            others = [] if how.other is None else [f'those of no key are "{how.other}"']
            joined = [" and ".join(parts)] if parts else []
            subject = f"Texts of {name.rpartition('.')[2]}"
            if joined or others:
                yield Omission(f"{subject} {'; '.join(joined + others)}." if joined else f"{subject}: {others[0]}.")


def _undeclared(prepared: Prepared) -> Iterator[Omission]:
    """Columns whose undeclared values are left out, because it is grouped or counted by them."""
    for key, kind, domain in zip(prepared.query.keys, prepared.keys, prepared.request.domains, strict=True):
        names = sorted(incomplete(key, kind, prepared)) if domain is not None else []
        if names and isinstance(key, Name):
            declared_keys = _declared_keys(key, kind, prepared)
            text = f"Rows whose {names[0]} is a value other than its {declared_keys:,} declared keys are left out."
            yield Omission(text, _DECLARE)
        elif names:
            yield Omission(f"Rows in no group of the declared keys of {_listed(names)} are left out.", _DECLARE)
    for aggregate in aggregates_in(prepared.query):
        if aggregate.function == "distinct" and aggregate.of is not None:
            kind = kind_of(aggregate.of, prepared.shape.columns)
            if names := sorted(incomplete(aggregate.of, kind, prepared)):
                yield Omission(f"COUNT(DISTINCT ...) counts declared keys of {_listed(names)} alone.", _DECLARE)


def _declared_keys(key: Name, kind: Kind, prepared: Prepared) -> int | None:
    """How many keys are declared of the column that is a key, also of those that a condition excludes."""
    read = dict(prepared.read)
    origins = sorted(set(_columns(key, prepared.query.source, read)))
    return declared(read[origins[0]]).count if len(origins) == 1 else kind.count


def incomplete(expression: Expression, kind: Kind, prepared: Prepared) -> set[str]:
    """The columns of which the data may hold values that an expression's listed keys do not foresee."""
    if kind.keys is None or kind.type == "boolean":
        return set()
    found = _columns(expression, prepared.query.source, dict(prepared.read))
    return {name.rpartition(".")[2] for name in found}


_OF_ITS_ARGUMENTS: tuple[Operation, ...] = (
    "coalesce", "lower", "upper", "trim", "floor", "ceil", "abs", "negate",
    "year", "quarter", "month", "week", "day", "day_of_year", "weekday", "hour", "minute", "second",
    "weekday_name", "month_name",
    "substring", "right", "length", "concat", "replace", "split_part", "as_text", "as_date", "as_timestamp",
    "date_trunc", "add_months", "add_days", "add_seconds", "strftime",
)  # fmt: skip


def _columns(expression: Expression, source: Relation, read: Mapping[str, Kind]) -> Iterator[str]:
    """The stored columns with declared keys whose values an expression passes on."""
    match expression:
        case Name(name):
            yield from _origin(name, source, read)
        case Call(operation, arguments):
            parts = arguments if operation in _OF_ITS_ARGUMENTS else ()
            for part in case_parts(arguments)[1] if operation == "case" else parts:
                yield from _columns(part, source, read)


def _leaves_out(kind: Kind) -> bool:
    """Whether there may be values that are no keys; where all others are collected, there are none."""
    return kind.keys is not None and (kind.recode is None or kind.recode.other is None)


def _origin(name: str, source: Relation, read: Mapping[str, Kind]) -> Iterator[str]:
    """The stored columns behind a column of a relation."""
    match source:
        case Scan(table, alias):
            stored = f"{table}.{name.removeprefix(f'{alias}.')}"
            if name.startswith(f"{alias}.") and stored in read and _leaves_out(read[stored]):
                yield stored
        case Where(inner) | Copies(inner):
            yield from _origin(name, inner, read)
        case Join(left, right):
            yield from _origin(name, left, read)
            yield from _origin(name, right, read)
        case Select(inner, columns):
            if name in dict(columns):
                yield from _columns(dict(columns)[name], inner, read)
        case PerUnit(inner, keys, aggregates):
            of = {**{n: a.of for n, a in aggregates if a.at is not None}, **dict(keys)}.get(name)
            if of is not None:
                yield from _columns(of, inner, read)
        case _:
            assert_never(source)
