"""Mechanisms, one file each: frozen values that state their law and their guarantee.

Those that few programs need are loaded when they are asked for.
"""

import importlib as _importlib
from typing import TYPE_CHECKING, Any

from noisette.mechanisms.additive.gaussian import Gaussian
from noisette.mechanisms.additive.geometric import Geometric
from noisette.mechanisms.additive.knorm import KNorm
from noisette.mechanisms.additive.laplace import Laplace
from noisette.mechanisms.additive.staircase import Staircase
from noisette.mechanisms.additive.truncated_geometric import TruncatedGeometric
from noisette.mechanisms.calibration import calibrate
from noisette.mechanisms.contract import Mechanism
from noisette.mechanisms.partitions.keep import Keep
from noisette.mechanisms.partitions.threshold import Threshold
from noisette.mechanisms.quantiles.quantile import Quantile
from noisette.mechanisms.randomized_response import RandomizedResponse
from noisette.mechanisms.selection.exponential import Exponential
from noisette.mechanisms.selection.permute_and_flip import PermuteAndFlip

if TYPE_CHECKING:
    from noisette.mechanisms.quantiles.extent import Extent
    from noisette.mechanisms.quantiles.flipped_quantile import FlippedQuantile
    from noisette.mechanisms.quantiles.grid import Grid
    from noisette.mechanisms.quantiles.quantiles import Quantiles
    from noisette.mechanisms.quantiles.unbounded_quantile import UnboundedQuantile
    from noisette.mechanisms.selection.best_of import BestOf
    from noisette.mechanisms.selection.choosing import Choosing
    from noisette.mechanisms.selection.gap_max import GapMax
    from noisette.mechanisms.selection.interval_choice import Pieces
    from noisette.mechanisms.selection.joint_top import JointTop
    from noisette.mechanisms.selection.noisy_max import NoisyMax, NoisyMaxGap
    from noisette.mechanisms.selection.sparse_exponential import SparseExponential
    from noisette.mechanisms.selection.top import GumbelTop
    from noisette.mechanisms.smooth.inverse_sensitivity import InverseSensitivity
    from noisette.mechanisms.smooth.order import Order
    from noisette.mechanisms.smooth.smooth import Smooth
    from noisette.mechanisms.smooth.triangles import TriangleCount
    from noisette.mechanisms.smooth.trimmed import Trimmed, TrimmedAverage
    from noisette.mechanisms.sparse_vector.sparse import AboveThreshold, NumericSparse, Sparse
    from noisette.mechanisms.sparse_vector.sparse_vector import SparseVector
    from noisette.mechanisms.spatial.nearest_place import NearestPlace, nearest_of
    from noisette.mechanisms.spatial.nearest_radius import NearestRadius
    from noisette.mechanisms.stability.point_function import PointFunction
    from noisette.mechanisms.stability.propose_test_release import ProposeTestRelease
    from noisette.mechanisms.stability.stability import check_distance
    from noisette.mechanisms.stability.stable import Stable
    from noisette.mechanisms.stability.stable_distance import StableDistance
    from noisette.mechanisms.stability.stable_location import StableLocation
    from noisette.mechanisms.stability.stable_mode import StableMode
    from noisette.mechanisms.stability.stable_scale import StableScale

__all__ = [
    "AboveThreshold",
    "BestOf",
    "Choosing",
    "Exponential",
    "Extent",
    "FlippedQuantile",
    "GapMax",
    "Gaussian",
    "Geometric",
    "Grid",
    "GumbelTop",
    "InverseSensitivity",
    "JointTop",
    "KNorm",
    "Keep",
    "Laplace",
    "Mechanism",
    "NearestPlace",
    "NearestRadius",
    "NoisyMax",
    "NoisyMaxGap",
    "NumericSparse",
    "Order",
    "PermuteAndFlip",
    "Pieces",
    "PointFunction",
    "ProposeTestRelease",
    "Quantile",
    "Quantiles",
    "RandomizedResponse",
    "Smooth",
    "Sparse",
    "SparseExponential",
    "SparseVector",
    "Stable",
    "StableDistance",
    "StableLocation",
    "StableMode",
    "StableScale",
    "Staircase",
    "Threshold",
    "TriangleCount",
    "Trimmed",
    "TrimmedAverage",
    "TruncatedGeometric",
    "UnboundedQuantile",
    "calibrate",
    "check_distance",
    "nearest_of",
]

_LATE = {
    "BestOf": "selection.best_of",
    "Choosing": "selection.choosing",
    "Extent": "quantiles.extent",
    "FlippedQuantile": "quantiles.flipped_quantile",
    "GapMax": "selection.gap_max",
    "Grid": "quantiles.grid",
    "Pieces": "selection.interval_choice",
    "InverseSensitivity": "smooth.inverse_sensitivity",
    "JointTop": "selection.joint_top",
    "Order": "smooth.order",
    "Smooth": "smooth.smooth",
    "TriangleCount": "smooth.triangles",
    "Trimmed": "smooth.trimmed",
    "TrimmedAverage": "smooth.trimmed",
    "NearestPlace": "spatial.nearest_place",
    "NearestRadius": "spatial.nearest_radius",
    "nearest_of": "spatial.nearest_place",
    "NoisyMax": "selection.noisy_max",
    "NoisyMaxGap": "selection.noisy_max",
    "PointFunction": "stability.point_function",
    "ProposeTestRelease": "stability.propose_test_release",
    "Quantiles": "quantiles.quantiles",
    "AboveThreshold": "sparse_vector.sparse",
    "NumericSparse": "sparse_vector.sparse",
    "Sparse": "sparse_vector.sparse",
    "SparseExponential": "selection.sparse_exponential",
    "SparseVector": "sparse_vector.sparse_vector",
    "check_distance": "stability.stability",
    "Stable": "stability.stable",
    "StableDistance": "stability.stable_distance",
    "StableLocation": "stability.stable_location",
    "StableMode": "stability.stable_mode",
    "StableScale": "stability.stable_scale",
    "GumbelTop": "selection.top",
    "UnboundedQuantile": "quantiles.unbounded_quantile",
}


def __getattr__(name: str) -> Any:
    """Load a mechanism's file when it is asked for."""
    if name in _LATE:
        return getattr(_importlib.import_module(f"noisette.mechanisms.{_LATE[name]}"), name)
    raise AttributeError(f"noisette.mechanisms has no {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
