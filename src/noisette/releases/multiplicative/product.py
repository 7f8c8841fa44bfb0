"""A public distribution over cells, and how measurements move it.

Attributes that no measurement reads together are independent: the distribution is a product of `blocks`, each a table
over its own attributes, so that many attributes need no table of all combinations. A measurement joins the blocks that
it reads.

What is measured moves the cells inside it by a factor,   A(x) <- A(x) e^(q(x) d)   and A is normalised. The textbook's

    d = (y - q(A)) / (2 n)                                               [Hardt-Ligett-McSherry 2012]

goes a part of the way once, and the average over all rounds is what its theorem is about. Going over all measurements
again and again is free, since it reads released numbers only. Then the step is Newton's,

    d = (y - q(A) - s L) / (s + q(A) (1 - q(A)/n)),

where L is the sum of all steps of this measurement so far and s its standard deviation. It ends where s L = y - q(A)
for all measurements: at the distribution with the least  n KL(A | even) + sum (y - q(A))^2 / (2 s),  which is unique.
A log-ratio of 1 is worth as much as one standard deviation left unexplained: this keeps noise from being fitted.
(docs/proofs/multiplicative-weights.md)

Vocabulary: `n` rows, public · `y` noisy answers · `a` what A answers, q(A) · `lag` the L of each number of y.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from noisette.releases.multiplicative.candidates import Floats, Subset, projected

__all__ = ["Block", "Hypothesis", "Measured", "newton_step", "textbook_step"]

_FARTHEST = 1.0  # of a step, in logarithms: Newton's is right near the end only
_CONVERGED = 1e-3  # largest step of a pass
_TINY = 1e-12


@dataclass(eq=False)
class Block:
    """A table over some attributes: shares of the rows, times `total`."""

    axes: Subset
    weights: Floats
    total: float

    def normalise(self) -> None:
        """Make the shares add up to 1."""
        self.total = float(self.weights.sum())
        self.weights /= self.total
        self.total = 1.0


@dataclass(eq=False)
class Measured:
    """A candidate and its noisy answers: one for a query of some `boxes`, or one for each cell of the table of `axes`.

    The rest is where the fit stands: `lag`, and where the cells are `inside` of a block.
    """

    number: int
    axes: Subset
    boxes: list[tuple[slice, ...]] | None
    y: Floats
    lag: Floats = field(init=False)
    inside: Any = None
    block: Subset = ()

    def __post_init__(self) -> None:
        self.lag = np.zeros_like(self.y)


def textbook_step(y: Any, a: Any, n: float) -> Any:
    """(y - a) / (2 n): towards what was measured. The other sign, as some slides have it, moves away from it."""
    return (y - a) / (2 * n)


def newton_step(y: Any, a: Any, lag: Any, spread: float, slope: Any) -> Any:
    """Newton's step in the logarithm of the factor, at most 1 either way."""
    return np.clip((y - a - spread * lag) / (spread + slope + _TINY), -_FARTHEST, _FARTHEST)


