"""The exact delta of k-fold composition: randomized response is the worst.   [Kairouz-Oh-Viswanath 2015]"""

import math

import numpy as np
from scipy.special import gammaln


def log_delta(k, epsilon, total):
    """ln delta(total) of k mechanisms of epsilon each, at worst: the loss is (k - 2i) epsilon, i binomial."""
    i = np.arange(k + 1)
    loss = (k - 2 * i) * epsilon
    i, loss = i[loss > total], loss[loss > total]
    if not i.size:
        return -math.inf
    log_p = gammaln(k + 1) - gammaln(i + 1) - gammaln(k - i + 1) + (k - i) * epsilon - k * np.logaddexp(0, epsilon)
    terms = log_p + np.log(-np.expm1(total - loss))
    return float(np.logaddexp.reduce(terms))


def root(f, low, high):
    """Where f changes its sign, by bisection."""
    rising = f(high) > 0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if (f(middle) > 0) == rising else (middle, high)
    return (low + high) / 2
