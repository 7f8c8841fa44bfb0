"""Aggregates, and the columns that are computed from them once they are released.

VARIANCE, VAR_POP and VAR_SAMP are all the variance of the group itself (divided by n), and the STDDEVs its root: n is
noised anyway. MIN, MEDIAN and MAX are the quantiles 0, 1/2 and 1; all forms of QUANTILE and PERCENTILE are one. FILTER
(WHERE c) puts a CASE within the aggregate.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from sqlglot import exp

from noisette.errors import InputError
from noisette.query.aggregate import AGGREGATES, kinds_of, values_of
from noisette.query.canonical import normal
from noisette.query.expression import Call, Expression, Literal, Name
from noisette.query.operations import kind_of
from noisette.query.plan import Aggregate, Key, Result, ResultCall, ResultLiteral, expression_text
from noisette.query.sql.casts import as_number
from noisette.query.sql.expression import OPERATIONS, expression
from noisette.query.sql.names import Scope, find
from noisette.query.sql.refusals import refusal, shown

__all__ = ["Groups", "aggregate", "has_aggregate", "has_total", "is_aggregate", "position", "result", "result_type"]

_OF_VALUES = {getattr(exp, name): f for f, each in AGGREGATES.items() for name in each.sql if not each.of_pairs}
_OF_PAIRS = {getattr(exp, name): f for f, each in AGGREGATES.items() for name in each.sql if each.of_pairs}
_AT = {exp.Min: Fraction(0), exp.Median: Fraction(1, 2), exp.Max: Fraction(1)}
_QUANTILES = (exp.Quantile, exp.ApproxQuantile, exp.PercentileCont, exp.PercentileDisc)
_OTHERS = (exp.Count, exp.CountIf, exp.Filter, exp.WithinGroup)


@dataclass(frozen=True)
class Groups:
    """What results are made of: the columns below, the keys of the groups, and the outputs that have a name already."""

    scope: Scope
    keys: tuple[Expression, ...]
    outputs: Mapping[str, Result] = field(default_factory=dict)


# Aggregates


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is a number about a group."""
    return type(node) in {*_OF_VALUES, *_OF_PAIRS, *_AT, *_QUANTILES, *_OTHERS} or _mean(node)


def has_aggregate(node: exp.Expr) -> bool:
    """Whether there is an aggregate within a node."""
    return any(is_aggregate(each) for each in node.walk())


def _mean(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).lower() == "mean"


def aggregate(node: exp.Expr, scope: Scope) -> Aggregate:
    """The aggregate that a node stands for."""
    match node:
        case exp.Count():
            return _count(node, scope)
        case exp.CountIf():
            return _filtered(Aggregate("rows"), expression(node.this, scope), scope)
        case exp.Filter():
            return _filtered(aggregate(node.this, scope), expression(node.expression.this, scope), scope)
        case exp.Min() | exp.Median() | exp.Max():
            return Aggregate("quantile", _value(node, scope), _AT[type(node)])
        case exp.WithinGroup() | exp.Quantile() | exp.ApproxQuantile() | exp.PercentileCont() | exp.PercentileDisc():
            return _quantile(node, scope)
        case exp.Anonymous() if _mean(node) and len(node.expressions) == 1:
            return Aggregate("mean", _counted(expression(node.expressions[0], scope), scope))
        case _ if type(node) in _OF_VALUES:
            return Aggregate(_OF_VALUES[type(node)], _value(node, scope))
        case _ if type(node) in _OF_PAIRS:
            return Aggregate(_OF_PAIRS[type(node)], _pair(node, scope))
        case _:
            raise refusal(node)


def _value(node: exp.Expr, scope: Scope) -> Expression:
    if isinstance(node.this, exp.Distinct):
        raise InputError("Only COUNT takes DISTINCT: leave it out.")
    return _counted(expression(node.this, scope), scope)


def _pair(node: exp.Expr, scope: Scope) -> Expression:
    if node.expression is None or isinstance(node.this, exp.Distinct):
        raise InputError(f"{node.sql_name()} takes two values: write {node.sql_name()}(y, x).")  # type: ignore[attr-defined]
    return Call("pair", tuple(_counted(expression(each, scope), scope) for each in (node.this, node.expression)))


def _counted(value: Expression, scope: Scope) -> Expression:
    """A condition counts as 1 where it holds: AVG(sex = 'F') is a share."""
    kind = None if value == Literal(None) else kind_of(value, scope.columns)
    return as_number(value, kind) if kind is not None and kind.type == "boolean" else value


