"""Do releases follow the stated law, and does an attacker who sees them alone prove more than is stated? Statistical.

Draws are compared with the law by chi-square tests over cells that are never too small. `ALPHA` is the probability that
a sound mechanism fails one check. Each check of draws looks at the cells three ways and divides ALPHA among them: many
cells (shape), four (scale and place), and the most likely output against all others (its probability is what a sign
without care for zero doubles). Tails belong to the outermost cells.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisette.audit import subject
from noisette.audit.divergence import Floats, enumerated
from noisette.audit.finding import Effort, Finding, found, not_applicable
from noisette.audit.sampled import epsilon_lower_bound, floating_point_epsilon
from noisette.audit.subject import Subject
from noisette.mechanisms.additive.lattice import lattice_point
from noisette.privacy import Pure

__all__ = [
    "ALPHA",
    "Cells",
    "arrays",
    "attacked",
    "black_box",
    "fit",
    "floating_point",
    "independent",
    "one_by_one",
    "p_value",
]

# Goodness of fit


ALPHA = 1e-9
_MOST_CELLS = 64
_LEAST_EXPECTED = 40

Cells = tuple[Callable[[Any], NDArray[np.int64]], Floats]
"""(draws -> the cell of each, chances of the cells)."""


def p_value(counts: Any, chances: Any) -> float:
    """Return the probability of counts this far from their expectation: exact for two cells, chi-square for more.

    >>> p_value([500, 500], [0.5, 0.5]), p_value([700, 300], [0.5, 0.5]) < 1e-30
    (1.0, True)
    """
    from scipy.special import bdtr, bdtrc, chdtrc

    n = int(np.sum(counts))
    observed, expected = np.asarray(counts, float), n * np.asarray(chances, float)
    if len(observed) > 2:
        observed, expected = _large(observed, expected)
    if len(observed) == 1:
        return 1.0
    if len(observed) == 2:
        k, chance = int(observed[1]), float(expected[1]) / n
        return min(1.0, 2 * min(float(bdtr(k, n, chance)), float(bdtrc(k - 1, n, chance)) if k else 1.0))
    return float(chdtrc(len(observed) - 1, np.sum((observed - expected) ** 2 / expected)))


def _large(observed: Floats, expected: Floats) -> tuple[Floats, Floats]:
    """Join the smallest cells until each expects enough."""
    order = np.argsort(expected)
    cells = _pooled(expected[order], _LEAST_EXPECTED)
    return _sums(cells, observed[order]), _sums(cells, expected[order])


def _sums(cells: NDArray[np.int64], chances: Any) -> Floats:
    return np.asarray(np.bincount(cells, chances), float)


def _pooled(chances: Floats, least: float) -> NDArray[np.int64]:
    """Return a cell for each atom: neighbours join until their chances reach `least`."""
    cells, cell, room = np.zeros(len(chances), np.int64), 0, 0.0
    for i, chance in enumerate(chances):
        if room >= least:
            cell, room = cell + 1, 0.0
        cells[i] = cell
        room += chance
    if room < least and cell:
        cells[cells == cell] = cell - 1
    return cells


def _number_cells(values: Any, chances: Floats, cells: NDArray[np.int64]) -> Cells:
    starts = np.flatnonzero(np.diff(cells)) + 1
    edges = (values[starts] + values[starts - 1]) / 2
    return lambda draws: np.asarray(np.searchsorted(edges, draws)), _sums(cells, chances)


def _vector_cells(values: Any, chances: Floats, cells: NDArray[np.int64]) -> Cells:
    known = dict(zip(map(tuple, values.tolist()), cells.tolist(), strict=True))
    return lambda draws: np.array([known.get(tuple(v), 0) for v in draws.tolist()]), _sums(cells, chances)


def by_pmf(m: Subject, x: Any, parts: int) -> Cells:
    """Part the outputs into about `parts` cells of like probability; those of vectors in the order of their pmf."""
    values, chances = enumerated(m, x)
    order = np.argsort(chances, kind="stable") if values.ndim > 1 else np.argsort(values)
    values, chances = values[order], chances[order] / chances.sum()
    make = _vector_cells if values.ndim > 1 else _number_cells
    return make(values, chances, _pooled(chances, 1 / parts))


def by_coordinate(m: Subject, x: Any, j: int) -> Cells:
    """Part the j-th number of a vector into four cells."""
    outputs, chances = enumerated(m, x)
    values, places = np.unique(outputs[:, j], return_inverse=True)
    marginal = _sums(places.ravel(), chances / chances.sum())
    cell, masses = _number_cells(values, marginal, _pooled(marginal, 1 / 4))
    return lambda draws: cell(draws[:, j]), masses


def mode_or_not(m: Subject, x: Any) -> Cells:
    """Part the most likely output from all others."""
    values, chances = enumerated(m, x)
    mode, chance = values[int(np.argmax(chances))], float(chances.max())

    def cell(draws: Any) -> NDArray[np.int64]:
        same = draws == mode
        return np.asarray(same.all(axis=1) if values.ndim > 1 else same, np.int64)

    return cell, np.array([1 - chance, chance])


def by_cdf(m: Subject, x: Any, parts: int) -> Cells:
    """Part a law on a fine lattice at its quantiles."""
    edges = np.unique([m.law.quantile(i / parts) for i in range(1, parts)])
    centre, unit = lattice_point(x, m.grid), float(m.grid)
    chances = np.diff(m.law.cdf(edges), prepend=0, append=1)
    return lambda draws: np.searchsorted(edges, np.rint(draws / unit) - centre), chances


def fit(m: Subject, x: Any, draws: Any, count: int = 1) -> float:
    """Return the p-value of draws of x, each one number out of `count` (or a vector), all views together."""
    parts = max(2, min(_MOST_CELLS, len(draws) // _LEAST_EXPECTED))
    views = _views(m, x, parts, count)
    if subject.is_vector(m):
        views += [by_coordinate(m, x, j) for j in range(m.dimension)]
    return min(1.0, len(views) * min(_view_p_value(view, draws) for view in views))


def _views(m: Subject, x: Any, parts: int, count: int) -> list[Cells]:
    fine = subject.for_count(m, count)
    if fine is not m:
        return [by_cdf(fine, x, parts), by_cdf(fine, x, 4)]
    return [by_pmf(m, x, parts), by_pmf(m, x, 4), mode_or_not(m, x)]


def _view_p_value(view: Cells, draws: Any) -> float:
    cell, chances = view
    return p_value(np.bincount(cell(draws), minlength=len(chances)), chances)


def joint_fit(m: Subject, x: Any, first: Any, second: Any, count: int) -> float:
    """Return the p-value of pairs of draws against the product of their laws."""
    p_values = []
    for cell, chances in _views(m, x, 4, count)[1:]:
        k = len(chances)
        pairs = np.bincount(cell(first) * k + cell(second), minlength=k * k)
        p_values.append(p_value(pairs, np.outer(chances, chances).ravel()))
    return min(1.0, len(p_values) * min(p_values))


# Checks of draws


_FITS = "Releases follow the stated probabilities.", "Releases do not follow the stated probabilities."


def arrays(m: Subject, effort: Effort) -> Finding:
    """An array of equal answers is released by the law of a single one."""
    x, count = subject.drawn(m, m.pairs()[0][0]), subject.array_size(m, effort)
    p = fit(m, x, subject.many(m, x, count), count)
    return found("arrays", p, ALPHA, _FITS, least=True, witness=lambda: _drawn(count, x, p))


def one_by_one(m: Subject, effort: Effort) -> Finding:
    """Calls with one answer follow the law."""
    x, count = subject.drawn(m, m.pairs()[-1][1]), effort.vector if subject.is_vector(m) else effort.single
    p = fit(m, x, subject.one_by_one(m, x, count))
    return found("one by one", p, ALPHA, _FITS, least=True, witness=lambda: _drawn(count, x, p))


def _drawn(count: int, x: Any, p: float) -> str:
    return f"{count:,} releases of {x}: a sound mechanism gives draws this far from its law with p = {p:.3g}."


def independent(m: Subject, effort: Effort) -> Finding:
    """Neighbours in an array, its two halves, and calls that follow each other draw noise that is independent."""
    sentences = "Draws do not depend on each other.", "Draws depend on each other."
    x = subject.drawn(m, m.pairs()[0][0])
    singles = subject.one_by_one(m, x, effort.vector // 8 * 2)
    p_values = [joint_fit(m, x, singles[::2], singles[1::2], 1)]
    if not subject.is_vector(m):
        count = min(2**16, effort.slow_array, 4 * subject.array_size(m, effort)) // 8 * 4
        first, second = np.split(subject.many(m, x, count), 2)
        p_values += [joint_fit(m, x, first, second, count), joint_fit(m, x, first[::2], first[1::2], count)]
    p = min(1.0, len(p_values) * min(p_values))
    witness = f"Releases of {x} that follow each other: independent ones are this far from it with p = {p:.3g}."
    return found("independent", p, ALPHA, sentences, least=True, witness=lambda: witness)


# What an attacker proves who sees releases alone


_DELTA = 0.01  # at which attacks on mechanisms without a pure guarantee are judged
_SENTENCES = "No attack proves more than is stated.", "An attack proves a larger epsilon than is stated."


def stated(m: Subject, distance: Any) -> tuple[float, float]:
    """Return an (epsilon, delta) that the mechanism states for a distance."""
    promise = m.guarantee(distance)
    if isinstance(promise, Pure):
        return float(promise.epsilon), 0.0
    return m.epsilon_at(_DELTA, distance), _DELTA


def neighbours(m: Subject) -> tuple[Any, Any, Fraction]:
    """Return a pair that an attacker would choose: about as far apart as the noise is wide."""
    if subject.is_vector(m) or subject.is_whole(m):
        x, x_prime, distance = min(m.pairs(), key=lambda pair: abs(stated(m, pair[2])[0] - 1))
        return subject.plain(m, x), subject.plain(m, x_prime), Fraction(distance)
    apart = _about(math.sqrt(m.variance()))
    return 0.0, float(apart), apart


def _about(size: float) -> Fraction:
    """The power of two below a size."""
    return Fraction(2) ** math.floor(math.log2(size))


def black_box(m: Subject, effort: Effort) -> Finding:
    """Sampled releases of two neighbours do not prove a larger epsilon."""
    x, x_prime, distance = neighbours(m)
    epsilon, delta = stated(m, distance)
    runs = min(subject.array_size(m, effort) // 2, 2**18)
    batch = partial(subject.many, m)
    bound = epsilon_lower_bound(m, x, x_prime, runs=runs, delta=delta, confidence=1 - ALPHA, batch=batch)
    return found("black box", bound, epsilon, _SENTENCES, witness=lambda: attacked(x, x_prime, bound, epsilon, delta))


def attacked(x: Any, x_prime: Any, bound: float, epsilon: float, delta: float) -> str:
    """What an attack shows."""
    return f"{x} and {x_prime}: releases prove an epsilon of {bound:.4g} at delta {delta}, stated is {epsilon:.4g}."


def floating_point(m: Subject, effort: Effort) -> Finding:
    """The bits of released floats do not either, on the grid that the mechanism chooses by itself."""
    if subject.is_whole(m):
        return not_applicable("floating point", "It releases whole numbers.")
    apart = _about(math.sqrt(m.variance()) / 8)
    m = replace(m, grid=None)
    epsilon, delta = stated(m, apart)
    x = subject.origin(m)
    x_prime = [float(apart), *x[1:]] if subject.is_vector(m) else float(apart)
    runs = effort.vector // 2 if subject.is_vector(m) else min(2**15, effort.array)
    bound = floating_point_epsilon(
        m, x, x_prime, runs=runs, delta=delta, confidence=1 - ALPHA, batch=partial(subject.many, m)
    )
    witness = attacked(x, x_prime, bound, epsilon, delta)
    return found("floating point", bound, epsilon, _SENTENCES, witness=lambda: witness)
