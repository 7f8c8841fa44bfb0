"""How many rows each key and each group of keys has, where the analyst says which keys belong together.

Nominal wavelets (`releases.strategies.nominal`): the total, what sets each group apart from the others, and each key
from the others of its group. Groups cost no more than keys, and keys add up to them.   [Xiao-Wang-Gehrke 2010]
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow

from noisette.answers import Column
from noisette.errors import InputError
from noisette.names import closest
from noisette.privacy import Neighbours, Promise
from noisette.query.schema import Schema
from noisette.questions.contract import Offer
from noisette.questions.data import JsonQuestion
from noisette.questions.parts.line_cells import LineCells
from noisette.questions.parts.linear_offer import Measured, linear_offer
from noisette.questions.parts.rows import Rows, rows_text
from noisette.releases.axis import Axis
from noisette.releases.line import Interval, Line
from noisette.releases.linear import Linear, fitting
from noisette.releases.stored import kept_estimate
from noisette.releases.strategies.nominal import Nominal

__all__ = ["Hierarchy"]

_ASK = 'groups must map names to lists of keys: {"surgical": ["orthopaedics", "oncology"], "other": ["maternity"]}.'


@dataclass(frozen=True)
class Hierarchy(JsonQuestion):
    """How many rows each group of keys of a column has, and each key in it; keys add up to their groups.

    >>> Hierarchy("ward", {"old": ["oncology"], "all": ["maternity", "emergency"]}).groups["all"]
    ('maternity', 'emergency')
    """

    column: str
    groups: Mapping[str, Sequence[Any]]
    of: Rows = None

    def __post_init__(self) -> None:
        lists = isinstance(self.groups, Mapping) and all(
            isinstance(keys, list | tuple) and not any(isinstance(key, list | dict) for key in keys)
            for keys in self.groups.values()
        )
        if not lists or not self.groups or not all(isinstance(name, str) and name for name in self.groups):
            raise InputError(_ASK)
        if not isinstance(self.column, str) or not self.column:
            raise InputError('column must be a text, such as "ward".')
        object.__setattr__(self, "groups", {name: tuple(keys) for name, keys in self.groups.items()})
        object.__setattr__(self, "of", rows_text(self.of))

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """Wavelets over the groups, with Laplace or Gaussian noise, whichever errs less."""
        plain = LineCells.of(self.column, None, self.of, schema, more="group")
        cells = replace(plain, axis=self._sorted(plain.axis))
        sizes = [len(keys) for keys in self.groups.values()]
        strategy = Nominal((tuple(np.repeat(np.arange(len(sizes)), sizes).tolist()),))
        ends = np.cumsum(sizes)
        asked = np.concatenate([ends - sizes, np.arange(ends[-1])]), np.concatenate([ends - 1, np.arange(ends[-1])])
        part = plain.prepared.part

        def made(smooth: bool) -> Linear:
            return Linear.calibrated(spend, strategy, part=part, neighbours=neighbours, gaussian=smooth)

        best = min(fitting(made, (False,) if spend.is_pure else (False, True)), key=lambda one: one.error(*asked))
        why = "The total, then each group and each key against its siblings: groups cost no more than keys."
        by = str(sorted(self.groups.items()))
        return linear_offer(
            "hierarchy", by, cells, best, level, why=why, procedure=Grouped(cells, best, level, "", self.groups)
        )

    def _sorted(self, axis: Axis) -> Axis:
        """The declared keys, group after group."""
        keys = tuple(key for group in self.groups.values() for key in group)
        if axis.keys is None or len(set(keys)) < len(keys) or set(keys) != set(axis.keys):
            raise InputError(f"Each declared key of {self.column} must stand in one of the groups, and only once.")
        return replace(axis, keys=keys)


@dataclass(frozen=True)
class Grouped(Measured):
    """The same as for a line of keys, with a row for each group on top."""

    groups: Mapping[str, Sequence[Any]]

    def line(self, drawn: pyarrow.Table) -> "GroupedLine":
        """What goes on answering."""
        return GroupedLine(self.cells.axis, kept_estimate(drawn), self.level, self.groups)


@dataclass(frozen=True, repr=False)
class GroupedLine(Line):
    """Counts of keys in groups."""

    groups: Mapping[str, Sequence[Any]]

    def group(self, name: str, *, level: float | None = None) -> Interval:
        """How many rows a group has."""
        if name not in self.groups:
            raise InputError(f"There is no group of that name: {closest(name, self.groups, 'name one of')}")
        [found] = self.counts([self._ranges[name][0]], [self._ranges[name][1]], level=level)
        return found

    @property
    def _ranges(self) -> dict[str, tuple[int, int]]:
        ends = np.cumsum([len(keys) for keys in self.groups.values()]).tolist()
        return {name: (end - len(keys), end - 1) for end, (name, keys) in zip(ends, self.groups.items(), strict=True)}

    def columns(self) -> tuple[Column, ...]:
        """A row for each group, without a key, then one for each key."""
        key, n = super().columns()
        bars = [self.group(name) for name in self.groups]
        names = [*self.groups, *(name for name, keys in self.groups.items() for _ in keys)]
        keys = pyarrow.concat_arrays([pyarrow.nulls(len(bars), key.values.type), key.values])
        parts = [[bar.value for bar in bars], [bar.low for bar in bars], [bar.high for bar in bars]]
        value, low, high = (
            np.concatenate([own, rest]) for own, rest in zip(parts, (self.x, n.low, n.high), strict=True)
        )
        return (
            Column("group", pyarrow.array(names)),
            Column(key.name, keys),
            Column("n", pyarrow.array(value), low, high),
        )

    def to_arrow(self) -> pyarrow.Table:
        """The groups and the keys with their counts and error bars."""
        group, key, n = self.columns()
        return pyarrow.table(
            {"group": group.values, key.name: key.values, "n": n.values, "n_low": n.low, "n_high": n.high}
        )


examples = [
    Hierarchy(
        "ward",
        {
            "surgical": ["orthopaedics", "oncology"],
            "families": ["maternity", "paediatrics"],
            "other": ["cardiology", "emergency"],
        },
    )
]
