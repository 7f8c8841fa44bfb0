"""Retained rows that are held for the next question: what decides which they are, and which questions they serve."""

from collections.abc import Collection, Hashable

from noisette.engines.duckdb.retained import single_row
from noisette.engines.tie_break import tie_breakers
from noisette.query.expression import columns_of
from noisette.query.measure import Request
from noisette.query.reads import tables_of
from noisette.query.schema import Limits, Schema
from noisette.query.stability import shape_of

__all__ = ["asked_columns", "bounded_key", "held_columns", "serves"]


def asked_columns(request: Request) -> set[str]:
    """The columns of the relation that are measured."""
    return {name for m in request.measures if m.of is not None for name in columns_of(m.of)}


def serves(request: Request, columns: Collection[str], *, firsts: bool) -> bool:
    """Whether retained rows with these columns have all that a request measures."""
    return asked_columns(request) <= set(columns) and (firsts or not _counts_units(request))


def _counts_units(request: Request) -> bool:
    return any(measure.what == "units" for measure in request.measures)


def bounded_key(request: Request, schema: Schema, secret: bytes) -> Hashable:
    """What decides which rows are retained: equal for requests that can share them."""
    tables, ties = tables_of(request.source, schema), tie_breakers(request, asked_columns(request), schema)
    return request.source, request.keys, request.domains, request.limits, tables, secret, ties


def held_columns(
    request: Request, schema: Schema, before: tuple[Collection[str], bool] | None = None
) -> tuple[dict[str, str], bool]:
    """The columns to retain, under new names, and whether the first row of a unit in a group is marked.

    What was held `before` is still held, so that questions in turn do not replace each other's rows.
    """
    earlier, firsts = before or ((), False)
    asked = asked_columns(request)
    ties = tie_breakers(request, asked, schema)
    scope = shape_of(request.source, schema).columns
    held = [n for n in scope if n in asked or n in earlier or (n in ties and scope[n].type != "text")]
    firsts = firsts or _counts_units(request) or single_row(request.limits or Limits())
    return {name: f"c{i}" for i, name in enumerate(held)}, firsts
