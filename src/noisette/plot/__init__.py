"""Charts: errors, what a guarantee means, how guarantees add up, answers. Needs the extra `plot`."""

from noisette.plot.bars import bars
from noisette.plot.composition import composition
from noisette.plot.error import error
from noisette.plot.forecast import forecast
from noisette.plot.meaning import odds, posterior_bounds, tradeoff, tradeoff_curve

__all__ = ["bars", "composition", "error", "forecast", "odds", "posterior_bounds", "tradeoff", "tradeoff_curve"]
