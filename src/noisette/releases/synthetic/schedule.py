"""What a synthesiser spends on what: fixed before anything is read, from the promise and the sizes of the attributes.

    one-way tables    one measurement of each, such that the sum of n_i sigma_i is smallest: sigma_i ~ n_i^(-1/3) for
                      Gaussian noise, n_i^(-1/2) for Laplace noise
    forest            attributes - 1 picks of a pair by the exponential mechanism, and a measurement of each
    rounds            some more picks and measurements; several measurements of one table are averaged

With a delta or a rho, noise is Gaussian. All picks have the same epsilon, so that the whole is composed tightly: the
adaptive optimum for bounded ranges with Gaussians among them (docs/proofs/composition.md, docs/proofs/synthetic.md).
For a pure epsilon noise is Laplace, and epsilons add up.

Vocabulary: `size` of the whole, a rho or an epsilon · `moved` what one unit does to any table.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Literal, TypeAlias

from noisette.errors import InputError
from noisette.exact.number import fraction
from noisette.exact.rational import sqrt_down, sqrt_up
from noisette.mechanisms import Exponential, Gaussian, Geometric
from noisette.privacy import ZCDP, Approx, Guarantee, Neighbours, Promise, Spend, as_promise
from noisette.privacy.convert import zcdp_delta
from noisette.privacy.sensitivity import Sensitivity
from noisette.releases.adaptive import one_node
from noisette.releases.linear import Noise

__all__ = ["STEPS", "Schedule", "Strategy"]

Strategy: TypeAlias = Literal["rake", "mst", "aim"]

STEPS = 2**10
"""Scores are counted in parts of a row, so that released tables are compared at whole numbers."""

_FOREST = Fraction(1, 3)  # of what is left for pairs
_PICKS = Fraction(12, 100)  # of what a pair gets
_ROUNDS = 2.6  # for each attribute
_PURE_PICKS, _PURE_ROUNDS = Fraction(1, 4), 0.5  # where epsilons add up
_HIGHEST = Fraction(10**4)
_TIGHTER = ("1.14", "1.12", "1.1", "1.08", "1.05", "1.02", "1", "0.98", "0.9", "0.5")


@dataclass(frozen=True)
class Schedule:
    """Noise of each measurement, and how many there are; `pick` is the epsilon of one pick.

    >>> made = Schedule.calibrated("1,1e-9", (85, 9, 2))
    >>> made.forest_edges, made.rounds, made.guarantee() <= as_promise("1,1e-9")
    (2, 1, True)
    """

    moved: Sensitivity
    singles: tuple[Noise, ...]
    forest_edges: int
    forest: Noise | None
    rounds: int
    round: Noise | None
    pick: Fraction | None

    @classmethod
    def calibrated(
        cls,
        spend: Spend,
        sizes: Sequence[int],
        *,
        rows: int = 1,
        neighbours: Neighbours = Neighbours.ADD_REMOVE,
        strategy: Strategy = "rake",
    ) -> "Schedule":
        """The least noise that keeps a promise for a unit of at most `rows` rows."""
        promise, moved = as_promise(spend), one_node(rows, neighbours)
        if not promise.size:
            raise InputError("spend must be above 0: without noise budget nothing can be released.")
        if promise.is_pure:
            return cls._pure(promise.size, sizes, moved, strategy)
        target, rho = promise.restated(neighbours), _rho_of(promise)
        for factor in _TIGHTER if isinstance(promise, Approx) else ("1",):
            made = cls._gaussian(rho * fraction(factor, "factor"), sizes, moved, strategy)
            if made.guarantee() <= target:
                return made
        raise InputError("This promise is too small for a synthetic table: spend more.")

    @classmethod
    def _gaussian(cls, rho: Fraction, sizes: Sequence[int], moved: Sensitivity, strategy: Strategy) -> "Schedule":
        def noise(part: Fraction) -> Noise:
            root = sqrt_up(1 / (2 * part))
            plain = Gaussian(moved.l2 * root)
            return Gaussian(
                (moved.l2 + 2 * plain.grid) * root
            )  # room for the grid, which is as coarse as sigma is large

        edges, rounds = _counts(len(sizes), strategy, _ROUNDS)
        parts = _Parts.of(rho, len(sizes), edges, rounds, _PICKS)
        return parts.schedule(moved, noise, [size ** (2 / 3) for size in sizes], lambda one: sqrt_down(8 * one))

    @classmethod
    def _pure(cls, epsilon: Fraction, sizes: Sequence[int], moved: Sensitivity, strategy: Strategy) -> "Schedule":
        def noise(part: Fraction) -> Noise:
            return Geometric(moved.l1 / part)

        edges, rounds = _counts(len(sizes), strategy, _PURE_ROUNDS)
        parts = _Parts.of(epsilon, len(sizes), edges, rounds, _PURE_PICKS)
        return parts.schedule(moved, noise, [size**0.5 for size in sizes], lambda one: one)

    @property
    def picks(self) -> int:
        """How many picks are paid for."""
        return self.forest_edges + self.rounds if self.pick is not None else 0

    def chooser(self, candidates: int) -> Exponential:
        """The pick among some pairs: scores are in steps, and each moves by at most the unit's rows, up or down."""
        assert self.pick is not None
        return Exponential(2 * self.score_moves / self.pick, candidates=candidates)

    @property
    def score_moves(self) -> int:
        """How far one unit moves a score at most: |M(D) - q|_1 moves by no more than M(D) does in l1."""
        return int(self.moved.l1) * STEPS

    @property
    def scores_moved(self) -> Sensitivity:
        """The same for two scores, of which one may rise and the other fall."""
        m = self.score_moves
        return Sensitivity(2 * m, 2 * m * m, m, 2, neighbours=self.moved.neighbours)

    def guarantee(self) -> Guarantee:
        """What holds for one unit: all parts, chosen one after the other."""
        parts: list[Guarantee] = [one.guarantee(self.moved) for one in self.singles]
        if self.forest is not None:
            parts.append(self.forest.guarantee(self.moved) * self.forest_edges)
        if self.round is not None:
            parts.append(self.round.guarantee(self.moved) * self.rounds)
        if self.pick is not None:
            parts.append(self.chooser(2).guarantee(self.scores_moved) * self.picks)
        return reduce(add, parts)


