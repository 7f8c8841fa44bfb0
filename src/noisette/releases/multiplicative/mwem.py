"""MWEM: answers to many queries from a few measurements, each of what the public hypothesis answers worst.

Each round: the exponential mechanism picks a candidate with the score

    |q(D) - round(q(A))| - c,      for a marginal the sum over its cells,

it is measured with noise, and the hypothesis A moves towards all that was measured (`product`). c is the error that the
noise of a measurement has anyway, so that large marginals are not measured for small gains.   [Hardt-Ligett-McSherry
2012; McKenna et al. 2022 for c; Liu-Vietri-Wu 2021 for the replays]

**Privacy.** q(A) and c are functions of released numbers, rounded *before* the exact answer is compared with them. So a
unit of k rows moves each score by at most k (a query, and a marginal under add/remove), or 2 k (a marginal under
replace): rounding adds nothing. Scores may move up or down, so a pick is worth 2 k/scale, or its square over 8 as rho.
Each measurement moves by k in l1 and l2 (under replace a marginal by 2 k and sqrt(2) k). All releases compose
adaptively, with costs fixed in advance; the rest reads released numbers.   (docs/proofs/multiplicative-weights.md)

The number of rows is bought with a share of the promise, unless it is public. Under replace, too: a unit that is
replaced may have another number of rows that count.

**Error.** With probability 1 - b all m candidates of the last pick have scores below its own plus scale ln(m/b); that
one is known from its measurement. That is what error bars of unmeasured queries rest on.

Vocabulary: `picking` the exponential mechanism · `noise` of a measurement · `counting` the noise of the number of rows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np

from noisette.errors import InputError
from noisette.exact.number import whole
from noisette.exact.random import SYSTEM, Random
from noisette.mechanisms import Exponential, Gaussian, Geometric
from noisette.privacy import ZCDP, Approx, Guarantee, Neighbours, Promise, Pure, Spend, as_promise
from noisette.privacy.convert import zcdp_epsilon
from noisette.privacy.sensitivity import Sensitivity
from noisette.releases.adaptive import one_node
from noisette.releases.linear import Noise, fitting, pure_part
from noisette.releases.multiplicative.candidates import MOST_CELLS, Candidates, Counts, Floats, Subset, Tables
from noisette.releases.multiplicative.product import Hypothesis, Measured

__all__ = ["MWEM", "Released"]

_COUNTING = Fraction(1, 20)  # of the promise, for the number of rows
_PICKING = {"queries": Fraction(1, 2), "marginals": Fraction(1, 8)}  # of each round
_ROUNDS = 16
_REPLAYS = 10
_STEPS = 14  # of the search for the largest rho


@dataclass(frozen=True)
class Released:
    """All that was released: the number of rows, the candidates that were picked, and their noisy answers."""

    rows: int
    picks: tuple[int, ...]
    y: tuple[Floats, ...]


@dataclass(frozen=True, eq=False)
class MWEM:
    """Rounds of picking and measuring for a unit of at most `unit_rows` rows.

    >>> from noisette.releases.multiplicative.candidates import Candidates
    >>> made = MWEM.calibrated(1, Candidates((4, 3), marginals=((0,), (1,), (0, 1))), rounds=2)
    >>> made.guarantee(), made.noise, made.picking.scale
    (Pure('1', neighbours=ADD_REMOVE), Geometric(scale=320/133), Fraction(640, 19))
    """

    candidates: Candidates
    rounds: int
    unit_rows: int
    neighbours: Neighbours
    picking: Exponential | None
    noise: Noise
    counting: Noise | None
    rows: int | None = None
    replays: int = _REPLAYS

    @classmethod
    def calibrated(
        cls,
        spend: Spend,
        candidates: Candidates,
        *,
        rounds: int | None = None,
        unit_rows: int = 1,
        neighbours: Neighbours = Neighbours.ADD_REMOVE,
        rows: int | None = None,
        replays: int = _REPLAYS,
        gaussian: bool | None = None,
    ) -> "MWEM":
        """The least noise that keeps a promise, the same in each round: Laplace, or Gaussian if that has less.

        `rows` is the number of rows if it is public. With `replays=0` it is the textbook's algorithm.
        """
        promise = as_promise(spend)
        many = min(candidates.many, _ROUNDS) if rounds is None else whole(rounds, "rounds")
        if rows is not None:
            whole(rows, "rows")
        if whole(replays, "replays", least=0) == 0 and candidates.cells(range(len(candidates.sizes))) > MOST_CELLS:
            raise InputError(f"Without replays there can be at most {MOST_CELLS:,} combinations: leave replays out.")
        start = cls(candidates, many, unit_rows, neighbours, None, Geometric(1), None, rows, replays)
        kinds = ((False,) if promise.is_pure else (False, True)) if gaussian is None else (gaussian,)
        made = fitting(lambda kind: start._gaussian(promise) if kind else start._laplace(promise), kinds)
        return min(made, key=lambda one: one.noise.variance())

    # Privacy

    @cached_property
    def scored(self) -> Sensitivity:
        """How far one unit moves the scores: each at most this far, up or down."""
        far = self.moved.l1
        return Sensitivity(2 * far, 2 * far**2, far, 2, neighbours=self.neighbours)

    @cached_property
    def moved(self) -> Sensitivity:
        """How far one unit moves what a round measures."""
        return one_node(self.unit_rows, self.neighbours) if self.candidates.marginals else self.counted

    @cached_property
    def counted(self) -> Sensitivity:
        """How far one unit moves a single count, such as the number of rows: under replace no more."""
        k = self.unit_rows
        return Sensitivity(k, k * k, k, 1, neighbours=self.neighbours)

    @property
    def parts(self) -> list[tuple[Any, Sensitivity]]:
        """All mechanisms with what they are applied to."""
        first: list[tuple[Any, Sensitivity]] = [] if self.counting is None else [(self.counting, self.counted)]
        picks: list[tuple[Any, Sensitivity]] = [] if self.picking is None else [(self.picking, self.scored)]
        return first + self.rounds * [*picks, (self.noise, self.moved)]

    def guarantee(self) -> Guarantee:
        """What holds for one unit: the sum over all rounds."""
        once: list[Guarantee] = [] if self.counting is None else [self.counting.guarantee(self.counted)]
        if self.picking is not None:
            once.append(self.rounds * self.picking.guarantee(self.scored))
        return reduce(add, [*once, self.rounds * self.noise.guarantee(self.moved)])

    def _shares(self) -> tuple[Fraction, Fraction, Fraction]:
        """The shares of the number of rows, of a pick and of a measurement."""
        count = _COUNTING if self.rows is None else Fraction(0)
        kind = "marginals" if self.candidates.marginals else "queries"
        pick = _PICKING[kind] if self.candidates.many > 1 else Fraction(0)
        each = (1 - count) / self.rounds
        return count, each * pick, each * (1 - pick)

    def _with(self, noises: Sequence[Any]) -> "MWEM":
        counting, picking, noise = noises
        return MWEM(
            self.candidates,
            self.rounds,
            self.unit_rows,
            self.neighbours,
            picking,
            noise,
            counting,
            self.rows,
            self.replays,
        )

    def _picking(self, promise: Promise) -> Exponential:
        return Exponential.calibrated(promise, self.scored, candidates=self.candidates.many)

    def _laplace(self, promise: Promise) -> "MWEM":
        epsilon = pure_part(promise)
        count, pick, measure = (share * epsilon for share in self._shares())
        return self._with(
            [
                Geometric(self.counted.l1 / count) if count else None,
                self._picking(Pure(pick, neighbours=self.neighbours)) if pick else None,
                Geometric(self.moved.l1 / measure),
            ]
        )

    def _gaussian(self, promise: Promise) -> "MWEM":
        """All costs are shares of one rho: the promise's, or the largest that keeps it."""
        if isinstance(promise, ZCDP):
            return self._within(promise.rho)
        return self._largest(promise.restated(self.neighbours))

    def _within(self, rho: Fraction) -> "MWEM":
        count, pick, measure = (
            None if not share else ZCDP(share * rho, neighbours=self.neighbours) for share in self._shares()
        )
        return self._with(
            [
                None if count is None else Gaussian.calibrated(count, self.counted),
                None if pick is None else self._picking(pick),
                Gaussian.calibrated(measure or ZCDP(rho), self.moved),
            ]
        )

    def _largest(self, promise: Guarantee) -> "MWEM":
        """By tight composition rho may be a little more than what its own delta allows.

        That is not looked for where Laplace noise has a smaller variance anyway.
        """
        assert isinstance(promise, Approx)
        low, factor, high = _rho_within(promise), Fraction(1), Fraction(3, 2)
        made, least = self._within(low), self._within(low * high)
        if least.noise.variance() >= self._laplace(promise).noise.variance():
            return made
        for _ in range(_STEPS):
            middle = (factor + high) / 2
            more = self._within(low * middle)
            if more.guarantee() <= promise:
                made, factor = more, middle
            else:
                high = middle
        return made

    # Releasing

    def __call__(self, tables: Tables, rng: Random = SYSTEM) -> Released:
        """Release the number of rows, the picks and what was measured, from the exact tables of all axes."""
        rows = self._counted(tables, rng)
        hypothesis, exact = self.start(rows), self.candidates.answers(tables)
        picks: list[int] = []
        answers: list[Floats] = []
        for _ in range(self.rounds):
            allowed = self._allowed(hypothesis, picks)
            scores = self._scores(exact, hypothesis)[allowed]
            pick = int(allowed[0 if len(allowed) == 1 else self._among(len(allowed))(scores, rng)])
            answers.append(np.asarray(self.noise(self._exact(exact, pick), rng), float))
            picks.append(pick)
            hypothesis.add(self._measured(pick, answers[-1]))
        return Released(rows, tuple(picks), tuple(answers))

    def _counted(self, tables: Tables, rng: Random) -> int:
        if self.rows is not None:
            return self.rows
        assert self.counting is not None
        return round(float(self.counting(int(next(iter(tables.values())).sum()), rng)))

    def _among(self, many: int) -> Exponential:
        assert self.picking is not None
        return Exponential(self.picking.scale, candidates=many)

    def _allowed(self, hypothesis: Hypothesis, picks: Sequence[int]) -> Counts:
        """Candidates that were not measured yet, or else all, for which the hypothesis has room."""
        room = {axes: hypothesis.joined_cells(axes) <= MOST_CELLS for axes in self.candidates.axes}
        fits = np.array([room[self.candidates.axes_of(i)] for i in range(self.candidates.many)])
        fresh = fits.copy()
        fresh[list(picks)] = False
        return np.flatnonzero(fresh if fresh.any() else fits)

    def _scores(self, exact: Sequence[Any], hypothesis: Hypothesis) -> Counts:
        public = self.rounded(hypothesis)
        if not self.candidates.marginals:
            return np.asarray(np.abs(exact[0] - public[0]))
        pairs = zip(exact, public, self.biases, strict=True)
        return np.array([np.abs(one - other).sum() - bias for one, other, bias in pairs], np.int64)

    def _exact(self, exact: Sequence[Any], pick: int) -> Counts:
        return np.asarray(exact[pick].ravel() if self.candidates.marginals else exact[0][pick : pick + 1])

    @cached_property
    def biases(self) -> Counts:
        """The error that each candidate has once it is measured, as whole numbers."""
        each = self.spread * math.sqrt(2 / math.pi)
        return np.array([round(each * self.candidates.cells(axes)) for axes in self.candidates.marginals], np.int64)

    # Reading what was released

    @property
    def spread(self) -> float:
        """The standard deviation of a measurement."""
        return math.sqrt(self.noise.variance())

    def start(self, rows: int) -> Hypothesis:
        """The hypothesis before anything is measured: all cells alike."""
        return Hypothesis(self.candidates.sizes, rows=rows, spread=self.spread, replays=self.replays)

    def rounded(self, hypothesis: Hypothesis) -> list[Counts]:
        """What the hypothesis answers, as whole numbers."""
        found = self.candidates.answers(hypothesis.tables(self.candidates.axes))
        return [np.rint(one).astype(np.int64) for one in found]

    def _measured(self, pick: int, y: Floats) -> Measured:
        axes, boxes = self.candidates.axes_of(pick), self.candidates.boxes_of(pick)
        shape: Subset = (1,) if boxes is not None else tuple(self.candidates.sizes[i] for i in axes)
        return Measured(pick, axes, boxes, y.reshape(shape))

    def read(self, released: Released, *, rounds: int | None = None) -> Hypothesis:
        """The hypothesis after the first rounds, or after all: it follows from what was released."""
        hypothesis = self.start(released.rows)
        for pick, y in list(zip(released.picks, released.y, strict=True))[:rounds]:
            hypothesis.add(self._measured(pick, y))
        return hypothesis

    def bounds(self, released: Released, level: float) -> Floats:
        """How far each candidate is at most from what the hypothesis answered before the last pick, at that level.

        All of it holds at once. One is added for the rounding of answers that were computed again.
        """
        before = self.rounded(self.read(released, rounds=self.rounds - 1))
        last, y, fails = released.picks[-1], released.y[-1], (1 - level) / 2
        off = np.abs(y - self._exact(before, last)).sum() + len(y) * self.noise.interval(1 - fails / len(y))
        slack = 0.0 if self.picking is None else float(self.picking.scale) * math.log(self.candidates.many / fails)
        biases = self.biases if self.candidates.marginals else np.zeros(self.candidates.many)
        return np.asarray(off + slack + biases - biases[last] + 1, float)


def _rho_within(promise: Approx) -> Fraction:
    """A rho whose own delta is at most the promise's, nearly the largest."""
    low, high = Fraction(0), promise.epsilon
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if zcdp_epsilon(middle, promise.delta) <= promise.epsilon else (low, middle)
    if not low:
        raise InputError("This promise is too small for Gaussian noise: spend more.")
    return low
