"""Budgets of the levels of a tree of boxes, and how such a tree is measured from the top.

Vocabulary: `d` axes of more than one cell · `halvings` how many times the whole map was halved to get boxes of a level.

**Budgets.** After D halvings there are 2^D boxes, and the sides of a rectangle cut at most a multiple of 2^(D (d-1)/d)
of them, so about that many boxes n of the level are summed. The variance sum of n_l 2/eps_l^2, with the eps_l adding up
to eps, is least for eps_l proportional to n_l^(1/3), and is then 2 (sum of n_l^(1/3))^3/eps^2; sum of n_l/rho_l, with
the rho_l adding up to rho, for rho_l proportional to n_l^(1/2).   [Cormode-Procopiuc-Srivastava-Shen-Yu 2012 for d = 2]

**Privacy.** Boxes of a level are disjoint, so on the path of a row there is one box per level. A box that stops is
measured once more with all that the levels below it would have had, and nothing below it is measured. Whether it stops
depends on released numbers alone. So a row pays for each level at most once.   (docs/proofs/map-strategies.md)
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial, reduce
from operator import add
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.number import whole
from noisette.exact.random import Random
from noisette.exact.rational import sqrt_down, sqrt_up
from noisette.mechanisms import Gaussian, Geometric
from noisette.privacy import Guarantee, Promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.releases.linear import Noise, fitting, noise_of_levels, rational_shares, variance_of
from noisette.releases.maps.boxes import Boxes, Layer
from noisette.releases.maps.transcript import Ask, Sums

__all__ = [
    "axes_of", "by_level", "counted", "depth_of", "grid_shape", "grown", "halvings_of", "kinds_of", "level_noise",
    "size_of", "spread_of", "together",
]  # fmt: skip

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Split: TypeAlias = Callable[[int, Ints, Ints, Ask], tuple[Ints, Ints, Ints]]
"""Split the boxes of a level: the edges of the parts, and which box each is a part of."""

_ROOT_HALF = sqrt_down(Fraction(1, 2))


def grid_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """Read how many cells each axis of a map has."""
    found = tuple(whole(size, "The number of cells of an axis") for size in shape)
    if not found:
        raise InputError("A map needs at least one axis: name the number of cells of each.")
    return found


def axes_of(shape: Sequence[int]) -> int:
    """How many axes have more than one cell, at least 1."""
    return max(1, sum(size > 1 for size in shape))


def halvings_of(shape: Sequence[int]) -> int:
    """How many times the longest axis can be halved until it is single cells."""
    return max(size - 1 for size in shape).bit_length()


def level_noise(
    promise: Promise, moved: Sensitivity, halvings: Sequence[int], axes: int, *, gaussian: bool | None
) -> tuple[Noise, ...]:
    """The noise of each level for a promise: Laplace or, where the promise has a delta, whichever errs less."""

    def made(smooth: bool) -> tuple[Noise, ...]:
        powers = [one ** (1 / 4 if smooth else 1 / 3) for one in _touched(halvings, axes)]
        shares = rational_shares(powers, squared=smooth)
        return noise_of_levels(promise, [moved] * len(shares), shares, gaussian=smooth)

    return min(fitting(made, kinds_of(promise, gaussian)), key=lambda noise: spread_of(noise, halvings, axes))


def kinds_of(promise: Promise, gaussian: bool | None) -> list[bool]:
    """Which noise may be used, Laplace (False) or Gaussian (True): a promise without a delta allows no Gaussian one."""
    return [gaussian] if gaussian is not None else [False] if promise.is_pure else [False, True]


def spread_of(noise: Sequence[Noise], halvings: Sequence[int], axes: int) -> float:
    """About the variance of a rectangle's count, up to a factor: what the budgets make least."""
    return sum(n * variance_of(one) for n, one in zip(_touched(halvings, axes), noise, strict=True))


def _touched(halvings: Sequence[int], axes: int) -> list[float]:
    """How many boxes of each level are summed for a rectangle, up to a factor."""
    return [2.0 ** (many * (axes - 1) / axes) for many in halvings]


