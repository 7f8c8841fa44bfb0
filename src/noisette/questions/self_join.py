"""How many pairs of rows agree in a column: the size of a join of a table with itself, by a race to the top (R2T).

With n_k rows of value k, the join has the sum of n_k^2 rows. One unit can change that by any number, so values are
truncated at m rows, for m = 1, 2, 4, ... up to a public most:

    Q_m = sum over k of min(n_k, m)^2.

Q_m grows with m, never exceeds Q, and is Q where no value has more than m rows. With at most a rows of one unit it
moves by at most s_m = a (2 m - 1) if a unit comes, goes or is replaced (`docs/proofs/joins.md`). Each of the L numbers
gets noise of its own for a part of the promise, and the largest of Q_m + noise - t_m is the answer: t_m is so large
that all of these are below Q together at the stated level.   [Dong-Fang-Yi-Tao-Machanavajjhala 2022]

A value of more than L rows adds at least L^2 - l^2 to Q_L - Q_l, for the last truncation L and the one before it, l.
Where the noisy numbers show that this difference is smaller, Q_L is Q, and its noise gives the upper end; elsewhere
there is no upper end.
"""

from dataclasses import dataclass, replace
from functools import reduce
from operator import add

import numpy as np
import pyarrow
from numpy.typing import NDArray

from noisette.answers import Column
from noisette.engines.contract import Source
from noisette.errors import InputError
from noisette.exact.number import whole
from noisette.exact.random import Random
from noisette.mechanisms import Geometric, calibrate
from noisette.privacy import Guarantee, Neighbours, Promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.caveats import Omission
from noisette.query.design import recorded
from noisette.query.expected import Expected
from noisette.query.measure import Exact, Measure, sensitivity
from noisette.query.prepare import Prepared
from noisette.query.schema import Schema
from noisette.questions.contract import Offer
from noisette.questions.data import JsonQuestion
from noisette.questions.parts.offers import about, text_of
from noisette.questions.parts.per_unit import powers
from noisette.questions.parts.rows import Rows, counted

__all__ = ["SelfJoin", "truncated"]

_LARGEST = 2**20
_ROWS = Measure("rows")
_ENDLESS = "a value may have more rows than were counted: raise most"
_WHY = "Each truncation gets noise for what one {0} can change of it, and the largest that is surely not above wins."


@dataclass(frozen=True)
class SelfJoin(JsonQuestion):
    """How many pairs of rows have equal values in a column (or an expression), each row with itself among them.

    It is what `SELECT COUNT(*) FROM v JOIN v AS w ON v.x = w.x` counts. Of one value `most` rows count.

    >>> SelfJoin("ward")
    SelfJoin(column='ward', of=None, most=1024)
    """

    column: str
    of: Rows = None
    most: int = 1024

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """Noise for each truncation."""
        most, prepared = whole(self.most, "most"), counted(self.column, self.of, schema)
        if most > _LARGEST:
            raise InputError(f"Let at most {_LARGEST:,} rows of one value count: lower most.")
        race = Race(_alone(prepared), powers(most), spend, neighbours, level)
        return about(
            prepared,
            race,
            text=text_of("self_join", prepared, most=most),
            why=_WHY.format(prepared.shape.whose),
            guarantee=race.guarantee,
            parts=[recorded(noise, _ROWS, moved) for noise, moved in zip(race.noise, race.moved, strict=True)],
            covers="± covers the noise of all truncations",
            omitted=[Omission(f"Of more than {most:,} rows with one value, {most:,} count: raise most to count more.")],
        )


def _alone(prepared: Prepared) -> Prepared:
    """The number of rows of each value, and nothing else."""
    return replace(prepared, request=replace(prepared.request, measures=(_ROWS,)))


def truncated(rows: NDArray[np.int64], limits: tuple[int, ...]) -> list[int]:
    """Q_m of each limit m.

    >>> truncated(np.array([1, 3]), (1, 2, 4))
    [2, 5, 10]
    """
    return [int((np.minimum(rows, limit) ** 2).sum()) for limit in limits]


