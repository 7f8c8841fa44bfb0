"""A limit on the rows of one unit that is bought instead of declared: the private clip.

Candidates are t = 1, 2, 4, ... up to a public most. With f(u) the rows of unit u and N(t) = #{u: f(u) > t}, the
exponential mechanism chooses t with a probability proportional to

    1/t · exp(-|N(t) - c| / scale),    c about 2/e for questions of e.

Why c: a limit that is one row higher retains N(t) rows more and costs noise of one more row, 1/e on average and 3/e at
95 %. Why 1/t: above the largest f(u) all t score the same, and the lowest of them is wanted.

Sensitivity: a unit with f rows that comes or goes moves N(t) by one for each t < f and no other; one that is replaced
moves N(t) by one between both numbers of rows, in one direction. Either way each score moves by at most one, up where
N(t) < c and down where N(t) > c: two scores move apart by at most 2, so the scale is 2/epsilon under both relations.
"""

import json
import math
from dataclasses import dataclass

import numpy as np
import pyarrow
from numpy.typing import NDArray

from noisette.engines.contract import Source
from noisette.errors import InputError
from noisette.exact.number import whole
from noisette.exact.random import Random
from noisette.mechanisms import Exponential
from noisette.privacy import ZCDP, Neighbours, Promise
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.design import recorded
from noisette.query.expected import Expected
from noisette.query.plan import Scan
from noisette.query.prepare import Prepared
from noisette.query.schema import Schema, Table
from noisette.questions.contract import Offer, Procedure
from noisette.questions.parts.offers import about, declared
from noisette.questions.parts.per_unit import powers, rows_of_units

__all__ = ["Rows", "scores"]

_MOST_ROWS = 2**13  # the largest limit among the candidates, unless another one is named
_LATER = 9  # times what the limit costs is what its questions are taken to spend: a tenth and nine tenths
_LARGEST = 2**40
_WHY = (
    "The exponential mechanism, with low limits more likely beforehand: of limits that nobody exceeds, the lowest is "
    "best."
)


@dataclass(frozen=True)
class Rows:
    """A limit on the rows of one unit, at most `most` (8192), for questions that spend `later` (9 times its price)."""

    table: Table
    most: int | None = None
    later: Promise | None = None

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """Score the candidates by how many units have more rows."""
        most = whole(_MOST_ROWS if self.most is None else self.most, "most", least=2)
        if most > _LARGEST:
            raise InputError("most must be at most 2^40: it is the largest limit that may be chosen.")
        limits = powers(most)
        k = len(limits)
        moved = Sensitivity(k, k, 1, k, neighbours=neighbours)
        measure = [math.lcm(*limits) // limit for limit in limits]
        mechanism = Exponential.calibrated(spend, moved, candidates=k, measure=measure)
        prepared = rows_of_units(Scan(self.table.name, "t1"), limits, schema)
        target = _target(spend, self.later)
        asked = {"question": "rows", "asked": self.table.name, "most": limits[-1], "target": target}
        return about(
            prepared,
            Limit(prepared, mechanism, moved, level, limits, target),
            text=json.dumps({**asked, "declared": declared([prepared])}),
            why=_WHY,
            guarantee=mechanism.guarantee(moved),
            parts=[recorded(mechanism, prepared.request.measures[0], moved)],
        )


@dataclass(frozen=True)
class Limit(Procedure):
    """One of the candidate `limits`; about `target` units should have more rows than it."""

    prepared: Prepared
    mechanism: Exponential
    sensitivity: Sensitivity
    level: float
    limits: tuple[int, ...]
    target: int

    def expected(self, sizes: tuple[int, ...]) -> list[tuple[Expected, ...]]:
        """By how many units the number with more rows may be off."""
        name = f"exponential mechanism among {len(self.limits)} limits from 1 to {self.limits[-1]:,}"
        off = self.mechanism.interval(self.level)
        note = (
            f"about {self.target:,} units should have more rows than the limit; the error is by how many their number "
            "is further off than for the best limit"
        )
        return [(Expected("rows", name, "units: 1", off, {}, None, note),)]

    def draw(self, source: Source, schema: Schema, secret: bytes, rng: Random) -> pyarrow.Table:
        """Count the units between candidates, and choose."""
        units = source.aggregate(self.prepared.request, schema, secret).measures[0]
        return pyarrow.table({"rows": [self.limits[self.mechanism(scores(units, self.target), rng)]]})


def scores(units: NDArray[np.int64], target: int) -> NDArray[np.int64]:
    """-|N(t) - c| of each candidate, from the units in each cell: the last cell is beyond all candidates.

    >>> scores(np.array([5, 3, 1, 0]), 2).tolist()      # N is 4, 1, 0
    [-2, -1, -2]
    """
    beyond = units[::-1].cumsum()[::-1][1:]
    return np.asarray(-np.abs(beyond - target), dtype=np.int64)


def _target(spend: Promise, later: Promise | None) -> int:
    """How many units should have more rows than the limit: 2/e, or 1/sqrt(rho), which is as much in deviations.

    >>> from noisette.privacy import Pure
    >>> _target(Pure("0.1"), None), _target(Pure("0.1"), Pure("0.1")), _target(ZCDP("1/10000"), ZCDP("1/400"))
    (2, 20, 20)
    """
    times, known = (_LATER, spend) if later is None else (1, later)
    size = float(known.size) * times
    return min(round(1 / math.sqrt(size) if isinstance(known, ZCDP) else 2 / size), _LARGEST)
