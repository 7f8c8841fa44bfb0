"""Questions that are values of their own: the curator asks and explains them like SQL.

>>> from noisette.questions import Choose, Mode
>>> Mode("ward")
Mode(column='ward', of=None, lead=False)
"""

from noisette.questions.above import Above
from noisette.questions.apply import Apply
from noisette.questions.best import Best
from noisette.questions.centre import Centre
from noisette.questions.choose import Choose
from noisette.questions.mode import Mode
from noisette.questions.nearest import Nearest
from noisette.questions.order_statistic import OrderStatistic
from noisette.questions.spread import Spread
from noisette.questions.top import Top
from noisette.questions.triangles import Triangles
from noisette.questions.trimmed_mean import TrimmedMean

__all__ = [
    "Above",
    "Apply",
    "Best",
    "Centre",
    "Choose",
    "Mode",
    "Nearest",
    "OrderStatistic",
    "Spread",
    "Top",
    "Triangles",
    "TrimmedMean",
]
