"""What robust questions share: rows as whole numbers, one record a row, and what a unit can do to them.

A record is a row's value in whole steps of a public `grid`; rows without a value make none. So whatever one unit does,
with at most `rows` of its rows counted (`query.bounding`), the records of two neighbouring tables differ by

    add/remove:  at most `rows` records that came or went,      replace:  at most 2 `rows`:

who is replaced may have had a value where the other one has NULL, or fails a condition that the other one meets, so the
number of records is not known even where that of the units is. Mechanisms that count records which come and go are thus
asked what holds for that many, and this is restated for units (`for_units`).

Vocabulary: `steps` whole numbers, in units of `grid` · `changes` records that one unit can add or remove.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from noisette.engines.contract import Source
from noisette.errors import InputError
from noisette.privacy import Guarantee, Neighbours
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.canonical import canonical
from noisette.query.caveats import Omission
from noisette.query.design import recorded
from noisette.query.grouping import check_groups
from noisette.query.measure import Measure, Request, contribution
from noisette.query.operations import kind_of
from noisette.query.plan import Query
from noisette.query.prepare import Prepared, read_of
from noisette.query.schema import Schema
from noisette.query.stability import shape_of
from noisette.questions.contract import Offer, Procedure
from noisette.questions.parts.offers import about
from noisette.questions.parts.rows import Rows, rows_of
from noisette.questions.parts.ruler import Ruler, Steps

__all__ = ["about_records", "changed", "grouped", "keyed", "prepared_records", "read_records"]

_ROWS = Measure("rows")


# Rows of a unit


def grouped(of: Rows, columns: Sequence[str], schema: Schema) -> Prepared:
    """How many rows have each combination of values, of which each unit has at most the declared number."""
    named = {f"c{i}": column for i, column in enumerate(columns)}
    if not all(isinstance(column, str) for column in columns):
        raise InputError('A column is named by a text, such as "age" or "FLOOR(age / 10)".')
    return keyed(canonical(rows_of(of, columns[0], schema).group_by(**named).count().query), schema)


def keyed(query: Query, schema: Schema) -> Prepared:
    """How many rows have each of the keys that are there, where limits on groups play no part."""
    check_groups(query, schema)
    shape = shape_of(query.source, schema)
    if shape.public:
        raise InputError("All tables of this question are public: read them directly, no noise is needed.")
    part, limits = contribution(shape, grouped=False)
    kinds = tuple(kind_of(key, shape.columns) for key in query.keys)
    request = Request(query.source, query.keys, (None,) * len(kinds), (_ROWS,), limits)
    return Prepared(query, shape, part, kinds, request, frozenset((_ROWS,)), (), read_of(query, schema))


def prepared_records(column: str, of: Rows, schema: Schema) -> Prepared:
    """The same for one column whose values have an order."""
    prepared = grouped(of, [column], schema)
    if prepared.keys[0].type in ("text", "boolean"):
        raise InputError("The column must hold numbers, dates or timestamps: texts and truth values have no middle.")
    return replace(prepared, request=replace(prepared.request, nearest=True))


def changed(prepared: Prepared, neighbours: Neighbours) -> Sensitivity:
    """The records that one unit can add or remove."""
    k = prepared.part.total * (1 if neighbours is Neighbours.ADD_REMOVE else 2)
    return Sensitivity(k, k * k, k, k, neighbours=Neighbours.ADD_REMOVE)


# Offers


def about_records(
    prepared: Prepared,
    procedure: Procedure,
    neighbours: Neighbours,
    mechanisms: Sequence[tuple[Any, Sensitivity]],
    *,
    text: str,
    why: str,
    covers: str,
    omitted: Sequence[Omission] = (),
) -> Offer:
    """An offer of mechanisms for the records of a table, each with the records that one unit can change."""
    costs: list[Guarantee] = [mechanism.guarantee(moved) for mechanism, moved in mechanisms]
    return about(
        prepared,
        procedure,
        text=text,
        why=why,
        guarantee=reduce(add, costs).restated(neighbours),
        parts=[_recorded(mechanism, moved) for mechanism, moved in mechanisms],
        covers=covers,
        omitted=omitted,
    )


def read_records(prepared: Prepared, ruler: Ruler, source: Source, schema: Schema, secret: bytes) -> Steps:
    """The records themselves: to be read after the charge."""
    exact = source.aggregate(prepared.request, schema, secret)
    assert exact.keys is not None
    there, steps = ruler.steps(exact.keys.column(0).combine_chunks())
    return np.repeat(steps, exact.measures[0][there])


def _recorded(mechanism: Any, moved: Sensitivity) -> dict[str, Any]:
    """A mechanism with the records it is applied to."""
    return {**recorded(mechanism, _ROWS, moved), "relation": str(moved.neighbours)}
