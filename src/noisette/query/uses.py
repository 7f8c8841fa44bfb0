"""What a question does with each stored column: a number of it, a key, or a comparison.

Values beyond the declared bounds mean something else in each (`beyond`), and so the caveats of an answer say.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal as OneOf
from typing import TypeAlias, assert_never

from noisette.query.beyond import COMPARISONS
from noisette.query.expression import Call, Expression, Literal, Name, Operation, columns_of, replaced
from noisette.query.kind import Kind
from noisette.query.operations import declared, kind_of
from noisette.query.plan import Copies, Join, PerUnit, Query, Relation, Scan, Select, Where, aggregates_in
from noisette.query.reads import expressions_in, nodes_of
from noisette.query.rules import case_parts
from noisette.query.variants import limited

__all__ = ["Use", "Uses", "changed_by_bounds", "impossible", "uses_of", "uses_of_query"]

Use: TypeAlias = OneOf["number", "key", "distinct", "comparison"]
Uses: TypeAlias = tuple[tuple[Use, str], ...]
"""Each use of a stored column `table.column` with bounds, sorted."""


def uses_of_query(query: Query, read: Mapping[str, Kind], *, nearest: bool = False) -> Uses:
    """What a query does with columns that have bounds; with `nearest`, its keys are numbers that are measured.

    >>> from fractions import Fraction
    >>> from noisette.query.plan import Aggregate
    >>> age = Kind("integer", Fraction(0), Fraction(99))
    >>> mean = Query(Scan("visits", "t1"), (), (("mean", Aggregate("mean", Name("t1.age"))),))
    >>> uses_of_query(mean, {"visits.age": age})
    (('number', 'visits.age'),)
    """
    use: Use = "number" if nearest else "key"
    of: list[tuple[Use, Expression]] = [(use, key) for key in query.keys]
    for aggregate in aggregates_in(query):
        if aggregate.of is not None:
            of.append(("distinct" if aggregate.function == "distinct" else "number", aggregate.of))
    return uses_of(query.source, of, read)


def uses_of(relation: Relation, of: Iterable[tuple[Use, Expression]], read: Mapping[str, Kind]) -> Uses:
    """What a relation, and those who compute with its columns, do with stored columns that have bounds."""
    wanted = {pair for use, e in of for pair in _of(e, use)}
    found = {(use, name) for use, name in _traced(relation, wanted) if name in read and limited(declared(read[name]))}
    return tuple(sorted(found))


def _of(e: Expression, use: Use) -> Iterator[tuple[Use, str]]:
    """What an expression does with its columns, by what is done with it; a comparison may decide a key."""
    match e:
        case Name(name):
            yield use, name
        case Literal() | Call("is_null", (Name(),)):
            pass
        case Call("case", arguments):
            conditions, values = case_parts(arguments)
            for condition in conditions:
                yield from _of(condition, "key" if use == "key" else "comparison")
            for value in values:
                yield from _of(value, use)
        case Call(operation, arguments):
            inner: Use = "comparison" if operation in COMPARISONS and use != "key" else use
            for argument in arguments:
                yield from _of(argument, inner)


def _traced(relation: Relation, wanted: Iterable[tuple[Use, str]]) -> Iterator[tuple[Use, str]]:
    """The stored columns behind columns of a relation, with what is done with them, there and on the way."""
    wanted = set(wanted)
    match relation:
        case Scan(table, alias):
            own = [(use, name) for use, name in wanted if name.startswith(f"{alias}.")]
            yield from ((use, f"{table}.{name.removeprefix(f'{alias}.')}") for use, name in own)
        case Where(source, condition):
            yield from _traced(source, {*wanted, *_of(condition, "comparison")})
        case Copies(source):
            yield from _traced(source, wanted)
        case Select(source, columns):
            made = dict(columns)
            yield from _traced(source, {pair for use, name in wanted if name in made for pair in _of(made[name], use)})
        case Join(left, right, on):
            met = {("comparison", name) for pair in on for name in pair}
            for side in (left, right):
                yield from _traced(side, {*wanted, *met})  # type: ignore[arg-type]
        case PerUnit(source, keys, aggregates):
            asked = {name for _, name in wanted}
            numbers = (a.of for name, a in aggregates if name in asked and a.of is not None)
            below = {pair for _, key in keys for pair in _of(key, "key")}
            yield from _traced(source, below | {pair for number in numbers for pair in _of(number, "number")})
        case _:
            assert_never(relation)


def changed_by_bounds(uses: Uses) -> Uses:
    """The uses in which values beyond the bounds do not count as the nearer bound.

    They are part of what names a question in a ledger: earlier versions counted the nearer bound everywhere, and what
    they answered is the answer to another question.
    """
    return tuple((use, name) for use, name in uses if use != "number")


# Comparisons that no value within the bounds meets


def impossible(query: Query, read: Mapping[str, Kind]) -> Iterator[tuple[Expression, tuple[str, ...]]]:
    """The conditions on stored columns that no row can meet, by the bounds of these columns, with short names."""
    scans = [node for node in nodes_of(query.source) if isinstance(node, Scan)]
    own = ((scan, name, name.removeprefix(f"{scan.table}.")) for scan in scans for name in read)
    found = {f"{scan.alias}.{column}": (column, read[name]) for scan, name, column in own if column != name}
    scope = {name: kind for name, (_, kind) in found.items()}
    for condition in dict.fromkeys(_conditions(query)):
        used = tuple(dict.fromkeys(columns_of(condition)))
        if used and all(name in scope for name in used) and _never(condition, scope):
            short = {name: Name(found[name][0]) for name in used}
            yield replaced(_value_first(condition), short), tuple(short[n].name for n in used if limited(scope[n]))


def _value_first(condition: Expression) -> Expression:
    """A comparison with its constant on the right, as people write it."""
    turned: dict[Operation, Operation] = {"less": "more", "at_most": "at_least", "equal": "equal"}
    match condition:
        case Call(operation, (Literal() as a, b)) if operation in turned:
            return Call(turned[operation], (b, a))
        case _:
            return condition


def _conditions(query: Query) -> Iterator[Expression]:
    """The comparisons that must hold together: those of WHERE, and of CASE within aggregates."""
    every = [e for node in nodes_of(query.source) for e in expressions_in(node)]
    every += [aggregate.of for aggregate in aggregates_in(query) if aggregate.of is not None]
    for e in every:
        parts = [e, *(case_parts(e.arguments)[0] if isinstance(e, Call) and e.operation == "case" else ())]
        for part in parts:
            both = isinstance(part, Call) and part.operation == "and"
            yield from part.arguments if isinstance(part, Call) and both else (part,)


def _never(condition: Expression, scope: Mapping[str, Kind]) -> bool:
    """Whether a condition holds for no values within the bounds."""
    match condition:
        case Call("or", parts):
            return all(_never(part, scope) for part in parts)
        case Call("and", parts):
            return any(_never(part, scope) for part in parts)
        case Call("more" | "at_least" as operation, (a, b)):
            return _never(Call("less" if operation == "more" else "at_most", (b, a)), scope)
        case Call("less" | "at_most" | "equal" as operation, (a, b)):
            ends = _ends(a, b, scope)
            return ends is not None and _apart(operation, *ends)
        case Call("in", (a, *others)):
            return all(_never(Call("equal", (a, other)), scope) for other in others)
        case _:
            return False


def _ends(a: Expression, b: Expression, scope: Mapping[str, Kind]) -> tuple[Kind, Kind] | None:
    """What is known of two values that can be compared by their bounds."""
    one, other = kind_of(a, scope), kind_of(b, scope)
    alike = one.type == other.type or (one.number and other.number)
    return (one, other) if alike and one.type not in ("text", "boolean") else None


def _apart(operation: str, a: Kind, b: Kind) -> bool:
    """Whether a is above b wherever both lie; for equality, or below it."""
    above = a.low is not None and b.high is not None and a.low > b.high
    if operation == "equal":
        return above or (a.high is not None and b.low is not None and a.high < b.low)
    return above or (operation == "less" and a.low is not None and a.low == b.high)
