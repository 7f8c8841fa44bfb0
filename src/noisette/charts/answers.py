"""Released numbers as people expect them: bars from zero, lines over time, panels for two keys, the largest of many.

Vocabulary: *keys* name the groups · a *number* is (values, low, high), the ends of its error bars · fields of the data
are `label`, `at` or `panel` for a group and `v0`, `low0`, `high0` for its first number.
"""

import datetime
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from noisette.charts.chart import Chart
from noisette.charts.spec import Spec, axis, cell, labels, rows, titled
from noisette.charts.theme import BLUE, INK, SOFT
from noisette.errors import InputError

__all__ = ["LISTED", "Number", "answer", "bars", "columns", "time"]

Number = tuple[Sequence[Any], Sequence[Any] | None, Sequence[Any] | None]
"""Values with the lower and the upper ends of their error bars."""

LISTED, _LARGEST = 40, 30  # most groups with a name each; how many stay when there are more
_PANELS, _ACROSS = 12, 3
_COLUMNS, _DRAWN = 240, 10_000  # most columns beside each other; most points of a line
_DOTS = 60
_WIDTH = 480


def answer(keys: Mapping[str, Sequence[Any]], numbers: Mapping[str, Number], *, note: str = "") -> Chart:
    """Draw released numbers by their keys; nothing but these columns is in the chart.

    Dates and times become a line with a ribbon, numbers a histogram, other keys bars; of more than forty groups the
    largest thirty are named, with the range of the others. With several keys, the smaller ones become panels.

    >>> answer({"ward": ["north", "south"]}, {"n": ([30, 50], [20, 40], [40, 60])}, note="ε = 1")
    Chart('n by ward')
    """
    if not numbers or not len(next(iter(numbers.values()))[0]):
        raise InputError("There is no number to draw: the answer has no groups or only keys.")
    count = len(next(iter(numbers.values()))[0])
    title = ", ".join(numbers) + (f" by {', '.join(keys)}" if keys else "")
    if len(keys) > 1 and (inner := _inner(keys)):
        return _panels(inner, keys, numbers, title, note)
    if len(keys) == 1:
        [(name, values)] = keys.items()
        if _is_time(values):
            return time(values, numbers, name=name, title=title, note=note)
        if _is_even(values):
            return columns(values, numbers, name=name, title=title, note=note)
    return bars(
        list(zip(*keys.values(), strict=True)) if keys else [""] * count,
        numbers,
        name=", ".join(keys),
        title=title,
        note=note,
    )


# One key


def bars(
    groups: Sequence[Any], numbers: Mapping[str, Number], *, name: str = "", title: str = "", note: str = ""
) -> Chart:
    """Draw a bar from zero for each group, with its error bar, and a panel for each number.

    >>> bars(["a", "b"], {"n": ([3, 5], [1, 3], [5, 7])}).values
    [{'label': 'a', 'v0': 3, 'low0': 1, 'high0': 5}, {'label': 'b', 'v0': 5, 'low0': 3, 'high0': 7}]
    """
    shown, rest = _largest(groups, numbers)
    data = rows(label=labels(groups[i] for i in shown), **_fields(numbers, shown))
    data["values"] += rest
    panels = []
    for i, (number, parts) in enumerate(numbers.items()):
        place = _named(data, _band(name) if i % _across(len(numbers)) == 0 else None)
        layers = [_bar("x", i), *_whisker("x", i, parts), *(_others(i) if rest else ())]
        panels.append({"width": _share(len(numbers)), "height": {"step": 24}, "layer": _along(layers, "y", place)})
        panels[-1]["encoding"] = {"x": _measure(number, parts, ticks=4)}
    return _joined(panels, data, titled(title or ", ".join(numbers), note))