class Hypothesis:
    """The distribution after some measurements; `rows` scale it to counts.

    With `replays` of 0 each measurement moves it once, by the textbook's step, and the average over all of them is what
    is released; otherwise all measurements are gone over up to that many times after each.

    >>> hypothesis = Hypothesis((4,), rows=100, spread=0.01, replays=50)
    >>> for cell, count in enumerate([70, 15, 10]):
    ...     hypothesis.add(Measured(cell, (0,), [(slice(cell, cell + 1),)], np.array([float(count)])))
    >>> hypothesis.tables([(0,)])[(0,)].round().tolist()
    [70.0, 15.0, 10.0, 5.0]
    """

    def __init__(self, sizes: Sequence[int], *, rows: float, spread: float, replays: int) -> None:
        self.rows, self.spread, self.replays = max(float(rows), 1.0), float(spread), replays
        self.blocks = [Block((i,), np.full(size, 1 / size), 1.0) for i, size in enumerate(sizes)]
        self.history: list[Measured] = []
        self._added: Floats | None = None
        if not replays:
            self._join(tuple(range(len(sizes))))

    # What it answers

    def tables(self, wanted: Iterable[Subset], *, averaged: bool = False) -> dict[Subset, Floats]:
        """The expected counts of the tables of some axes; `averaged` over all rounds where there are no replays."""
        every = list(wanted)
        blocks = [Block(self.blocks[0].axes, self._average, 1.0)] if averaged and not self.replays else self.blocks
        parts = []
        for block in blocks:
            mine = {tuple(i for i in axes if i in block.axes) for axes in every} - {()}
            parts.append({axes: table / block.total for axes, table in projected(block.weights, block.axes, mine)})
        return {axes: self.rows * self._outer(axes, blocks, parts) for axes in every}

    def _outer(self, axes: Subset, blocks: Sequence[Block], parts: Sequence[dict[Subset, Floats]]) -> Floats:
        found: Floats = np.ones(())
        order: list[int] = []
        for block, part in zip(blocks, parts, strict=True):
            mine = tuple(i for i in axes if i in block.axes)
            if mine:
                found, order = np.multiply.outer(found, part[mine]), [*order, *mine]
        return np.asarray(found.transpose([order.index(i) for i in axes]))

    @property
    def _average(self) -> Floats:
        return self.blocks[0].weights if self._added is None else self._added / len(self.history)

    def joined_cells(self, axes: Subset) -> int:
        """How many cells the block would have in which all of some axes are."""
        return math.prod(block.weights.size for block in self.blocks if set(axes) & set(block.axes))

    # How it moves

    def add(self, measured: Measured) -> None:
        """Take a measurement into account."""
        self._join(measured.axes)
        self.history.append(measured)
        if self.replays:
            self._replay()
            return
        self._move(measured)
        self.blocks[0].normalise()
        self._added = self.blocks[0].weights + (0.0 if self._added is None else self._added)

    def _replay(self) -> None:
        for _ in range(self.replays):
            farthest = max(self._move(measured) for measured in self.history)
            for block in self.blocks:
                block.normalise()
            if farthest < _CONVERGED:
                return

    def _join(self, axes: Subset) -> None:
        touched = [block for block in self.blocks if set(axes) & set(block.axes)]
        if len(touched) < 2:
            return
        weights: Floats = np.ones(())
        order: list[int] = []
        for block in touched:
            weights, order = np.multiply.outer(weights, block.weights / block.total), [*order, *block.axes]
        joined = tuple(sorted(order))
        table = np.ascontiguousarray(weights.transpose([order.index(i) for i in joined]))
        self.blocks = [block for block in self.blocks if block not in touched] + [Block(joined, table, 1.0)]

    def _move(self, measured: Measured) -> float:
        """Move the block of a measurement; return how far, as a logarithm."""
        block = next(block for block in self.blocks if measured.axes[0] in block.axes)
        return self._move_query(block, measured) if measured.boxes is not None else self._move_table(block, measured)

    def _move_query(self, block: Block, measured: Measured) -> float:
        if measured.block != block.axes:
            measured.inside, measured.block = _inside(block, measured), block.axes
        part = block.weights[measured.inside]
        share = float(part.sum()) / block.total
        a = self.rows * share
        step = float(self._step(measured.y[0], a, measured.lag[0], a * (1 - min(share, 1.0))))
        block.weights[measured.inside] = part * math.exp(step)
        block.total *= 1 + share * math.expm1(step)
        measured.lag[0] += step
        return abs(step)

    def _move_table(self, block: Block, measured: Measured) -> float:
        if measured.block != block.axes:
            measured.inside, measured.block = _runs(block, measured.axes), block.axes
        shape, others = measured.inside
        weights = part = block.weights.reshape(shape)
        for axis in others:
            part = part.sum(axis=axis, keepdims=True)
        a = (self.rows / block.total * part).reshape(measured.y.shape)
        step = self._step(measured.y, a, measured.lag, a)
        factor = np.exp(step).reshape(part.shape)
        weights *= factor
        block.total = float((part * factor).sum())
        measured.lag += step
        return float(np.abs(step).max())

    def _step(self, y: Any, a: Any, lag: Any, slope: Any) -> Any:
        if not self.replays:
            return textbook_step(y, a, self.rows)
        return newton_step(y, a, lag, self.spread, slope)


def _runs(block: Block, axes: Subset) -> tuple[Subset, Subset]:
    """A shape of a block in which neighbouring axes are one, if all or none of them are read, and those not read.

    The largest come first: summed over one after the other, they leave little for the rest.
    """
    shape: list[int] = []
    others: list[int] = []
    before = None
    for i, size in zip(block.axes, block.weights.shape, strict=True):
        read = i in axes
        if read == before:
            shape[-1] *= size
        else:
            shape.append(size)
            others += [] if read else [len(shape) - 1]
        before = read
    return tuple(shape), tuple(sorted(others, key=lambda k: -shape[k]))


def _inside(block: Block, measured: Measured) -> Any:
    """The cells of a block inside some boxes: a single box as slices, several as a mask."""
    assert measured.boxes is not None
    found = []
    for box in measured.boxes:
        ends = dict(zip(measured.axes, box, strict=True))
        found.append(tuple(ends.get(i, slice(None)) for i in block.axes))
    if len(found) == 1:
        return found[0]
    mask = np.zeros(block.weights.shape, bool)
    for box in found:
        mask[box] = True
    return np.nonzero(mask)
