"""Records of a holdout or a training set, and a function of each of them: on the holdout nothing that it does is shown.

A question is sound if what a record contributes depends on that record alone. So a function is called for one record at
a time by default, each time with a copy. Where it is called for all at once, which is much faster, and fails on the
holdout, it is called row by row there. In either case it is first held against itself on the training set, in another
order and row by row: what depends on other records is refused there.

On the holdout a value outside of [0, 1] is put at the nearer end; NaN, an exception and anything that is no number
count as 0, and warnings are not shown. On the training set each of them is refused.
"""

import copy
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError

__all__ = ["Floats", "Given", "Records", "checked", "clamped", "compared", "numbers", "on_grid", "quiet", "values"]

Floats: TypeAlias = NDArray[np.float64]
Given: TypeAlias = Literal["record", "row", "all"]
"""What a function is called with: one record (x, y), a table of one row and one label, or all rows and labels."""

_LOOKED_AT = 32  # rows of the training set on which a function of all rows is held against itself
_NEAR = 1e-6  # the largest difference between floats of one row in two batches


@dataclass(frozen=True, repr=False)
class Records:
    """Features and, where there are any, labels: copies that nobody else holds."""

    X: Any
    y: Any

    @staticmethod
    def of(X: Any, y: Any, name: str) -> "Records":
        """Copy records; `name` is what errors call them."""
        kept = Records(_own(X), None if y is None else np.array(y))
        if len(kept) == 0:
            raise InputError(f"The {name} is empty: give it at least one record.")
        if y is not None and (kept.y.ndim == 0 or len(kept.y) != len(kept)):
            raise InputError(f"The {name} needs one label for each record: X and y must be equally long.")
        return kept

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def all(self) -> tuple[Any, ...]:
        """A copy of everything: (X, y), or (X,) without labels."""
        parts = (self.X,) if self.y is None else (self.X, self.y)
        return tuple(copy.deepcopy(part) for part in parts)

    def each(self, given: Given, few: int | None = None) -> Iterator[tuple[Any, ...]]:
        """A copy of each record, or of the first few: by itself or as a table of one row."""
        for i in range(len(self) if few is None else min(few, len(self))):
            at: Any = i if given == "record" else slice(i, i + 1)
            X = self.X.iloc[at] if hasattr(self.X, "iloc") else self.X[at]
            parts = (X,) if self.y is None else (X, self.y[at])
            yield tuple(copy.deepcopy(part) for part in parts)


def _own(X: Any) -> Any:
    if hasattr(X, "iloc"):
        return X.copy()
    try:
        X = X.copy() if hasattr(X, "tocsr") else np.array(X)
    except ValueError:
        raise InputError("X must be an array or a frame with one row for each record.") from None
    if X.ndim == 0:
        raise InputError("X must be an array or a frame with one row for each record.")
    return X.tocsr() if hasattr(X, "tocsr") else X


@contextmanager
def quiet() -> Iterator[None]:
    """Show no warnings, neither of Python nor of numpy."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def values(phi: Callable[..., Any], records: Records, given: Given) -> Floats:
    """The value of each record of a holdout, between 0 and 1, whatever the function does."""
    return clamped(numbers(phi, records, given))


def numbers(phi: Callable[..., Any], records: Records, given: Given) -> Floats:
    """A number for each record of a holdout, whatever the function does; what is no number is 0."""
    with quiet():
        found = _whole(phi, records) if given == "all" else None
        if found is None:
            one: Given = "row" if given == "all" else given
            found = np.array([_single(phi, each) for each in records.each(one)])
        return np.where(np.isnan(found), 0.0, found)


def _whole(phi: Callable[..., Any], records: Records) -> Floats | None:
    try:
        found = np.asarray(phi(*records.all()), dtype=float)
        return found if found.shape == (len(records),) else None
    except BaseException:  # any exception may reveal a record
        return None


def _single(phi: Callable[..., Any], row: tuple[Any, ...]) -> float:
    try:
        found = np.asarray(phi(*row), dtype=float)
        return float(found.reshape(())) if found.size == 1 else 0.0
    except BaseException:
        return 0.0


def clamped(found: Floats) -> Floats:
    """Values between 0 and 1.

    >>> clamped(np.array([-1, 0.5, np.inf])).tolist()
    [0.0, 0.5, 1.0]
    """
    return np.clip(found, 0.0, 1.0)


def on_grid(found: Floats, grid: int) -> int:
    """The sum of values in [0, 1], each rounded to a multiple of 1/grid, in steps of 1/grid.

    >>> on_grid(np.array([0.5, 0.26, 1]), 10)
    18
    """
    return sum(np.floor(found * grid + 0.5).astype(np.int64).tolist())


# The training set


def checked(phi: Callable[..., Any], records: Records, given: Given, named: str) -> Floats:
    """The value of each record of the training set, between 0 and 1, or a sentence on what is wrong."""
    found = compared(phi, records, given, named)
    if not np.all((found >= 0) & (found <= 1)):
        raise InputError(
            f"{named} leaves [0, 1] on the training set: scale it, for example (value - low)/(high - low) with public "
            "bounds."
        )
    return found


def compared(phi: Callable[..., Any], records: Records, given: Given, named: str) -> Floats:
    """A number for each record of the training set; it must be the same in another call and in another order."""
    if given == "all":
        found = _array(_called(phi, records.all(), named), len(records), named)
    else:
        found = np.array([_number(_called(phi, each, named), named) for each in records.each(given)])
    few = list(records.each("row" if given == "all" else given, _LOOKED_AT))
    for i, each in reversed(list(enumerate(few))):
        again = _number(_called(phi, each, named), named)
        if not np.isclose(again, found[i], rtol=_NEAR, atol=_NEAR, equal_nan=True):
            more = ": let it see one at a time, with row_by_row=True" if given == "all" else ", or on chance"
            raise InputError(f"What {named[0].lower() + named[1:]} gives for a record depends on other records{more}.")
    return found


def _called(phi: Callable[..., Any], given: tuple[Any, ...], named: str) -> Any:
    try:
        return phi(*given)
    except Exception as fault:
        kind = type(fault).__name__
    raise InputError(f"{named} raised {kind} on the training set: make it work for every record there.")


def _array(found: Any, size: int, named: str) -> Floats:
    try:
        array = np.asarray(found, dtype=float)
    except (TypeError, ValueError):
        array = np.zeros((0, 0))
    if array.shape != (size,):
        raise InputError(f"{named} must give one number for each record.")
    return array


def _number(found: Any, named: str) -> float:
    flat = found.reshape(-1) if isinstance(found, np.ndarray) else [found]
    return float(_array(flat, 1, named)[0])
