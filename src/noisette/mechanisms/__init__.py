"""Mechanisms, one file each: frozen values that state their law and their guarantee."""

from noisette.mechanisms.gaussian import Gaussian
from noisette.mechanisms.geometric import Geometric
from noisette.mechanisms.knorm import KNorm
from noisette.mechanisms.laplace import Laplace
from noisette.mechanisms.mechanism import Mechanism, calibrate
from noisette.mechanisms.randomized_response import RandomizedResponse
from noisette.mechanisms.staircase import Staircase
from noisette.mechanisms.truncated_geometric import TruncatedGeometric

__all__ = [
    "Gaussian",
    "Geometric",
    "KNorm",
    "Laplace",
    "Mechanism",
    "RandomizedResponse",
    "Staircase",
    "TruncatedGeometric",
    "calibrate",
]
