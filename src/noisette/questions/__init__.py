"""Questions that are values of their own: the curator asks and explains them like SQL.

>>> from noisette.questions import Choose, Mode
>>> Mode("ward")
Mode(column='ward', of=None)
"""

from noisette.questions.above import Above
from noisette.questions.apply import Apply
from noisette.questions.choose import Choose
from noisette.questions.mode import Mode
from noisette.questions.nearest import Nearest
from noisette.questions.top import Top

__all__ = ["Above", "Apply", "Choose", "Mode", "Nearest", "Top"]
