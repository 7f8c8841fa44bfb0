"""Lines on logarithmic axes, each named where it ends; dots of what happened; a mark at the case in question."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from noisette.charts.chart import Chart
from noisette.charts.spec import Spec, apart, axis, log_axis, rows, ruled, titled
from noisette.charts.theme import LINES, SOFT
from noisette.errors import InputError

__all__ = ["Points", "curves", "forecast"]

Points = Sequence[tuple[float, float]]
_WIDTH, _HEIGHT, _GAP = 480, 300, 17  # the least distance of two names, in points
_DASHES = ([1, 0], [1, 0], [8, 3], [2, 3], [12, 4], [6, 2, 1, 2], [1, 4])  # lines on top of others let them through


def curves(
    lines: Mapping[str, Points],
    *,
    x: str,
    y: str,
    title: str = "",
    note: str = "",
    dots: Mapping[str, Points] | None = None,
    mark: tuple[float, str] | None = None,
    colours: Mapping[str, str] | None = None,
    linear: bool = False,
) -> Chart:
    """Draw y against x on logarithmic axes: `dots` belong to the line of the same name, `mark` is (x, its name).

    With `linear` only x is logarithmic.

    What is not above 0 or not finite has no logarithm: the line has a gap there.

    >>> chart = curves({"n": [(1, 4), (2, 2)], "m": [(1, 3), (2, 0)]}, x="ε", y="error")
    >>> chart.texts, chart.values[:2]
    (['n', 'm'], [{'line': 'n', 'x': 1, 'y': 4}, {'line': 'n', 'x': 2, 'y': 2}])
    """
    drawn = {name: points for name, points in lines.items() if any(map(_drawable, points))}
    if not drawn:
        raise InputError("There is nothing to draw: no value is above 0.")
    seen = {name: [point for point in (dots or {}).get(name, ()) if _drawable(point)] for name in drawn}
    known = [point for points in [*drawn.values(), *seen.values()] for point in points if _drawable(point)]
    across = min(a for a, _ in known), max(a for a, _ in known)
    up = _ends([b for _, b in known], linear)
    inks = {name: LINES[i % len(LINES)] for i, name in enumerate(drawn)} | dict(colours or {})
    layers = [_lines(drawn, inks, seen), *([_dots(seen, inks)] if any(seen.values()) else [])]
    if mark is not None:
        layers += [*_mark(mark, up[0]), *_marked(drawn, inks, mark[0])]
    return Chart(
        {
            "title": titled(title or y, note), "width": _WIDTH, "height": _HEIGHT,
            "layer": [*layers, _names(drawn, inks, up, linear)],
            "encoding": {"x": _axis(x, across), "y": _linear(y, up) if linear else _axis(y, up)},
        }
    )  # fmt: skip


def forecast(
    budgets: Sequence[float],
    lines: Mapping[str, Sequence[float]],
    *,
    now: float,
    symbol: str = "ε",
    note: str = "",
) -> Chart:
    """Draw half-widths of error bars against budgets, with a mark at the budget in question.

    >>> forecast([0.1, 1.0], {"n": [30.0, 3.0]}, now=0.1, note="95 %").texts
    ['ε = 0.1', 'n']
    """
    points = {name: list(zip(budgets, widths, strict=True)) for name, widths in lines.items()}
    if not any(_drawable(point) for line in points.values() for point in line):
        raise InputError("No column of this question has an error that can be drawn: ask for a number.")
    return curves(
        points, x=f"{symbol}, what is spent", y="± half the width of the error bar", note=note,
        title=f"Error to expect against {symbol}", mark=(now, f"{symbol} = {now:g}"),
    )  # fmt: skip


def _drawable(point: tuple[float, float]) -> bool:
    return all(0 < value < math.inf for value in point)


def _axis(title: str, ends: tuple[float, float]) -> Spec:
    scale = {"type": "log", "domain": list(ends), "nice": False}
    return {"type": "quantitative", "scale": scale, "axis": log_axis(title, *ends)}


def _linear(title: str, ends: tuple[float, float]) -> Spec:
    return {"type": "quantitative", "scale": {"domain": list(ends), "nice": False}, "axis": axis(title, ends)}


def _ends(values: Sequence[float], linear: bool) -> tuple[float, float]:
    """The ends of the axis of y, a little beyond what is drawn."""
    low, high = min(values), max(values)
    pad = 0.06 * (high - low or high)
    return (low - pad, high + pad) if linear else (low / 1.15, high * 1.15)


def _coloured(inks: Mapping[str, str]) -> Spec:
    scale = {"domain": list(inks), "range": list(inks.values())}
    return {"field": "line", "type": "nominal", "scale": scale, "legend": None}


def _lines(drawn: Mapping[str, Points], inks: Mapping[str, str], seen: Mapping[str, Points]) -> Spec:
    flat = [(name, a, b if _drawable((a, b)) else math.nan) for name, points in drawn.items() for a, b in points]
    dash = {
        "field": "line", "type": "nominal", "legend": None,
        "scale": {"domain": list(drawn), "range": [list(_DASHES[i % len(_DASHES)]) for i in range(len(drawn))]},
    }  # fmt: skip
    return {
        "data": rows(line=[row[0] for row in flat], x=[row[1] for row in flat], y=[row[2] for row in flat]),
        "mark": {"type": "line", "strokeWidth": 2.2, "strokeJoin": "round", "invalid": "break-paths-filter-domains"},
        "encoding": {"x": {"field": "x"}, "y": {"field": "y"}, "color": _coloured(inks), "strokeDash": dash},
    }


def _dots(seen: Mapping[str, Points], inks: Mapping[str, str]) -> Spec:
    flat = [(name, a, b) for name, points in seen.items() for a, b in points]
    return {
        "data": rows(line=[row[0] for row in flat], x=[row[1] for row in flat], y=[row[2] for row in flat]),
        "mark": {"type": "circle", "size": 26, "opacity": 0.6},
        "encoding": {"x": {"field": "x"}, "y": {"field": "y"}, "color": _coloured(inks)},
    }


def _mark(mark: tuple[float, str], lowest: float) -> list[Spec]:
    """A dashed line at the case in question, named at its foot."""
    at, name = mark
    text = {"type": "text", "align": "left", "baseline": "bottom", "dx": 5, "dy": -4, "color": SOFT, "fontSize": 11}
    return [
        ruled({"x": at}, color=SOFT, strokeDash=[4, 3]),
        {"data": rows(x=[at], y=[lowest], text=[name]), "mark": text, "encoding": _written()},
    ]


def _marked(drawn: Mapping[str, Points], inks: Mapping[str, str], at: float) -> list[Spec]:
    """A dot on each line at the case in question."""
    near = {name: [p for p in points if math.isclose(p[0], at, rel_tol=1e-3)] for name, points in drawn.items()}
    return [_dots(near, inks) | {"mark": {"type": "circle", "size": 50, "opacity": 1}}] if any(near.values()) else []


def _names(drawn: Mapping[str, Points], inks: Mapping[str, str], up: tuple[float, float], linear: bool) -> Spec:
    """Each line's name beside its end, moved apart where they would overlap."""
    ends = {name: [point for point in points if _drawable(point)][-1] for name, points in drawn.items()}
    right = max(point[0] for points in drawn.values() for point in points)
    order = sorted(ends, key=lambda name: ends[name][1])
    to, back = (float, float) if linear else (math.log, math.exp)
    low, high = map(to, up)
    heights = apart([(to(ends[name][1]) - low) / (high - low) for name in order], _GAP / _HEIGHT)
    places = [back(low + (high - low) * height) for height in heights]
    return {
        "data": rows(line=order, x=[right] * len(order), y=places, text=order),
        "mark": {"type": "text", "align": "left", "baseline": "middle", "dx": 8, "limit": 200},
        "encoding": {**_written(), "color": _coloured(inks)},
    }


def _written() -> Any:
    return {"x": {"field": "x"}, "y": {"field": "y"}, "text": {"field": "text"}}
