"""Columns of a synthetic table: values of the data to codes, and codes back to values of the same type.

A column with declared keys has a code for each; one with bounds has a code for each value, or for each of some bins of
equal width. NULL is the last code, where it is possible. Values come back anywhere inside their bin, on the column's
own grid, so nothing outside the declared domain ever appears.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.random import Random
from noisette.query.expression import Expression
from noisette.query.kind import Kind, Value
from noisette.query.types import ARROW
from noisette.releases.axis import Axis
from noisette.releases.synthetic.particles import uniforms
from noisette.releases.synthetic.tables import Attribute

__all__ = ["SyntheticColumn", "as_stored"]

_STORED: dict[str, Any] = {
    "TINYINT": pyarrow.int8(), "SMALLINT": pyarrow.int16(), "INTEGER": pyarrow.int32(), "UTINYINT": pyarrow.uint8(),
    "USMALLINT": pyarrow.uint16(), "UINTEGER": pyarrow.uint32(), "FLOAT": pyarrow.float32(),
    "DOUBLE": pyarrow.float64(), "BIGINT": pyarrow.int64(), "DATE": pyarrow.date32(),
    "ENUM": pyarrow.dictionary(pyarrow.int32(), pyarrow.string()),
}  # fmt: skip
_MOST = 100_000  # values of one column


@dataclass(frozen=True)
class SyntheticColumn:
    """A column, its cells, and the expression that the engine groups by.

    >>> from noisette.exact.random import SYSTEM
    >>> from noisette.query.expression import Name
    >>> ages = SyntheticColumn.of("age", Kind("integer", Fraction(18), Fraction(20), Fraction(1)), Name("t.age"), 256)
    >>> ages.size, ages.values(np.array([0, 2, 3]), SYSTEM).to_pylist()
    (4, [18, 20, None])
    """

    name: str
    axis: Axis
    key: Expression

    @classmethod
    def of(cls, name: str, kind: Kind, key: Expression, bins: int) -> "SyntheticColumn":
        """A column as it is declared, or a sentence on what to declare."""
        if kind.keys is None and kind.type != "boolean" and not kind.bounded:
            raise InputError(
                f"{name} has no declared values: declare its keys or bounds in the policy, buy them with keys(column, "
                'spend=...) or bounds(column, spend=...), or leave it out with columns=["ward", "age"].'
            )
        listed = kind.keys is not None or kind.type == "boolean"
        axis = Axis.of(name, kind, None if listed else bins)
        if axis.cells > _MOST:
            raise InputError(f"{name} has more than {_MOST:,} declared values: declare fewer keys, or leave it out.")
        return cls(name, axis, axis.cell(key) if axis.binned else key)

    @property
    def kind(self) -> Kind:
        """What is declared of its values."""
        return self.axis.kind

    @property
    def size(self) -> int:
        """How many codes there are."""
        return self.axis.cells + self.kind.nullable

    @property
    def attribute(self) -> Attribute:
        """The same for the synthesiser; what is declared by bounds is ordered, and keys are categories."""
        return Attribute(self.name, self.size, self.axis.keys is None, self.kind.nullable)

    def codes(self, column: pyarrow.Array) -> NDArray[np.int64]:
        """The code of each value that the engine found; -1 for what is not declared."""
        there, places = self.axis.places(column)
        found = np.full(len(column), -1, np.int64)
        found[there] = places
        if self.kind.nullable:
            found[np.asarray(column.is_null(nan_is_null=True).to_numpy(zero_copy_only=False), bool)] = self.axis.cells
        return found

    # Back to values

    def values(self, codes: NDArray[np.int64], rng: Random) -> pyarrow.Array:
        """Values of some codes, anywhere inside their bins."""
        null = codes >= self.axis.cells
        if self.axis.keys is not None:
            keys = pyarrow.array([_plain(key) for key in self.axis.keys], ARROW[self.kind.type])
            return keys.take(pyarrow.array(np.where(null, 0, codes), mask=null))
        cells = np.where(null, 0, codes)
        low, high = self.kind.ends
        step = self.kind.grid if self.kind.type == "real" else self.kind.grid or Fraction(1)
        if step is None:
            reals = float(self.axis.first) + (cells + uniforms(len(cells), rng)) * float(self.axis.width)
            digits = 2 - math.floor(math.log10(self.axis.width))  # a hundredth of a bin, at most
            return pyarrow.array(np.clip(reals.round(digits), float(low), float(high)), ARROW["real"], mask=null)
        first, last = math.ceil(low / step), math.floor(high / step)
        each = max(1, round(self.axis.width / step))
        steps = round(self.axis.first / step) + cells * each + np.floor(uniforms(len(cells), rng) * each).astype(int)
        return self._stepped(np.clip(steps, first, last), step, null)

    def _stepped(self, steps: NDArray[np.int64], step: Fraction, null: NDArray[np.bool_]) -> pyarrow.Array:
        if self.kind.type == "real":
            return pyarrow.array(steps * step.numerator / step.denominator, ARROW["real"], mask=null)
        whole = pyarrow.array(steps * step.numerator // step.denominator, mask=null)
        if self.kind.type == "date":
            return whole.cast(pyarrow.int32()).cast(pyarrow.date32())
        return whole.cast(ARROW[self.kind.type])


def as_stored(values: pyarrow.Array, stored: str) -> pyarrow.Array:
    """Values with the type that the column is stored as, if they fit it."""
    wanted = _STORED.get(stored.upper().partition("(")[0].strip())
    if wanted is None or wanted == values.type:
        return values
    try:
        return values.dictionary_encode() if stored == "ENUM" else values.cast(wanted)
    except pyarrow.ArrowInvalid:
        return values


def _plain(value: Value) -> Any:
    return float(value) if isinstance(value, Fraction) else value