def columns(
    at: Sequence[Any], numbers: Mapping[str, Number], *, name: str = "", title: str = "", note: str = ""
) -> Chart:
    """Draw a column from zero for each number on an axis, with its error bar: a histogram.

    >>> columns([0, 10, 20], {"n": ([3, 5, 4], None, None)}, name="age").values[1]
    {'at': 10, 'v0': 5}
    """
    order = _placed(at)
    gap = _gap([at[i] for i in order]) or 1.0
    ends = [float(at[order[0]]) - 0.6 * gap, float(at[order[-1]]) + 0.6 * gap]
    wide = max(1.0, 0.78 * _WIDTH * gap / (ends[1] - ends[0]))
    place = {
        "field": "at", "type": "quantitative", "scale": {"domain": ends, "nice": False},
        "axis": {**axis(name, at, ticks=12), "grid": False, "tickMinStep": gap},
    }  # fmt: skip
    data = rows(at=[at[i] for i in order], **_fields(numbers, order))
    caps = 0 if wide < 3 else min(0.8 * wide, 10)
    layers = [[_bar("y", i, width=wide), *_whisker("y", i, n, caps)] for i, n in enumerate(numbers.values())]
    heading = titled(title or ", ".join(numbers), note + _unplaced(at, numbers))
    return _upright(layers, place, numbers, data, heading)


def time(at: Sequence[Any], numbers: Mapping[str, Number], *, name: str = "", title: str = "", note: str = "") -> Chart:
    """Draw each number over time (or along a long axis of numbers) as a line, its error bars as a ribbon.

    >>> time([datetime.date(2024, 1, d) for d in (2, 1)], {"n": ([3, 5], [1, 3], [5, 7])}).values[0]
    {'at': '2024-01-01', 'v0': 5, 'low0': 3, 'high0': 7}
    """
    order = _placed(at)
    if len(order) > _DRAWN:
        raise InputError(
            f"A line has at most {_DRAWN:,} points: ask for longer periods, or fewer with HAVING or LIMIT."
        )
    data = rows(at=[at[i] for i in order], **_fields(numbers, order))
    layers = [_ribbon(i, number) for i, number in enumerate(numbers.values())]
    heading = titled(title or ", ".join(numbers), note + _unplaced(at, numbers))
    return _upright(layers, _along_time(at, name), numbers, data, heading)


# Several keys


def _inner(keys: Mapping[str, Sequence[Any]]) -> str:
    """The key that is drawn inside each panel: time, else the one with the most values; "" if panels do not fit."""
    times = [name for name, values in keys.items() if _is_time(values)]
    inner = times[0] if times else max(keys, key=lambda name: len(set(keys[name])))
    panels = set(zip(*(values for name, values in keys.items() if name != inner), strict=True))
    fits = len(panels) <= _PANELS and (times or len(set(keys[inner])) <= LISTED)
    return inner if fits else ""


def _panels(
    inner: str, keys: Mapping[str, Sequence[Any]], numbers: Mapping[str, Number], title: str, note: str
) -> Chart:
    """A panel for each value of the other keys, all on the same axes."""
    others = [name for name in keys if name != inner]
    panel = _names(list(zip(*(keys[name] for name in others), strict=True)))
    at = keys[inner]
    over_time = _is_time(at)
    order = _placed(at) if over_time else list(range(len(at)))
    missing = " · groups of NULL are not drawn" if len(order) < len(at) else ""
    data = rows(panel=[panel[i] for i in order], **_place(at, order, over_time), **_fields(numbers, order))
    facet: Spec = {
        "field": "panel", "type": "nominal", "sort": list(dict.fromkeys(panel)),
        "header": {"title": ", ".join(others)},
    }  # fmt: skip
    parts: list[Spec] = []
    for i, (name, number) in enumerate(numbers.items()):
        measure = _measure(name, number, ticks=4)
        if over_time:
            inside = {"layer": _along(_ribbon(i, number), "x", _along_time(at, inner)), "width": 220, "height": 120}
            inside["encoding"] = {"y": measure}
        else:
            layers = _along([_bar("x", i), *_whisker("x", i, number)], "y", _named(data, _band(inner)))
            inside = {"layer": layers, "width": 180, "height": {"step": 22}, "encoding": {"x": measure}}
        parts.append({"facet": facet, "columns": _across(len(facet["sort"])), "spec": inside})
    heading = titled(title, note + missing)
    return Chart({"data": data, "title": heading, **(parts[0] if len(parts) == 1 else {"vconcat": parts})})


def _place(at: Sequence[Any], order: Sequence[int], over_time: bool) -> dict[str, list[Any]]:
    if over_time:
        return {"at": [at[i] for i in order]}
    names = _names(at)
    return {"label": [names[i] for i in order]}


