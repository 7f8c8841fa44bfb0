"""The strategy that is optimised for a workload: single cells and p more sums of cells with weights (HDMM's OPT_0).

Vocabulary: `W` the workload, a row for each query · `V` = W'W · `T` p x n, not negative, the weights of the p sums
before scaling · `s` the norm of each column of [I; T] · `A` = [I; T] diag(1/s), with columns of norm 1 · `X` = I + T'T.

The total squared error of W is in proportion to tr((A'A)^-1 V) = tr(X^-1 S V S) with S = diag(s). It is smooth in T;
L-BFGS-B finds a local minimum. By Woodbury's identity a step takes O(n^2 p).
[McKenna-Miklau-Hay-Machanavajjhala 2018]
Norms are l1 for Laplace noise and l2 for Gaussian noise. A is then rounded to multiples of 2^-20, in public.

For all ranges of 256 cells it has 9 % less error than the best chain of blocks with Laplace noise, and 15 % less with
Gaussian noise, which is 2 % above what no strategy can beat. It takes half a second there and 5 s for 1 024 cells.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.number import whole
from noisette.releases.strategies.matrix import Matrix

__all__ = ["gram_of", "optimised", "ranges_gram"]

Floats: TypeAlias = NDArray[np.float64]

MOST_CELLS = 1024
_UNIT = 1 << 20
_STEPS = 200
_MOST_WEIGHT = 1000.0  # of a sum, in units of a single cell's: cells stay determined
_SMALL = 128  # cells, up to which two starts are tried


def optimised(workload: Any = None, *, gram: Any = None, gaussian: bool = False, sums: int | None = None) -> Matrix:
    """The best p-identity strategy that is found for a workload, or for its Gram matrix V.

    >>> made = optimised(np.tri(32, dtype=int), gaussian=True)
    >>> noise = 2.0**40         # of variance 1 for one row: all columns have length 2^20
    >>> round(float(made.query_variances(np.tri(32), [noise]).mean()) ** 0.5, 2)        # on single cells: 4.06
    1.91
    """
    if (workload is None) == (gram is None):
        raise InputError("Give the workload, a row for each query, or its Gram matrix.")
    v = gram_of(workload) if gram is None else _finite(gram)
    n = len(v)
    if v.shape != (n, n):
        raise InputError("The Gram matrix of a workload must have a row and a column for each cell.")
    p = _sums(n, gaussian) if sums is None else whole(sums, "sums")
    found = min((_descend(v, start, gaussian) for start in _starts(n, p)), key=lambda t: _error(t, v, gaussian)[0])
    scale = _UNIT / _norms(found, gaussian)
    rows = np.vstack([np.diag(scale), found * scale])
    return Matrix(np.rint(rows).astype(np.int64), name=f"single cells and {p} weighted sums")


def ranges_gram(cells: int) -> Floats:
    """V of all ranges: cells i <= j lie together in (i + 1)(n - j) of them.

    >>> ranges_gram(2).tolist()
    [[2.0, 1.0], [1.0, 2.0]]
    """
    at = np.arange(cells)
    found: Floats = (np.minimum.outer(at, at) + 1.0) * (cells - np.maximum.outer(at, at))
    return found


def gram_of(workload: Any) -> Floats:
    """W'W of queries, one query a row."""
    w = _finite(workload)
    return np.asarray(w.T @ w)


def _finite(matrix: Any) -> Floats:
    w = np.asarray(matrix, float)
    if w.ndim != 2 or w.size == 0 or not np.isfinite(w).all() or not w.any():
        raise InputError("A workload must be a matrix of finite numbers: a row for each query, a column for each cell.")
    if w.shape[1] > MOST_CELLS:
        raise InputError(f"A strategy is optimised for at most {MOST_CELLS:,} cells: merge some of them.")
    return w


def _sums(n: int, gaussian: bool) -> int:
    """How many sums serve ranges well: with Gaussian noise more do, as far as time allows."""
    usual = n // (16 if not gaussian else 4 if n <= 2 * _SMALL else 8)
    return max(1, min(4, n // 2), usual)


def _starts(n: int, p: int) -> list[Floats]:
    """Evenly spread weights that break all symmetries (golden ratio); for few cells, blocks of neighbours too."""
    golden: Floats = (np.arange(n * p) * (np.sqrt(5) - 1) / 2 % 1.0).reshape(p, n)
    blocks = np.arange(n) * p // n == np.arange(p)[:, None]
    return [golden, blocks + golden / 8] if n <= _SMALL else [golden]


def _norms(t: Floats, gaussian: bool) -> Floats:
    found: Floats = np.sqrt(1 + (t**2).sum(axis=0)) if gaussian else 1 + t.sum(axis=0)
    return found


def _descend(v: Floats, start: Floats, gaussian: bool) -> Floats:
    from scipy.optimize import minimize

    unit = float(np.trace(v))

    def objective(flat: Floats) -> tuple[float, Floats]:
        value, slope = _error(flat.reshape(start.shape), v, gaussian)
        return value / unit, slope.ravel() / unit

    bounds = [(0.0, _MOST_WEIGHT)] * start.size
    found = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": _STEPS})
    return np.asarray(found.x, float).reshape(start.shape)


def _error(t: Floats, v: Floats, gaussian: bool) -> tuple[float, Floats]:
    """tr(X^-1 S V S) and its gradient in T; K = I + T T', X^-1 = I - T' K^-1 T."""
    s = _norms(t, gaussian)
    solved = np.linalg.solve(np.eye(len(t)) + t @ t.T, t)  # K^-1 T, which is T X^-1 too
    sums = (t * s) @ v  # T S V
    inner = solved * s @ v * s  # T X^-1 M, M = S V S
    outer = inner - inner @ t.T @ solved  # T X^-1 M X^-1
    by_norm = 2 * (s * np.diag(v) - (solved * sums).sum(axis=0))
    value = float((s**2 * np.diag(v)).sum() - ((solved * s) * sums).sum())
    return value, -2 * outer + by_norm * (t / s if gaussian else 1.0)
