"""Questions that are values of their own: the curator asks and explains them like SQL.

Each is loaded when it is asked for: the first answer to SQL should not wait for them.

>>> from noisette.questions import Choose, Mode
>>> Mode("ward")
Mode(column='ward', of=None, lead=False)
"""

import importlib as _importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from noisette.questions.above import Above
    from noisette.questions.apply import Apply
    from noisette.questions.best import Best
    from noisette.questions.centre import Centre
    from noisette.questions.choose import Choose
    from noisette.questions.left_out import LeftOut
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
    "LeftOut",
    "Mode",
    "Nearest",
    "OrderStatistic",
    "Spread",
    "Top",
    "Triangles",
    "TrimmedMean",
]

_FILES = {
    "Above": "above",
    "Apply": "apply",
    "Best": "best",
    "Centre": "centre",
    "Choose": "choose",
    "LeftOut": "left_out",
    "Mode": "mode",
    "Nearest": "nearest",
    "OrderStatistic": "order_statistic",
    "Spread": "spread",
    "Top": "top",
    "Triangles": "triangles",
    "TrimmedMean": "trimmed_mean",
}


def __getattr__(name: str) -> Any:
    """Load a question's file when it is asked for."""
    if name in _FILES:
        return getattr(_importlib.import_module(f"noisette.questions.{_FILES[name]}"), name)
    raise AttributeError(f"noisette.questions has no {name!r}")
