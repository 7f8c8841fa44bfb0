"""Dots: private numbers beside exact ones, and how far answers are from the truth. For public or invented data only."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from noisette.charts.chart import Chart
from noisette.charts.spec import Spec, axis, labels, rows, ruled, titled
from noisette.charts.theme import BLUE, ORANGE, SOFT
from noisette.errors import InputError

__all__ = ["beside", "deviations"]

_WIDTH = 420
_KINDS = ("private, with its error bar", "not private, all rows at once")


def beside(
    names: Sequence[str], private: tuple[Any, Any, Any], plain: Sequence[float], *, title: str = "", note: str = ""
) -> Chart:
    """Draw private numbers (value, low, high) and plain ones by name.

    >>> beside(["age"], ([3.1], [2.5], [3.7]), [2.9]).values[:2]
    [{'label': 'age', 'low': 2.5, 'high': 3.7}, {'label': 'age', 'kind': 'private, with its error bar', 'at': 3.1}]
    """
    if not len(names) or {len(part) for part in (*private, plain)} != {len(names)}:
        raise InputError("Give as many private and plain numbers as there are names.")
    value, low, high = private
    groups = labels(names)
    kinds = [kind for kind in _KINDS for _ in names]
    both = {"field": "kind", "type": "nominal"}
    ink = {"scale": {"domain": list(_KINDS), "range": [BLUE, ORANGE]}, "legend": {"title": None, "orient": "top"}}
    points = {
        "data": rows(label=[*groups, *groups], kind=kinds, at=[*value, *plain]),
        "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1},
        "encoding": {
            "x": _number("at"),
            "color": {**both, **ink},
            "shape": {**both, "scale": {"domain": list(_KINDS), "range": ["circle", "cross"]}},
        },
    }
    across = axis("", [*value, *plain, *low, *high], ticks=6)
    return _rows(rows(label=groups, low=low, high=high), [_bar("low", "high"), points], across, title, note)


def deviations(
    groups: Sequence[str], values: Any, low: Any, high: Any, truth: Any, *, title: str = "", note: str = ""
) -> Chart:
    """Draw each answer minus its truth, which is the line at 0; an error bar that misses it has another colour.

    >>> deviations(["north"], [12], [10], [14], [11]).values
    [{'label': 'north', 'off': 1.0, 'low': -1.0, 'high': 3.0, 'holds': True}]
    """
    off, below, above = (np.asarray(part, dtype=float) - np.asarray(truth, dtype=float) for part in (values, low, high))
    holds = [bool(a <= 0 <= b) for a, b in zip(below, above, strict=True)]
    data = rows(label=labels(groups), off=off, low=below, high=above, holds=holds)
    ink = {"condition": {"test": "datum.holds", "value": BLUE}, "value": ORANGE}
    dot = {"mark": {"type": "circle", "size": 60, "opacity": 1}, "encoding": {"x": _number("off"), "color": ink}}
    bar = _bar("low", "high")
    bar["encoding"]["color"] = ink
    across = axis("answer minus truth", [*off, *below, *above], ticks=6)
    return _rows(data, [bar, dot], across, title, note)


def _number(field: str) -> Spec:
    return {"field": field, "type": "quantitative"}


def _bar(low: str, high: str) -> Spec:
    mark = {"type": "rule", "strokeWidth": 6, "opacity": 0.35, "color": BLUE, "strokeCap": "round"}
    return {"mark": mark, "encoding": {"x": _number(low), "x2": {"field": high}}}


def _rows(data: Spec, layers: list[Spec], across: Spec, title: str, note: str) -> Chart:
    """A row for each name, and a line at 0."""
    place = {"field": "label", "type": "nominal", "sort": None, "axis": {"title": None}}
    placed = [{**layer, "encoding": {**layer["encoding"], "y": place}} for layer in layers]
    return Chart(
        {
            "data": data, "title": titled(title, note), "width": _WIDTH, "height": {"step": 24},
            "layer": [ruled({"x": 0}, color=SOFT), *placed],
            "encoding": {"x": {"type": "quantitative", "axis": across}},
        }
    )  # fmt: skip