def _count(node: exp.Count, scope: Scope) -> Aggregate:
    if isinstance(node.this, exp.Star) or (isinstance(node.this, exp.Literal) and not node.this.is_string):
        return Aggregate("rows")
    if not isinstance(node.this, exp.Distinct):
        if node.this is None:
            raise InputError("COUNT counts something: write COUNT(*) or COUNT(x).")
        return Aggregate("count", expression(node.this, scope))
    if len(node.this.expressions) != 1:
        raise InputError("COUNT(DISTINCT ...) takes one column: write GROUP BY for the combinations of several.")
    of = expression(node.this.expressions[0], scope)
    return Aggregate("units") if isinstance(of, Name) and of.name in scope.units else Aggregate("distinct", of)


def _filtered(of: Aggregate, condition: Expression, scope: Scope) -> Aggregate:
    """An aggregate of the rows for which a condition is true."""

    def where(value: Expression) -> Expression:
        return Call("case", (condition, value, Literal(None)))

    match of.function:
        case "rows":
            return Aggregate("count", where(Literal(1)))
        case "units":
            return Aggregate("distinct", where(Name(scope.units[0])))
        case _:
            assert of.of is not None
            first, *others = values_of(of.of)
            value = Call("pair", (where(first), *others)) if others else where(first)
            return Aggregate(of.function, value, of.at)


def _quantile(node: exp.Expr, scope: Scope) -> Aggregate:
    match node:
        case exp.WithinGroup(this=exp.PercentileCont() | exp.PercentileDisc() as inner) if not inner.expression:
            ordered = node.expression.expressions
            if len(ordered) != 1:
                raise InputError("WITHIN GROUP takes one column: write (ORDER BY x).")
            at = _share(inner.this)
            at = 1 - at if ordered[0].args.get("desc") else at
            return Aggregate("quantile", expression(ordered[0].this, scope), at)
        case exp.Quantile() | exp.ApproxQuantile() if node.args.get("quantile"):
            return Aggregate("quantile", _value(node, scope), _share(node.args["quantile"]))
        case exp.PercentileCont() | exp.PercentileDisc() if node.expression:
            return Aggregate("quantile", _value(node, scope), _share(node.expression))
        case _:
            raise InputError(
                "A quantile is written QUANTILE(x, 0.9) or PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x)."
            )


def _share(node: exp.Expr) -> Fraction:
    match expression(node, Scope({})) if isinstance(node, exp.Literal) else None:
        case Literal(int() | Fraction() as at) if 0 <= at <= 1:
            return Fraction(at)
        case _:
            raise InputError(
                "Which quantile is a number from 0 to 1: write QUANTILE(x, 0.9), or a list as a column by itself."
            )


_NO_NUMBER = {
    "text": "Only numbers have a sum, mean or quantile, not text: write COUNT(DISTINCT x), or ask nz.Mode('x') for the "
    "most frequent one.",
    "date": "Only numbers have a sum, mean or quantile, not date: write YEAR(d), or days as d - DATE '2020-01-01'.",
    "timestamp": "Only numbers have a sum, mean or quantile, not timestamp: write YEAR(d), or DATE_DIFF('day', a, b).",
}


def _checked(of: Aggregate, scope: Scope) -> Aggregate:
    if of.of is not None:
        kinds = kinds_of(of.of, scope.columns)
        other = next((kind.type for kind in kinds if not kind.number), None)
        if of.function not in ("count", "distinct") and other is not None:
            raise InputError(_NO_NUMBER.get(other, _NO_NUMBER["text"]))
    return of


# Results


def result(node: exp.Expr, groups: Groups) -> Result:
    """A column of the answer: a key, an aggregate, or something computed from these."""
    if is_aggregate(node):
        return _checked(aggregate(node, groups.scope), groups.scope)
    if (found := position(node, groups)) is not None:
        return Key(found)
    match node:
        case exp.Paren():
            return result(node.this, groups)
        case exp.Window():
            return _total(node, groups)
        case exp.Grouping() | exp.GroupingId():
            return _grouping(node, groups)
        case exp.Literal() | exp.Boolean() | exp.Null():
            return _constant(node)
        case exp.And() | exp.Or():
            return ResultCall(OPERATIONS[type(node)], tuple(result(part, groups) for part in node.flatten()))
        case exp.Between(this=value):
            low, high = (result(node.args[end], groups) for end in ("low", "high"))
            inner = result(value, groups)
            return ResultCall("and", (ResultCall("at_least", (inner, low)), ResultCall("at_most", (inner, high))))
        case exp.Round():
            return _round(node, groups)
        case exp.Column():
            return _output(node, groups)
        case _ if type(node) in OPERATIONS:
            parts = (node.args.get("this"), node.args.get("expression"))
            return ResultCall(OPERATIONS[type(node)], tuple(result(part, groups) for part in parts if part is not None))
        case _:
            raise _not_a_result(node)


