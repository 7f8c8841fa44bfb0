"""A mechanism's law at two neighbouring inputs, and below it the privacy loss ln P/P' with its bound."""

import itertools
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

from noisette.charts.chart import Chart
from noisette.charts.spec import Spec, axis, clipped, labels, rows, ruled, titled
from noisette.charts.theme import BLUE, ORANGE, SOFT
from noisette.errors import InputError

__all__ = ["law"]

Law = Mapping[Hashable, float]
Pairs = Mapping[Any, tuple[float, float]]
_NAMED, _STEPS = 12, 41  # outcomes with a name each; numbers with a large dot each
_FILLED = 400  # whole numbers on an axis
_SEEN = 2e-3  # of the largest probability: where the picture ends
_WIDTH = 480


def law(
    here: Law, there: Law, *, names: tuple[str, str] = ("x", "x + 1"), epsilon: float | None = None, **texts: str
) -> Chart:
    """Draw P(outcome) at two neighbouring inputs, and the loss between them with ± epsilon.

    Whole or real outcomes stand on an axis; of others the most likely dozen. `texts` are `title`, `note`, `outcome`.

    >>> chart = law({0: 0.75, 1: 0.25}, {0: 0.25, 1: 0.75}, epsilon=1.1, title="coin")
    >>> [(row["outcome"], row["p"], row["input"]) for row in chart.values[:2]]
    [('0', 0.75, 'x'), ('0', 0.25, 'x + 1')]
    """
    outcomes = list(dict.fromkeys([*here, *there]))
    if not outcomes:
        raise InputError("A law needs at least one outcome.")
    pairs = {outcome: (float(here.get(outcome, 0.0)), float(there.get(outcome, 0.0))) for outcome in outcomes}
    title = titled(texts.get("title", ""), texts.get("note", ""))
    numeric = len(outcomes) > _NAMED and all(type(o) in (int, float) for o in outcomes)
    upper, lower = _on_an_axis(pairs, names, texts) if numeric else _by_name(pairs, names, texts)
    parts = [upper, _loss(lower, epsilon)]
    return Chart({"title": title, "vconcat": parts, "spacing": 12, "resolve": {"scale": {"color": "independent"}}})


def _on_an_axis(pairs: Pairs, names: tuple[str, str], texts: Mapping[str, str]) -> tuple[Spec, Spec]:
    """Outcomes that are numbers, where they can be seen; whole numbers that never come have probability 0."""
    most = max(max(pair) for pair in pairs.values())
    seen = sorted(outcome for outcome, pair in pairs.items() if max(pair) >= _SEEN * most)
    if all(type(outcome) is int for outcome in pairs) and seen[-1] - seen[0] <= _FILLED:
        shown = {outcome: pairs.get(outcome, (0.0, 0.0)) for outcome in range(seen[0], seen[-1] + 1)}
    else:
        shown = {outcome: pairs[outcome] for outcome in sorted(pairs) if seen[0] <= outcome <= seen[-1]}
    gap = min((float(b - a) for a, b in itertools.pairwise(shown)), default=1.0)
    ends = [float(seen[0]) - gap, float(seen[-1]) + gap]
    place = {"field": "outcome", "type": "quantitative", "scale": {"domain": ends, "nice": False}}
    side = {**axis(texts.get("outcome", "released"), ends, ticks=10), "grid": False}
    steps = "step" if (ends[1] - ends[0]) / gap <= 3 * _STEPS else "linear"
    shape = {"type": "area", "line": {"strokeWidth": 1.8}, "opacity": 0.28, "interpolate": steps}
    return _probabilities(shown, names, shape, _above(place, side)), _losses(shown, {**place, "axis": side})


