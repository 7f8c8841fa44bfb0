"""The best chain of nested blocks for ranges of a line, with the share of the promise that each level gets.

Vocabulary: `s_l` block sizes from the top, s_h = 1 · `w_l` shares · `q` a query as a vector of 0 and 1 over the cells.

A level that is measured with share w_l of epsilon has noise of variance 2/(w_l epsilon)^2. Let V_l be the vectors that
are constant on blocks of level l and have mean zero on those of level l - 1. Least squares on all levels has the Gram
matrix sum_l w_l^2 B_l' B_l, which is diagonal in the V_l with the eigenvalues

    lambda_l = sum_(k >= l) w_k^2 s_k,   so that   error of q = (2/epsilon^2) sum_l |P_l q|^2 / lambda_l,

where the norms follow from |projection on blocks of size s|^2 = sum over blocks of overlap^2 / s. For Gaussian noise
the squares of the shares add up to one, and with c_l = 1/s_l - 1/s_(l-1) the least total is (sum_l sqrt(a_l c_l))^2,
reached by lambda_l in proportion to sqrt(a_l/c_l), where a_l is the sum of |P_l q|^2 over the queries (Lagrange). A
level is left out where its square would be negative. If a unit moves level l by D_l, D_l^2/s_l stands for 1/s_l in c_l.
Under pure epsilon the shares themselves add up to one, and w_k s_k sum_(l <= k) a_l/lambda_l^2 is the same for all k; a
fixed-point iteration finds them. Chains are few enough to try them all.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Chain", "Energies", "best_chain", "energies", "level_shares", "typical", "typical_ranges"]

Floats: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]

_ROUNDS = 60  # enough to rank chains
_INNER = 4  # levels above the single cells
_FINALISTS = 6
_OF_USE = 0.01  # levels that get less of epsilon are left out
_TYPICAL = 4096  # ranges that stand for all of them


@dataclass(frozen=True)
class Energies:
    """The mean of |projection on blocks of 2^j cells|^2 over the queries of a workload, for j = 0, 1, …"""

    by_exponent: tuple[float, ...]


@dataclass(frozen=True)
class Chain:
    """Block sizes with their shares, and the root mean squared error of a query at epsilon 1, or at sigma 1."""

    sizes: tuple[int, ...]
    shares: tuple[float, ...]
    error: float


def energies(low: Counts, high: Counts, cells: int) -> Energies:
    """The energies of ranges low .. high, both included.

    >>> energies(np.array([0, 2]), np.array([3, 3]), 4).by_exponent
    (3.0, 3.0, 2.5)
    """
    top = max(1, math.ceil(math.log2(max(2, cells))) + 1)
    return Energies(tuple(_energy(low, high, 2.0**j) for j in range(top)))


def _energy(low: Counts, high: Counts, size: float) -> float:
    """The mean of |projection on blocks of that size|^2 of ranges."""
    start, stop = np.asarray(low, float), np.asarray(high, float) + 1
    first, last = np.floor(start / size), np.floor(stop / size)
    apart = ((first + 1) * size - start) ** 2 + (stop - last * size) ** 2
    inner = apart / size + (last - first - 1) * size
    return float(np.where(first == last, (stop - start) ** 2 / size, inner).mean())


def typical(cells: int, *, prefixes: bool = False) -> Energies:
    """The energies of all ranges of a line, or of all its prefixes; of very many, those of evenly spread ones."""
    return energies(*typical_ranges(cells, prefixes=prefixes), cells)


def typical_ranges(cells: int, *, prefixes: bool = False) -> tuple[Counts, Counts]:
    """All ranges of a line as first and last cells, or all its prefixes; of very many, evenly spread ones."""
    if prefixes:
        ends = np.unique(np.linspace(0, cells - 1, min(cells, 4 * _TYPICAL)).astype(np.int64))
        return np.zeros_like(ends), ends
    if cells * (cells + 1) // 2 <= _TYPICAL:
        low, high = np.triu_indices(cells)
        return low, high
    golden = (math.sqrt(5) - 1) / 2
    index = np.arange(_TYPICAL)
    one = ((index + 0.5) / _TYPICAL * cells).astype(np.int64)
    two = ((index * golden) % 1.0 * cells).astype(np.int64)
    return np.minimum(one, two), np.maximum(one, two)


@lru_cache(maxsize=256)
def level_shares(cells: int, sizes: tuple[int, ...], *, gaussian: bool, prefixes: bool = False) -> tuple[float, ...]:
    """The shares of least error for levels of given block sizes; a level that brings nothing keeps a small share.

    >>> [round(share, 3) for share in level_shares(4096, (1024, 128, 16, 1), gaussian=False, prefixes=True)]
    [0.249, 0.218, 0.222, 0.311]
    """
    ranges = typical_ranges(cells, prefixes=prefixes)
    energy, size = np.array([[_energy(*ranges, float(size)) for size in sizes]]), np.array([sizes], float)
    best = _gaussian_shares(energy[0], size[0])[0] if gaussian else _pure_shares(energy, size, 5 * _ROUNDS)[0][0]
    kept = np.maximum(best, _OF_USE)
    return tuple((kept / (np.sqrt((kept**2).sum()) if gaussian else kept.sum())).tolist())


@lru_cache(maxsize=256)
def best_chain(
    workload: Energies, *, gaussian: bool = False, inner: int = _INNER, moved: tuple[float, ...] = ()
) -> Chain:
    """The chain of least error for a workload, of all chains of powers of two.

    Under pure epsilon it has at most `inner` levels above the single cells.
    For Gaussian noise, `moved` says how far one unit moves the counts of blocks of 2^j cells in l2, if not all by 1.

    >>> chain = best_chain(typical(4096, prefixes=True))
    >>> chain.sizes, [round(share, 3) for share in chain.shares], round(chain.error / 64.0078, 4)
    ((1024, 128, 16, 1), [0.249, 0.218, 0.222, 0.311], 0.2172)
    """
    top = len(workload.by_exponent) - 1
    if gaussian:
        exponents, far = tuple(range(top, -1, -1)), np.array(moved or [1.0] * (top + 1))
        while not (made := _gaussian_shares(*_levels(workload, exponents), far[list(exponents)]))[0].all():
            exponents = tuple(j for j, share in zip(exponents, made[0], strict=True) if share)
        return _chain(exponents, *made)
    found = []
    for many in range(min(inner, top) + 1):
        chains = np.array([(*some, 0) for some in combinations(range(top, 0, -1), many)])
        shares, errors = _pure_shares(*_levels(workload, chains), _ROUNDS)
        found += sorted(zip(errors.tolist(), map(tuple, chains.tolist()), strict=True))[:_FINALISTS]
    finalists = [(_pure_shares(*_levels(workload, [one]), 5 * _ROUNDS), one) for _, one in sorted(found)[:_FINALISTS]]
    (shares, errors), chain = min(finalists, key=lambda one: float(one[0][1][0]))
    while (used := tuple(j for j, share in zip(chain, shares[0], strict=True) if share > _OF_USE)) != chain:
        chain, (shares, errors) = used, _pure_shares(*_levels(workload, [used]), 5 * _ROUNDS)
    return _chain(chain, shares[0], float(errors[0]))


def _chain(exponents: tuple[int, ...], shares: Floats, total: float) -> Chain:
    return Chain(tuple(2**j for j in exponents), tuple(shares.tolist()), math.sqrt(total))


def _levels(workload: Energies, exponents: Any) -> tuple[Floats, Floats]:
    """The energies and the block sizes of levels, for one chain of exponents or several."""
    return np.array(workload.by_exponent)[np.asarray(exponents)], np.exp2(np.asarray(exponents, float))


def _pure_shares(energy: Floats, size: Floats, rounds: int) -> tuple[Floats, Floats]:
    """The shares of a pure epsilon for each chain, and twice the sum of a_l/lambda_l."""
    a = np.diff(energy, prepend=0.0)
    w = np.full(size.shape, 1 / size.shape[1])
    for _ in range(rounds):
        steep = w * size * np.cumsum(a / _eigenvalues(w**2, size) ** 2, axis=1)
        w *= (steep / steep.max(axis=1, keepdims=True)) ** 0.3
        w /= w.sum(axis=1, keepdims=True)
    return w, 2 * (a / _eigenvalues(w**2, size)).sum(axis=1)


def _gaussian_shares(energy: Floats, size: Floats, moved: Floats | float = 1.0) -> tuple[Floats, float]:
    """The square roots of the shares of a rho, 0 where a level should be left out, and the sum of a_l/lambda_l."""
    a, cost = np.diff(energy, prepend=0.0), np.maximum(np.diff(np.square(moved) / size, prepend=0.0), 1e-200)
    value = np.sqrt(np.maximum(a, 1e-300) / cost)
    value /= (cost * value).sum()
    squares = np.maximum(-np.diff(value, append=0.0) / size, 0.0)
    return np.sqrt(squares) * moved, float((a / value).sum())


def _eigenvalues(squares: Floats, size: Floats) -> Floats:
    found: Floats = np.cumsum((squares * size)[..., ::-1], axis=-1)[..., ::-1]
    return found
