"""Numbers as columns, with whiskers where they have error bars."""

from collections.abc import Sequence

from noisette.report.svg import WIDTH, chart, label, line, rect, short, ticks

__all__ = ["columns"]

_TOP, _BOTTOM, _LEFT = 8.0, 168.0, 46.0


def columns(
    labels: Sequence[str],
    values: Sequence[float],
    *,
    title: str,
    low: Sequence[float] | None = None,
    high: Sequence[float] | None = None,
) -> str:
    """Draw a column for each number.

    >>> columns(["a", "b"], [3, 5], title="so many").count("<rect")
    2
    """
    most = max([*(high if high is not None else values), 0.0]) or 1.0
    least = min([*(low if low is not None else values), 0.0])
    step = (WIDTH - _LEFT - 4) / max(len(labels), 1)

    def y(value: float) -> float:
        return _BOTTOM - (_BOTTOM - _TOP) * (value - least) / (most - least)

    parts = [line(_LEFT, y(t), WIDTH - 4, y(t), "zero" if t == 0 else "grid") for t in ticks(least, most, 5)]
    parts += [label(_LEFT - 6, y(t) + 4, short(t), anchor="end") for t in ticks(least, most, 5)]
    for i, (name, value) in enumerate(zip(labels, values, strict=True)):
        middle, top = _LEFT + step * (i + 0.5), y(max(value, 0.0))
        parts.append(rect(middle - 0.36 * step, top, 0.72 * step, abs(y(0.0) - y(value)), "column"))
        if low is not None and high is not None:
            parts.append(line(middle, y(low[i]), middle, y(high[i]), "whisker"))
        parts.append(label(middle, _BOTTOM + 16, name))
    return chart(parts, _BOTTOM + 24, title)
