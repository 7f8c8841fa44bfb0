"""The strategies for maps by name, and the plain error that they are compared with."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from noisette.errors import InputError
from noisette.mechanisms import Gaussian, Geometric
from noisette.privacy import Neighbours, Promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.releases.linear import fitting, pure_part
from noisette.releases.maps.contract import Strategy

__all__ = ["STRATEGIES", "one_cell"]


@dataclass(frozen=True)
class Known:
    """A strategy by its file and class, loaded when it is used.

    `why` says in a sentence what it does · `most` how many axes it can have.
    """

    file: str
    name: str
    why: str
    most: int = 6

    def calibrated(self, spend: Promise, *, shape: tuple[int, ...], rows: int, neighbours: Neighbours) -> Strategy:
        """The strategy that keeps a promise for a unit of at most `rows` rows."""
        if len(shape) > self.most:
            others = ", ".join(name for name, other in STRATEGIES.items() if len(shape) <= other.most)
            raise InputError(
                f"This strategy is for {self.most} columns: " + (f"use {others}." if others else "use fewer.")
            )
        kind: Any = getattr(import_module(f"noisette.releases.maps.{self.file}"), self.name)
        made: Strategy = kind.calibrated(spend, shape=shape, rows=rows, neighbours=neighbours)
        return made


STRATEGIES = {
    "adaptive": Known(
        "adaptive",
        "AdaptiveMap",
        "Parts of the map are counted as finely as they are full: sparse ones stop and get the rest of the budget.",
        2,
    ),
    "quadtree": Known("quadtree", "QuadTree", "The map is quartered down to its cells, and every part is counted."),
    "kd-tree": Known("kd_tree", "KdTree", "The map is split at private medians, so that parts are about equally full."),
    "hybrid": Known(
        "kd_tree", "HybridTree", "The map is split at private medians first, and its parts are quartered then."
    ),
    "uniform-grid": Known(
        "grids", "UniformGrid", "Blocks of one size are counted, as fine as the noisy number of rows suggests."
    ),
    "adaptive-grid": Known(
        "grids", "AdaptiveGrid", "Large blocks are counted, and each is divided as its count suggests."
    ),
    "privtree": Known("priv_tree", "PrivTree", "Parts of the map are quartered as long as they seem to be full."),
}
"""The strategies by name; the first one is the default."""


def one_cell(promise: Promise, moved: Sensitivity, level: float) -> float:
    """The error bar of one count that gets all of a promise, Laplace or Gaussian, whichever is shorter."""

    def made(smooth: bool) -> Geometric | Gaussian:
        return Gaussian.calibrated(promise, moved) if smooth else Geometric(moved.l1 / pure_part(promise))

    return min(float(noise.interval(level)) for noise in fitting(made, (False,) if promise.is_pure else (False, True)))
