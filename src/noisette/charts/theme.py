"""One look for all charts: colours that every kind of colour vision can tell apart, one font, quiet axes."""

from typing import Any, Final

__all__ = [
    "BLUE",
    "CONFIG",
    "DARK",
    "GOLD",
    "GREEN",
    "INK",
    "LINES",
    "ORANGE",
    "PAPER",
    "PURPLE",
    "RULE",
    "SKY",
    "SOFT",
]

PAPER, INK, SOFT, RULE = "#ffffff", "#24211d", "#6b655d", "#e5e0d8"
BLUE, ORANGE, GREEN, GOLD, PURPLE, SKY = "#0068a8", "#b84a00", "#007a5e", "#a87300", "#a8507f", "#3d8fc2"

LINES: Final = (BLUE, ORANGE, GREEN, PURPLE, GOLD, SKY, INK)
"""Colours of lines, in the order of what is drawn."""

DARK: Final = {
    PAPER: "#23201c", INK: "#ece7df", SOFT: "#a9a196", RULE: "#3a352e", BLUE: "#66b8ec", ORANGE: "#f59a4c",
    GREEN: "#4cc3a2", GOLD: "#e0b04a", PURPLE: "#dc93bd", SKY: "#8cc7ee",
}  # fmt: skip
"""What each colour becomes on a dark page."""

_FONT = "Liberation Sans, Arial, Helvetica, sans-serif"  # the renderer brings the first one: same file everywhere

CONFIG: Final[dict[str, Any]] = {
    "background": PAPER,
    "padding": 12,
    "font": _FONT,
    "view": {"stroke": None},
    "concat": {"spacing": 24},
    "facet": {"spacing": 18},
    "title": {
        "anchor": "start", "frame": "group", "color": INK, "fontSize": 14, "fontWeight": "bold", "offset": 14,
        "subtitleColor": SOFT, "subtitleFontSize": 12, "subtitlePadding": 5, "limit": 640,
    },
    "header": {"labelColor": INK, "labelFontSize": 12, "titleColor": SOFT, "titleFontSize": 12,
               "titleFontWeight": "normal", "labelLimit": 200},
    "axis": {
        "labelColor": SOFT, "labelFontSize": 11, "titleColor": INK, "titleFontSize": 12, "titleFontWeight": "normal",
        "titlePadding": 8, "domainColor": SOFT, "tickColor": SOFT, "gridColor": RULE, "labelLimit": 200,
        "titleLimit": 420, "labelOverlap": True, "labelSeparation": 6, "aria": False,
    },
    "axisBand": {"grid": False, "ticks": False, "labelColor": INK, "labelFontSize": 12},
    "legend": {"titleColor": INK, "titleFontSize": 12, "titleFontWeight": "normal", "labelColor": SOFT},
    "text": {"color": INK, "fontSize": 12},
    "mark": {"aria": False},
}  # fmt: skip
"""The theme, as Vega-Lite reads it; every chart carries it."""
