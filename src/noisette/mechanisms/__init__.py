"""Mechanisms, one file each: frozen values that state their law and their guarantee.

`contract.py` says what a mechanism is. A mechanism's file is loaded when its name is first asked for; a mechanism that
this list lacks is found by its `examples`.
"""

import ast as _ast
import importlib as _importlib
from pathlib import Path as _Path
from typing import TYPE_CHECKING, Any

from noisette.mechanisms.calibration import calibrate
from noisette.mechanisms.contract import Mechanism
from noisette.names import absent

if TYPE_CHECKING:
    from noisette.mechanisms.additive.gaussian import Gaussian as Gaussian
    from noisette.mechanisms.additive.geometric import Geometric as Geometric
    from noisette.mechanisms.additive.knorm import KNorm as KNorm
    from noisette.mechanisms.additive.laplace import Laplace as Laplace
    from noisette.mechanisms.additive.staircase import Staircase as Staircase
    from noisette.mechanisms.additive.truncated_geometric import TruncatedGeometric as TruncatedGeometric
    from noisette.mechanisms.partitions.keep import Keep as Keep
    from noisette.mechanisms.partitions.threshold import Threshold as Threshold
    from noisette.mechanisms.quantiles.extent import Extent as Extent
    from noisette.mechanisms.quantiles.flipped_quantile import FlippedQuantile as FlippedQuantile
    from noisette.mechanisms.quantiles.grid import Grid as Grid
    from noisette.mechanisms.quantiles.quantile import Quantile as Quantile
    from noisette.mechanisms.quantiles.quantiles import Quantiles as Quantiles
    from noisette.mechanisms.quantiles.unbounded_quantile import UnboundedQuantile as UnboundedQuantile
    from noisette.mechanisms.randomized_response import RandomizedResponse as RandomizedResponse
    from noisette.mechanisms.selection.best_of import BestOf as BestOf
    from noisette.mechanisms.selection.choosing import Choosing as Choosing
    from noisette.mechanisms.selection.exponential import Exponential as Exponential
    from noisette.mechanisms.selection.gap_max import GapMax as GapMax
    from noisette.mechanisms.selection.gumbel_top import GumbelTop as GumbelTop
    from noisette.mechanisms.selection.interval_choice import Pieces as Pieces
    from noisette.mechanisms.selection.joint_top import JointTop as JointTop
    from noisette.mechanisms.selection.noisy_max import NoisyMax as NoisyMax
    from noisette.mechanisms.selection.noisy_max import NoisyMaxGap as NoisyMaxGap
    from noisette.mechanisms.selection.permute_and_flip import PermuteAndFlip as PermuteAndFlip
    from noisette.mechanisms.selection.sparse_exponential import SparseExponential as SparseExponential
    from noisette.mechanisms.smooth.inverse_sensitivity import InverseSensitivity as InverseSensitivity
    from noisette.mechanisms.smooth.order import Order as Order
    from noisette.mechanisms.smooth.smooth import Smooth as Smooth
    from noisette.mechanisms.smooth.triangles import TriangleCount as TriangleCount
    from noisette.mechanisms.smooth.trimmed import Trimmed as Trimmed
    from noisette.mechanisms.smooth.trimmed import TrimmedAverage as TrimmedAverage
    from noisette.mechanisms.sparse_vector.sparse import AboveThreshold as AboveThreshold
    from noisette.mechanisms.sparse_vector.sparse import NumericSparse as NumericSparse
    from noisette.mechanisms.sparse_vector.sparse import Sparse as Sparse
    from noisette.mechanisms.sparse_vector.sparse_vector import SparseVector as SparseVector
    from noisette.mechanisms.spatial.nearest_place import NearestPlace as NearestPlace
    from noisette.mechanisms.spatial.nearest_place import nearest_of as nearest_of
    from noisette.mechanisms.spatial.nearest_radius import NearestRadius as NearestRadius
    from noisette.mechanisms.stability.point_function import PointFunction as PointFunction
    from noisette.mechanisms.stability.propose_test_release import ProposeTestRelease as ProposeTestRelease
    from noisette.mechanisms.stability.stability import check_distance as check_distance
    from noisette.mechanisms.stability.stable import Stable as Stable
    from noisette.mechanisms.stability.stable_distance import StableDistance as StableDistance
    from noisette.mechanisms.stability.stable_location import StableLocation as StableLocation
    from noisette.mechanisms.stability.stable_mode import StableMode as StableMode
    from noisette.mechanisms.stability.stable_scale import StableScale as StableScale


def _listed() -> dict[str, str]:
    """The names that this file imports for type checkers, and the module of each."""
    tree = _ast.parse(_Path(__file__).read_text(encoding="utf-8"))
    [block] = [node for node in tree.body if isinstance(node, _ast.If)]
    found = [node for node in block.body if isinstance(node, _ast.ImportFrom)]
    return {alias.name: str(node.module) for node in found for alias in node.names}


_MODULES = _listed()
__all__ = ["Mechanism", "calibrate", *_MODULES]


def __getattr__(name: str) -> Any:
    """Load a mechanism's file when it is asked for."""
    if name in _MODULES:
        return getattr(_importlib.import_module(_MODULES[name]), name)
    if name[0].isupper():
        from noisette.mechanisms.catalogue import mechanisms

        if name in mechanisms():
            return mechanisms()[name]
    raise absent(__name__, name, __all__)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
