"""What the textbook's tree of sums errs by, and its refinement: to compare with, nothing is released by them.

Vocabulary: a node of level l adds up 2^l steps · `levels` that have a complete node within the horizon.

Each event lies in one node of each level, so that the noise of a node is sqrt(levels) times that of one number alone
(Gaussian; `levels` times under pure epsilon). The sum after t is that of one node for each 1 among the binary digits of
t.   [Dwork-Naor-Pitassi-Rothblum 2010; Chan-Shi-Song 2011]

Honaker's refinement: the two halves of a node, each estimated in the same way, are a second estimate of it. With
variance v for a half, the best average has 1/(1 + 1/(2 v)): 1/(2 - 2^-l) at level l.   [Honaker 2015]
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.releases.streams.contract import Floats

__all__ = ["binary_tree", "honaker", "levels"]


def levels(horizon: int) -> int:
    """How many levels have a complete node.

    >>> levels(1024), levels(1023)
    (11, 10)
    """
    return horizon.bit_length()


def binary_tree(steps: Any, horizon: int) -> Floats:
    """The deviation of the sum after each step, in units of the deviation that one number alone would have.

    >>> float(binary_tree(1023, 1024).round(3))
    10.488
    """
    return np.asarray(np.sqrt(levels(horizon) * _digits(steps, horizon).sum(axis=-1)))


def honaker(steps: Any, horizon: int) -> Floats:
    """The same where each node is averaged with its halves.

    >>> float(honaker(1023, 1024).round(3))
    7.989
    """
    variance = 1 / (2 - 0.5 ** np.arange(levels(horizon)))
    return np.asarray(np.sqrt(levels(horizon) * (_digits(steps, horizon) @ variance)))


def _digits(steps: Any, horizon: int) -> NDArray[np.int64]:
    """The binary digits of each step, from the lowest."""
    return np.asarray(steps, np.int64)[..., None] >> np.arange(levels(horizon)) & 1
