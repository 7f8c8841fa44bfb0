"""Counts on a map as colours: darker where there are more, faded where the error bar exceeds the count.

Colours are those of viridis from light to dark, on the scale of square roots: even steps of brightness for every kind
of colour vision, and in print. Differences go from blue over white to orange.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.charts.chart import Chart
from noisette.charts.spec import Spec, axis, rows, titled
from noisette.charts.theme import INK
from noisette.errors import InputError

__all__ = ["Cells", "grid", "heat", "heats", "line"]

Floats: TypeAlias = NDArray[np.float64]
Cells: TypeAlias = tuple[Floats, Floats, Floats, Floats]
"""Rectangles by their low and high corners (x and y of each), their values, and half the widths of their bars."""

_WIDTH, _PANEL = 400, 140
_FAINTEST = 0.12  # opacity where nothing is known
_PIXELS = {"scale": 2}  # for each point of a PNG: whole, so that no seams show between cells
_FADED = "faded where the error bar exceeds the count"


def heat(
    low: Any,
    high: Any,
    value: Any,
    bars: Any,
    *,
    names: Sequence[str],
    degrees: bool = False,
    outline: Iterable[Any] = (),
    signed: bool = False,
    title: str = "",
    note: str = "",
) -> Chart:
    """Draw rectangles from `low` to `high` (x and y of each) by their values; `bars` are half the widths of error bars.

    With `degrees`, x and y are longitude and latitude. An `outline` is a list of rings of corners.

    >>> chart = heat([(0, 0), (1, 0)], [(1, 1), (2, 1)], [4, 0], [1, 1], names=("x", "y"), title="two cells")
    >>> chart, [row["n"] for row in chart.values]
    (Chart('two cells'), [4.0])
    """
    cells = _cells(low, high, value, bars)
    most = _most(cells, signed)
    panel = _panel(cells, _WIDTH, degrees, most, signed, [names[0], names[1]])
    panel["layer"] += [line(ring) for ring in outline]
    said = _FADED if panel["layer"][0]["data"]["values"] else "all counts are 0"
    return Chart({"usermeta": _PIXELS, "title": titled(title, " · ".join(filter(None, [note, said]))), **panel})


def heats(
    panels: Mapping[str, Any],
    *,
    columns: int = 3,
    degrees: bool = False,
    unit: str = "count",
    width: int = _PANEL,
    title: str = "",
    note: str = "",
) -> Chart:
    """Draw several maps beside each other, all with the same colours.

    A map is a tuple of `Cells`, or an array of exact numbers, rows by columns with row 0 at the top.

    >>> one = [(0, 0)], [(1, 1)], [4], [1]
    >>> heats({"a": one, "b": one}, title="twice")
    Chart('twice')
    >>> heats({"true": [[1, 2]], "private": grid([[1.5, -0.1]], [[0.3, 0.3]])}, unit="%", title="a city").values[0]["n"]
    1.0
    """
    maps = {name: _cells(*cells) if isinstance(cells, tuple) else grid(cells) for name, cells in panels.items()}
    if not maps:
        raise InputError("There is nothing to draw: give at least one map.")
    most = float(np.median([_most(cells, signed=False) for cells in maps.values()]))  # whatever one noisy cell has
    parts = []
    for name, cells in maps.items():
        above = {"text": name, "fontSize": 12, "fontWeight": "normal", "offset": 6}
        parts.append({"title": above, **_panel(cells, width, degrees, most, False, [], unit)})
    head = titled(title, note)
    return Chart({"usermeta": _PIXELS, "title": head, "concat": parts, "columns": columns, "spacing": 14})


def grid(values: Any, bars: Any = 0.0) -> Cells:
    """Return the cells of a grid: an array of rows by columns with row 0 at the top, and half the widths of error bars.

    >>> low, high, value, bars = grid([[1, 2], [3, 4]])
    >>> low.tolist(), value.tolist()
    ([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [3.0, 1.0, 4.0, 2.0])
    """
    array = np.asarray(values, float)
    if array.ndim != 2 or not array.size:
        raise InputError("A grid must be an array of rows by columns.")
    upwards = array[::-1].T  # column by column, from the bottom
    low = np.argwhere(np.ones(upwards.shape, bool)).astype(float)
    half = np.broadcast_to(np.asarray(bars, float), array.shape)[::-1].T
    return low, low + 1, upwards.ravel(), half.ravel()


def _cells(low: Any, high: Any, value: Any, bars: Any) -> Cells:
    return np.asarray(low, float), np.asarray(high, float), np.asarray(value, float), np.asarray(bars, float)


def _most(cells: Cells, signed: bool) -> float:
    return max(1.0, float((np.abs(cells[2]) if signed else cells[2]).max()))


def _panel(
    cells: Cells, width: float, degrees: bool, most: float, signed: bool, names: Sequence[str], unit: str = "count"
) -> Spec:
    low, high, value, bars = cells
    first, last = low.min(axis=0), high.max(axis=0)
    encoding = {
        channel: {
            "type": "quantitative", "scale": {"domain": [first[i], last[i]], "nice": False, "zero": False},
            "axis": {**axis(names[i], [first[i], last[i]]), "grid": False} if names else None,
        }
        for i, channel in enumerate("xy")
    }  # fmt: skip
    layer = _coloured(_runs(low, high, value, bars, signed), most, signed, unit)
    return {**_size(low, high, degrees, width), "encoding": encoding, "layer": [layer]}


def _runs(low: Floats, high: Floats, value: Floats, bars: Floats, signed: bool) -> Spec:
    """The rectangles as rows of data; neighbours along y that look the same are one, empty ones are left out."""
    shown = value if signed else np.maximum(value, 0.0)
    n, f = _short(shown, 3), _short(np.abs(shown) / np.maximum(np.maximum(bars, np.abs(shown)), 1e-300), 2)
    alike = (n[1:] == n[:-1]) & (f[1:] == f[:-1]) & (low[1:, 0] == low[:-1, 0]) & (low[1:, 1] == high[:-1, 1])
    first = np.flatnonzero(np.r_[True, ~alike])
    last = np.r_[first[1:], len(n)] - 1
    kept = n[first] != 0
    first, last = first[kept], last[kept]
    ends = {"x": low[first, 0], "x2": high[first, 0], "y": low[first, 1], "y2": high[last, 1]}
    return rows(**{name: _short(column, 8) for name, column in ends.items()}, n=n[first], f=f[first])


def _short(numbers: Floats, digits: int) -> Floats:
    return np.array([float(f"{one:.{digits}g}") for one in numbers.tolist()])


def _coloured(data: Spec, most: float, signed: bool, unit: str) -> Spec:
    scale: Spec = {"type": "sqrt", "domain": [0, most], "scheme": "viridis", "reverse": True, "clamp": True}
    if signed:
        scale = {"type": "pow", "exponent": 0.5, "domain": [-most, 0, most], "scheme": "blueorange"}
    colour = {"field": "n", "type": "quantitative", "scale": scale, "legend": _legend(most, signed, unit)}
    fade = {"field": "f", "type": "quantitative", "scale": {"domain": [0, 1], "range": [_FAINTEST, 1]}, "legend": None}
    ends: Spec = {name: {"field": name} for name in ("x", "x2", "y", "y2")}
    return {
        "data": data,
        "mark": {"type": "rect", "strokeWidth": 0},
        "encoding": {**ends, "color": colour, "opacity": fade},
    }


def _legend(most: float, signed: bool, unit: str) -> Spec:
    """Squares of a few round numbers, the largest first."""
    power = 10.0 ** math.floor(math.log10(most))
    top = math.floor(most / power) * power
    up = list(dict.fromkeys(float(f"{top * part:.1g}") for part in (1.0, 0.5, 0.2, 0.05)))
    values = [*up, 0.0, *(-one for one in reversed(up))] if signed else up
    text = f"datum.value ? format(datum.value, '{'+' if signed else ''},.12~g') : '0'"
    return {
        "title": "more or fewer" if signed else unit, "type": "symbol", "symbolType": "square", "symbolSize": 160,
        "symbolStrokeWidth": 0, "values": values, "labelExpr": text,
    }  # fmt: skip


def line(ring: Any) -> Spec:
    """An outline: from corner to corner, and back to the first."""
    x, y = np.vstack([ring, ring[:1]]).T
    encoding = {"x": {"field": "x"}, "y": {"field": "y"}, "order": {"field": "k", "type": "quantitative"}}
    mark = {"type": "line", "color": INK, "strokeWidth": 1.2}
    return {"data": rows(x=_short(x, 8), y=_short(y, 8), k=range(len(x))), "mark": mark, "encoding": encoding}


def _size(low: Floats, high: Floats, degrees: bool, width: float) -> Spec:
    """Whole points for each rectangle, so that no seams show; degrees of longitude shrink towards the poles.

    Cells of 1 by 1, as those of `grid`, are drawn as squares.
    """
    across, up = (len(np.unique(low[:, i])) for i in (0, 1))
    (x0, y0), (x1, y1) = low.min(axis=0), high.max(axis=0)
    shape = up / across if (high - low == 1).all() else 1.0
    if degrees:
        shape = (y1 - y0) / ((x1 - x0) * max(math.cos(math.radians((y0 + y1) / 2)), 0.05))
    return {"width": _whole(width, across), "height": _whole(width * min(max(shape, 0.25), 2.5), up)}


def _whole(wanted: float, many: int) -> int:
    """About as wide as wanted, with a whole number of points for each of many rectangles."""
    return many * max(1, round(wanted / many))
