"""Values: frozen dataclasses whose annotations say how each field is read.

A field's annotation is its type and a reader, a function of the value given and of the field's name that returns the
value held, or refuses it in one sentence. `Positive`, for example, takes every `Number` and holds a `Fraction` above 0.

    >>> @frozen
    ... class Noise:
    ...     scale: Positive
    ...     _: KW_ONLY
    ...     draws: Whole = 1
    >>> Noise("1/2", draws=3)
    Noise(scale=Fraction(1, 2), draws=3)
    >>> Noise(0)
    Traceback (most recent call last):
        ...
    noisette.errors.InputError: scale must be above 0: noise for scale = 0 or less does not exist.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, fields
from decimal import Context, Decimal
from fractions import Fraction
from functools import wraps
from inspect import get_annotations
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeAlias, TypeVar, dataclass_transform

from noisette.exact.number import Number, fraction, positive, whole
from noisette.names import closest

__all__ = ["KW_ONLY", "Exact", "Positive", "Read", "Whole", "default", "frozen", "optional", "readable", "set_fields"]

T = TypeVar("T")
Given = TypeVar("Given")
Held = TypeVar("Held")
Reader: TypeAlias = Callable[[Any, str], Any]

_SHORT = 8  # characters of a number that is shown as it is


@dataclass(frozen=True)
class _Takes:
    """The type that a field takes, beside the one it holds."""

    given: Any


class Read(Generic[Given, Held]):
    """The type of a field that takes one type and holds another: `Read[Number, Fraction]`."""

    if TYPE_CHECKING:

        def __get__(self, owner: object, kind: object) -> Held: ...

        def __set__(self, owner: object, given: Given) -> None: ...

    else:

        def __class_getitem__(cls, types: tuple[Any, Any]) -> Any:
            return Annotated[types[1], _Takes(types[0])]


Exact: TypeAlias = Annotated[Read[Number, Fraction], fraction]
Positive: TypeAlias = Annotated[Read[Number, Fraction], positive]
Whole: TypeAlias = Annotated[int, whole]


def optional(reader: Reader) -> Reader:
    """Return the reader that also takes None, and leaves it as it is."""
    return lambda given, name: None if given is None else reader(given, name)


def default(value: Any) -> Any:
    """Return what a field of type `Read` is given where a call leaves it out."""
    return value


def set_fields(value: object, **fields: object) -> None:
    """Set fields of a frozen value while it is made: those that depend on others."""
    for name, held in fields.items():
        object.__setattr__(value, name, held)


@dataclass_transform(field_specifiers=(field,))  # without frozen_default, for which mypy mistakes inherited fields
def frozen(kind: type[T]) -> type[T]:
    """Make a class a frozen dataclass that reads its fields, and then runs its own `__post_init__`, if it has one.

    A class that extends another frozen one reads and checks the fields of that one first.
    """
    hints = get_annotations(kind, eval_str=True)
    readers: list[tuple[str, Reader]] = [
        (name, part) for name, hint in hints.items() for part in getattr(hint, "__metadata__", ()) if callable(part)
    ]
    inherited, check = getattr(super(kind, kind), "__post_init__", None), vars(kind).get("__post_init__")

    def read(self: Any) -> None:
        if inherited is not None:
            inherited(self)
        for name, reader in readers:
            object.__setattr__(self, name, reader(getattr(self, name), name))
        if check is not None:
            check(self)

    if readers or check:
        kind.__post_init__ = read  # type: ignore[attr-defined]
    made = dataclass(frozen=True)(kind)
    made.__init__.__annotations__.update({name: _taken(hint) for name, hint in made.__init__.__annotations__.items()})
    if hasattr(made, "calibrated"):
        made.__init__ = _known_only(made.__init__, [field.name for field in fields(made)])  # type: ignore[method-assign,arg-type]
    return made


_GUARANTEES = ("epsilon", "eps", "delta", "rho", "sensitivity")


def _known_only(make: Callable[..., None], names: list[str]) -> Callable[..., None]:
    """The constructor of a mechanism, which says the right call where it is given a name that it does not have."""

    @wraps(make)
    def init(self: Any, *given: Any, **named: Any) -> None:
        for name in [name for name in named if name not in names]:
            kind = type(self).__name__
            right = f"for a guarantee write calibrate({kind}, epsilon=1, sensitivity=1)."
            said = right if name in _GUARANTEES else closest(name, names)
            raise TypeError(f"{kind} takes {', '.join(names)} and no {name}: {said}")
        make(self, *given, **named)

    return init


def readable(value: Any) -> str:
    """A value as people read it: short numbers as they are, long ones rounded behind ≈.

    It is for people alone: two values may look the same.
    """
    shown = ", ".join(_shown(field.name, getattr(value, field.name)) for field in fields(value) if field.repr)
    return f"{type(value).__name__}({shown})"


def _shown(name: str, value: Any) -> str:
    if not isinstance(value, Fraction):
        return f"{name}={value!r}"
    if len(str(value)) <= _SHORT:
        return f"{name}={value}"
    if value.numerator == 1 and value.denominator.bit_count() == 1:
        return f"{name}=2^-{value.denominator.bit_length() - 1}"
    rounded = Context(prec=4).divide(Decimal(value.numerator), Decimal(value.denominator))
    return f"{'σ' if name == 'sigma' else name} ≈ {float(rounded):.4g}"


def _taken(hint: Any) -> Any:
    """What a constructor shows as the type of a field: what it takes, without readers."""
    parts = getattr(hint, "__metadata__", None)
    return hint if parts is None else next((x.given for x in parts if isinstance(x, _Takes)), hint.__origin__)