@dataclass(frozen=True)
class _Parts:
    """A budget that adds up, divided: for all one-way tables, each edge, each round, and each pick."""

    singles: Fraction
    edges: int
    edge: Fraction
    rounds: int
    round: Fraction
    pick: Fraction

    @staticmethod
    def of(size: Fraction, attributes: int, edges: int, rounds: int, picks: Fraction) -> "_Parts":
        many = edges + rounds
        pairs = size * Fraction(many, attributes + many)  # as much for a column as for a pair
        chosen = picks if 0 < many < attributes * (attributes - 1) // 2 else Fraction(0)  # all of them: no choice
        measured = pairs * (1 - chosen)
        forest = measured * (_FOREST if rounds else 1) if edges else Fraction(0)
        edge, each = (part / max(1, n) for part, n in ((forest, edges), (measured - forest, rounds)))
        return _Parts(size - pairs, edges, edge, rounds, each, pairs * chosen / max(1, many))

    def schedule(
        self,
        moved: Sensitivity,
        noise: Callable[[Fraction], Noise],
        weights: Sequence[float],
        epsilon: Callable[[Fraction], Fraction],
    ) -> Schedule:
        shares = [Fraction(round(1024 * weight), 1024) for weight in weights]
        return Schedule(
            moved,
            tuple(noise(self.singles * share / sum(shares)) for share in shares),
            self.edges,
            noise(self.edge) if self.edges else None,
            self.rounds,
            noise(self.round) if self.rounds else None,
            epsilon(self.pick) if self.pick else None,
        )


def _counts(attributes: int, strategy: Strategy, each: float) -> tuple[int, int]:
    """How many edges of a forest, and how many rounds."""
    pairs = attributes * (attributes - 1) // 2
    edges = 0 if strategy == "aim" else attributes - 1
    rounds = 0 if strategy == "mst" else min(pairs - edges, math.ceil(each * attributes))
    return edges, rounds


def _rho_of(promise: Promise) -> Fraction:
    """The largest rho that keeps the promise by the conversion of zCDP alone, rounded down."""
    if isinstance(promise, ZCDP):
        return promise.rho * (1 - Fraction(1, 2**20))
    low, high = Fraction(0), min(_HIGHEST, 2 * promise.epsilon + 1)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if zcdp_delta(middle, promise.epsilon) <= promise.delta else (low, middle)
    if not low:
        raise InputError("This promise is too small for a synthetic table: spend more.")
    return low.limit_denominator(10**15) * (1 - Fraction(1, 2**20)) or low
