"""Words of the specification: rows, axes, marks. A field has a plain name of ours; what people call it is its title."""

import datetime
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = ["apart", "axis", "cell", "clipped", "decades", "labels", "log_axis", "rows", "ruled", "spelt", "titled"]

LONGEST = 90  # characters of a title
Spec = dict[str, Any]
_SIZES = ((10**9, 1e9, " bn"), (10**6, 1e6, " M"), (1000, 1e4, " k"))


def cell(value: Any) -> Any:
    """A value as JSON has it: what is not finite becomes null, dates are ISO texts in UTC.

    >>> cell(math.nan), cell(datetime.date(2024, 2, 1)), cell(3.0)
    (None, '2024-02-01', 3.0)
    """
    match value:
        case None | str() | bool() | int():
            return value
        case datetime.datetime():
            at = value.astimezone(datetime.UTC).replace(tzinfo=None) if value.tzinfo else value
            return f"{at.isoformat()}Z"
        case datetime.date():
            return value.isoformat()
        case _:
            number = float(value)
            return number if math.isfinite(number) else None


def rows(**columns: Iterable[Any]) -> Spec:
    """Columns as Vega-Lite's data, one object for each row.

    >>> rows(a=[1, 2], b=["x", "y"])
    {'values': [{'a': 1, 'b': 'x'}, {'a': 2, 'b': 'y'}]}
    """
    cells = zip(*([cell(value) for value in column] for column in columns.values()), strict=True)
    return {"values": [dict(zip(columns, row, strict=True)) for row in cells]}


def labels(keys: Iterable[Any]) -> list[str]:
    """Keys as texts, each one once, so that two groups never share a place.

    >>> labels(["a", None, "NULL", 3])
    ['a', 'NULL', 'NULL (2)', '3']
    """
    found: dict[str, None] = {}
    for key in keys:
        text = spelt(key)
        tries = (f"{text} ({i})" for i in itertools.count(2))
        found[next(name for name in itertools.chain([text], tries) if name not in found)] = None
    return list(found)


def spelt(key: Any) -> str:
    """A key, or several, as text.

    >>> spelt(None), spelt(("a", 3, None))
    ('NULL', 'a, 3, NULL')
    """
    return ", ".join(map(spelt, key)) if isinstance(key, tuple) else "NULL" if key is None else str(key)


def clipped(text: str, most: int = LONGEST) -> str:
    """A text with at most this many characters.

    >>> clipped("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"


def titled(title: str, note: str = "") -> Spec:
    """A title, and below it the lines of a note in grey: one text, or a list if there are several.

    >>> titled("n by ward", "ε = 1"), titled("n", "ε = 1\\nAt most 8 rows are used.")["subtitle"]
    ({'text': 'n by ward', 'subtitle': 'ε = 1'}, ['ε = 1', 'At most 8 rows are used.'])
    """
    if "\n" in note:
        lines = [clipped(line, 115) for line in note.splitlines()]
        return {"text": clipped(title), "subtitle": lines, "subtitleFontSize": 10}
    return {"text": clipped(title), **({"subtitle": clipped(note, 95)} if note else {})}


def axis(title: str, numbers: Iterable[Any], *, ticks: int = 5) -> Spec:
    """A linear axis for numbers: few ticks, in thousands or millions where these are large.

    >>> axis("n", [3, 40_000])["labelExpr"]
    "datum.value ? format(datum.value / 1000, ',.12~g') + ' k' : '0'"
    """
    largest = max((abs(float(n)) for n in numbers if n is not None and math.isfinite(n)), default=0.0)
    size, suffix = next(((size, suffix) for size, least, suffix in _SIZES if largest >= least), (1, ""))
    text = f"datum.value ? format(datum.value / {size}, ',.12~g') + '{suffix}' : '0'"
    return {"title": clipped(title), "tickCount": ticks, "labelExpr": text}


def log_axis(title: str, low: float, high: float) -> Spec:
    """A logarithmic axis with a tick at each power of ten, and at 2 and 5 where these are few."""
    return {"title": clipped(title), "values": decades(low, high), "format": ",.12~g", "tickCount": 8}


def decades(low: float, high: float) -> list[float]:
    """Round numbers between two ends above 0, at most eleven.

    >>> decades(0.5, 300), decades(1, 9)
    ([1.0, 10.0, 100.0], [1.0, 2.0, 5.0])
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if math.log10(high / low) < 2 else (1,)
    found = [float(f"{step}e{power}") for power in powers for step in steps]
    inside = [tick for tick in found if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]
    return inside[:: math.ceil(len(inside) / 11)] if inside else [low, high]


def ruled(at: Mapping[str, float], **style: Any) -> Spec:
    """A straight line across the chart at one x or y."""
    encoding = {channel: {"datum": value} for channel, value in at.items()}
    return {"mark": {"type": "rule", **style}, "data": {"values": [{}]}, "encoding": encoding}


def apart(heights: Sequence[float], gap: float) -> list[float]:
    """Move increasing heights so that neighbours are at least a gap apart, each group about its own middle.

    >>> [round(h, 3) for h in apart([0.1, 0.5, 0.5], 0.062)]
    [0.1, 0.469, 0.531]
    """
    groups: list[list[float]] = []
    for height in heights:
        groups.append([height])
        while len(groups) > 1 and _lowest(groups[-1], gap) < _lowest(groups[-2], gap) + gap * len(groups[-2]):
            groups[-2:] = [groups[-2] + groups[-1]]
    return [_lowest(group, gap) + gap * i for group in groups for i in range(len(group))]


def _lowest(group: list[float], gap: float) -> float:
    return sum(group) / len(group) - gap * (len(group) - 1) / 2
