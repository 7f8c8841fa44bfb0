"""What a guarantee means for one person: what an attacker can decide, and what an observer can come to believe."""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.charts.chart import Chart
from noisette.charts.spec import Spec, apart, rows, ruled, titled
from noisette.charts.theme import BLUE, GOLD, GREEN, ORANGE, PAPER, PURPLE, SKY, SOFT
from noisette.errors import InputError
from noisette.exact.number import Number
from noisette.privacy import ZCDP, Approx, Guarantee, Profile, Pure
from noisette.privacy.meaning import posterior_bounds, tradeoff_curve

__all__ = ["odds", "tradeoff"]

_ORDER = (BLUE, GREEN, GOLD, ORANGE, PURPLE, SKY)  # the strongest promise first
_POINTS, _SIZE, _GAP = 61, 380, 19
_PERCENT = {"format": ".0%", "values": [0, 0.2, 0.4, 0.6, 0.8, 1]}
_LARGEST = 512.0


def tradeoff(*guarantees: Guarantee | Number, labels: Sequence[str] | None = None) -> Chart:
    """Draw the least miss rate of any attacker against the false-alarm rate.

    One line for each guarantee; what lies below it is impossible. Who does not look at the answers and guesses can
    have any point of the diagonal.

    >>> tradeoff(1, Approx(2, "1e-6")).texts[:3]
    ['pure guessing', 'ε = 1', 'ε = 2, δ = 1e-6']
    """
    promises = [g if isinstance(g, Pure | Approx | ZCDP | Profile) else Pure(g) for g in guarantees]
    names = list(labels) if labels is not None else [_name(promise) for promise in promises]
    if not promises or len(names) != len(promises):
        raise InputError("Give at least one guarantee, and one label for each if any.")
    alphas = _rates(*(1 / (1 + math.exp(e)) for promise in promises for e in _own(promise)))
    lines = [tradeoff_curve(promise, alphas) for promise in promises]
    corners = [float(np.interp(0.0, alphas - betas, alphas)) for betas in lines]  # as many false alarms as misses
    order = sorted(range(len(lines)), key=lambda i: -corners[i])
    layers = [_diagonal(1, 0), _text("pure guessing", 0.8, 0.2, dx=6, dy=-8, angle=45, color=SOFT, fontSize=11)]
    texts = []
    heights = apart(sorted(corners), _GAP / _SIZE)[::-1]
    for i, colour, height in zip(order, _colours(), heights, strict=False):
        layers += _band(alphas, np.zeros_like(alphas), lines[i], colour, edges=("high",))
        texts.append(_text(names[i], corners[i], height, dx=9, dy=-9, align="left", color=colour))
    return _square(
        "What an attacker can decide", "false alarms", "misses, at least", [*layers, *texts, _region(corners)]
    )


def odds(*epsilons: Number, mark: Number | None = None) -> Chart:
    """Draw what an observer can believe after seeing answers of epsilon-DP, against the belief before.

    One band for each epsilon; without answers there is only the diagonal. `mark` shows what one belief can become.

    >>> odds("0.1", 1, 3, mark="0.1").texts
    ['ε = 0.1', 'ε = 1', 'ε = 3', '11 %', '23 %', '69 %']
    """
    if not epsilons:
        raise InputError("Give at least one epsilon.")
    promises = sorted((Pure(epsilon) for epsilon in epsilons), key=lambda promise: promise.epsilon)
    layers, priors = [_diagonal(0, 1)], _rates()
    for promise, colour in reversed(list(zip(promises, _colours(), strict=False))):
        low, high = np.array([posterior_bounds(float(prior), promise) for prior in priors]).T
        layers += _band(priors, low, high, colour, edges=("low", "high"))
    layers += _along_bands([float(promise.epsilon) for promise in promises])
    if mark is not None:
        layers += _marked(mark, promises)
    return _square("What an observer can come to believe", "belief before", "belief after", layers)


def _rates(*corners: float) -> NDArray[np.float64]:
    """Probabilities from 0 to 1, closer together near the ends, and these."""
    return np.union1d(np.sin(np.linspace(0, np.pi / 2, _POINTS)) ** 2, corners)


def _own(promise: Guarantee) -> list[float]:
    """The epsilon that a promise states, at which its line bends."""
    return [float(promise.epsilon)] if isinstance(promise, Pure | Approx) and promise.epsilon <= _LARGEST else []


def _colours() -> Iterator[str]:
    return itertools.cycle(_ORDER)


