"""All groups of a query, where they follow from public things alone: then they are released without a threshold.

One rule: a key has a domain if the set of its values is known without the private rows. It is declared (keys, bounds,
truth values, and what operations make of them: `Kind.values`), or it is computed from a public part of the rows
(`public_parts`): then it has the values that the rows of that part give, NULL among them where a LEFT JOIN may find no
partner. Keys of one part go together: only combinations that stand in a row of it are groups.

Privacy: the domain depends on the query, the policy and public tables. Every group of it is released with noise,
whether or not a private row is in it, and no private row is in another group.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.query.excluded import narrowed, possible_combinations, possible_keys
from noisette.query.expression import Expression, Name, columns_of
from noisette.query.kind import MOST_KEYS, Kind, Value, in_order
from noisette.query.operations import kind_of
from noisette.query.plan import Query
from noisette.query.public_parts import Part, parts_of
from noisette.query.reads import tables_of
from noisette.query.schema import Schema, Tuples
from noisette.query.stability import shape_of

__all__ = ["Domains", "domains_of"]


@dataclass(frozen=True)
class Domains:
    """For each key its kind and its values, NULL last, or None if they are unknown.

    `groups` are the places of the possible combinations among all, in the order of `itertools.product`; None if all
    are possible.
    """

    kinds: tuple[Kind, ...]
    values: tuple[tuple[Value, ...] | None, ...]
    groups: NDArray[np.int64] | None = None

    @property
    def cells(self) -> int | None:
        """How many combinations of values there are, NULL among them; None if some are unknown, 1 without keys."""
        return None if None in self.values else math.prod(len(domain or ()) for domain in self.values)


def domains_of(query: Query, schema: Schema, *, narrow: bool = False) -> Domains:
    """The domains of a query's keys; where it is `narrow`, without values that its conditions exclude.

    >>> from fractions import Fraction
    >>> from noisette.query.plan import Scan
    >>> from noisette.query.schema import Column, Table
    >>> visits = Table("visits", (Column("age", Kind("integer", Fraction(0), Fraction(2), nullable=False)),))
    >>> domains_of(Query(Scan("visits", "v"), (Name("v.age"),), ()), {"visits": visits}).values
    ((0, 1, 2),)
    """
    scope = shape_of(query.source, schema).columns
    kinds = [kind_of(key, scope) for key in query.keys]
    values = [kind.values() for kind in kinds]
    together: list[tuple[list[int], Tuples]] = []
    parts = parts_of(query.source, schema) if query.keys else ()
    for part in parts:
        places = [i for i, key in enumerate(query.keys) if part.knows(key)]
        found = _listed(part, [query.keys[i] for i in places], schema) if places else None
        if found is None:
            continue
        rows = _declared(found, [values[i] for i in places])
        for at, i in enumerate(places):
            values[i] = _sorted([row[at] for row in rows])
        if narrow:
            rows = _left(rows, [(query.keys[i], values[i] or ()) for i in places], query, schema)
            for at, i in enumerate(places):
                values[i] = _sorted([row[at] for row in rows])
        together.append((places, rows))
    for i, key in enumerate(query.keys):
        if values[i] is None:
            values[i] = _mixed(key, scope, parts, schema)
    listed = {i for places, _ in together for i in places}
    for i, key in enumerate(query.keys):
        if narrow and i not in listed and (known := values[i]):
            values[i] = _declared_left(key, known, query, schema)
    _check(values)
    exact = tuple(map(narrowed, kinds, values))
    return Domains(exact, tuple(values), _groups(values, together, query, schema, narrow=narrow))


def _listed(part: Part, keys: Sequence[Expression], schema: Schema) -> Tuples | None:
    """What some keys are in the rows of a part; None where nobody reads it, or where there are too many."""
    reader = next((table.listing for table in tables_of(part.relation, schema)), None)
    return None if reader is None else reader(part, [part.own(key) for key in keys], schema)


def _declared(rows: Tuples, values: Sequence[tuple[Value, ...] | None]) -> Tuples:
    """The rows whose values are all declared, where some are."""
    known = [None if each is None else frozenset(each) for each in values]
    return tuple(row for row in rows if all(k is None or v in k for v, k in zip(row, known, strict=True)))


def _left(rows: Tuples, keys: Sequence[tuple[Expression, tuple[Value, ...]]], query: Query, schema: Schema) -> Tuples:
    """The rows whose values no condition excludes; all of them, where none would be left."""
    left = [frozenset(possible_keys(key, values, query.source, schema)) for key, values in keys]
    return tuple(row for row in rows if all(value in known for value, known in zip(row, left, strict=True))) or rows


def _declared_left(key: Expression, values: tuple[Value, ...], query: Query, schema: Schema) -> tuple[Value, ...]:
    left = possible_keys(key, values, query.source, schema)
    if not left:
        raise InputError("No declared value of the keys meets the conditions, so there is no group: change them.")
    return left


def _sorted(values: Sequence[Value]) -> tuple[Value, ...]:
    return (*in_order(values), None) if None in values else in_order(values)


def _mixed(
    key: Expression, scope: Mapping[str, Kind], parts: Sequence[Part], schema: Schema
) -> tuple[Value, ...] | None:
    """The values of a key that is computed from columns of several parts, or of declared columns as well."""
    known = dict(_columns(key, scope, parts, schema))
    kind = kind_of(key, {**scope, **known}) if known else None
    return None if kind is None or kind.type == "real" else kind.values()


def _columns(
    key: Expression, scope: Mapping[str, Kind], parts: Sequence[Part], schema: Schema
) -> Iterator[tuple[str, Kind]]:
    for name in dict.fromkeys(columns_of(key)):
        for part in parts:
            rows = _listed(part, [Name(name)], schema) if name in part.names and scope[name].keys is None else None
            if rows is not None:
                yield name, narrowed(scope[name], _sorted([value for (value,) in rows]))


def _check(values: Sequence[tuple[Value, ...] | None]) -> None:
    if () in values:
        raise InputError("No row of the public table meets the conditions, so there is no group: change them.")
    known = [len(domain) for domain in values if domain is not None]
    if len(known) == len(values) and math.prod(known) > MOST_KEYS:
        raise InputError(f"More than {MOST_KEYS:,} combinations of keys: group by fewer columns or by coarser bins.")


def _groups(
    values: Sequence[tuple[Value, ...] | None],
    together: Sequence[tuple[list[int], Tuples]],
    query: Query,
    schema: Schema,
    *,
    narrow: bool,
) -> NDArray[np.int64] | None:
    """The places of the possible combinations; None if all are possible, or some values are unknown."""
    known = [each for each in values if each is not None]
    if len(known) < len(values):
        return None
    possible = _possible(known, together)
    left = possible & possible_combinations(query.keys, known, query.source, schema) if narrow else possible
    found = left if left.any() else possible
    return None if found.all() else np.flatnonzero(found).astype(np.int64)


def _possible(values: Sequence[tuple[Value, ...]], together: Sequence[tuple[list[int], Tuples]]) -> NDArray[np.bool_]:
    """Which combinations stand in rows of the parts: an axis for each key."""
    sizes = [len(domain) for domain in values]
    found = np.ones(sizes, dtype=bool)
    for places, rows in together:
        if len(places) > 1:
            numbers = [{value: n for n, value in enumerate(values[i])} for i in places]
            there = np.zeros([sizes[i] for i in places], dtype=bool)
            for row in rows:
                there[tuple(number[value] for number, value in zip(numbers, row, strict=True))] = True
            found &= there.reshape([size if i in places else 1 for i, size in enumerate(sizes)])
    return found
