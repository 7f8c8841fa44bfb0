"""Reports: one HTML file with tables and charts that needs nothing from outside, for light and dark screens."""

from noisette.report.figure import figure
from noisette.report.page import beside, card, code, more, page, said, tiles
from noisette.report.tables import answer, table

__all__ = [
    "answer",
    "beside",
    "card",
    "code",
    "figure",
    "more",
    "page",
    "said",
    "table",
    "tiles",
]
