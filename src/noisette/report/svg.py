"""Pieces of SVG and of scales; texts are escaped here and nowhere else."""

import math
from collections.abc import Sequence
from html import escape

__all__ = ["WIDTH", "chart", "circle", "label", "line", "polyline", "rect", "short", "text_width", "ticks"]

WIDTH = 440.0


def chart(parts: Sequence[str], height: float, title: str) -> str:
    """A chart as wide as its place, with a caption that screen readers get as well.

    >>> chart([], 10, "a < b").split(">")[0]
    '<figure'
    """
    name = escape(title)
    drawn = f'<svg viewBox="0 0 {WIDTH:g} {height:g}" role="img" aria-label="{name}">{"".join(parts)}</svg>'
    return f"<figure>{drawn}<figcaption>{name}</figcaption></figure>"


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """A straight line."""
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def polyline(points: Sequence[tuple[float, float]], kind: str) -> str:
    """A line through points."""
    return f'<polyline class="{kind}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'


def circle(x: float, y: float, r: float, kind: str) -> str:
    """A dot."""
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{r:g}"/>'


def rect(x: float, y: float, width: float, height: float, kind: str) -> str:
    """A bar, never thinner than can be seen."""
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{max(height, 0.5):.1f}" rx="1.5"/>'
    )


def label(x: float, y: float, content: str, kind: str = "tick", anchor: str = "middle") -> str:
    """A text; whatever it holds is shown, never read as markup.

    >>> label(1, 2, "<b>")
    '<text class="tick" x="1.0" y="2.0" text-anchor="middle">&lt;b&gt;</text>'
    """
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(content)}</text>'


def text_width(content: str) -> float:
    """About how wide a label is."""
    return 6.6 * len(content)


def short(number: float) -> str:
    """A number for an axis.

    >>> short(1_500_000), short(-20_000), short(1500), short(0.05)
    ('1.5 M', '−20 k', '1,500', '0.05')
    """
    size = abs(number)
    sign = "−" if number < 0 else ""
    if size >= 1e6:
        return f"{sign}{size / 1e6:.4g} M"
    return f"{sign}{size / 1e3:.4g} k" if size >= 1e4 else f"{sign}{size:,.4g}"


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers between two ends, at most so many.

    >>> ticks(-240, 240), ticks(0, 55_000, 4)
    ([-200.0, -100.0, 0.0, 100.0, 200.0], [0.0, 20000.0, 40000.0])
    """
    if not low < high:
        return [low]
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(step for step in (power, 2 * power, 5 * power, 10 * power, 20 * power) if _fits(low, high, step, most))
    return [step * i for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _fits(low: float, high: float, step: float, most: int) -> bool:
    return math.floor(high / step) - math.ceil(low / step) + 1 <= most
