"""One form for all ways of writing the same question, and a text of what it measures.

Two queries with the same `canonical_text` measure the same numbers, so an answer to one is an answer to the other. What
is free to differ: aliases, names, the order of conditions and of selected columns, columns that nothing uses, `a > b`
for `b < a`, and all that is done with the released numbers (output names, HAVING, ORDER BY, LIMIT). Rewriting is exact:
it changes no value of any row. Equal questions may still have different texts: they are paid twice.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count
from typing import Literal as OneOf
from typing import TypeAlias, TypeVar, assert_never

from noisette.query.expression import Call, Expression, Literal, Name, Operation, columns_of
from noisette.query.plan import (
    Aggregate,
    Copies,
    Join,
    Key,
    Named,
    Ordering,
    PerUnit,
    Query,
    Relation,
    Result,
    ResultCall,
    Scan,
    Select,
    Where,
    aggregate_text,
    aggregate_tree,
    aggregates_in,
    as_json,
    expression_text,
    expression_tree,
    relation_tree,
)

__all__ = ["Measured", "canonical", "canonical_text", "conditions_first", "measured", "measured_text", "normal"]

Names: TypeAlias = Mapping[str, str]
"""New names of columns by their old ones."""

T = TypeVar("T")


@dataclass(frozen=True)
class Measured:
    """What of a query costs privacy: numbers about the groups of a relation, in a fixed order."""

    source: Relation
    keys: tuple[Expression, ...]
    aggregates: tuple[Aggregate, ...]


def canonical(query: Query) -> Query:
    """The same query in its one form; names, order and limit of its outputs stay.

    Tables are called t1, t2, ... in the order of their appearance, keys are sorted without repeats.
    """
    used = {name for key in query.keys for name in columns_of(key)}
    used |= {name for aggregate in aggregates_in(query) for name in _columns(aggregate)}
    source, names = _relation(query.source, frozenset(used), count(1))
    keys = [normal(key, names) for key in query.keys]
    distinct = _sorted(keys, expression_text)
    positions = [[expression_text(each) for each in distinct].index(expression_text(key)) for key in keys]

    def result(old: Result) -> Result:
        match old:
            case Key(position):
                return Key(positions[position])
            case Aggregate():
                return _aggregate(old, names)
            case ResultCall(operation, arguments):
                return ResultCall(operation, tuple(map(result, arguments)))
            case _:
                return old

    return replace(
        query,
        source=source,
        keys=distinct,
        outputs=tuple((name, result(value)) for name, value in query.outputs),
        having=None if query.having is None else result(query.having),
        order=tuple(Ordering(result(each.by), each.descending) for each in query.order),
        sets=tuple(dict.fromkeys(tuple(sorted({positions[at] for at in one})) for one in query.sets)),
    )


def measured(query: Query) -> Measured:
    """What a query measures: the relation, its keys and all aggregates, each once and sorted."""
    return _measured(canonical(query))


def _measured(form: Query) -> Measured:
    return Measured(form.source, form.keys, _sorted(aggregates_in(form), aggregate_text))


def canonical_text(query: Query) -> str:
    """What a query measures, as JSON that is the same in every process.

    >>> from noisette.query.plan import Scan
    >>> canonical_text(Query(Scan("visits", "v"), (Name("v.ward"),), (("n", Aggregate("rows")),)))
    '{"aggregates":[["rows"]],"keys":[["name","t1.ward"]],"source":["scan","visits","t1"]}'
    """
    return measured_text(canonical(query))


def measured_text(form: Query) -> str:
    """The same of a query that is in its canonical form."""
    part = _measured(form)
    tree = {
        "source": relation_tree(part.source),
        "keys": [expression_tree(key) for key in part.keys],
        "aggregates": [aggregate_tree(aggregate) for aggregate in part.aggregates],
    }
    return as_json(tree)


def _sorted(values: Iterable[T], text: Callable[[T], str]) -> tuple[T, ...]:
    """Each value once, in the order of its text."""
    found = {text(value): value for value in values}
    return tuple(found[key] for key in sorted(found))


# Relations


def conditions_first(relation: Relation) -> Relation:
    """The same rows, with conditions on one side of a join alone before it."""
    match relation:
        case Scan():
            return relation
        case Where(source, condition):
            return _where(conditions_first(source), condition)
        case Join(left, right):
            return replace(relation, left=conditions_first(left), right=conditions_first(right))
        case Select(source) | PerUnit(source) | Copies(source):
            return replace(relation, source=conditions_first(source))
        case _:
            assert_never(relation)


def _relation(relation: Relation, used: frozenset[str], fresh: Iterator[int]) -> tuple[Relation, Names]:
    """A relation in its one form, with no more columns than those used, and what these are called now."""
    match relation:
        case Scan(table, alias):
            short = f"t{next(fresh)}"
            mine = [name for name in used if name.startswith(f"{alias}.")]
            return Scan(table, short), {name: f"{short}.{name[len(alias) + 1 :]}" for name in mine}
        case Where(source, condition):
            inner, names = _relation(source, used | set(columns_of(condition)), fresh)
            return _where(inner, normal(condition, names)), names
        case Select(source, columns):
            return _select(source, tuple(column for column in columns if column[0] in used), fresh)
        case Join(left, right, on, how):
            first, names = _relation(left, used | {a for a, _ in on}, fresh)
            second, others = _relation(right, used | {b for _, b in on}, fresh)
            pairs = sorted({(names[a], others[b]) for a, b in on})
            return Join(first, second, tuple(pairs), how), {**names, **others}
        case PerUnit():
            return _per_unit(relation, used, fresh)
        case Copies(source, times, number):
            inner, names = _relation(source, used, fresh)
            short = f"t{next(fresh)}.n"
            return Copies(inner, times, short), {**names, number: short}
        case _:
            assert_never(relation)


def _where(source: Relation, condition: Expression) -> Relation:
    """Rows under a condition: conditions on one side of a join alone come before it, where rows are retained."""
    if isinstance(source, Where):
        return _where(source.source, normal(Call("and", (source.condition, condition))))
    if not isinstance(source, Join):
        return Where(source, condition)
    parts: dict[str, list[Expression]] = {"left": [], "right": [], "both": []}
    for part in _parts("and", condition):
        parts[_about(part, source)].append(part)
    left, right, both = (_call("and", tuple(found)) if found else None for found in parts.values())
    first = source.left if left is None else _where(source.left, left)
    second = source.right if right is None else _where(source.right, right)
    joined = replace(source, left=first, right=second)
    return joined if both is None else Where(joined, both)


def _about(condition: Expression, join: Join) -> OneOf["left", "right", "both"]:
    """The side of a join that a condition is about; both, where a partner may be missing."""
    aliases = {name.partition(".")[0] for name in columns_of(condition)}
    if aliases <= _aliases(join.left):
        return "left"
    return "right" if join.how == "inner" and aliases <= _aliases(join.right) else "both"


def _aliases(relation: Relation) -> set[str]:
    """What stands before the dot in the names of a relation's columns."""
    match relation:
        case Scan(_, alias, also):
            return {alias, *(name.partition(".")[0] for name in also)}
        case Where(source):
            return _aliases(source)
        case Copies(source, _, number):
            return _aliases(source) | {number.partition(".")[0]}
        case Join(left, right):
            return _aliases(left) | _aliases(right)
        case Select(_, columns):
            return {name.partition(".")[0] for name, _ in columns}
        case PerUnit(_, keys, aggregates):
            return {name.partition(".")[0] for name, _ in (*keys, *aggregates)}


