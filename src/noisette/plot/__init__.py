"""Charts, drawn with matplotlib (the extra `plot`), which is loaded when a chart is drawn and not before."""

from noisette.plot.error import error

__all__ = ["error"]
