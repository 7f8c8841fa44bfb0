"""A mechanism as a record, and back: the name of its class and each of its dataclass fields as a text.

A stored name means the same class for ever. Where a class was renamed, `_STORED` keeps the name that records have.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import cache
from inspect import signature
from typing import Any, get_args, get_type_hints

from noisette.errors import InputError
from noisette.exact.number import float_of, fraction_of, whole_of
from noisette.mechanisms.catalogue import instances, mechanisms
from noisette.mechanisms.contract import Mechanism
from noisette.privacy.neighbours import Neighbours
from noisette.privacy.sensitivity import Sensitivity

__all__ = ["from_record", "number_of", "to_record"]

_STORED = {"GumbelTop": "Top", "TriangleCount": "Triangles", "TrimmedAverage": "TrimmedMean"}
_WORDS = {"None": None, "True": True, "False": False}
_READERS: dict[type, Callable[[object, str], Any]] = {Fraction: fraction_of, int: whole_of, float: float_of}
_NUMBER = "A number of the record"


def to_record(mechanism: Any, measure: str, sensitivity: Sensitivity, *, grid: Any = 1) -> dict[str, Any]:
    """Return a mechanism with what it is applied to: a measure in steps of a grid, and how far one person moves it.

    >>> from noisette.mechanisms import Geometric
    >>> from noisette.privacy.sensitivity import count
    >>> record = to_record(Geometric("5/2"), "rows", count())
    >>> record["mechanism"], record["parameters"], record["sensitivity"]["l1"]
    ('Geometric', {'scale': '5/2'}, '1')
    """
    return {
        "mechanism": _stored_name(type(mechanism)),
        "parameters": _texts(mechanism),
        "measure": measure,
        "grid": str(grid),
        "sensitivity": {
            "l0": sensitivity.l0,
            "l1": str(sensitivity.l1),
            "l2_squared": str(sensitivity.l2_squared),
            "linf": str(sensitivity.linf),
        },
    }


def from_record(record: Mapping[str, Any]) -> Any:
    """Build the mechanism of a record again.

    >>> from_record({"mechanism": "Top", "parameters": {"scale": "2", "candidates": "4", "k": "2"}})
    GumbelTop(scale=Fraction(2, 1), candidates=4, k=2, monotone=False)
    """
    name = record["mechanism"]
    known = {_stored_name(kind): kind for kind in mechanisms().values()}
    if name not in known:
        raise InputError(f"No mechanism here is called {name}: check the record with a newer version.")
    return _built(known[name], record["parameters"])


def number_of(text: object) -> Fraction:
    """An exact number of a record, such as a sensitivity or an epsilon.

    >>> number_of("1/3")
    Fraction(1, 3)
    """
    return fraction_of(text, _NUMBER)


def _stored_name(kind: type) -> str:
    """The name of a class in records; that of the class it extends, if it is not one of this package."""
    own = next(base for base in kind.__mro__ if base.__module__.startswith(f"{__package__}."))
    return _STORED.get(own.__name__, own.__name__)


def _texts(value: Any) -> dict[str, Any]:
    return {field.name: _text(getattr(value, field.name)) for field in fields(value)}


def _text(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_text(part) for part in value]
    if is_dataclass(value):
        return {"name": _stored_name(type(value)), **_texts(value)}
    return str(value)


def _built(kind: type, parameters: Mapping[str, Any]) -> Any:
    """The value whose constructor takes the parameters; a field that the class fixes must be as recorded."""
    hints, taken = get_type_hints(kind), signature(kind).parameters
    values = {name: _value(hints[name], text) for name, text in parameters.items()}
    made = kind(**{name: value for name, value in values.items() if name in taken})
    if any(getattr(made, name) != value for name, value in values.items()):
        raise ValueError("A parameter of the record is not one that the mechanism can have.")
    return made


def _value(hint: Any, text: Any) -> Any:
    """Read a text as what a field holds."""
    if isinstance(text, dict):
        return _built(_parts()[text["name"]], {name: part for name, part in text.items() if name != "name"})
    if isinstance(text, list):
        return tuple(_value(hint, part) for part in text)
    if text in _WORDS:
        return _WORDS[text]
    held = _held(hint)
    if Neighbours in held:
        return Neighbours(text)
    return next((read(text, _NUMBER) for kind, read in _READERS.items() if kind in held), text)


def _held(hint: Any) -> set[Any]:
    """The types within a union or a tuple, however deep."""
    return {hint}.union(*(_held(part) for part in get_args(hint)))


@cache
def _parts() -> dict[str, type]:
    """The dataclasses that mechanisms have in their fields, such as statistics, by their stored names."""
    values = (getattr(m, field.name) for m in instances() for field in fields(m))
    return {
        _stored_name(type(value)): type(value)
        for value in values
        if is_dataclass(value) and not isinstance(value, Enum | Mechanism)
    }
