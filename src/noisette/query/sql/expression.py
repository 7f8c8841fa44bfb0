"""Expressions over one row, from the syntax tree to the nodes of a plan.

Numbers are read exactly (0.1 is a tenth). Texts beside a date are read as dates here, so that no cast reaches the data.
LEAST and GREATEST are NULL where one of their values is. The sugar: BIN(x, w) is FLOOR(x / w) * w, x // n is
FLOOR(x / n) where x cannot be negative, BETWEEN is two comparisons, NULLIF, IF and both forms of CASE are one `case`.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from sqlglot import exp

from noisette.errors import InputError
from noisette.query import pattern
from noisette.query.expression import Call, Expression, Literal, Name, Operation
from noisette.query.operations import kind_of
from noisette.query.sql.casts import cast, constant_cast
from noisette.query.sql.functions import FUNCTIONS, calculated, date_part, interval
from noisette.query.sql.names import Scope, alike, find, number
from noisette.query.sql.refusals import refusal
from noisette.query.written_size import repeated

__all__ = ["OPERATIONS", "expression"]


def expression(node: exp.Expr, scope: Scope) -> Expression:
    """The expression that a syntax tree stands for."""
    if scope.special and (found := scope.special(node)):
        return found
    if type(node) not in _READERS:
        raise _misplaced(node)
    return _READERS[type(node)](node, scope)


def _misplaced(node: exp.Expr) -> InputError:
    if isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup) or _called(node) == "mean":
        return InputError("An aggregate cannot stand here: use HAVING, or compute it in a sub-query per unit.")
    if isinstance(node, exp.Star):
        return InputError("* stands for no value: name a column, or write COUNT(*).")
    if isinstance(node, exp.Interval):
        return InputError("An interval is added to a date or taken from it: write d + INTERVAL 3 MONTH.")
    return refusal(node)


# Constants


def _cast(node: exp.Cast, scope: Scope) -> Expression:
    if isinstance(node.this, exp.Literal) and node.this.is_string:
        return constant_cast(node.this.this, node.to.this)
    return cast(expression(node.this, scope), node.to.this, scope, can_fail=isinstance(node, exp.TryCast))


def _date(node: exp.Date, scope: Scope) -> Expression:
    return _cast(exp.Cast(this=node.this, to=exp.DataType(this=exp.DType.DATE)), scope)


def _today(node: exp.CurrentDate, scope: Scope) -> Expression:
    if scope.today is None:
        raise InputError(
            "The clock is no part of a question: write DATE '2020-01-31', or ask the owner to declare today."
        )
    return Literal(scope.today)


# Comparisons


def _compare(operation: Operation, left: Expression, right: Expression, scope: Scope) -> Expression:
    return Call(operation, alike((left, right), scope.columns))


def _comparison(operation: Operation) -> Callable[[Any, Scope], Expression]:
    def read(node: exp.Binary, scope: Scope) -> Expression:
        return _compare(operation, expression(node.left, scope), expression(node.right, scope), scope)

    return read


def _between(node: exp.Between, scope: Scope) -> Expression:
    value = repeated(expression(node.this, scope), 2)
    low = _compare("at_least", value, expression(node.args["low"], scope), scope)
    return Call("and", (low, _compare("at_most", value, expression(node.args["high"], scope), scope)))


def _in(node: exp.In, scope: Scope) -> Expression:
    if node.args.get("query"):
        raise refusal(node, "query")
    values = tuple(expression(each, scope) for each in node.expressions)
    if not values or not all(isinstance(each, Literal) and each.value is not None for each in values):
        raise InputError("IN takes a list of constants: write x IN (1, 2) and x IS NULL by itself.")
    return Call("in", alike((expression(node.this, scope), *values), scope.columns))


def _like(node: exp.Like, scope: Scope) -> Expression:
    pattern = expression(node.expression, scope)
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        raise InputError("LIKE takes a pattern written as a constant: write x LIKE 'a%'.")
    found = Call("like", (expression(node.this, scope), pattern))
    return Call("not", (found,)) if node.args.get("negate") else found


def _is(node: exp.Is, scope: Scope) -> Expression:
    value = expression(node.this, scope)
    match node.expression:
        case exp.Null():
            return Call("is_null", (value,))
        case exp.Boolean() as wanted:
            truth = value if wanted.this else Call("not", (value,))
            return Call("coalesce", (truth, Literal(False)))
        case _:
            raise InputError("IS is followed by NULL, TRUE or FALSE: write a = b to compare.")


# Operations


def _plain(operation: Operation) -> Callable[[Any, Scope], Expression]:
    def read(node: exp.Expr, scope: Scope) -> Expression:
        parts = (node.args.get("this"), node.args.get("expression"))
        return Call(operation, tuple(expression(part, scope) for part in parts if part is not None))

    return read


def _several(operation: Operation) -> Callable[[Any, Scope], Expression]:
    def read(node: exp.Expr, scope: Scope) -> Expression:
        values = tuple(expression(part, scope) for part in (node.this, *node.expressions))
        return Call(operation, alike(values, scope.columns)) if len(values) > 1 else values[0]

    return read


def _chain(operation: Operation) -> Callable[[Any, Scope], Expression]:
    def read(node: exp.Connector, scope: Scope) -> Expression:
        return Call(operation, tuple(expression(part, scope) for part in node.flatten()))

    return read


def _negate(node: exp.Neg, scope: Scope) -> Expression:
    value = expression(node.this, scope)
    match value:
        case Literal(int() | Fraction() as constant) if not isinstance(constant, bool):
            return Literal(-constant)
        case _:
            return Call("negate", (value,))


def _whole_quotient(node: exp.IntDiv, scope: Scope) -> Expression:
    value = expression(node.left, scope)
    low = kind_of(value, scope.columns).low
    if low is None or low < 0:
        raise InputError("// rounds negative numbers in another way than FLOOR: write FLOOR(x / n).")
    return Call("floor", (Call("divide", (value, expression(node.right, scope))),))


def _case(node: exp.Case, scope: Scope) -> Expression:
    asked = expression(node.this, scope) if node.this else None
    branches = node.args.get("ifs") or []
    if asked is not None:
        repeated(asked, len(branches))
    parts: list[Expression] = []
    for branch in branches:
        condition = expression(branch.this, scope)
        parts.append(condition if asked is None else _compare("equal", asked, condition, scope))
        parts.append(expression(branch.args["true"], scope))
    default = node.args.get("default")
    return _choice(parts, expression(default, scope) if default else Literal(None), scope)


def _if(node: exp.If, scope: Scope) -> Expression:
    parts = [expression(node.this, scope), expression(node.args["true"], scope)]
    default = node.args.get("false")
    return _choice(parts, expression(default, scope) if default else Literal(None), scope)


def _choice(parts: list[Expression], default: Expression, scope: Scope) -> Expression:
    values = alike((*parts[1::2], default), scope.columns)
    return Call("case", (*(x for pair in zip(parts[::2], values, strict=False) for x in pair), values[-1]))


def _nullif(node: exp.Nullif, scope: Scope) -> Expression:
    value = repeated(expression(node.this, scope), 2)
    same = _compare("equal", value, expression(node.expression, scope), scope)
    return Call("case", (same, Literal(None), value))


# Dates and functions without a class of their own


def _function(node: exp.Expr, scope: Scope) -> Expression:
    names, build = FUNCTIONS[type(node)]
    parts = [part for name in names for part in _parts(node.args.get(name))]
    found = build([_argument(part, scope) for part in parts], scope)
    return Call("not", (found,)) if node.args.get("negate") else found


def _parts(part: Any) -> list[exp.Expr]:
    return part if isinstance(part, list) else [] if part is None else [part]


def _argument(node: exp.Expr, scope: Scope) -> Expression:
    """A value, or the name of a unit of time."""
    return Literal(node.name.lower()) if isinstance(node, exp.Var) else expression(node, scope)


def _calculated(operation: Operation) -> Callable[[Any, Scope], Expression]:
    """A sum or a difference, of numbers or of dates."""

    def read(node: exp.Binary, scope: Scope) -> Expression:
        left, right = node.left, node.right
        if operation == "add" and isinstance(left, exp.Interval):
            left, right = right, left
        if isinstance(right, exp.Interval):
            return interval(right, 1 if operation == "add" else -1, expression(left, scope), scope)
        return calculated(operation, expression(left, scope), expression(right, scope), scope)

    return read


def _escaped(node: exp.Escape, scope: Scope) -> Expression:
    """LIKE with a character that takes the meaning of % and _ away."""
    form, mark = node.this.expression, node.expression
    if not isinstance(node.this, exp.Like) or not all(isinstance(x, exp.Literal) for x in (form, mark)):
        raise InputError("ESCAPE follows LIKE and a constant: write x LIKE '50!%' ESCAPE '!'.")
    if len(mark.name) != 1:
        raise InputError("ESCAPE takes one character: write x LIKE '50!%' ESCAPE '!'.")
    found = Call("matches", (expression(node.this.this, scope), Literal(pattern.like(form.name, mark.name))))
    return Call("not", (found,)) if node.this.args.get("negate") else found


def _called(node: exp.Expr) -> str:
    return str(node.this).lower() if isinstance(node, exp.Anonymous) else ""


def _anonymous(node: exp.Anonymous, scope: Scope) -> Expression:
    match _called(node), node.expressions:
        case "date_part" | "datepart", [exp.Literal() as part, of]:
            return date_part(part.name, expression(of, scope), scope)
        case "bin", [of, width]:
            step = expression(width, scope)
            return Call("multiply", (Call("floor", (Call("divide", (expression(of, scope), step)),)), step))
        case "dow" | "doy" as name, [of]:
            return date_part(name, expression(of, scope), scope)
        case "prefix" | "suffix" as name, [of, text]:
            like = exp.StartsWith if name == "prefix" else exp.EndsWith
            return _function(like(this=of, expression=text), scope)
        case "bin", _:
            raise InputError("BIN takes a number and a width: write BIN(age, 10).")
        case "date_part" | "datepart", _:
            raise InputError("DATE_PART takes the name of a part and a date: write DATE_PART('month', d).")
        case _:
            raise _misplaced(node)


OPERATIONS: dict[type[exp.Expr], Any] = {
    exp.Add: "add",
    exp.Sub: "subtract",
    exp.Mul: "multiply",
    exp.Div: "divide",
    exp.Neg: "negate",
    exp.Abs: "abs",
    exp.Floor: "floor",
    exp.Ceil: "ceil",
    exp.EQ: "equal",
    exp.NEQ: "unequal",
    exp.LT: "less",
    exp.LTE: "at_most",
    exp.GT: "more",
    exp.GTE: "at_least",
    exp.And: "and",
    exp.Or: "or",
    exp.Not: "not",
}
"""What is computed alike from the values of a row and from results."""

_READERS: dict[type[exp.Expr], Callable[[Any, Scope], Expression]] = {
    **{node: _plain(operation) for node, operation in OPERATIONS.items()},
    **{node: _comparison(OPERATIONS[node]) for node in (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)},
    **{node: _chain(OPERATIONS[node]) for node in (exp.And, exp.Or)},
    exp.Neg: _negate,
    exp.Column: lambda node, scope: Name(find(node, scope)),
    exp.Literal: lambda node, scope: Literal(node.this if node.is_string else number(node.this)),
    exp.Boolean: lambda node, scope: Literal(bool(node.this)),
    exp.Null: lambda node, scope: Literal(None),
    exp.Paren: lambda node, scope: expression(node.this, scope),
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Date: _date,
    exp.CurrentDate: _today,
    exp.IntDiv: _whole_quotient,
    exp.Least: _several("least"),
    exp.Greatest: _several("greatest"),
    exp.Coalesce: _several("coalesce"),
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _like,
    exp.Is: _is,
    exp.Case: _case,
    exp.If: _if,
    exp.Nullif: _nullif,
    **dict.fromkeys(FUNCTIONS, _function),
    exp.Add: _calculated("add"),
    exp.Sub: _calculated("subtract"),
    exp.Escape: _escaped,
    exp.Extract: lambda node, scope: date_part(node.this.name, expression(node.expression, scope), scope),
    exp.Anonymous: _anonymous,
}
