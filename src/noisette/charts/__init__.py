"""Charts as data: functions from columns to a Vega-Lite specification, for notebooks, reports, files and web pages.

A specification needs nothing but Python; pictures (`Chart.save`) need the extra `plot`.
"""

from noisette.charts.accuracy import composition, error
from noisette.charts.answers import answer, bars, columns, time
from noisette.charts.chart import Chart
from noisette.charts.curves import curves, forecast
from noisette.charts.dots import beside, deviations
from noisette.charts.heat import grid, heat, heats
from noisette.charts.laws import law
from noisette.charts.maps import nearest
from noisette.charts.meaning import odds, tradeoff

__all__ = [
    "Chart",
    "answer",
    "bars",
    "beside",
    "columns",
    "composition",
    "curves",
    "deviations",
    "error",
    "forecast",
    "grid",
    "heat",
    "heats",
    "law",
    "nearest",
    "odds",
    "time",
    "tradeoff",
]
