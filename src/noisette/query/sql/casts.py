"""Casts that cannot fail: to a type that holds every value, or of a text, which is NULL where it cannot be read."""

from sqlglot import exp

from noisette.errors import InputError
from noisette.query.expression import Call, Expression, Literal, Operation
from noisette.query.kind import Kind
from noisette.query.operations import kind_of
from noisette.query.sql.names import Scope, date, timestamp
from noisette.query.written_size import repeated

__all__ = ["as_number", "cast", "constant_cast"]

_BITS = {
    exp.DType.TINYINT: 8,
    exp.DType.SMALLINT: 16,
    exp.DType.INT: 32,
    exp.DType.BIGINT: 64,
}
_TEXTS = (exp.DType.TEXT, exp.DType.VARCHAR)
_TIMESTAMPS = (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPNTZ)
_READ: dict[exp.DType, Operation] = {exp.DType.DOUBLE: "try_real", exp.DType.DATE: "try_date"}


def constant_cast(text: str, wanted: exp.DType) -> Literal:
    """A text of the query as a date or timestamp."""
    if wanted == exp.DType.DATE:
        return Literal(date(text))
    if wanted in _TIMESTAMPS:
        return Literal(timestamp(text))
    raise InputError("Write a constant of the right type in place of a cast: 3, 0.5, 'text' or DATE '2020-01-31'.")


def cast(value: Expression, wanted: exp.DType, scope: Scope, *, can_fail: bool) -> Expression:
    """A value as another type; `can_fail` is TRY_CAST: a text that cannot be read becomes NULL."""
    kind = kind_of(value, scope.columns)
    match kind.type:
        case "text" if wanted in _TEXTS:
            return value
        case "text":
            return _read(value, wanted, can_fail)
        case "integer" | "real" if wanted == exp.DType.DOUBLE:
            return value
        case "integer" if wanted in _BITS and _fits(kind, _BITS[wanted]):
            return value
        case "integer" | "boolean" | "date" if wanted in _TEXTS:
            return Call("as_text", (value,))
        case "boolean" if wanted in _BITS:
            return as_number(value, kind)
        case "date" | "timestamp" if wanted in (exp.DType.DATE, *_TIMESTAMPS):
            same = (kind.type == "date") == (wanted == exp.DType.DATE)
            return value if same else Call("as_date" if wanted == exp.DType.DATE else "as_timestamp", (value,))
        case "real" if wanted in _BITS:
            raise InputError("A cast to whole numbers rounds in a way of its own: write ROUND(x) or FLOOR(x).")
    raise InputError(
        "This cast is not answered because it can fail: leave it out, or write TRY_CAST(x AS INTEGER) of a text."
    )


def _fits(kind: Kind, bits: int) -> bool:
    return bits == 64 or (kind.magnitude is not None and kind.magnitude < 2 ** (bits - 1))


def _read(value: Expression, wanted: exp.DType, can_fail: bool) -> Expression:
    if not can_fail:
        raise InputError("CAST of a text fails where it cannot be read: write TRY_CAST, which is NULL there.")
    if wanted in _READ:
        return Call(_READ[wanted], (value,))
    if wanted not in _BITS:
        raise InputError("Texts are read as numbers and dates: write TRY_CAST(x AS INTEGER), DOUBLE or DATE.")
    number, bits = Call("try_integer", (value,)), _BITS[wanted]
    if bits == 64:
        return number
    low, high = Literal(-(2 ** (bits - 1))), Literal(2 ** (bits - 1) - 1)
    inside = Call("and", (Call("at_least", (number, low)), Call("at_most", (number, high))))
    repeated(number, 3)
    return Call("case", (inside, Call("least", (Call("greatest", (number, low)), high)), Literal(None)))


def as_number(value: Expression, kind: Kind) -> Expression:
    """1 where a condition holds and 0 where it does not."""
    if not kind.nullable:
        return Call("case", (value, Literal(1), Literal(0)))
    repeated(value, 2)
    return Call("case", (value, Literal(1), Call("not", (value,)), Literal(0), Literal(None)))
