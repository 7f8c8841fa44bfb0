"""All small histograms, their neighbours, and the largest loss between the laws of any two of them."""

import itertools
import math

from noisette.privacy import Neighbours


def histograms(cells, most):
    return list(itertools.product(range(most + 1), repeat=cells))


def neighbours_of(counts, relation):
    for i in range(len(counts)):
        if counts[i]:
            less = [c - (j == i) for j, c in enumerate(counts)]
            if relation is Neighbours.ADD_REMOVE:
                yield tuple(less)
            else:
                yield from (tuple(c + (j == k) for j, c in enumerate(less)) for k in range(len(counts)))


def worst(laws, relation):
    pairs = [(a, b) for a in laws for b in neighbours_of(a, relation) if b in laws]
    return max(abs(math.log(laws[a][y] / laws[b][y])) for a, b in pairs for y in laws[a] if laws[a][y] > 1e-250)
