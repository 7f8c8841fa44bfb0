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
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from inspect import get_annotations
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeAlias, TypeVar, dataclass_transform

from noisette.exact.number import Number, fraction, positive, whole

__all__ = ["KW_ONLY", "Exact", "Positive", "Read", "Whole", "default", "frozen", "optional", "set_fields"]

T = TypeVar("T")
Given = TypeVar("Given")
Held = TypeVar("Held")
Reader: TypeAlias = Callable[[Any, str], Any]


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
    return made


def _taken(hint: Any) -> Any:
    """What a constructor shows as the type of a field: what it takes, without readers."""
    parts = getattr(hint, "__metadata__", None)
    return hint if parts is None else next((x.given for x in parts if isinstance(x, _Takes)), hint.__origin__)
