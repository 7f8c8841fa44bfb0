"""Multiplicative weights: a public distribution over cells that is moved towards what was measured."""