def _names(keys: Sequence[Any]) -> list[str]:
    """The name of each key, the same wherever it stands."""
    known = dict(zip(dict.fromkeys(keys), labels(dict.fromkeys(keys)), strict=True))
    return [known[key] for key in keys]


# Pieces


def _fields(numbers: Mapping[str, Number], order: Sequence[int]) -> dict[str, list[Any]]:
    """The columns of the numbers, in the order in which they are drawn."""
    found: dict[str, list[Any]] = {}
    for i, parts in enumerate(numbers.values()):
        for field, part in zip((f"v{i}", f"low{i}", f"high{i}"), parts, strict=True):
            if part is not None:
                found[field] = [_plain(part[j]) for j in order]
    return found


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _bar(channel: str, i: int, **size: Any) -> Spec:
    mark = {"type": "bar", "color": BLUE, "opacity": 0.72, **size}
    return {"mark": mark, "encoding": {channel: {"field": f"v{i}", "type": "quantitative", "scale": {"zero": True}}}}


def _measure(name: str, number: Number, *, ticks: int = 5) -> Spec:
    """The axis of a number, which holds its error bars."""
    known = [value for part in number if part is not None for value in part]
    return {"type": "quantitative", "axis": axis(name, known, ticks=ticks)}


def _whisker(channel: str, i: int, number: Number, caps: float = 10) -> list[Spec]:
    """An error bar, if there is one: a line between its ends, and a cap at each."""
    if number[1] is None or number[2] is None:
        return []
    low, high = ({"field": f"{end}{i}", "type": "quantitative"} for end in ("low", "high"))
    between = {channel: low, f"{channel}2": {"field": f"high{i}"}}
    line = {"mark": {"type": "rule", "color": INK, "strokeWidth": 1.4}, "encoding": between}
    across = "vertical" if channel == "x" else "horizontal"
    tick = {"type": "tick", "orient": across, "color": INK, "thickness": 1.4, "size": caps, "opacity": 1}
    ends = [{"mark": tick, "encoding": {channel: end}} for end in (low, high)]
    return [line, *(ends if caps else ())]


def _ribbon(i: int, number: Number) -> list[Spec]:
    """A line with a dot for each of not too many points, and its error bars, if there are any, as an area."""
    value = {"field": f"v{i}", "type": "quantitative"}
    band = {"y": {"field": f"low{i}", "type": "quantitative"}, "y2": {"field": f"high{i}"}}
    area = {"mark": {"type": "area", "color": BLUE, "opacity": 0.22}, "encoding": band}
    dots = {"color": BLUE, "size": 22} if len(number[0]) <= _DOTS else False
    line = {
        "mark": {"type": "line", "color": BLUE, "strokeWidth": 2 if dots else 1.2, "point": dots},
        "encoding": {"y": value},
    }
    return [line] if number[1] is None or number[2] is None else [area, line]


def _others(i: int) -> list[Spec]:
    """The groups without a name: from the smallest to the largest value, with the middle one."""
    ends = {"x": {"field": f"least{i}", "type": "quantitative"}, "x2": {"field": f"most{i}"}}
    middle = {"x": {"field": f"middle{i}", "type": "quantitative"}}
    return [
        {"mark": {"type": "rule", "color": SOFT, "strokeWidth": 6, "opacity": 0.45}, "encoding": ends},
        {"mark": {"type": "tick", "color": SOFT, "thickness": 2, "size": 14}, "encoding": middle},
    ]


def _along(layers: Sequence[Spec], channel: str, place: Spec) -> list[Spec]:
    """The layers at their groups' places."""
    return [{**layer, "encoding": {**layer["encoding"], channel: place}} for layer in layers]


def _named(data: Spec, side: Spec | None) -> Spec:
    """Places by name, in the order of the data; also of groups whose number is unknown."""
    names = list(dict.fromkeys(row["label"] for row in data["values"]))
    return {"field": "label", "type": "nominal", "sort": None, "scale": {"domain": names}, "axis": side}


def _band(name: str) -> Spec:
    """The axis of names, its title above them."""
    return {"title": name or None, "titleAngle": 0, "titleAlign": "right", "titleY": -6, "titleX": -6}


