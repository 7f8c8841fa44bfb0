"""Coins and exact numbers: the only place where randomness enters."""

from noisette.exact import rational, samplers, vector

__all__ = ["rational", "samplers", "vector"]