def _select(source: Relation, columns: tuple[Named, ...], fresh: Iterator[int]) -> tuple[Relation, Names]:
    """A selection that only gives other names is none."""
    inner, names = _relation(source, frozenset(name for _, e in columns for name in columns_of(e)), fresh)
    if all(isinstance(e, Name) for _, e in columns):
        return inner, {name: names[e.name] for name, e in columns if isinstance(e, Name)}
    named, renamed = _renamed(columns, names, f"t{next(fresh)}.c")
    return Select(inner, named), renamed


def _per_unit(relation: PerUnit, used: frozenset[str], fresh: Iterator[int]) -> tuple[Relation, Names]:
    aggregates = [(name, aggregate) for name, aggregate in relation.aggregates if name in used]
    columns = {name for _, key in relation.keys for name in columns_of(key)}
    columns |= {name for _, aggregate in aggregates for name in _columns(aggregate)}
    inner, names = _relation(relation.source, frozenset(columns), fresh)
    short = f"t{next(fresh)}"
    keys, renamed = _renamed(relation.keys, names, f"{short}.k")
    formed = {name: _aggregate(aggregate, names) for name, aggregate in aggregates}
    ordered = _sorted(formed.values(), aggregate_text)
    numbered = {aggregate_text(each): f"{short}.a{n}" for n, each in enumerate(ordered, 1)}
    others = {name: numbered[aggregate_text(each)] for name, each in formed.items()}
    return PerUnit(inner, keys, tuple(zip(numbered.values(), ordered, strict=True))), {**renamed, **others}


