"""Mechanisms, one file each: frozen values that state their law and their guarantee.

Those that few programs need are loaded when they are asked for.
"""

import importlib as _importlib
from typing import TYPE_CHECKING, Any

from noisette.mechanisms.exponential import Exponential
from noisette.mechanisms.gaussian import Gaussian
from noisette.mechanisms.geometric import Geometric
from noisette.mechanisms.keep import Keep
from noisette.mechanisms.knorm import KNorm
from noisette.mechanisms.laplace import Laplace
from noisette.mechanisms.mechanism import Mechanism, calibrate
from noisette.mechanisms.permute_and_flip import PermuteAndFlip
from noisette.mechanisms.procedure import Procedure
from noisette.mechanisms.quantile import Quantile
from noisette.mechanisms.randomized_response import RandomizedResponse
from noisette.mechanisms.staircase import Staircase
from noisette.mechanisms.threshold import Threshold
from noisette.mechanisms.truncated_geometric import TruncatedGeometric

if TYPE_CHECKING:
    from noisette.mechanisms.best_of import BestOf
    from noisette.mechanisms.choosing import Choosing
    from noisette.mechanisms.extent import Extent
    from noisette.mechanisms.flipped_quantile import FlippedQuantile
    from noisette.mechanisms.gap_max import GapMax
    from noisette.mechanisms.grid import Grid
    from noisette.mechanisms.interval_choice import Pieces
    from noisette.mechanisms.inverse_sensitivity import InverseSensitivity
    from noisette.mechanisms.joint_top import JointTop
    from noisette.mechanisms.nearest_place import NearestPlace, nearest_of
    from noisette.mechanisms.nearest_radius import NearestRadius
    from noisette.mechanisms.noisy_max import NoisyMax, NoisyMaxGap
    from noisette.mechanisms.point_function import PointFunction
    from noisette.mechanisms.propose_test_release import ProposeTestRelease
    from noisette.mechanisms.quantiles import Quantiles
    from noisette.mechanisms.smooth import Smooth
    from noisette.mechanisms.smooth_order import Order
    from noisette.mechanisms.smooth_triangles import Triangles
    from noisette.mechanisms.smooth_trimmed import Trimmed, TrimmedMean
    from noisette.mechanisms.sparse import AboveThreshold, NumericSparse, Sparse
    from noisette.mechanisms.sparse_exponential import SparseExponential
    from noisette.mechanisms.sparse_vector import SparseVector
    from noisette.mechanisms.stability import check_distance
    from noisette.mechanisms.stable import Stable
    from noisette.mechanisms.stable_distance import StableDistance
    from noisette.mechanisms.stable_location import StableLocation
    from noisette.mechanisms.stable_mode import StableMode
    from noisette.mechanisms.stable_scale import StableScale
    from noisette.mechanisms.top import Top
    from noisette.mechanisms.unbounded_quantile import UnboundedQuantile

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
    "Procedure",
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
    "Top",
    "Triangles",
    "Trimmed",
    "TrimmedMean",
    "TruncatedGeometric",
    "UnboundedQuantile",
    "calibrate",
    "check_distance",
    "nearest_of",
]

_LATE = {
    "BestOf": "best_of",
    "Choosing": "choosing",
    "Extent": "extent",
    "FlippedQuantile": "flipped_quantile",
    "GapMax": "gap_max",
    "Grid": "grid",
    "Pieces": "interval_choice",
    "InverseSensitivity": "inverse_sensitivity",
    "JointTop": "joint_top",
    "Order": "smooth_order",
    "Smooth": "smooth",
    "Triangles": "smooth_triangles",
    "Trimmed": "smooth_trimmed",
    "TrimmedMean": "smooth_trimmed",
    "NearestPlace": "nearest_place",
    "NearestRadius": "nearest_radius",
    "nearest_of": "nearest_place",
    "NoisyMax": "noisy_max",
    "NoisyMaxGap": "noisy_max",
    "PointFunction": "point_function",
    "ProposeTestRelease": "propose_test_release",
    "Quantiles": "quantiles",
    "AboveThreshold": "sparse",
    "NumericSparse": "sparse",
    "Sparse": "sparse",
    "SparseExponential": "sparse_exponential",
    "SparseVector": "sparse_vector",
    "check_distance": "stability",
    "Stable": "stable",
    "StableDistance": "stable_distance",
    "StableLocation": "stable_location",
    "StableMode": "stable_mode",
    "StableScale": "stable_scale",
    "Top": "top",
    "UnboundedQuantile": "unbounded_quantile",
}


def __getattr__(name: str) -> Any:
    """Load a mechanism's file when it is asked for."""
    if name in _LATE:
        return getattr(_importlib.import_module(f"noisette.mechanisms.{_LATE[name]}"), name)
    raise AttributeError(f"noisette.mechanisms has no {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
