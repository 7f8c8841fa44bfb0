"""Laws of comparisons between Laplace variables, by quadrature: each piece between two whole numbers is smooth.

Vocabulary: `b` scale · `q` true answers · `z` where the threshold, or the largest noisy answer, lies.
"""

import numpy as np

REACH = 400  # e^(-400/4) of the widest noise lies beyond
_X, _W = np.polynomial.legendre.leggauss(12)
Z = (np.arange(-REACH, REACH)[:, None] + (_X + 1) / 2).ravel()
WEIGHT = np.tile(_W / 2, 2 * REACH)


def pdf(z, b):
    return np.exp(-np.abs(z) / b) / (2 * b)


def cdf(z, b):
    tail = np.exp(-np.abs(z) / b) / 2
    return np.where(z < 0, tail, 1 - tail)


def integral(values):
    return float(WEIGHT @ values)


def winner(q, i, b):
    """P(answer i is the largest) after adding Lap(b) to each."""
    others = [cdf(Z - a, b) for j, a in enumerate(q) if j != i]
    return integral(pdf(Z - q[i], b) * np.prod(others, axis=0))


def below_then_above(below, above, threshold, b):
    """P(all of `below` stay below and all of `above` rise above) a common threshold, Lap(threshold) and Lap(b) noise.

    `threshold` 0 is a threshold without noise, at 0.
    """

    def given(z):
        down = np.prod([cdf(z - a, b) for a in below], axis=0)
        return down * np.prod([cdf(a - z, b) for a in above], axis=0)

    return integral(pdf(Z, threshold) * given(Z)) if threshold else float(given(np.zeros(1))[0])
