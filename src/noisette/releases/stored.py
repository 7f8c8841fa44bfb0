"""Releases as they are kept: the released numbers, and how to read them.

Which strategy is best follows from floating-point numbers, which another machine or version may compute a little
differently. So a kept answer says by itself what was measured, and is never read by a plan that was made again.
"""

import base64
import json
import zlib
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow
from numpy.typing import NDArray

from noisette.errors import PrivacyError
from noisette.exact.number import fraction_of
from noisette.mechanisms import Gaussian, Geometric
from noisette.releases.adaptive import AdaptiveTree
from noisette.releases.linear import Estimate, Linear, Noise, Strategy, variance_of
from noisette.releases.multiplicative.mwem import MWEM
from noisette.releases.multiplicative.mwem import Released as Picked
from noisette.releases.strategies.haar import Haar
from noisette.releases.strategies.matrix import Matrix
from noisette.releases.strategies.nominal import Nominal
from noisette.releases.strategies.toeplitz import SquareRoot
from noisette.releases.tree import Tree

__all__ = ["adaptive_table", "kept_adaptive", "kept_estimate", "kept_picks", "linear_table", "picks_table"]

Floats: TypeAlias = NDArray[np.float64]

_KEY = b"noisette.release"
_STRATEGIES: dict[str, type] = {
    "tree": Tree,
    "haar": Haar,
    "square root": SquareRoot,
    "matrix": Matrix,
    "nominal": Nominal,
}


def linear_table(made: Linear, noisy: Sequence[Floats]) -> pyarrow.Table:
    """The noisy numbers of all levels, with the strategy and the noise that they are read by."""
    how = {
        "strategy": _record(made.strategy),
        "noise": [_noise(one) for one in made.noise],
        "levels": [len(level) for level in noisy],
    }
    return _table(np.concatenate(noisy), how)


def kept_estimate(drawn: pyarrow.Table) -> Estimate:
    """The estimate of all cells from what was kept."""
    released, how = _read(drawn)
    strategy, noise = _strategy(how["strategy"]), tuple(map(_built_noise, how["noise"]))
    levels = np.split(released, np.cumsum(how["levels"])[:-1])
    return Estimate(strategy, strategy.infer(levels, tuple(map(variance_of, noise))), noise)


def adaptive_table(tree: AdaptiveTree, released: Floats) -> pyarrow.Table:
    """The released numbers of an adaptive tree, in the order they were drawn, with the tree."""
    how = {
        "tree": _record(tree.tree),
        "noise": _noise(tree.noise),
        "shares": [str(share) for share in tree.shares],
        "patience": str(tree.patience),
    }
    return _table(released, how)


def kept_adaptive(drawn: pyarrow.Table, like: AdaptiveTree) -> tuple[AdaptiveTree, Floats]:
    """The tree that was measured, for the same units as another one, and the released numbers."""
    released, how = _read(drawn)
    shares, noise = tuple(fraction_of(share, "share") for share in how["shares"]), _built_noise(how["noise"])
    tree = _strategy(how["tree"])
    assert isinstance(tree, Tree)
    return AdaptiveTree(noise, like.moved, tree, shares, fraction_of(how["patience"], "patience")), released


def picks_table(made: MWEM, released: Picked) -> pyarrow.Table:
    """The noisy answers of the candidates that were picked, with what they are read by."""
    how = {
        "rows": released.rows,
        "picks": released.picks,
        "sizes": [len(y) for y in released.y],
        "noise": _noise(made.noise),
        "picking": None if made.picking is None else str(made.picking.scale),
        "replays": made.replays,
    }
    return _table(np.concatenate(released.y), how)


def kept_picks(drawn: pyarrow.Table, like: MWEM) -> tuple[MWEM, Picked]:
    """The rounds as they were measured, for the same candidates and units as others, and what was released."""
    numbers, how = _read(drawn)
    picking = None if like.picking is None else replace(like.picking, scale=fraction_of(how["picking"], "picking"))
    made = replace(like, noise=_built_noise(how["noise"]), picking=picking, replays=how["replays"])
    y = tuple(np.split(numbers, np.cumsum(how["sizes"])[:-1]))
    return made, Picked(how["rows"], tuple(how["picks"]), y)


def _table(released: Floats, how: dict[str, Any]) -> pyarrow.Table:
    return pyarrow.table({"released": released}).replace_schema_metadata({_KEY: json.dumps(how).encode()})


def _read(drawn: pyarrow.Table) -> tuple[Floats, Any]:
    written = (drawn.schema.metadata or {}).get(_KEY)
    if written is None:
        raise PrivacyError("The answer that was kept for this question was changed: restore a backup of the ledger.")
    return np.asarray(drawn.column("released").to_numpy(), float), json.loads(written)


def _record(strategy: Strategy) -> dict[str, Any]:
    name = next(name for name, kind in _STRATEGIES.items() if type(strategy) is kind)
    return {"kind": name, **{field.name: _plain(getattr(strategy, field.name)) for field in fields(_STRATEGIES[name])}}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        packed = base64.b64encode(zlib.compress(np.ascontiguousarray(value, "<i8").tobytes())).decode()
        return {"shape": value.shape, "int64": packed}
    return value


def _strategy(record: dict[str, Any]) -> Strategy:
    named = dict(record)
    made: Strategy = _STRATEGIES[named.pop("kind")](**{name: _value(value) for name, value in named.items()})
    return made


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return np.frombuffer(zlib.decompress(base64.b64decode(value["int64"])), "<i8").reshape(value["shape"])
    return tuple(map(_value, value)) if isinstance(value, list) else value


def _noise(noise: Noise) -> dict[str, str]:
    if isinstance(noise, Gaussian):
        return {"sigma": str(noise.sigma), "grid": str(noise.grid)}
    return {"scale": str(noise.scale)}


def _built_noise(record: dict[str, str]) -> Noise:
    return Gaussian(record["sigma"], grid=record["grid"]) if "sigma" in record else Geometric(record["scale"])
