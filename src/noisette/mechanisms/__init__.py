"""Mechanisms, one file each: frozen values that state their law and their guarantee."""

from noisette.mechanisms.exponential import Exponential
from noisette.mechanisms.gaussian import Gaussian
from noisette.mechanisms.geometric import Geometric
from noisette.mechanisms.keep import Keep
from noisette.mechanisms.knorm import KNorm
from noisette.mechanisms.laplace import Laplace
from noisette.mechanisms.mechanism import Mechanism, calibrate
from noisette.mechanisms.permute_and_flip import PermuteAndFlip
from noisette.mechanisms.quantile import Quantile
from noisette.mechanisms.randomized_response import RandomizedResponse
from noisette.mechanisms.staircase import Staircase
from noisette.mechanisms.threshold import Threshold
from noisette.mechanisms.truncated_geometric import TruncatedGeometric

__all__ = [
    "Exponential",
    "Gaussian",
    "Geometric",
    "KNorm",
    "Keep",
    "Laplace",
    "Mechanism",
    "PermuteAndFlip",
    "Quantile",
    "RandomizedResponse",
    "Staircase",
    "Threshold",
    "TruncatedGeometric",
    "calibrate",
]
