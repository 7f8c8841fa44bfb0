"""Noise laws as values: pmf, cdf, quantile, tail, variance, sample."""

from noisette.laws.discrete_gaussian import DiscreteGaussian
from noisette.laws.discrete_laplace import DiscreteLaplace
from noisette.laws.law import Law
from noisette.laws.norm_ball import NormBall
from noisette.laws.staircase import DiscreteStaircase

__all__ = ["DiscreteGaussian", "DiscreteLaplace", "DiscreteStaircase", "Law", "NormBall"]
