"""Noise that is added to numbers: geometric, Laplace, Gaussian, staircase and K-norm."""
