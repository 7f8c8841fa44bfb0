"""Levels of an adaptive map: how many divisions each axis has on each, and the share of the promise that each gets."""

from fractions import Fraction
from typing import TypeAlias

import numpy as np

from noisette.exact.rational import sqrt_down
from noisette.releases.adaptive import rounded_shares

__all__ = ["Blocks", "best_shares", "halved"]

Blocks: TypeAlias = tuple[tuple[int, int], ...]

_FAN = 2  # divisions of a division of an axis
_TOP = 16  # a level of fewer nodes is the top
_SMALL, _THIN = 256, 4  # cells of a map, and of the shorter axis of one that is like a line
_AXES = Fraction(1, 20)  # of the promise, for the counts along both axes


def halved(shape: tuple[int, int]) -> Blocks:
    """How many divisions each axis has on each level, from the top: from level to level four times the nodes.

    A small map has single cells alone: levels pay where rectangles hold many cells.

    >>> halved((64, 64)), halved((1, 300)), halved((16, 16))
    (((2, 2), (4, 4), (8, 8), (16, 16), (32, 32)), ((1, 5), (1, 20), (1, 80)), ())
    """
    if min(shape) > _THIN and shape[0] * shape[1] <= _SMALL:
        return ()
    now, steps = np.array(shape), []
    while now.prod() >= _TOP:
        before = now.copy()
        for _ in range(2):
            now[now.argmax()] = -(-now.max() // _FAN)
        steps.append(-(-before // now))
    found = [now]
    for step in steps[:0:-1]:
        found.append(found[-1] * step)
    return tuple((int(a), int(b)) for a, b in found) if steps else ()


def best_shares(blocks: Blocks, *, smooth: bool) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
    """The shares of both axes, and of each level: the fourth root of how many nodes the edge of a rectangle crosses.

    That makes the sum of variances of these nodes least for Gaussian noise. For Laplace noise it is the cube root, if
    nothing stops; upper levels, which decide what stops, are worth more.
    """
    crossed = np.array([max(1, rows * (columns > 1) + columns * (rows > 1)) for rows, columns in blocks])
    if len(blocks) == 1:
        return (), (Fraction(1),)
    best = crossed**0.25
    best /= np.sqrt((best**2).sum()) if smooth else best.sum()
    left, axis = (sqrt_down(1 - _AXES), sqrt_down(_AXES / 2)) if smooth else (1 - _AXES, _AXES / 2)
    return (axis, axis), tuple(left * share for share in rounded_shares(best.tolist(), squared=smooth))