def by_level(noise: Sequence[Noise], moved: Sensitivity) -> Guarantee:
    """What holds for one unit whose rows are measured once with each noise."""
    return reduce(add, (one.guarantee(moved) for one in noise))


def together(noise: Sequence[Noise]) -> Noise:
    """The noise of one measurement that costs what all of these cost; rounded up.

    >>> together((Geometric(2), Geometric(2))), together((Gaussian(5), Gaussian(5))).sigma < 4
    (Geometric(scale=1), True)
    """
    if isinstance(noise[0], Gaussian):
        return Gaussian(sqrt_up(1 / sum((1 / one.sigma**2 for one in noise), Fraction(0))))  # type: ignore[union-attr]
    return Geometric(1 / sum((1 / one.scale for one in noise), Fraction(0)))  # type: ignore[union-attr]


def size_of(noise: Noise) -> Fraction:
    """The scale of Laplace noise; for Gaussian noise that of a Laplace variable of the same variance, rounded down."""
    return noise.sigma * _ROOT_HALF if isinstance(noise, Gaussian) else noise.scale


def counted(ask: Ask, layer: Layer, noises: Sequence[Noise]) -> Layer:
    """Measure the boxes of a layer, each with the noise that its kind says, one noise after the other."""
    y = np.zeros(len(layer.kind))
    for kind in np.unique(layer.kind[layer.kind >= 0]):
        low, high = layer.low[layer.kind == kind], layer.high[layer.kind == kind]
        y[layer.kind == kind] = ask(len(low), partial(_noisy, noises[kind], low, high))
    return Layer(layer.low, layer.high, layer.parent, layer.kind, y)


def _noisy(noise: Noise, low: Ints, high: Ints, sums: Sums, rng: Random) -> Floats:
    return np.asarray(noise(sums.within(low, high), rng), float)


def grown(shape: tuple[int, ...], noise: tuple[Noise, ...], patience: Fraction, split: Split, ask: Ask) -> Boxes:
    """Measure a tree from the top: a box stops if its count is small or it is one cell; the others are split.

    The noises of the boxes are those of the levels, then those of second measurements.
    """
    last = len(noise) - 1
    noises = noise + tuple(together(noise[level + 1 :]) for level in range(last))
    whole_map = Layer.whole(shape)
    layers = [
        counted(ask, Layer(whole_map.low, whole_map.high, whole_map.parent, np.zeros(1, np.int64), whole_map.y), noises)
    ]
    for level in range(last):
        layers.append(counted(ask, _below(layers[-1], level, noises, patience, split, ask), noises))
    return Boxes(tuple(layers), noises)


def _below(layer: Layer, level: int, noises: tuple[Noise, ...], patience: Fraction, split: Split, ask: Ask) -> Layer:
    """The boxes of the next level: parts of those that go on, and once more those that stop."""
    last = (len(noises) - 1) // 2
    rest = last + 1 + level
    goes = (layer.kind == level) & ((layer.high - layer.low).max(axis=1, initial=1) > 1)
    if patience:
        least = patience * (size_of(noises[rest]) + size_of(noises[level]) / 2)
        goes &= layer.y >= float(least)
    stops, going = np.flatnonzero((layer.kind == level) & ~goes), np.flatnonzero(goes)
    low, high, part = split(level, layer.low[going], layer.high[going], ask)
    parent = np.concatenate([going[part], stops])
    kind = np.concatenate([np.full(len(part), level + 1), np.full(len(stops), rest)])
    order = np.argsort(parent, kind="stable")
    low, high = np.concatenate([low, layer.low[stops]]), np.concatenate([high, layer.high[stops]])
    return Layer(low[order], high[order], parent[order], kind[order], np.zeros(len(parent)))


def depth_of(height: int | None, most: int) -> int:
    """Read how many times boxes are split; by default down to single cells."""
    if height is None:
        return most
    if whole(height, "height", least=0) > most:
        raise InputError(f"height must be at most {most}: boxes of that depth are single cells already.")
    return int(height)