def _across(panels: int) -> int:
    """How many panels stand beside each other: at most three, and rows as even as can be.

    >>> [_across(n) for n in (1, 2, 3, 4, 5, 7)]
    [1, 2, 3, 2, 3, 3]
    """
    return 2 if panels == 4 else min(panels, _ACROSS)


def _share(panels: int) -> int:
    return {1: 420, 2: 260, 3: 190}[_across(panels)]


def _joined(panels: list[Spec], data: Spec, title: Spec) -> Chart:
    if len(panels) == 1:
        return Chart({"data": data, "title": title, **panels[0]})
    return Chart({"data": data, "title": title, "concat": panels, "columns": _across(len(panels))})


def _upright(
    layers: Sequence[Sequence[Spec]], place: Spec, numbers: Mapping[str, Number], data: Spec, title: Spec
) -> Chart:
    """Charts on one horizontal axis, one above the other."""
    panels: list[Spec] = []
    for parts, (name, number) in zip(layers, numbers.items(), strict=True):
        up = {"y": _measure(name, number)}
        panels.append({"width": _WIDTH, "height": 200, "layer": _along(parts, "x", place), "encoding": up})
    if len(panels) == 1:
        return Chart({"data": data, "title": title, **panels[0]})
    return Chart({"data": data, "title": title, "vconcat": panels})


def _along_time(at: Sequence[Any], name: str) -> Spec:
    if not _is_time(at):
        return {"field": "at", "type": "quantitative", "scale": {"zero": False}, "axis": axis(name, at, ticks=8)}
    return {
        "field": "at", "type": "temporal", "scale": {"type": "utc"},
        "axis": {"title": name, "tickCount": 6, "grid": False},
    }  # fmt: skip


# Which groups


def _placed(at: Sequence[Any]) -> list[int]:
    """The groups that have a place on an axis, in its order."""
    return sorted((i for i in range(len(at)) if at[i] is not None), key=lambda i: at[i])


def _unplaced(at: Sequence[Any], numbers: Mapping[str, Number]) -> str:
    """What the group NULL has, which no axis has a place for."""
    missing = [i for i in range(len(at)) if at[i] is None]
    released = [(name, cell(_plain(values[i]))) for i in missing for name, (values, *_) in numbers.items()]
    known = "".join(f", {name} = {value:,.6g}" for name, value in released if value is not None)
    return f" · not drawn: NULL{known}" if missing else ""


def _largest(groups: Sequence[Any], numbers: Mapping[str, Number]) -> tuple[list[int], list[Spec]]:
    """The groups that are named, and a row for the others if there are too many."""
    order = list(range(len(groups)))
    if len(order) <= LISTED:
        return order, []
    first = [cell(_plain(value)) for value in next(iter(numbers.values()))[0]]
    order.sort(key=lambda i: (first[i] is None, -(first[i] or 0)))
    named, others = order[:_LARGEST], order[_LARGEST:]
    rest: Spec = {"label": f"{len(others):,} others, least to most"}
    for i, (values, _, _) in enumerate(numbers.values()):
        known = sorted(value for j in others if (value := cell(_plain(values[j]))) is not None)
        if known:
            rest |= {f"least{i}": known[0], f"middle{i}": known[(len(known) - 1) // 2], f"most{i}": known[-1]}
    return named, [rest]


def _is_time(values: Sequence[Any]) -> bool:
    known = [value for value in values if value is not None]
    return len(known) > 1 and all(isinstance(value, datetime.date) for value in known)


def _is_even(values: Sequence[Any]) -> bool:
    """Whether columns can stand on an axis: numbers, none twice, at steps of equal size that are not too many."""
    plain = [_plain(value) for value in values if value is not None]
    if len(plain) < 3 or not all(isinstance(v, int | float) and not isinstance(v, bool) for v in plain):
        return False
    if not all(map(math.isfinite, plain)) or len(set(plain)) < len(plain):
        return False
    steps = [(value - min(plain)) / _gap(plain) for value in plain]
    return max(steps) <= _COLUMNS and all(abs(step - round(step)) < 1e-6 for step in steps)


def _gap(values: Sequence[Any]) -> float:
    """The least distance of two neighbours."""
    return min((float(b) - float(a) for a, b in itertools.pairwise(sorted(values))), default=1.0)
