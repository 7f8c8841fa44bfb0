"""How far answers are from the truth, with their error bars: for invented data, where the truth may be shown."""

from collections.abc import Sequence

import numpy as np

from noisette.report.svg import WIDTH, chart, circle, label, line, short, text_width, ticks

__all__ = ["deviations"]

_ROW, _HEAD, _FOOT = 20.0, 6.0, 24.0


def deviations(
    labels: Sequence[str],
    values: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    truth: Sequence[float],
    *,
    title: str,
) -> str:
    """Draw each answer minus its truth, which is the line in the middle; a bar that misses it has another colour.

    >>> deviations(["north"], [12], [10], [14], [11], title="visits").count("<circle")
    1
    """
    given, true = np.asarray(values, dtype=float), np.asarray(truth, dtype=float)
    ends = np.asarray([low, high], dtype=float) - true
    span = 1.04 * float(max(np.abs(ends).max(initial=0), np.abs(given - true).max(initial=0))) or 1.0
    start = 10 + min(max(map(text_width, labels), default=0), 150)
    bottom = _HEAD + _ROW * len(labels)

    def x(value: float) -> float:
        return start + (WIDTH - start - 8) * (value + span) / (2 * span)

    parts = [line(x(t), _HEAD, x(t), bottom, "zero" if t == 0 else "grid") for t in ticks(-span, span)]
    parts += [label(x(t), bottom + 16, short(t)) for t in ticks(-span, span)]
    for i, (name, value) in enumerate(zip(labels, given - true, strict=True)):
        y, bar = _HEAD + _ROW * (i + 0.5), (float(ends[0, i]), float(ends[1, i]))
        kind = "" if bar[0] <= 0 <= bar[1] else " miss"
        parts += [label(start - 6, y + 4, _cut(name), "name", "end"), line(x(bar[0]), y, x(bar[1]), y, f"bar{kind}")]
        parts.append(circle(x(value), y, 3.5, f"dot{kind}"))
    return chart(parts, bottom + _FOOT, title)


def _cut(name: str) -> str:
    """A name that fits beside the chart."""
    return name if len(name) <= 22 else f"{name[:21]}…"