def _name(guarantee: Guarantee) -> str:
    match guarantee:
        case Pure():
            return f"ε = {float(guarantee.epsilon):g}"
        case Approx():
            return f"ε = {float(guarantee.epsilon):g}, δ = {float(guarantee.delta):g}".replace("e-0", "e-")
        case ZCDP():
            return f"ρ = {float(guarantee.rho):g} (zCDP)"
        case Profile():
            return str(guarantee)


# Pieces


def _square(title: str, across: str, up: str, layers: list[Spec]) -> Chart:
    """A chart with axes for two probabilities."""
    scale = {"domain": [0, 1], "nice": False}
    x, y = ({"type": "quantitative", "scale": scale, "axis": {"title": name, **_PERCENT}} for name in (across, up))
    return Chart(
        {"title": titled(title), "width": _SIZE, "height": _SIZE, "layer": layers, "encoding": {"x": x, "y": y}}
    )


def _diagonal(start: float, end: float) -> Spec:
    mark = {"type": "line", "color": SOFT, "strokeDash": [4, 3], "strokeWidth": 1.4}
    return {
        "data": rows(x=[0, 1], y=[start, end]),
        "mark": mark,
        "encoding": {"x": {"field": "x"}, "y": {"field": "y"}},
    }


def _band(x: NDArray[Any], low: NDArray[Any], high: NDArray[Any], colour: str, edges: Sequence[str]) -> list[Spec]:
    """What lies between two lines, and those of its edges that mean something."""
    data = rows(x=x, low=low, high=high)
    line = {"type": "line", "color": colour, "strokeWidth": 2.2, "strokeJoin": "round"}
    area = {"type": "area", "color": colour, "opacity": 0.13}
    return [
        {"data": data, "mark": area, "encoding": {"x": {"field": "x"}, "y": {"field": "low"}, "y2": {"field": "high"}}},
        *({"data": data, "mark": line, "encoding": {"x": {"field": "x"}, "y": {"field": edge}}} for edge in edges),
    ]


def _text(text: str, x: float, y: float, **style: Any) -> Spec:
    """A text on a halo, so that a line underneath does not disturb."""
    mark = {"type": "text", "align": "center", "baseline": "middle", "lineBreak": "\n", **style}
    halo = {**mark, "color": PAPER, "stroke": PAPER, "strokeWidth": 4, "strokeJoin": "round", "opacity": 0.85}
    encoding = {"x": {"field": "x"}, "y": {"field": "y"}, "text": {"field": "text"}}
    return {"data": rows(x=[x], y=[y], text=[text]), "encoding": encoding, "layer": [{"mark": halo}, {"mark": mark}]}


def _region(corners: Sequence[float]) -> Spec:
    """Say what the area means: inside it if there is room, else where nothing is drawn."""
    style: Spec = {"fontSize": 11, "color": SOFT}
    if len(corners) == 1 and corners[0] > 0.2:
        return _text("impossible for\nany attacker", corners[0] / 2, corners[0] / 2, angle=45, **style)
    return _text("below a line: impossible\nfor any attacker", 0.78, 0.9, **style)


def _along_bands(losses: Sequence[float]) -> list[Spec]:
    """Each name along its band's upper edge, which rises by 45° halfway: outside it where there is room."""
    heights = [1 / (1 + math.exp(-loss / 2)) for loss in losses]
    found = []
    for loss, height, beyond, colour in zip(losses, heights, [*heights[1:], 0.97], _colours(), strict=False):
        side = 7 if beyond - height > 0.05 else -7
        found.append(_text(f"ε = {loss:g}", 1 - height, height, dy=-side, angle=315, color=colour))
    return found


def _marked(mark: Number, promises: Sequence[Pure]) -> list[Spec]:
    """What one belief can rise to."""
    highest = [posterior_bounds(mark, promise)[1] for promise in promises]
    prior = posterior_bounds(mark, 0)[0]
    layers = [ruled({"x": prior}, color=SOFT, strokeDash=[4, 3])]
    heights = apart(highest, _GAP / _SIZE)
    for high, height, colour in zip(highest, heights, _colours(), strict=False):
        dot = {"type": "circle", "color": colour, "size": 55, "opacity": 1}
        encoding = {"x": {"field": "x"}, "y": {"field": "y"}}
        layers.append({"data": rows(x=[prior], y=[high]), "mark": dot, "encoding": encoding})
        layers.append(_text(f"{100 * high:.0f} %", prior, height, dx=8, align="left", color=colour, fontSize=11))
    return layers
