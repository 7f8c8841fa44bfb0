"""Charts: error against epsilon, what a guarantee means, how guarantees add up. Needs the extra `plot`."""

from noisette.plot.composition import composition
from noisette.plot.error import error
from noisette.plot.meaning import odds, posterior_bounds, tradeoff, tradeoff_curve

__all__ = ["composition", "error", "odds", "posterior_bounds", "tradeoff", "tradeoff_curve"]