def _by_name(given: Pairs, names: tuple[str, str], texts: Mapping[str, str]) -> tuple[Spec, Spec]:
    """The most likely outcomes by name, and all others together."""
    pairs = dict(given)
    if len(given) > _NAMED:
        likely = set(sorted(given, key=lambda outcome: -sum(given[outcome]))[: _NAMED - 1])
        others = [given[outcome] for outcome in given if outcome not in likely]
        pairs = {outcome: pair for outcome, pair in given.items() if outcome in likely}
        pairs[f"{len(others):,} others"] = math.fsum(p for p, _ in others), math.fsum(q for _, q in others)
    shown = dict(zip(labels(map(_spelt, pairs)), pairs.values(), strict=True))
    place = {"field": "outcome", "type": "nominal", "sort": None, "scale": {"domain": list(shown)}}
    angle = -40 if max(map(len, shown)) * len(shown) > 60 else 0
    side = {"labelAngle": angle, "title": texts.get("outcome", "released"), "labelLimit": 110, "labelOverlap": False}
    beside = {"xOffset": {"field": "input", "sort": None, "scale": {"domain": list(names)}}}
    upper = _probabilities(shown, names, {"type": "bar", "opacity": 0.8}, {**_above(place, side), **beside})
    return upper, _losses(shown, {**place, "axis": side})


def _above(place: Spec, side: Spec) -> Spec:
    """The same places without their names, which stand below the other panel."""
    return {"x": {**place, "axis": {**side, "labels": False, "title": None}}}


def _spelt(outcome: Any) -> str:
    """An outcome as people write it.

    >>> _spelt((0, None, True)), _spelt((None,) * 5 + (True,)), _spelt(None), _spelt(3)
    ('0, –, yes', '5 × –, yes', 'nothing', '3')
    """
    match outcome:
        case None:
            return "nothing"
        case tuple():
            return clipped(", ".join(_runs("–" if part is None else _spelt(part) for part in outcome)), 22)
        case bool():
            return "yes" if outcome else "no"
        case _:
            return clipped(str(outcome), 22)


def _runs(words: Iterable[str]) -> Iterator[str]:
    """Words, those that stand three times or more in a row only once."""
    for word, group in itertools.groupby(words):
        times = len(list(group))
        yield from [f"{times} × {word}"] if times > 2 else [word] * times


def _probabilities(pairs: Pairs, names: tuple[str, str], shape: Spec, encoding: Spec) -> Spec:
    flat = [(outcome, names[i], pair[i]) for outcome, pair in pairs.items() for i in (0, 1)]
    ink = {"domain": list(names), "range": [BLUE, ORANGE]}
    legend = {"title": None, "orient": "top", "symbolOpacity": 1, "labelFontSize": 12, "labelLimit": 400, "offset": 4}
    colour = {"field": "input", "type": "nominal", "scale": ink, "legend": legend}
    up = {"field": "p", "type": "quantitative", "stack": None, "axis": axis("probability", [1])}
    return {
        "data": rows(outcome=[row[0] for row in flat], input=[row[1] for row in flat], p=[row[2] for row in flat]),
        "width": _WIDTH, "height": 170, "mark": shape, "encoding": {**encoding, "y": up, "color": colour},
    }  # fmt: skip


def _losses(pairs: Pairs, place: Spec) -> Spec:
    """The loss of each outcome that is possible at both inputs."""
    both = [(outcome, *pair) for outcome, pair in pairs.items() if min(pair) > 0]
    data = rows(outcome=[row[0] for row in both], loss=[math.log(q / p) for _, p, q in both])
    dots = {"type": "circle", "color": SOFT, "size": 24 if len(both) > _STEPS else 45, "opacity": 0.9}
    return {"data": data, "mark": dots, "encoding": {"x": place, "y": {"field": "loss", "type": "quantitative"}}}


def _loss(points: Spec, epsilon: float | None) -> Spec:
    """The panel of the loss, between the lines that the guarantee draws."""
    reach = 1.25 * max([abs(row["loss"]) for row in points["data"]["values"]] + [epsilon or 0.0]) or 1.0
    lines = [ruled({"y": 0.0}, color=SOFT, strokeWidth=1)]
    side = axis("loss, ln P'/P", [1], ticks=4)
    if epsilon:
        lines += [ruled({"y": sign * epsilon}, color=ORANGE, strokeDash=[5, 3]) for sign in (-1, 1)]
        side |= {"values": [-epsilon, 0, epsilon], "labelExpr": "format(datum.value, ',.3~g')"}
    up = {"type": "quantitative", "scale": {"domain": [-reach, reach], "nice": False}, "axis": side}
    points = {**points, "encoding": {**points["encoding"], "y": {**points["encoding"]["y"], **up}}}
    return {"width": _WIDTH, "height": 90, "layer": [points, *lines]}
