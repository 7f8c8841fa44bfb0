"""Feature selection at the size of the paper: `python -m benchmarks.holdout`, about a minute for each table.

10,000 rows to train, to hold out and to know the truth, and 10,000 features that are coins, eight to a byte. An analyst
keeps features that the holdout confirms and lets the strongest vote, once with a plain holdout and once with a
`ReusableHoldout`.   [Dwork-Feldman-Hardt-Pitassi-Reingold-Roth 2015, Science 349]
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.holdout import ReusableHoldout

Phi: TypeAlias = Callable[[NDArray[np.uint8], NDArray[np.uint8]], NDArray[Any]]
Table: TypeAlias = tuple[NDArray[np.uint8], NDArray[np.uint8]]

ROWS = FEATURES = 10_000
SIZES = (50, 100, 200, 300, 400, 500)


def people(rng: np.random.Generator, strong: int) -> Table:
    """Rows of coins; the first `strong` columns agree with the label in 54 of 100 rows."""
    y = rng.integers(0, 2, ROWS, dtype=np.uint8)
    X = rng.integers(0, 256, (ROWS, FEATURES // 8), dtype=np.uint8)
    if strong:
        agree = rng.random((ROWS, strong)) < 0.54
        X[:, : strong // 8] = np.packbits(np.where(agree, y[:, None], 1 - y[:, None]), axis=1)
    return X, y


def agrees(j: int) -> Phi:
    """Whether a feature equals the label."""
    return lambda X, y: (X[:, j // 8] >> (7 - j % 8) & 1) == y


def vote(features: list[int], signs: NDArray[Any]) -> Phi:
    """Whether the vote of several features equals the label."""
    at = np.array(features)

    def right(X: NDArray[np.uint8], y: NDArray[np.uint8]) -> NDArray[Any]:
        bits = (X[:, at // 8] >> (7 - at % 8).astype(np.uint8) & 1).astype(np.int32)
        return ((2 * bits - 1) @ signs > 0) == y

    return right


def analyst(train: Table, ask: Callable[[Phi], float]) -> Iterator[tuple[int, Phi, float]]:
    """Votes of confirmed features, and what the holdout says of each."""
    seen = np.array([agrees(j)(*train).mean() for j in range(FEATURES)]) - 0.5
    least = 0.5 / np.sqrt(ROWS)
    promising = np.flatnonzero(abs(seen) > least)
    confirmed = [int(j) for j in promising if np.sign(seen[j]) * (ask(agrees(j)) - 0.5) > least]
    strongest = sorted(confirmed, key=lambda j: -abs(seen[j]))
    for k in SIZES:
        rule = vote(strongest[:k], np.sign(seen[strongest[:k]]).astype(np.int32))
        yield k, rule, ask(rule)


def compare(strong: int, seed: int = 2015) -> None:
    """Print a table: what the plain and the reusable holdout say, each beside the truth about the same votes."""
    rng = np.random.default_rng(seed)
    train, holdout, fresh = (people(rng, strong) for _ in range(3))
    reusable = ReusableHoldout(*holdout, *train, budget=10, spend=1)
    threshold = float(reusable.mechanism.threshold)
    print(f"\n{strong} of {FEATURES:,} features say something; {reusable}, threshold {threshold}")
    print("features   plain  truth   reusable  truth")
    plain = analyst(train, lambda phi: float(phi(*holdout).mean()))
    careful = analyst(train, lambda phi: reusable.ask(phi, vectorised=True).value)
    for (k, one, says), (_, other, answer) in zip(plain, careful, strict=True):
        print(f"{k:8}   {says:.3f}  {one(*fresh).mean():.3f}   {answer:8.3f}  {other(*fresh).mean():.3f}")
    print(f"{reusable.left} answers left")


if __name__ == "__main__":
    compare(strong=0)
    compare(strong=24)
