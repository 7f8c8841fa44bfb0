"""Reports: one HTML file with tables and charts that needs nothing from outside, for light and dark screens."""

from noisette.report.page import answer, beside, card, code, figure, more, page, said, table, tiles

__all__ = ["answer", "beside", "card", "code", "figure", "more", "page", "said", "table", "tiles"]
