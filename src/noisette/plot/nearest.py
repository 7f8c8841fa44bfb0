"""Who is nearest to a place: where people are, where the rank score answers, where minus the distance does."""

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.mechanisms.selection.exponential import Exponential
from noisette.mechanisms.spatial.nearest_place import NearestPlace
from noisette.plot.save import saved
from noisette.plot.style import GREY, INK, matplotlib_figure

__all__ = ["good", "laws", "nearest", "town"]

Floats = NDArray[np.float64]
_DISTRICTS = (*((70, 42, 12),) * 5, *((28, 20, 7),) * 3, *((97, 62, 6),) * 2)  # x, y, spread; one for a tenth each
_LEAST = 1e-6  # what is drawn as nothing


def town(people: int = 1000) -> NDArray[np.int64]:
    """Make up where people of a town are: three districts on a grid of 120 x 80 points, the same at every call.

    >>> town().shape, town().max(axis=0).tolist(), town()[:2].tolist()
    ((1000, 2), [112, 77], [[62, 38], [79, 53]])
    """
    i = np.arange(1, people + 1)
    u, v = i * 0.7548776662466927 % 1, i * 0.5698402909980532 % 1  # spread evenly over a square
    x, y, spread = np.array(_DISTRICTS)[i * len(_DISTRICTS) // (people + 1)].T
    far = spread * np.sqrt(-2 * np.log(u))
    where = np.column_stack([x + far * np.cos(2 * np.pi * v), y + far * np.sin(2 * np.pi * v)])
    return np.asarray(np.clip(np.rint(where), 0, (119, 79)).astype(np.int64))


def laws(m: NearestPlace, people: Any) -> tuple[Floats, Floats]:
    """P(each point), in rows, by a mechanism, and at the same epsilon by the score "minus the distance".

    That is the distance from the k-th nearest person, who may be anywhere if one person moves: its sensitivity is the
    diameter of the grid.
    """
    x, y = _grid(m)
    ours = np.array(list(m.outcomes(people).values())).reshape(x.shape)
    diameter = math.isqrt((m.columns[1] - m.columns[0]) ** 2 + (m.rows[1] - m.rows[0]) ** 2)
    other = Exponential.calibrated(m.guarantee(1), diameter, candidates=x.size)
    kth = _kth(m, np.asarray(people))
    scores = -np.floor(np.hypot(x - kth[0], y - kth[1])).astype(np.int64).ravel()
    return ours, other.pmf(np.arange(x.size), scores).reshape(x.shape)


def good(m: NearestPlace, people: Any) -> tuple[float, float]:
    """P(the rank of the released point misses k by at most k/2), for both laws."""
    x, y = _grid(m)
    theirs, points = ((a - m.place[0]) ** 2 + (b - m.place[1]) ** 2 for a, b in (np.asarray(people).T, (x, y)))
    nearer, upto = (np.searchsorted(np.sort(theirs), points, side=side) for side in ("left", "right"))
    fine = 2 * np.maximum(nearer - m.k, m.k - upto) <= m.k
    first, second = (float(law[fine].sum()) for law in laws(m, people))
    return first, second


def _grid(m: NearestPlace) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    x, y = np.meshgrid(np.arange(m.columns[0], m.columns[1] + 1), np.arange(m.rows[0], m.rows[1] + 1))
    return x, y


def _kth(m: NearestPlace, people: NDArray[Any]) -> Any:
    """The k-th nearest person, or the last if there are fewer."""
    squares = ((people - np.array(m.place)) ** 2).sum(axis=1)
    return people[np.argsort(squares, kind="stable")[min(m.k, len(people)) - 1]]


def nearest(m: NearestPlace, people: Any, path: str | Path | None = None) -> Any:
    """Draw three maps, of people, of the mechanism's law and of the other's, and return the matplotlib Figure.

    >>> m = NearestPlace(2, k=3, columns=(0, 5), rows=(0, 4), place=(1, 1))
    >>> type(nearest(m, [(0, 0), (1, 2), (5, 4)])).__name__
    'Figure'
    """
    figure = matplotlib_figure()(figsize=(11.5, 3), layout="constrained")
    from matplotlib.colors import LogNorm

    panels = figure.subplots(1, 3, sharey=True)
    there, both, shares = np.asarray(people), laws(m, people), good(m, people)
    counts = np.histogram2d(there[:, 1], there[:, 0], bins=[_edges(m.rows), _edges(m.columns)])[0]
    _map(panels[0], m, counts, f"{len(there):,} people, and the place", cmap="Greys")
    norm = LogNorm(_LEAST, max(float(law.max()) for law in both), clip=True)
    for axes, law, name, share in zip(panels[1:], both, ("score: ranks", "score: minus distance"), shares, strict=True):
        image = _map(axes, m, law, f"{name}, {100 * share:.1f} % good", cmap="YlGnBu", norm=norm)
    bar = figure.colorbar(image, ax=panels[2], extend="min", shrink=0.8)
    bar.set_label(f"P(point), ε = {float(m.guarantee(1).epsilon):g}", color=INK)
    return saved(figure, path)


def _edges(ends: tuple[int, int]) -> Floats:
    return np.asarray(np.arange(ends[0], ends[1] + 2) - 0.5)


def _map(axes: Any, m: NearestPlace, values: Floats, title: str, **colours: Any) -> Any:
    (left, right), (low, high) = m.columns, m.rows
    extent = (left - 0.5, right + 0.5, low - 0.5, high + 0.5)
    image = axes.imshow(values, origin="lower", extent=extent, interpolation="nearest", **colours)
    axes.plot(*m.place, "o", markersize=9, markerfacecolor="none", markeredgecolor="#D55E00", markeredgewidth=2)
    axes.set_title(title, loc="left", fontsize=12, color=INK)
    axes.tick_params(labelsize=10, colors=INK)
    for spine in axes.spines.values():
        spine.set_color(GREY)
    return image
