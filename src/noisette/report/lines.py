"""Lines on logarithmic axes, each named where it begins, with dots of what really happened."""

import math
from collections.abc import Callable, Mapping, Sequence

from noisette.report.svg import WIDTH, chart, circle, label, line, polyline, short

__all__ = ["lines"]

_TOP, _BOTTOM, _LEFT, _RIGHT = 12.0, 240.0, 46.0, 10.0
Points = Sequence[tuple[float, float]]
Range = tuple[float, float]


def lines(curves: Mapping[str, Points], dots: Mapping[str, Points], *, axis: str, title: str) -> str:
    """Draw y against x, both above 0; `dots` belong to the curve of the same name.

    >>> lines({"n": [(1, 4), (2, 2)]}, {"n": [(1, 3)]}, axis="ε", title="error").count("<circle")
    1
    """
    known = [point for points in [*curves.values(), *dots.values()] for point in points if point[1] > 0]
    across, up = ([math.log(point[i]) for point in known] for i in (0, 1))
    left, right, low, high = min(across), max(across), min(up), max(up) + 0.2

    def place(point: tuple[float, float]) -> tuple[float, float]:
        x = _LEFT + (WIDTH - _LEFT - _RIGHT) * (math.log(point[0]) - left) / ((right - left) or 1)
        return x, _BOTTOM - (_BOTTOM - _TOP) * (math.log(max(point[1], math.exp(low))) - low) / ((high - low) or 1)

    named = sorted({x for points in curves.values() for x, _ in points})
    parts = _axes(place, named, (math.exp(low), math.exp(high)))
    for number, (name, points) in enumerate(curves.items()):
        drawn = [place(point) for point in points if point[1] > 0]
        parts += [circle(*place(point), 2.4, f"seen line{number}") for point in dots.get(name, ())]
        parts.append(polyline(drawn, f"line line{number}"))
        x, y = drawn[0]
        parts.append(label(x + 12, y - 3, name, f"name line{number}", "start"))
    parts.append(label((WIDTH + _LEFT) / 2, _BOTTOM + 34, axis))
    return chart(parts, _BOTTOM + 42, title)


def _axes(place: Callable[[tuple[float, float]], tuple[float, float]], across: Sequence[float], up: Range) -> list[str]:
    """The grid and its numbers: every second x, and powers of ten."""
    parts = []
    for power in (10.0**i for i in range(-3, 9)):
        if up[0] <= power <= up[1]:
            y = place((across[0], power))[1]
            parts += [line(_LEFT, y, WIDTH - _RIGHT, y, "grid"), label(_LEFT - 6, y + 4, short(power), anchor="end")]
    for each in across:
        x = place((each, up[0]))[0]
        parts += [line(x, _TOP, x, _BOTTOM, "grid"), label(x, _BOTTOM + 16, _fraction(each))]
    return parts


def _fraction(number: float) -> str:
    """A power of two as people write it.

    >>> _fraction(0.125), _fraction(2.0)
    ('1/8', '2')
    """
    return f"1/{1 / number:g}" if 0 < number < 1 and (1 / number).is_integer() else f"{number:g}"
