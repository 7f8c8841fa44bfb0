"""The noise of a sketch: Laplace or Gaussian, whichever errs less for a promise."""

from noisette.mechanisms import Gaussian, Geometric, calibrate
from noisette.privacy import Promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.releases.linear import Noise

__all__ = ["least_noise"]


def least_noise(promise: Promise, moved: Sensitivity) -> Noise:
    """Whole noise that keeps a promise for numbers that one unit moves that far.

    >>> from noisette.privacy import ZCDP, Neighbours, Pure
    >>> moved = Sensitivity(5, 5, 1, 5, neighbours=Neighbours.ADD_REMOVE)
    >>> least_noise(Pure(1), moved), type(least_noise(ZCDP("1/8"), moved)).__name__
    (Geometric(scale=5), 'Gaussian')
    """
    laplace = calibrate(Geometric, promise, sensitivity=moved)
    if promise.is_pure:
        return laplace
    gaussian = calibrate(Gaussian, promise, sensitivity=moved)
    return gaussian if gaussian.variance() < laplace.variance() else laplace
