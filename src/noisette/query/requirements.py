"""What an operation asks of its arguments, and the sentences that say what to write instead."""

import datetime
from collections.abc import Mapping, Sequence
from fractions import Fraction

from noisette.errors import InputError
from noisette.query.expression import Call, Expression, Literal, Name, Operation
from noisette.query.kind import LARGEST, Kind, Type

__all__ = [
    "SIGNS", "alike", "all_of", "bounded", "called", "constants", "moment", "near_zero", "not_null", "numbers",
    "only_null", "operator",
]  # fmt: skip

SIGNS: Mapping[Operation, str] = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "negate": "-", "is_null": "IS NULL",
    "equal": "=", "unequal": "<>", "less": "<", "at_most": "<=", "more": ">", "at_least": ">=",
    "modulo": "%", "concat": "||",
}  # fmt: skip


_WORDS: Mapping[Operation, str] = {
    "add_months": "INTERVAL", "add_days": "INTERVAL", "add_seconds": "INTERVAL", "day_number": "DATE_DIFF",
    "matches": "REGEXP_MATCHES", "weekday": "ISODOW", "day_of_year": "DAYOFYEAR",
    "weekday_name": "DAYNAME", "month_name": "MONTHNAME", "as_text": "CAST", "as_date": "CAST",
    "as_timestamp": "CAST", "try_integer": "TRY_CAST", "try_real": "TRY_CAST", "try_date": "TRY_CAST",
}  # fmt: skip


def operator(call: Call) -> str:
    """How the analyst writes an operation."""
    return SIGNS.get(call.operation) or _WORDS.get(call.operation, call.operation.upper())


def only_null(kind: Kind) -> bool:
    """Whether it is the kind of a written NULL, which goes with every type."""
    return kind.keys == ()


def moment(end: Fraction, type: Type) -> datetime.date:
    """The date, or the timestamp, that a bound stands for.

    >>> moment(Fraction(18262), "date")
    datetime.date(2020, 1, 1)
    """
    try:
        if type == "date":
            return datetime.date(1970, 1, 1) + datetime.timedelta(days=int(end))
        return datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=int(end))
    except OverflowError:
        raise InputError("Bounds of dates stay between the years 1 and 9999.") from None


# What a rule asks of its arguments


def called(argument: Expression) -> str:
    """The name of a column, for a sentence."""
    return argument.name.rpartition(".")[2] if isinstance(argument, Name) else "this value"


def not_null(call: Call, kinds: Sequence[Kind]) -> None:
    """No argument is a written NULL."""
    if any(only_null(kind) for kind in kinds):
        raise InputError(f"{operator(call)} cannot be used with NULL: write IS NULL to find what is missing.")


def all_of(type: Type, call: Call, kinds: Sequence[Kind], arguments: Sequence[Expression] | None = None) -> None:
    """All are of this type."""
    not_null(call, kinds)
    for argument, kind in zip(arguments or call.arguments, kinds, strict=True):
        if kind.type != type:
            instead = "a condition such as age >= 18" if type == "boolean" else f"a column of type {type}"
            raise InputError(f"{operator(call)} needs {type}, and {called(argument)} is {kind.type}: write {instead}.")


def numbers(call: Call, kinds: Sequence[Kind]) -> None:
    """All are numbers."""
    not_null(call, kinds)
    for argument, kind in zip(call.arguments, kinds, strict=True):
        if not kind.number:
            raise InputError(
                f"{operator(call)} needs numbers, and {called(argument)} is {kind.type}: use a numeric column."
            )


def near_zero(argument: Expression) -> str | None:
    """What to write in place of a quotient or a logarithm without bounds; None of anything else.

    The remedy leaves rows as they are whose values lie within the bounds; other divisors would make other quotients.

    >>> near_zero(Call("divide", (Name("v.price"), Name("v.carat"))))[:60]
    'price / carat has no bounds, since carat can come near to 0:'
    """
    if not isinstance(argument, Call) or argument.operation not in ("divide", "ln", "log2", "log10"):
        return None
    quotient = argument.operation == "divide"
    parts = zip(argument.arguments, "xy", strict=False)
    names = [part.name.rpartition(".")[2] if isinstance(part, Name) else letter for part, letter in parts]
    written = " / ".join(names) if quotient else f"{operator(argument)}({names[0]})"
    bounds = f"LEAST(GREATEST({written}, low), high)" if quotient else f"GREATEST({written}, low)"
    return (
        f"{written} has no bounds, since {names[-1]} can come near to 0: write {bounds} with bounds that hold for it, "
        "or let the owner declare a grid."
    )


def bounded(call: Call, kinds: Sequence[Kind]) -> None:
    """All are numbers with both bounds."""
    numbers(call, kinds)
    for argument, kind in zip(call.arguments, kinds, strict=True):
        if kind.magnitude is None and (sentence := near_zero(argument)):
            raise InputError(sentence)
        if kind.magnitude is None:
            column = isinstance(argument, Name)
            declare = f"declare bounds for {called(argument)} in the policy, or " if column else ""
            x = called(argument) if column else "x"
            raise InputError(f"{operator(call)} needs bounds: {declare}write LEAST(GREATEST({x}, 0), 120).")
        if kind.magnitude > LARGEST:
            raise InputError(f"{operator(call)} needs numbers within ±2^52: write smaller constants.")


def alike(call: Call, kinds: Sequence[Kind]) -> None:
    """All are of one type; integers and reals go together."""
    families = dict.fromkeys("number" if kind.number else kind.type for kind in kinds)
    if len(families) > 1:
        typed = {"date": "write DATE '2020-01-31'", "timestamp": "write TIMESTAMP '2020-01-31 12:00:00'"}
        instead = next((typed[family] for family in families if family in typed), "use values of one type")
        raise InputError(f"{operator(call)} cannot mix {' and '.join(families)}: {instead}.")


def constants(call: Call, arguments: Sequence[Expression]) -> None:
    """These are written down."""
    if not all(isinstance(argument, Literal) for argument in arguments):
        raise InputError(f"{operator(call)} needs constants on its right: write them out, or join conditions with OR.")
