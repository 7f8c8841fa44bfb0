"""Flows on a map as arrows: wider and darker where more people go."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from noisette.charts.chart import Chart
from noisette.charts.heat import line
from noisette.charts.spec import Spec, axis, rows, titled
from noisette.charts.theme import BLUE, INK, ORANGE

__all__ = ["flows"]

_WIDTH = 420
_HEAD = "M0,-1L0.55,0.8L0,0.45L-0.55,0.8Z"  # an arrowhead that points up


def flows(
    start: Any,
    end: Any,
    value: Any,
    *,
    span: Sequence[float],
    names: Sequence[str],
    outline: Iterable[Any] = (),
    title: str = "",
    note: str = "",
) -> Chart:
    """Draw an arrow from each start to its end (x and y of each) by its value; `span` is west, south, east, north.

    What stays where it is becomes a ring.

    >>> chart = flows([(0, 0), (1, 1)], [(1, 1), (1, 1)], [5, 3], span=(0, 0, 2, 2), names=("x", "y"), title="two")
    >>> chart, [row["n"] for row in chart.values if "turn" in row]
    (Chart('two'), [5.0])
    """
    first, last, n = np.asarray(start, float), np.asarray(end, float), np.asarray(value, float)
    size = np.array([span[2] - span[0], span[3] - span[1]], float)
    stays = (first == last).all(axis=1)
    layers = [
        *(line(ring) for ring in outline),
        _rings(first[stays], n[stays]),
        *_arrows(first[~stays], last[~stays], n[~stays], size),
    ]
    encoding = {
        channel: {
            "type": "quantitative", "scale": {"domain": [span[i], span[i + 2]], "nice": False, "zero": False},
            "axis": {**axis(names[i], [span[i], span[i + 2]]), "grid": False},
        }
        for i, channel in enumerate("xy")
    }  # fmt: skip
    return Chart(
        {"title": titled(title, note), "width": _WIDTH, "height": _WIDTH, "encoding": encoding, "layer": layers}
    )


def _arrows(first: Any, last: Any, n: Any, size: Any) -> list[Spec]:
    """A line for each flow, and an arrowhead at two thirds of it that says which way."""
    far = (last - first) / size
    turn = np.degrees(np.arctan2(far[:, 0], far[:, 1]))
    head = first + (last - first) * 2 / 3
    places = {"x": first[:, 0], "y": first[:, 1], "x2": last[:, 0], "y2": last[:, 1]}
    wide = {
        "field": "n",
        "type": "quantitative",
        "legend": {"title": "count"},
        "scale": {"type": "sqrt", "range": [0.5, 6]},
    }
    lines = {
        "data": rows(**places, n=n), "mark": {"type": "rule", "color": BLUE, "opacity": 0.55},
        "encoding": {**{name: {"field": name} for name in places}, "strokeWidth": wide},
    }  # fmt: skip
    heads = {
        "data": rows(x=head[:, 0], y=head[:, 1], n=n, turn=turn),
        "mark": {"type": "point", "shape": _HEAD, "filled": True, "color": INK, "opacity": 0.9},
        "encoding": {
            "x": {"field": "x"}, "y": {"field": "y"}, "angle": {"field": "turn", "type": "quantitative", "scale": None},
            "size": _sized(160),
        },
    }  # fmt: skip
    return [lines, heads]


def _rings(at: Any, n: Any) -> Spec:
    mark = {"type": "point", "shape": "circle", "filled": False, "color": ORANGE, "opacity": 0.8, "strokeWidth": 1.6}
    return {
        "data": rows(x=at[:, 0], y=at[:, 1], n=n), "mark": mark,
        "encoding": {"x": {"field": "x"}, "y": {"field": "y"}, "size": _sized(140)},
    }  # fmt: skip


def _sized(most: float) -> Spec:
    return {
        "field": "n", "type": "quantitative", "legend": None,
        "scale": {"type": "linear", "range": [math.sqrt(most), most], "zero": True},
    }  # fmt: skip
