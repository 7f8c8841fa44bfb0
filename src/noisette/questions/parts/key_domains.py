"""Declared keys as whole numbers from 0 on, without listing them: values of a column to codes, and back.

A key is one of listed values, or a step of a grid between bounds; then NULL, if there can be one. A value that is not
declared has no code. Nothing here fails on a value.
"""

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.number import fraction
from noisette.query.kind import Kind, Value
from noisette.query.sql.names import date, timestamp
from noisette.query.types import ARROW
from noisette.questions.parts.ruler import Ruler

__all__ = ["KeyDomain", "domain_of"]

_EPOCH = datetime.date(1970, 1, 1)


def domain_of(kind: Kind, name: str) -> "KeyDomain":
    """The domain of a key, or a sentence on what to declare."""
    if kind.count is None:
        raise InputError(f"The values of {name} are unknown: declare its keys, or its bounds and grid, in the policy.")
    if kind.count < 1:
        raise InputError(f"The bounds of {name} leave no value of its grid: widen them in the policy.")
    return KeyDomain(kind, name)


@dataclass(frozen=True)
class KeyDomain:
    """The values of one key and their codes.

    >>> ages = KeyDomain(Kind("integer", Fraction(18), Fraction(99), Fraction(1)), "age")
    >>> ages.size, ages.codes(pyarrow.array([18, 99, None]))[1].tolist(), ages.values(np.array([0, 82])).to_pylist()
    (83, [0, 81, 82], [18, None])
    """

    kind: Kind
    name: str

    @property
    def listed(self) -> tuple[Value, ...] | None:
        """The values, if they are listed."""
        return (False, True) if self.kind.type == "boolean" else self.kind.keys

    @property
    def known(self) -> int:
        """How many values there are, without NULL."""
        assert self.kind.count is not None
        return self.kind.count

    @property
    def size(self) -> int:
        """How many codes there are; the last is NULL, if there can be one."""
        return self.known + self.kind.nullable

    @cached_property
    def _array(self) -> pyarrow.Array:
        return pyarrow.array([_stored(value) for value in self.listed or ()], ARROW[self.kind.type])

    @property
    def _ruler(self) -> Ruler:
        return Ruler(self.kind, self.kind.grid or Fraction(1))

    @property
    def _first(self) -> int:
        assert self.kind.low is not None
        return math.ceil(self.kind.low / self._ruler.grid)

    def codes(self, column: pyarrow.Array) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Where a value is declared, and the codes of those that are."""
        found = np.full(len(column), -1, np.int64)
        if self.listed is not None:
            at = pyarrow.compute.index_in(column.cast(self._array.type, safe=False), value_set=self._array)
            found[:] = at.fill_null(-1).to_numpy(zero_copy_only=False)
            null = np.asarray(column.is_null().to_numpy(zero_copy_only=False), bool)
        else:
            there, steps = self._ruler.steps(column)
            found[there] = np.clip(steps - self._first, 0, self.known - 1)
            null = ~there
        found[null] = self.known if self.kind.nullable else -1
        return found >= 0, found[found >= 0]

    def values(self, codes: NDArray[np.int64]) -> pyarrow.Array:
        """The values of some codes."""
        null = codes >= self.known
        if self.listed is not None:
            return self._array.take(pyarrow.array(codes, mask=null))
        grid = self._ruler.grid
        steps = (np.where(null, 0, codes) + self._first) * grid.numerator
        if self.kind.type == "real":
            return pyarrow.array(steps / grid.denominator, mask=null)  # the nearest doubles
        whole = pyarrow.array(steps // grid.denominator, mask=null)
        return whole.cast(pyarrow.int32()).cast(pyarrow.date32()) if self.kind.type == "date" else whole

    # What an analyst names

    def chosen(self, given: Any) -> tuple[int, "Chosen"]:
        """How many codes are meant by a value, a list of values, or a pair (low, high), and which."""
        if isinstance(given, tuple):
            low, high = self._range(given)
            return max(0, high - low + 1), Chosen(low, high)
        if isinstance(given, list | set | frozenset | range | np.ndarray):
            codes = tuple(sorted({self.code(value) for value in given}))
            return len(codes), Chosen(codes=codes)
        return 1, Chosen(codes=(self.code(given),))

    def code(self, value: Any) -> int:
        """The code of a declared value."""
        plain = value.item() if isinstance(value, np.generic) else value
        if plain is None:
            found = self.known if self.kind.nullable else -1
        elif self.listed is not None:
            read = plain if self.kind.type in ("text", "boolean") else self._number(plain)
            keys = self.listed if self.kind.type in ("text", "boolean") else [self._number(key) for key in self.listed]
            found = next((i for i, key in enumerate(keys) if key == read and type(key) is type(read)), -1)
        else:
            step = self._number(plain) / self._ruler.grid - self._first
            found = int(step) if step.denominator == 1 and 0 <= step < self.known else -1
        if found < 0:
            raise InputError(f"A value is not one of the declared values of {self.name}: name declared ones.")
        return found

    def _range(self, given: Sequence[Any]) -> tuple[int, int]:
        if len(given) != 2 or self.kind.type in ("text", "boolean"):
            raise InputError(f"{self.name} takes a list of values; a pair (low, high) is for numbers and dates.")
        low, high = (self._number(end.item() if isinstance(end, np.generic) else end) for end in given)
        if self.listed is not None:
            keys = [self._number(key) for key in self.listed]
            return sum(key < low for key in keys), sum(key <= high for key in keys) - 1
        grid = self._ruler.grid
        return max(0, math.ceil(low / grid) - self._first), min(self.known - 1, math.floor(high / grid) - self._first)

    def _number(self, value: Any) -> Fraction:
        """A value as a number: dates in days, timestamps in microseconds since 1970."""
        if self.kind.number:
            return fraction(value, f"each value of {self.name}")
        if isinstance(value, str):
            value = date(value) if self.kind.type == "date" else timestamp(value)
        if isinstance(value, datetime.datetime) and self.kind.type == "timestamp":
            return Fraction((value - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1))
        if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
            days = Fraction((value - _EPOCH).days)
            return days if self.kind.type == "date" else days * 86_400_000_000
        raise InputError(f"{self.name} holds {self.kind.type}s: name values of that type.")


@dataclass(frozen=True)
class Chosen:
    """Codes from low to high, or some codes."""

    low: int = 0
    high: int = -1
    codes: tuple[int, ...] | None = None

    def holds(self, codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of some codes are among them."""
        if self.codes is not None:
            return np.isin(codes, np.array(self.codes, np.int64))
        return np.asarray((codes >= self.low) & (codes <= self.high))


def _stored(value: Value) -> Any:
    return float(value) if isinstance(value, Fraction) else value