def _renamed(columns: tuple[Named, ...], names: Names, start: str) -> tuple[tuple[Named, ...], Names]:
    formed = {name: normal(e, names) for name, e in columns}
    ordered = _sorted(formed.values(), expression_text)
    numbered = {expression_text(e): f"{start}{n}" for n, e in enumerate(ordered, 1)}
    named = tuple(zip(numbered.values(), ordered, strict=True))
    return named, {name: numbered[expression_text(e)] for name, e in formed.items()}


# Expressions

_SWAPPED: dict[Operation, Operation] = {"more": "less", "at_least": "at_most"}
_OPPOSITE: dict[Operation, Operation] = {"equal": "unequal", "unequal": "equal"}
_FLAT = ("and", "or", "least", "greatest")
_SYMMETRIC = ("equal", "unequal", "add", "multiply")


def normal(expression: Expression, names: Names | None = None) -> Expression:
    """The same value for every row, written in the one way.

    >>> normal(Call("more", (Name("age"), Literal(18)))) == normal(Call("less", (Literal(18), Name("age"))))
    True
    """
    match expression:
        case Name(name):
            return Name(name if names is None else names[name])
        case Literal(Fraction() as value) if value.denominator == 1:
            return Literal(value.numerator)
        case Literal():
            return expression
        case Call(operation, arguments):
            return _call(operation, tuple(normal(argument, names) for argument in arguments))


def _call(operation: Operation, arguments: tuple[Expression, ...]) -> Expression:
    """An operation on arguments that have their one form already."""
    if operation in _FLAT:
        flat = [part for each in arguments for part in _parts(operation, each)]
        ordered = _sorted(flat, expression_text)
        return ordered[0] if len(ordered) == 1 else Call(operation, ordered)
    if operation in _SWAPPED:
        return Call(_SWAPPED[operation], arguments[::-1])
    if operation in _SYMMETRIC:
        return Call(operation, tuple(sorted(arguments, key=expression_text)))
    if operation == "in":
        values = _sorted(arguments[1:], expression_text)
        return _call("equal", (arguments[0], *values)) if len(values) == 1 else Call("in", (arguments[0], *values))
    return _not(arguments[0]) if operation == "not" else Call(operation, arguments)


def _parts(operation: Operation, argument: Expression) -> tuple[Expression, ...]:
    return argument.arguments if isinstance(argument, Call) and argument.operation == operation else (argument,)


def _not(condition: Expression) -> Expression:
    """NULL stays NULL, so the opposite of a comparison is a comparison."""
    match condition:
        case Call("less", (a, b)):
            return Call("at_most", (b, a))
        case Call("at_most", (a, b)):
            return Call("less", (b, a))
        case Call("equal" | "unequal" as operation, arguments):
            return Call(_OPPOSITE[operation], arguments)
        case Call("not", (inner,)):
            return inner
        case _:
            return Call("not", (condition,))


def _aggregate(aggregate: Aggregate, names: Names) -> Aggregate:
    return aggregate if aggregate.of is None else replace(aggregate, of=normal(aggregate.of, names))


def _columns(aggregate: Aggregate) -> Iterator[str]:
    return iter(()) if aggregate.of is None else columns_of(aggregate.of)
