"""Thresholdout: answers from the training set, except where the holdout disagrees by more than a noisy threshold.

A question has an exact answer q on the holdout, a whole number of steps, and a public guess g, its answer on the
training set. One record of the holdout, replaced by another, moves q by at most `grid` = K steps; for the mean of
values in [0, 1], rounded to multiples of 1/K, a step is 1/(nK). What is released is None, which stands for the guess,
or q with noise; after `budget` = B noisy answers nothing more. Whole noise, laws in steps:

published   |q - g| + Lap(4 s) >= T + Lap(2 s), where the latter is drawn anew after each answer; that is q + Lap(s);
            s = sigma n K. Then epsilon = 2 B/(sigma n), or for a delta what 2B releases of 1/(sigma n) are worth
            [Dwork-Feldman-Hardt-Pitassi-Reingold-Roth 2015, arXiv 1506.02629, Figure 1; Kairouz-Oh-Viswanath 2015]
calibrated  one-sided noise and one threshold for all (`SparseVector`): q - g and g - q are compared, and the gap says
            about how much q is, at no cost. From B = 10 on, where a delta or a rho is spent, |q - g| is compared, by
            fresh thresholds (`Sparse`) if these have less noise, and answers get Gaussian noise of their own

q - g, g - q and |q - g| all move by at most K, since g is public. Proof: docs/proofs/holdout.md.

Vocabulary: `steps` whole numbers of the question's unit · `guess` the public number that q is compared with.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from noisette.errors import InputError
from noisette.exact.frozen import KW_ONLY, Positive, Whole, frozen
from noisette.exact.number import Number, fraction, positive, whole
from noisette.mechanisms import Gaussian, Geometric, NumericSparse, Sparse, SparseVector
from noisette.mechanisms.calibration import agreed
from noisette.mechanisms.record import from_record, to_record
from noisette.privacy import ZCDP, Approx, Guarantee, Neighbours, Promise, Spend, as_promise, theorems
from noisette.privacy.sensitivity import Sensitivity

__all__ = ["Thresholdout"]

Comparing: TypeAlias = SparseVector | Sparse

GRID = 2**20  # steps of one record: fine, so that composing Gaussian noise is quick
_FEW = 10  # answers, below which gaps are more accurate than answers with noise of their own
_QUERIES = 1000  # all decided correctly, when two ways to compare are judged
_SHARE = Fraction(3, 4)  # the part of the budget for comparisons, where answers have their own noise


@frozen
class Thresholdout:
    """The mechanism of a reusable holdout of `records` records: how it compares, and how it answers.

    `one_sided` compares q - g alone, as a leaderboard does.

    >>> m = Thresholdout.published("0.01", budget=100, records=10_000, threshold="0.04")
    >>> m.guarantee.epsilon, round(m.guarantee.epsilon_at("1e-6"), 4)          # the paper: 2, or 2.15 for this delta
    (Fraction(2, 1), 0.5715)
    >>> m = Thresholdout.calibrated("1,1e-6", budget=4, records=10_000)
    >>> m.guarantee <= Approx(1, "1e-6"), m.answering is None, round(float(m.threshold), 3)
    (True, True, 0.027)
    """

    comparing: Any
    _: KW_ONLY
    answering: Any = None
    records: Whole
    threshold: Positive
    grid: Whole = GRID
    one_sided: bool = False

    @classmethod
    def published(
        cls, noise: Number, *, budget: int, records: int, threshold: Number, grid: int = GRID
    ) -> "Thresholdout":
        """Return the algorithm as published, `noise` being its sigma: scales 2, 4 and 1 sigma."""
        s = positive(noise, "noise") * whole(records, "records") * whole(grid, "grid")
        comparing = NumericSparse(2 * s, value_scale=s, positives=whole(budget, "budget"))
        return cls(comparing, records=records, threshold=_share(threshold), grid=grid)

    @classmethod
    def calibrated(
        cls,
        spend: Spend,
        *,
        budget: int,
        records: int,
        threshold: Number | None = None,
        grid: int = GRID,
        published: bool = False,
        one_sided: bool = False,
    ) -> "Thresholdout":
        """Return the mechanism with little noise that keeps a promise under replace; the threshold follows from it.

        By default the threshold is so large that a hundred questions whose guess is right within 2/sqrt(n), about what
        two samples differ by, are all answered by their guess, with probability 0.95.
        """
        promise, n, b = as_promise(spend), whole(records, "records"), whole(budget, "budget")
        d = Fraction(whole(grid, "grid"))
        agreed(promise, _moved(grid, 1))
        if published:
            comparing: Comparing = _published(promise, b, d)
            answering = None
        else:
            comparing, answering = _modern(promise, b, d, gaps=one_sided)
        if threshold is None:
            near = 2 / math.sqrt(n) + comparing.interval(0.95, queries=100) / (n * grid)
            if near >= 1:
                raise InputError(
                    f"{n:,} records are too few for {b:,} answers at this price: ask for fewer (budget=...), spend "
                    "more, or name a threshold."
                )
            threshold = Fraction(min(math.ceil(near * 1000), 999), 1000)
        read = _share(threshold)
        return cls(comparing, answering=answering, records=n, threshold=read, grid=grid, one_sided=one_sided)

    # What it promises

    @property
    def budget(self) -> int:
        """How many answers may come from the holdout."""
        return int(self.comparing.positives)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of all answers together, for any number of questions; neighbours replace one record."""
        stated: Guarantee = self.comparing.guarantee(_moved(self.grid, self.budget + 1))
        if self.answering is None:
            return stated
        answers: Guarantee = self.answering.guarantee(_moved(self.grid, 1))
        return stated + self.budget * answers

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The mechanisms with their sensitivity in steps, for the record; `from_parts` reads them."""
        also = {name: str(getattr(self, name)) for name in ("records", "threshold", "one_sided")}
        made = [to_record(self.comparing, "holdout", _moved(self.grid, self.budget + 1)) | also]
        if self.answering is not None:
            made.append(to_record(self.answering, "holdout", _moved(self.grid, self.budget)))
        return made

    @classmethod
    def from_parts(cls, parts: Sequence[Mapping[str, Any]]) -> "Thresholdout":
        """Return the mechanism of a record."""
        first, rest = parts[0], parts[1:]
        return cls(
            from_record(first),
            answering=from_record(rest[0]) if rest else None,
            records=int(first["records"]),
            threshold=first["threshold"],
            grid=int(first["sensitivity"]["linf"]),
            one_sided=first["one_sided"] == "True",
        )

    # What it compares

    @property
    def gaps(self) -> bool:
        """Whether the gap of a comparison gives the answer."""
        return isinstance(self.comparing, SparseVector) and self.answering is None

    def differences(self, off: int) -> list[int]:
        """What is compared with the threshold, off = q - g."""
        if self.one_sided:
            return [off]
        return [off, -off] if self.gaps else [abs(off)]

    # How far off it may be, in steps

    def silent_end(self, level: float) -> int:
        """How far beyond its threshold a difference may be although the guess was answered.

        Of fresh thresholds with two-sided noise, all B stay below one end and the query's noise above another.
        """
        if isinstance(self.comparing, SparseVector):
            return self.comparing.silent_end(level)
        share = (1 - float(level)) / 2
        z, n = self.comparing.threshold_noise, self.comparing.query_noise
        return int(-z.quantile(share / self.budget) - n.quantile(share))

    def released_ends(self, sign: int, gap: int | None, asked: int, level: float) -> tuple[int, int]:
        """From where to where an answer from the holdout may be off; `sign` is that of its difference to the guess."""
        if gap is not None:
            low, high = self.comparing.gap_ends(gap, 2 * asked, level)  # each question is compared at most twice
            return (low, high) if sign > 0 else (-high, -low)
        if self.answering is not None:
            off = math.ceil(self.answering.interval(level))
        else:
            off = math.ceil(Geometric(self.comparing.value_scale).interval(level))
        return -off, off


def _share(threshold: Number) -> Fraction:
    number = fraction(threshold, "threshold")
    if not 0 < number < 1:
        raise InputError("threshold must lie strictly between 0 and 1: 0.04 is usual for ten thousand records.")
    return number


def _moved(d: int, times: int) -> Sensitivity:
    """How far one record moves several questions; all questions below their threshold count as one."""
    return Sensitivity(times * d, times * d * d, d, times, neighbours=Neighbours.REPLACE)


def _published(promise: Promise, b: int, d: Fraction) -> NumericSparse:
    """The published scales 2s and s (and 4s for queries) for the largest epsilon of each of its 2B releases."""
    match promise:
        case Approx() if promise.delta:
            each = Fraction(theorems.each(2 * b, promise.epsilon, promise.delta))
        case ZCDP():
            each = 2 * d / Sparse.calibrated(promise, d, positives=2 * b).scale
        case _:
            each = promise.epsilon / (2 * b)
    return NumericSparse(2 * d / each, value_scale=d / each, positives=b)


def _modern(promise: Promise, b: int, d: Fraction, *, gaps: bool) -> tuple[Comparing, Gaussian | None]:
    moved = _moved(int(d), b + 1)
    if gaps or b < _FEW or promise.is_pure:
        return SparseVector.calibrated(promise, moved, positives=b), None
    part = promise.share(_SHARE)
    found: list[Comparing] = [
        SparseVector.calibrated(part, moved, positives=b),
        Sparse.calibrated(part, moved, positives=b),
    ]
    comparing = min(found, key=lambda m: m.interval(0.95, queries=_QUERIES))
    return comparing, _answers(promise, comparing.guarantee(moved), b, d)


def _answers(promise: Promise, compared: Guarantee, b: int, d: Fraction) -> Gaussian:
    """The least Gaussian noise with which b answers and the comparisons keep the promise, to a hundredth."""
    if isinstance(promise, ZCDP):
        return Gaussian.calibrated(promise.share(1 - _SHARE), _moved(int(d), b), grid=1)
    one = _moved(int(d), 1)

    def enough(sigma: Fraction) -> bool:
        return compared + b * Gaussian(sigma, grid=1).guarantee(one) <= promise.restated(Neighbours.REPLACE)

    high = d
    while not enough(high):
        high *= 2
    low = high / 2
    while high > low * Fraction(101, 100):
        middle = Fraction(round((low + high) / 2))
        low, high = (low, middle) if enough(middle) else (middle, high)
    return Gaussian(high, grid=1)
