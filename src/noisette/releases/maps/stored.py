"""Maps as they are kept: the released numbers, and the strategy that they are read by.

As in `releases.stored`, a kept answer says by itself what was measured and is never read by a plan that was made again.
A strategy is kept field by field; `_KINDS` names each one, and a new strategy joins with a line.
"""

import json
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow

from noisette.errors import PrivacyError
from noisette.exact.number import fraction_of
from noisette.mechanisms import Gaussian, Geometric
from noisette.privacy import Neighbours
from noisette.privacy.sensitivity import Sensitivity
from noisette.releases.maps.adaptive import AdaptiveMap
from noisette.releases.maps.contract import Floats, Strategy
from noisette.releases.maps.grids import AdaptiveGrid, UniformGrid
from noisette.releases.maps.kd_tree import KdTree
from noisette.releases.maps.priv_tree import PrivTree
from noisette.releases.maps.quadtree import QuadTree

__all__ = ["kept_map", "map_table"]

_KEY = b"noisette.map"
_KINDS: dict[str, type] = {
    "adaptive": AdaptiveMap,
    "quadtree": QuadTree,
    "kd-tree": KdTree,
    "uniform grid": UniformGrid,
    "adaptive grid": AdaptiveGrid,
    "PrivTree": PrivTree,
    "sensitivity": Sensitivity,
    "laplace": Geometric,
    "gaussian": Gaussian,
}


def map_table(strategy: Strategy, released: Floats) -> pyarrow.Table:
    """The released numbers in the order they were drawn, with the strategy.

    >>> made = AdaptiveMap.calibrated("1/2", shape=(9, 30))
    >>> strategy, released = kept_map(map_table(made, made.measure(np.ones((9, 30), np.int64))))
    >>> strategy == made
    True
    """
    written = json.dumps(_plain(strategy)).encode()
    return pyarrow.table({"released": released}).replace_schema_metadata({_KEY: written})


def kept_map(drawn: pyarrow.Table) -> tuple[Strategy, Floats]:
    """The strategy that was measured, and the released numbers: `strategy.read(released)` has the counts."""
    written = (drawn.schema.metadata or {}).get(_KEY)
    if written is None:
        raise PrivacyError("The answer that was kept for this question was changed: restore a backup of the ledger.")
    strategy: Strategy = _value(json.loads(written))
    return strategy, np.asarray(drawn.column("released").to_numpy(), float)


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return {"number": str(value)}
    if isinstance(value, Neighbours):
        return {"relation": value.name}
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if is_dataclass(value) and not isinstance(value, type):
        name = next(name for name, kind in _KINDS.items() if type(value) is kind)
        return {"kind": name, **{field.name: _plain(getattr(value, field.name)) for field in fields(value)}}
    return value


def _value(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_value, value))
    if not isinstance(value, dict):
        return value
    if "kind" in value:
        return _KINDS[value["kind"]](**{name: _value(one) for name, one in value.items() if name != "kind"})
    return Neighbours[value["relation"]] if "relation" in value else fraction_of(value["number"], "number")
