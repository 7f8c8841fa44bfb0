"""Questions as data: each goes to JSON and back.

    {"mode": {"column": "ward"}}                    a question's name, and its fields
    {"sql": "SELECT COUNT(*) FROM visits"}          a text in place of fields is the first field

Reading builds values and nothing else: no JSON imports a module, runs a function or reads a file. No sentence of a
refusal quotes the JSON.
"""

import importlib
import inspect
import json
import math
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from types import NoneType
from typing import Any, Literal, NoReturn, get_args, get_origin, get_type_hints

from noisette.errors import InputError
from noisette.exact.number import Number, fraction, whole
from noisette.names import closest
from noisette.query.frame import Frame
from noisette.questions import FILES
from noisette.questions.parts.rows import rows_text

__all__ = ["LARGEST_WHOLE", "JsonQuestion", "from_data", "from_json", "listed"]

LARGEST_WHOLE = 10**15
"""The largest whole number of a question: far beyond all counts, and exact as a float."""

_LONGEST = 1_000_000  # characters
_EXAMPLE = '{"mode": {"column": "ward"}}'


class JsonQuestion:
    """A frozen dataclass whose fields are checked when it is made and can be written as JSON.

    Numbers are kept exactly, and rows that were made with a table's methods as their SQL text.
    """

    def __post_init__(self) -> None:
        """Check and convert each field by its type."""
        kind: Any = type(self)
        for name, hint in _hints(kind).items():
            object.__setattr__(self, name, _converted(getattr(self, name), hint, name))

    def to_json(self) -> str:
        """The question as JSON: `noisette.questions.from_json` reads it, `noisette ask` takes it."""
        return json.dumps(self.to_data(), ensure_ascii=False)

    def to_data(self) -> dict[str, Any]:
        """The question as JSON has it, before it is a text."""
        return {name_of(type(self)): plain(self.fields())}

    def fields(self) -> Any:
        """The fields by name, without those that are as usual."""
        known = parameters(type(self))
        return {name: getattr(self, name) for name, one in known.items() if getattr(self, name) != one.default}


def name_of(question: type) -> str:
    """What a question is called in JSON: like its file."""
    return next(name for name, known in FILES.items() if known == question.__name__)


def parameters(question: type) -> Mapping[str, inspect.Parameter]:
    """The fields of a question by name, with their defaults."""
    return inspect.signature(question).parameters


# Writing


def plain(value: Any) -> Any:
    """A value as JSON has it; exact numbers are texts.

    >>> plain({"q": Fraction(9, 10), "bounds": (0, Fraction(3))})
    {'q': '9/10', 'bounds': [0, 3]}
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float() if math.isfinite(value):
            return value
        case Fraction():
            return value.numerator if value.denominator == 1 else str(value)
        case tuple() | list():
            return [plain(one) for one in value]
        case dict():
            return {name: plain(one) for name, one in value.items()}
        case JsonQuestion():
            return value.to_data()
        case Frame():
            raise InputError('These rows have no SQL text: join one table after the other, or write of="SELECT …".')
        case _:
            raise InputError("A part of this question has no JSON form: use texts, numbers and SQL.")


# Reading


def from_json(text: str) -> Any:
    """The question that a JSON text describes.

    >>> from_json('{"mode": {"column": "ward"}}')
    Mode(column='ward', of=None, lead=False)
    """
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise InputError(f"A question is a JSON text of at most {_LONGEST:,} characters: {_EXAMPLE}.")
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_refused)
        json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        found = None
    if found is None:
        raise InputError(f"The question is not valid JSON: write it like {_EXAMPLE}.")
    return from_data(found)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError
    return dict(pairs)


def _refused(_: str) -> NoReturn:
    raise ValueError


def from_data(found: Any) -> Any:
    """The question that parsed JSON describes."""
    if not isinstance(found, dict) or len(found) != 1:
        raise InputError(f"A question is one name with its fields: {_EXAMPLE}.")
    [(name, given)] = found.items()
    if name not in FILES:
        raise InputError(f"There is no question of that name: {closest(str(name), FILES, 'use one of')}")
    kind = getattr(importlib.import_module(f"noisette.questions.{name}"), FILES[name])
    return kind(**_fields(name, kind, given))


def _fields(name: str, kind: type, given: Any) -> dict[str, Any]:
    known = parameters(kind)
    if isinstance(given, str):
        given = {next(iter(known)): given}
    if not isinstance(given, dict):
        raise InputError(f"The fields of {name} are names and values: {_example(name)}.")
    for field in given:
        if field not in known:
            raise InputError(f"A field is not one of {name}: {closest(field, known, 'it takes')}")
    missing = [one.name for one in known.values() if one.default is one.empty and one.name not in given]
    if missing:
        raise InputError(f"{name} needs {' and '.join(missing)}: {_example(name)}.")
    return given


def _example(name: str) -> str:
    example: str = importlib.import_module(f"noisette.questions.{name}").examples[0].to_json()
    return example


def listed() -> list[dict[str, Any]]:
    """Every question: its name, what it answers, its fields with their defaults, and an example."""
    return [_described(name) for name in FILES]


def _described(name: str) -> dict[str, Any]:
    module = importlib.import_module(f"noisette.questions.{name}")
    kind: type = getattr(module, FILES[name])
    fields = [_field(one) for one in parameters(kind).values()]
    about = " ".join(inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0].split())
    return {"name": name, "about": about, "fields": fields, "example": module.examples[0].to_json()}


def _field(one: inspect.Parameter) -> dict[str, Any]:
    required = one.default is one.empty
    return {"name": one.name, "required": required} | ({} if required else {"default": plain(one.default)})


# Fields


@cache
def _hints(question: type) -> dict[str, Any]:
    hints = get_type_hints(question)
    return {name: hints[name] for name in parameters(question) if name in hints}


def _converted(value: Any, hint: Any, name: str) -> Any:
    """A field as its type has it, or a sentence on what to write."""
    parts = get_args(hint)
    if Frame in parts:
        return rows_text(value)
    if value is None and NoneType in parts:
        return None
    if set(get_args(Number)) <= set(parts):
        return _exact(value, name)
    if get_origin(hint) is not Literal and NoneType in parts:
        return _converted(value, next(part for part in parts if part is not NoneType), name)
    return _checked(value, hint, name)


def _checked(value: Any, hint: Any, name: str) -> Any:
    if get_origin(hint) is Literal:
        if not isinstance(value, str) or value not in get_args(hint):
            raise InputError(f"{name} must be {' or '.join(map(_shown, get_args(hint)))}.")
    elif hint is str:
        if not isinstance(value, str) or not value:
            raise InputError(f'{name} must be a text, such as "age" or "FLOOR(age / 10)".')
    elif hint is bool:
        if not isinstance(value, bool):
            raise InputError(f"{name} must be True or False.")
    elif hint is int:
        return _whole(value, name)
    elif get_origin(hint) is tuple and get_args(hint) == (int, int):
        if not isinstance(value, tuple | list) or len(value) != 2:
            raise InputError(f"{name} must be two whole numbers, such as (3, 4).")
        return tuple(_whole(one, f"each of {name}") for one in value)
    return value


def _whole(value: Any, name: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InputError(f"{name} must be a whole number.")
    return whole(int(value), name, least=-LARGEST_WHOLE, most=LARGEST_WHOLE)


def _exact(value: Any, name: str) -> int | Fraction:
    found = fraction(value, name)
    return found.numerator if found.denominator == 1 else found


def _shown(text: str) -> str:
    return f'"{text}"'
