"""Report noisy max: add noise to all scores and release which is the largest, and with `NoisyMaxGap` by how much.

The noise is whole, P(z) proportional to e^(-|z|/scale), and ties are broken evenly. If a person moves the scores within
a range r, it is (r/scale)-DP: r = 2 d if each moves by at most d, r = d if all move in one direction (counts of added
or removed records, not of replaced ones). With three candidates or more no smaller epsilon holds: one far
behind gains r on all others.   [Dwork-Roth 2014]
Why: whatever the noise of the others, if i wins with noise z, it wins after the move with z + r, with no more ties than
before; and z + r is at most e^(r/scale) times less likely than z.

The noise makes the mechanism. Gumbel noise makes `Exponential`. One-sided noise makes `PermuteAndFlip`, exponential as
well as geometric: the whole part of exponential noise is geometric, and the rest breaks ties evenly. That one is never
worse at the same epsilon.

The gap to the runner-up costs nothing more, for two-sided and for one-sided noise.   [Ding et al. 2019, 2021]
Here it is the gap of noise with a fraction, rounded down: the winner keeps the whole gap with 1/(t + 1), t runners-up
that tie, and loses one of it else. The noisy score itself would cost as much again.   (docs/proofs/noisy-max.md)

When: to learn how far the winner is ahead. For the winner alone, use `PermuteAndFlip`.
Textbook: Smith and Bassi, report noisy max, which costs epsilon for monotone scores only, and 2 epsilon otherwise.

Vocabulary: `loss` of a candidate, max q - q_i · `level` a value that the largest noisy score may have · `gap` >= 0.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact import vector
from noisette.exact.frozen import KW_ONLY, frozen
from noisette.exact.integers import Integers, added
from noisette.exact.number import level_of
from noisette.exact.random import SYSTEM, Random
from noisette.laws import DiscreteLaplace
from noisette.laws.law import smallest
from noisette.mechanisms.contract import Distance, Mechanism, Output
from noisette.mechanisms.selection.exponential import Candidates, ChoiceScale, Monotone, Scores, Selection, unit_rule
from noisette.privacy import Promise

__all__ = ["NoisyMax", "NoisyMaxGap"]

Floats = NDArray[np.float64]
Noise = Literal["geometric", "laplace"]

_LARGEST_LAW = 1 << 24
_FAR = 40  # scales: e^-40 is lost in the rounding of floats
_FINEST = 128  # steps in a scale that tell all there is to tell
_NODES, _WEIGHTS = unit_rule(8)


@frozen
class _Geometric:
    """One-sided noise: P(z) = (1 - a) a^z, z >= 0, a = e^(-1/scale)."""

    scale: Fraction

    def pmf(self, z: Any) -> Any:
        """P(Z = z)."""
        return -math.expm1(-1 / self.scale) * np.exp(-np.maximum(z, 0) / float(self.scale)) * (np.asarray(z) >= 0)

    def cdf(self, z: Any) -> Any:
        """P(Z <= z)."""
        return -np.expm1(-np.maximum(np.asarray(z) + 1, 0) / float(self.scale))

    def tail(self, t: int) -> float:
        """P(Z > t), t >= 0."""
        return math.exp(-(t + 1) / self.scale)

    def sample(self, size: int, rng: Random) -> int | Integers:
        """Draw exactly."""
        return vector.geometric_noise(self.scale, size, rng)


@frozen
class NoisyMax(Selection):
    """One of the candidates 0 .. candidates-1, given their whole scores, by two-sided noise.

    >>> from noisette.privacy import Pure
    >>> m = NoisyMax.calibrated(Pure(1), candidates=4)
    >>> m, m.guarantee(1), m([0, 1, 3, 2]) in range(4)
    (NoisyMax(scale=Fraction(2, 1), candidates=4, monotone=False), Pure('1'), True)
    >>> m.pmf(range(4), [0, 1, 3, 2]).round(4).tolist(), m.interval(0.95)
    ([0.0893, 0.1559, 0.4786, 0.2762], 8.0)
    """

    def __post_init__(self) -> None:
        DiscreteLaplace(self.scale)  # which refuses scales that cannot be drawn

    def __call__(self, scores: Any, rng: Random = SYSTEM) -> int:
        """Release a candidate."""
        noisy = _noisy(self._read(scores), DiscreteLaplace(self.scale), rng)
        best = np.flatnonzero(noisy == noisy.max())
        return int(best[rng.below(len(best))])

    def _law(self, scores: Scores) -> Floats:
        """P(i) = sum over levels S of P(z_i = S - q_i) times the chance to win there."""
        noise = DiscreteLaplace(self.scale)
        levels = _levels(scores, self.scale, 0)
        parts = _parts(scores, levels, noise)
        before = np.cumprod(np.concatenate([np.ones_like(parts[:1]), parts[:-1]]), axis=0)
        after = np.cumprod(np.concatenate([np.ones_like(parts[:1]), parts[:0:-1]]), axis=0)[::-1]
        wins = (before * after) @ _rule(self.candidates)[1]
        return np.asarray((noise.pmf(levels - scores[:, None]) * wins).sum(axis=1))

    def _strays(self, loss: int) -> float:
        """The sum over levels S of P(z_best = S) (1 - the chance that no other wins there)."""
        noise, far = DiscreteLaplace(self.scale), math.ceil(_FAR * self.scale)
        levels = np.arange(-loss - far, far + 1)
        above, own = noise.cdf(-levels - loss - 1), noise.pmf(levels + loss)
        return float(noise.pmf(levels) @ _beaten(above, own, self.candidates))

    def interval(self, level: float = 0.95) -> float:
        """Return the smallest whole t for which the score is within t of the best with that probability, at worst.

        For scales above 256 it is found in coarser steps, and at most two of them (1 %) larger.
        """
        step, coarse = self._coarse()
        return super().interval(level) if step == 1 else step * (coarse.interval(level) + 2)

    def variance(self) -> float:
        """Mean squared loss of score at worst; for scales above 256 to about 1e-5, by coarser steps."""
        step, coarse = self._coarse()
        return super().variance() if step == 1 else step**2 * coarse.variance()

    def _coarse(self) -> tuple[int, "NoisyMax"]:
        step = max(1, math.floor(self.scale / _FINEST))
        return step, NoisyMax(self.scale / step, candidates=self.candidates)


def _noisy(q: Scores, noise: DiscreteLaplace | _Geometric, rng: Random) -> Integers:
    return added(q, np.asarray(noise.sample(q.size, rng)))


def _beaten(above: Floats, own: Floats, k: int) -> Floats:
    """1 - the mean of (1 - t)^(k-1), t from P(Z > S) to P(Z >= S): that one of k - 1 others beats a given level S.

    `above` is P(Z > S) and `own` P(Z = S).
    """
    beaten, few = np.ones_like(above), k * (above + own) < 1
    inside = above[few, None] + own[few, None] * _NODES
    beaten[few] = -np.expm1((k - 1) * np.log1p(-inside)) @ _WEIGHTS
    many = ~few & (above < 1 - 1e-9)  # where hardly any other is below, one is above
    t, p = above[many], own[many]
    beaten[many] -= np.exp(k * np.log1p(-t)) * -np.expm1(k * np.log1p(-p / (1 - t))) / (k * p)
    return beaten


def _levels(scores: Scores, scale: Fraction, gap: int) -> NDArray[np.int64]:
    """All values that the largest noisy score can have, except for those that are next to impossible."""
    far = math.ceil(_FAR * scale)
    low, high = int(scores.min()) - far - gap, int(scores.max()) + far
    if (high - low) * scores.size**2 > _LARGEST_LAW:
        raise InputError("Probabilities are computed for few candidates with scores and noise of small size only.")
    return np.arange(low, high + 1)


def _rule(k: int) -> tuple[Floats, Floats]:
    """Nodes and weights on 0 .. 1 that are exact for products of k parts."""
    return unit_rule(k // 2 + 1)


def _parts(scores: Scores, levels: NDArray[np.int64], noise: DiscreteLaplace | _Geometric) -> Floats:
    """P(z_j < S - q_j) + u P(z_j = S - q_j), for each candidate, level S and node u.

    With fractions that break ties, it is the chance that j stays below S + u; the product is the others' chance.
    """
    nodes, _ = _rule(scores.size)
    places = levels - scores[:, None]
    return np.asarray(noise.cdf(places - 1)[..., None] + noise.pmf(places)[..., None] * nodes)


@frozen
class NoisyMaxGap(Mechanism):
    """The winner and its gap to the runner-up, a whole number >= 0, given whole scores.

    The gap estimates how far the released candidate is ahead of the best other one, `error` is how far off it is.

    >>> from noisette.privacy import Pure
    >>> m = NoisyMaxGap.calibrated(Pure(1), candidates=3, monotone=True)
    >>> m, m.guarantee(1), m([0, 90, 30])[0]
    (NoisyMaxGap(scale=Fraction(1, 1), candidates=3, monotone=True, noise='geometric'), Pure('1'), 1)
    >>> round(m.outcomes([0, 1, 3])[2, 1], 4), m.interval(0.95)
    (0.3263, 5.0)
    """

    kind = Output.OUTCOME
    scale: ChoiceScale
    _: KW_ONLY
    candidates: Candidates
    monotone: Monotone = False
    noise: Noise = "geometric"

    def __post_init__(self) -> None:
        assert self._index  # which refuses scales that cannot be drawn
        if self.noise not in ("geometric", "laplace"):
            raise InputError("noise must be 'geometric', which is one-sided, or 'laplace'.")

    @classmethod
    def calibrated(
        cls,
        guarantee: Promise,
        sensitivity: Distance = 1,
        *,
        candidates: int,
        monotone: bool = False,
        noise: Noise = "geometric",
    ) -> Self:
        """Return the least scale that keeps the guarantee: that of the index alone."""
        same = NoisyMax.calibrated(guarantee, sensitivity, candidates=candidates, monotone=monotone)
        return cls(same.scale, candidates=candidates, monotone=monotone, noise=noise)

    @cached_property
    def _index(self) -> NoisyMax:
        """What releases the index alone, at the same price."""
        return NoisyMax(self.scale, candidates=self.candidates, monotone=self.monotone)

    @property
    def _noise(self) -> DiscreteLaplace | _Geometric:
        return DiscreteLaplace(self.scale) if self.noise == "laplace" else _Geometric(self.scale)

    @property
    def norm(self) -> float:
        """What a distance counts, as for the index alone."""
        return self._index.norm

    def guarantee(self, distance: Distance = 1) -> Promise:
        """Return Pure(range / scale) for scores that move by at most `distance` each."""
        return self._index.guarantee(distance)

    def __call__(self, scores: Any, rng: Random = SYSTEM) -> tuple[int, int]:
        """Release a candidate and its gap."""
        noisy = _noisy(self._index._read(scores), self._noise, rng)
        best = np.flatnonzero(noisy == noisy.max())
        winner = int(best[rng.below(len(best))])
        if len(best) > 1:
            return winner, 0
        others = np.delete(noisy, winner)
        gap, rivals = int(noisy[winner]) - int(others.max()), int((others == others.max()).sum())
        return winner, gap if rng.below(rivals + 1) == 0 else gap - 1

    def outcomes(self, x: Any) -> Mapping[tuple[int, int], float]:
        """Return P(i, gap g) for all g up to where 1e-13 is left: sums of positive terms, right to about 1e-12 each.

        Where they end is rounded up to many scales, so that neighbours mostly end at the same gap.
        """
        scores = self._index._read(x)
        far = math.ceil(_FAR * self.scale)
        reach = far * (2 + int(np.ptp(scores)) // far)
        levels = _levels(scores, self.scale, reach)
        parts = _parts(scores, np.append(levels[0] - 1, levels), self._noise)
        return {
            (i, gap): float(chance)
            for i in range(self.candidates)
            for gap, chance in enumerate(self._gaps(int(scores[i]), levels, np.delete(parts, i, axis=0), reach))
        }

    def _gaps(self, q: int, levels: NDArray[np.int64], others: Floats, reach: int) -> Floats:
        """P(i, g) = sum over S of P(z_i = S + g - q_i) (wins(S) - wins(S - 1)), as i would win even if it lost g."""
        after, before = others[:, 1:], others[:, :-1]
        risen = np.zeros_like(after[0])
        for j in range(len(others)):  # a product's rise, as a sum in which one part after the other rises
            risen += after[:j].prod(axis=0) * (after[j] - before[j]) * before[j + 1 :].prod(axis=0)
        own = self._noise.pmf(np.arange(levels[0], levels[-1] + reach) - q)
        return np.correlate(own, risen @ _rule(self.candidates)[1], mode="valid")

    def error(self, y: tuple[int, int], x: Any) -> float:
        """Return how far the gap is from what the released candidate is ahead; its loss of score is no larger."""
        scores, (winner, gap) = self._index._read(x), y
        return float(abs(gap - int(scores[winner]) + int(np.delete(scores, winner).max())))

    def interval(self, level: float = 0.95) -> float:
        """Return a t for which error <= t with at least that probability: h + 1, or 2 h + 1 if noise is two-sided.

        All noise is at most h with that probability.
        """
        h = self._all_within(level)
        return float(h + 1 if self.noise == "geometric" else 2 * h + 1)

    def _all_within(self, level: float) -> int:
        """The h that all noise is at most, in size, with that probability."""
        level_of(level)
        each = -math.expm1(math.log(level) / self.candidates) * (1 - 1e-13)
        return smallest(lambda t: bool(self._noise.tail(t) <= each))

    def lead(self, gap: int, level: float = 0.95) -> tuple[int, int]:
        """Return between which numbers the released candidate's lead lies, with at least that probability.

        One-sided noise has no memory: what a winner has beyond what it needed is again such noise, at most u except for
        half of the misses. A gap of more than u is more than that, so nothing was needed, and the lead is at least
        gap - u, however many candidates there are. (docs/proofs/selection.md)

        >>> NoisyMaxGap(1, candidates=1000).lead(50), NoisyMaxGap(1, candidates=1000).interval()
        ((47, 61), 10.0)
        """
        if self.noise == "laplace":
            t = int(self.interval(level))
            return gap - t, gap + t
        h, u = self._all_within((1 + level) / 2), -float(self.scale) * math.log((1 - level) / 2) * (1 + 1e-12)
        return gap - (min(math.floor(u), h) if gap >= u else h), gap + h + 1

    def pairs(self) -> Sequence[tuple[list[int], list[int], int]]:
        """One candidate behind gains; one ahead gains; all are equal, and every other one gains."""
        d, behind, rest = 1, math.ceil(8 * self.scale) + 2, self.candidates - 1
        back = 0 if self.monotone else -d
        every_other = [d if i % 2 else back for i in range(self.candidates)]
        return [
            ([-behind] + [0] * rest, [d - behind] + [back] * rest, d),
            ([2] + [0] * rest, [2 + d] + [back] * rest, d),
            ([0] * self.candidates, every_other, d),
        ]

    @property
    def tightness(self) -> float:
        """All of epsilon, up to rounding; two-sided noise reaches it from far behind only."""
        return 1 - 1e-6 if self.noise == "geometric" else 0.99


examples = [
    NoisyMax(2, candidates=4),
    NoisyMax("1/3", candidates=3, monotone=True),
    NoisyMax(15, candidates=7),
    NoisyMaxGap(2, candidates=3),
    NoisyMaxGap("1/2", candidates=4, monotone=True),
    NoisyMaxGap("3/2", candidates=3, noise="laplace"),
    NoisyMaxGap(1, candidates=4, monotone=True, noise="laplace"),
]
