"""Quantiles of numbers, with and without public bounds."""
