"""In which cell of a row of cells a value lies, as an expression for the engine."""

import math
from collections.abc import Sequence

from noisette.query.expression import Call, Expression, Literal
from noisette.query.kind import Value

__all__ = ["cell_of", "first_of"]


def cell_of(value: Expression, edges: Sequence[Value]) -> Expression:
    """Cell i holds the values from edge i - 1 to below edge i; edges ascend.

    First in which run of cells, then in which cell of the run, so that engines compare few times for each row.
    """
    run = math.isqrt(len(edges)) + 1
    runs = [range(first, min(first + run, len(edges) + 1)) for first in range(0, len(edges) + 1, run)]
    within = [
        first_of(_below(value, [(edges[i], Literal(i)) for i in cells[:-1]]), Literal(cells[-1])) for cells in runs
    ]
    last = [(edges[cells[-1]], one) for cells, one in zip(runs[:-1], within, strict=False)]
    return first_of(_below(value, last), within[-1])


def first_of(arms: Sequence[tuple[Expression, Expression]], otherwise: Expression) -> Expression:
    """What stands beside the first condition that is true."""
    return Call("case", (*(part for arm in arms for part in arm), otherwise)) if arms else otherwise


def _below(value: Expression, arms: Sequence[tuple[Value, Expression]]) -> list[tuple[Expression, Expression]]:
    return [(Call("less", (value, Literal(edge))), one) for edge, one in arms]