@dataclass(frozen=True)
class Race:
    """The truncations m, and the noise of each."""

    prepared: Prepared
    limits: tuple[int, ...]
    spend: Promise
    neighbours: Neighbours
    level: float

    @property
    def sensitivity(self) -> Sensitivity:
        """Of the rows of each value."""
        return sensitivity(_ROWS, self.prepared.part, self.neighbours)

    @property
    def moved(self) -> list[Sensitivity]:
        """s_m of each: what one unit can change of Q_m, under both relations."""
        rows = self.prepared.part.total
        sizes = [rows * (2 * limit - 1) for limit in self.limits]
        return [Sensitivity(size, size**2, size, 1, neighbours=self.neighbours) for size in sizes]

    @property
    def noise(self) -> list[Geometric]:
        """The same part of the promise for each."""
        base: Geometric = calibrate(Geometric, self.spend, sensitivity=1, times=len(self.limits))
        return [Geometric(base.scale * moved.l1) for moved in self.moved]

    @property
    def guarantee(self) -> Guarantee:
        """Of all numbers together."""
        pairs = zip(self.noise, self.moved, strict=True)
        return reduce(add, (noise.guarantee(moved) for noise, moved in pairs)).under(self.neighbours)

    @property
    def tails(self) -> list[float]:
        """t_m: all noises are within them together at the level."""
        each = 1 - (1 - self.level) / len(self.limits)
        return [float(noise.interval(each)) for noise in self.noise]

    def expected(self, sizes: tuple[int, ...]) -> list[tuple[Expected, ...]]:
        """By how much the number falls short where no value has more rows than a few of the truncations."""
        tails = self.tails
        few = [f"{2 * tails[i]:,.0f} with at most {self.limits[i]:,} rows" for i in range(0, len(tails), 3)]
        moved = f"pairs: {int(self.moved[0].l1):,} to {int(self.moved[-1].l1):,} by the truncation"
        note = f"the number falls short by up to {', '.join(few)} of one value; the upper end is that wide, or open"
        noise = f"Geometric noise for each of {len(tails)} truncations"
        return [(Expected("pairs", noise, moved, 2 * tails[-1], {}, None, note),)]

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random) -> pyarrow.Table:
        """Count the rows of each value, truncate, and add noise."""
        exact = source.aggregate(self.prepared.request, schema, secret)
        found = truncated(_valued(self.prepared, exact), self.limits)
        noisy = [
            int(np.asarray(noise(np.array([q], np.int64), rng))[0]) for noise, q in zip(self.noise, found, strict=True)
        ]
        return pyarrow.table({"most": list(self.limits), "pairs": noisy})

    def answers(self, drawn: pyarrow.Table) -> list[tuple[Column, ...]]:
        """The largest lower end, and the upper end of the last truncation where that surely holds all pairs."""
        noisy = drawn.column("pairs").to_numpy().astype(float)
        tails = np.array(self.tails)
        low = max(float(np.max(noisy - tails)), 0.0)
        high = max(float(noisy[-1] + tails[-1]), low) if self._complete(noisy, tails) else np.inf
        value = pyarrow.array([round(low)])
        return [(Column("pairs", value, np.array([low]), np.array([high]), endless=_ENDLESS).within((0, np.inf)),)]

    def _complete(self, noisy: NDArray[np.float64], tails: NDArray[np.float64]) -> bool:
        """Whether no value has more rows than the last truncation, if all noises are within their tails."""
        if len(noisy) < 2:
            return False
        before, last = self.limits[-2:]
        return bool(noisy[-1] - noisy[-2] + tails[-1] + tails[-2] < last**2 - before**2)


def _valued(prepared: Prepared, exact: Exact) -> NDArray[np.int64]:
    """The rows of each value that is not NULL: NULL equals nothing."""
    rows = exact.measures[0]
    if exact.keys is not None:
        return np.asarray(rows[exact.keys.column(0).is_valid().to_numpy()])
    [domain] = prepared.request.domains
    return np.asarray(rows[[value is not None for value in domain or ()]])


examples = [SelfJoin("ward"), SelfJoin("diagnosis", of="SELECT * FROM visits WHERE age >= 18", most=64)]