def _total(node: exp.Window, groups: Groups) -> ResultCall:
    """A sum over released groups, all or those that share some keys: a share is a number divided by it."""
    inner = node.this
    if not isinstance(inner, exp.Sum) or not is_aggregate(inner.this):
        raise refusal(node)
    of = result(inner.this, groups)
    assert isinstance(of, Aggregate)
    if of.function not in _ADDED:
        raise InputError("Only counts and sums add up over groups: write SUM(COUNT(*)) OVER () or SUM(SUM(x)) OVER ().")
    places = [position(each, groups) for each in node.args.get("partition_by") or []]
    if None in places:
        raise InputError("PARTITION BY takes keys of the query: add the column to GROUP BY.")
    return ResultCall("total", (of, *(Key(place) for place in dict.fromkeys(places) if place is not None)))


def _grouping(node: exp.Expr, groups: Groups) -> ResultCall:
    places = [position(each, groups) for each in node.expressions]
    keys = tuple(Key(place) for place in places if place is not None)
    if not keys or len(keys) < len(places):
        raise InputError("GROUPING takes keys of the query: write GROUPING(a) beside GROUP BY ROLLUP (a, b).")
    return ResultCall("grouping", keys)


_ADDED = ("rows", "count", "units", "distinct", "sum", "pairs")


def has_total(value: Result) -> bool:
    """Whether a result needs all groups that are shown."""
    return isinstance(value, ResultCall) and (value.operation == "total" or any(map(has_total, value.arguments)))


def _constant(node: exp.Expr) -> ResultLiteral:
    value = expression(node, Scope({}))
    assert isinstance(value, Literal)
    match value.value:
        case int() as whole if not isinstance(whole, bool):
            return ResultLiteral(Fraction(whole))
        case Fraction() | str() | bool() | None as constant:
            return ResultLiteral(constant)
        case _:
            raise refusal(node)


def _round(node: exp.Round, groups: Groups) -> Result:
    digits = [] if node.args.get("decimals") is None else [result(node.args["decimals"], groups)]
    for each in digits:
        if not isinstance(each, ResultLiteral) or each.value not in range(13):
            raise InputError("ROUND takes a number of digits from 0 to 12: write ROUND(AVG(x), 1).")
    return ResultCall("round", (result(node.this, groups), *digits))


def _output(node: exp.Column, groups: Groups) -> Result:
    """A name that is no key: an output, or nothing that can be shown."""
    if not node.args.get("table"):
        exact = [value for name, value in groups.outputs.items() if name == node.name]
        loose = [value for name, value in groups.outputs.items() if name.casefold() == node.name.casefold()]
        if exact or (len(loose) == 1 and not node.this.args.get("quoted")):
            return (exact or loose)[0]
    full, name = find(node, groups.scope), shown(node.name)
    if full in groups.scope.units:
        raise InputError(f"{name} says whose row it is and is never shown: write COUNT(DISTINCT {name}).")
    raise InputError(
        f"{name} is a value of single rows: add it to GROUP BY, or write an aggregate such as COUNT({name})."
    )


def _not_a_result(node: exp.Expr) -> InputError:
    if isinstance(node, exp.Star):
        return InputError("Rows are never shown: write COUNT(*), or name keys and aggregates in place of *.")
    if isinstance(node, exp.Subquery | exp.Select | exp.Array):
        return refusal(node)
    return InputError(
        "Only arithmetic, comparisons and ROUND work on results: put the rest into GROUP BY or within an aggregate."
    )


def position(node: exp.Expr, groups: Groups) -> int | None:
    """Which of the keys a node says in other words, or None."""
    if not groups.keys or not node.find(exp.Column) or has_aggregate(node):
        return None
    try:
        text = expression_text(normal(expression(node, groups.scope)))
    except InputError:
        return None
    texts = [expression_text(normal(key)) for key in groups.keys]
    return texts.index(text) if text in texts else None


def result_type(value: Result, groups: Groups) -> str:
    """What a result is (number, text, boolean, date, timestamp or null), or a sentence on what does not fit."""
    match value:
        case Aggregate():
            return "number"
        case Key(at):
            kind = kind_of(groups.keys[at], groups.scope.columns)
            return "number" if kind.number else kind.type
        case ResultLiteral(constant):
            names = {bool: "boolean", str: "text", type(None): "null"}
            return names.get(type(constant), "number")
        case ResultCall("total" | "grouping"):
            return "number"
        case ResultCall(operation, arguments):
            return _called_type(operation, [result_type(argument, groups) for argument in arguments])


def _called_type(operation: str, types: list[str]) -> str:
    if operation in ("and", "or", "not"):
        if set(types) != {"boolean"}:
            raise InputError("AND, OR and NOT join conditions on results: write COUNT(*) > 10 AND AVG(x) < 5.")
        return "boolean"
    if operation in ("equal", "unequal", "less", "at_most", "more", "at_least"):
        if len(set(types)) > 1 and not {"text"} < set(types) <= {"text", "date", "timestamp"}:
            raise InputError("Only results of one type are compared: write a number beside a number.")
        return "boolean"
    if set(types) != {"number"}:
        raise InputError("Only numbers are calculated with: use keys and aggregates that are numbers.")
    return "number"
