"""Error bars that are wider than what they measure: a sentence for each such number, and what would help.

A bar says little if it is as wide as all that declarations allow, or if the number is smaller than its own bar. Both
are read off released numbers and declarations alone. Noise, and so a bar, shrinks as 1/epsilon, and as 1/sqrt(rho).
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from noisette.answers.column import Column

__all__ = ["more", "nothing", "warnings"]

_TENTH, _FIFTH = 10, 5
_MOST = 10_000
_NARROW = 2  # ± 1 is all of it
_HALF = 4  # a half-width above a fourth of all that is possible


def warnings(columns: Sequence[Column], *, squared: bool) -> tuple[str, ...]:
    """What to know about an answer before it is used; `squared` if bars shrink with the root of what is spent.

    >>> import pyarrow
    >>> n = Column("n", pyarrow.array([89]), np.array([-390.0]), np.array([568.0])).within((0.0, 20.0))
    >>> warnings([n], squared=False)[0]
    'n: the error bar is no narrower than all that is possible, 0 to 20; for ± 2 spend about 240 times as much.'
    """
    grouped = any(not column.measured for column in columns)
    return tuple(text for column in columns if column.measured for text in _of(column, grouped, squared=squared))


def _of(column: Column, grouped: bool, *, squared: bool) -> Iterator[str]:
    values, half = np.asarray(column.values.to_numpy(zero_copy_only=False), dtype=float), column.half
    (low, high), span = column.unmoved, column.span
    known, width = ~np.isnan(values) & (half > 0), span[1] - span[0]
    groups = ", or ask for larger groups" if grouped else ""
    missing = np.isnan(values) & ~column.suppressed
    if missing.any():
        yield f"{column.name}: {_where(missing)}no answer, since too few rows vouch for one; spend more{groups}."
    wide, whole = known & (high - low >= width * (1 - 1e-9)), np.issubdtype(column.values.type.to_pandas_dtype(), int)
    if math.isfinite(width) and wide.any():
        said = nothing(float(half[wide].max()), span, whole=bool(whole), squared=squared)
        yield f"{column.name}: {_where(wide)}{said}{groups}."
        return
    if column.endless and (open_ended := known & np.isinf(half)).any():
        yield f"{column.name}: {_where(open_ended)}the error bar has no upper end, since {column.endless}."
        return
    unsure = known & (half > np.abs(values)) & (span[0] >= 0 or span[1] <= 0 or math.isinf(width))
    if unsure.any():
        with np.errstate(divide="ignore"):
            times = more(float(np.median(_FIFTH * half[unsure] / np.abs(values[unsure]))), squared=squared)
        said = f"the error bar exceeds the number itself; for a fifth of it {times}"
        yield f"{column.name}: {_where(unsure)}{said}{groups}."
    elif span[0] < 0 < span[1] and (most := known & (_HALF * half > width)).any():
        times = more(float(np.median(2 * _TENTH * half[most] / width)), squared=squared)
        said = f"the error bar spans more than half of all that is possible; for a tenth of that {times}"
        yield f"{column.name}: {_where(most)}{said}{groups}."


def nothing(half: float, span: tuple[float, float], *, whole: bool, squared: bool) -> str:
    """What to say of a bar that says nothing, as wide as the span of all that is possible or wider."""
    if span[0] == span[1]:
        return f"by what is declared it can be nothing but {_number(span[0])}"
    aim = (span[1] - span[0]) / _TENTH
    aim = max(1.0, round(aim)) if whole and span[1] - span[0] > _NARROW else aim
    ends = f"{_number(span[0])} to {_number(span[1])}"
    times = more(half / aim, squared=squared)
    return f"the error bar is no narrower than all that is possible, {ends}; for ± {_number(aim)} {times}"


def more(factor: float, *, squared: bool) -> str:
    """How many times as much makes a bar smaller by a factor.

    >>> more(239.5, squared=False), more(12, squared=True), more(math.inf, squared=False)
    ('spend about 240 times as much', 'spend about 150 times as much', 'spend more than 10,000 times as much')
    """
    times = factor**2 if squared else factor
    if times > _MOST:
        return f"spend more than {_MOST:,} times as much"
    digits = 10 ** max(0, math.floor(math.log10(max(times, 1))) - 1)
    return f"spend about {max(2, math.ceil(times / digits) * digits):,} times as much"


def _where(rows: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> str:
    return "" if len(rows) == 1 else f"in {int(rows.sum()):,} of {len(rows):,} rows "


def _number(value: float) -> str:
    return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.0f}"
