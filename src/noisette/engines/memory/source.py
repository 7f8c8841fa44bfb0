"""A source in plain Python: what every engine must answer, bit for bit.

place   the group of a row: for each key its place in the domain, or its value where the domain is unknown
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import pyarrow

from noisette.engines.bounding import retained
from noisette.engines.contract import INTEGERS, Source, base_type
from noisette.engines.files import valid_table
from noisette.engines.memory.rows import Hash, Row, Rows
from noisette.engines.memory.values import clamped, clean, steps_of, value_of
from noisette.engines.tie_break import TieBreak, choice_key, join_seed, mix_of, own_places, tie_breakers, words_of
from noisette.errors import InputError
from noisette.query.beyond import rows_within, within_bounds
from noisette.query.expression import Expression, Name, columns_of
from noisette.query.intervals import step_bounds
from noisette.query.kind import Kind, Value
from noisette.query.measure import Exact, Measure, Request
from noisette.query.operations import kind_of
from noisette.query.plan import Relation, Scan
from noisette.query.reads import columns_read, limited_in, tables_of, tables_read
from noisette.query.schema import Schema, Table
from noisette.query.shape import ROW, UNIT
from noisette.query.stability import shape_of
from noisette.query.types import ARROW

__all__ = ["Memory"]

_CUT = 2**62  # where sums are cut
_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}

_Place: TypeAlias = tuple[Any, ...]


def _hash(*values: Any) -> int:
    """64 bits that depend on the values alone."""
    return int.from_bytes(hashlib.blake2b(repr(values).encode(), digest_size=8).digest(), "little")


class Memory(Source):
    """Arrow tables by name. `hash_of` stands for the hash of an engine whose choice of rows is repeated.

    >>> Memory({"visits": pyarrow.table({"age": [40, 70]})}).stored("visits")
    {'age': 'BIGINT'}
    """

    def __init__(self, tables: Mapping[str, pyarrow.Table], *, hash_of: Hash = _hash) -> None:
        self._tables = {name: valid_table(pyarrow.table(table), name) for name, table in tables.items()}
        self._hash = hash_of

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(sorted(self._tables))

    def stored(self, table: str) -> dict[str, str]:
        """The columns of a table and the types they are stored as."""
        if table not in self._tables:
            raise InputError(f"There is no data for table {table}: there is some for {', '.join(self.tables)}.")
        return {field.name: _stored(field.type) for field in self._tables[table].schema}

    def repeats(self, table: Table) -> dict[str, int]:
        """For each column of a public table, the most rows that share one clean value."""
        rows = list(self._plan({table.name: table}, b"", Scan(table.name, "t"), ()).rows())
        found = {}
        for column in table.columns:
            counts = Counter(row[f"t.{column.name}"] for row in rows)
            found[column.name] = max((n for value, n in counts.items() if value is not None), default=0)
        return found

    def unique(self, table: Table, columns: Sequence[str]) -> bool:
        """Whether no two rows have equal values in the columns, as they are stored and when they are clean."""
        kinds = {name: table.column(name).kind for name in columns}
        rows = self._read(table.name)
        stored = [tuple(row[name][0] for name in columns) for row in rows]
        cleaned = [tuple(clean(row[name][0], kinds[name], row[name][1]) for name in columns) for row in rows]
        known = ([key for key in keys if None not in key] for keys in (stored, cleaned))
        return all(len(set(keys)) == len(keys) for keys in known)

    def aggregate(self, request: Request, schema: Schema, secret: bytes) -> Exact:
        """The exact measures of each group."""
        request = within_bounds(request, schema)
        scope = shape_of(request.source, schema).columns
        asked = {name for m in request.measures if m.of is not None for name in columns_of(m.of)}
        ties = () if request.limits is None else tie_breakers(request, asked, schema)
        used = {*asked, *ties, *(name for key in request.keys for name in columns_of(key))}
        keys = [_key(e, domain, scope) for e, domain in zip(request.keys, request.domains, strict=True)]
        groups: dict[_Place, list[Row]] = defaultdict(list)
        for row in self._plan(schema, secret, request.source, used).rows():
            place = tuple(key(row) for key in keys)
            if _OUTSIDE not in place:
                groups[place].append(row)
        if request.limits is not None:
            groups = self.bounded(groups, request, ties, schema, secret)
        known = None not in request.domains
        order = list(product(*(range(len(d)) for d in request.domains if d is not None))) if known else list(groups)
        measures = []
        for m in request.measures:
            numbers = [self.measured(m, groups.get(place, []), scope, request) for place in order]
            size = (len(order), m.cells) if m.what == "histogram" else (len(order),)
            measures.append(np.array(numbers, np.int64).reshape(size))
        return Exact(None if known else _released(order, request, scope), tuple(measures))

    def measured(self, m: Measure, rows: Sequence[Row], scope: Mapping[str, Kind], request: Request) -> Any:
        """A measure of the rows of one group."""
        if m.of is None:
            return len({row[UNIT] for row in rows}) if m.what == "units" and request.limits else len(rows)
        in_steps = m.what in ("sum", "histogram")
        value = steps_of(m.of, m.grid, m.low, m.high, scope) if in_steps else value_of(m.of, scope)
        values = [x for row in rows if (x := value(row)) is not None]
        match m.what:
            case "sum":
                return clamped(sum(values), -_CUT, _CUT, sum(values))
            case "histogram":
                return [values.count(step) for step in range(m.low, m.high + 1)]
            case _:
                return len(set(values)) if m.what == "distinct" else len(values)

    def bounded(
        self, groups: Mapping[_Place, list[Row]], request: Request, ties: Sequence[str], schema: Schema, secret: bytes
    ) -> dict[_Place, list[Row]]:
        """Contribution bounding: the rows retained of each unit, by its own rows alone (`bounding`)."""
        scope, limits = shape_of(request.source, schema).columns, request.limits
        assert limits is not None
        private = next(table for table in tables_of(request.source, schema) if not table.public)
        plain = base_type(self.stored(private.owner)[private.unit or ""]) in INTEGERS
        owned: dict[Any, list[tuple[_Place, Row]]] = defaultdict(list)
        for place, row in ((place, row) for place, rows in groups.items() for row in rows):
            owned[row[UNIT]].append((place, row))
        left = defaultdict(list)
        for unit, own in owned.items():
            whose = np.full(len(own), unit if plain else _signed(self._hash(unit)), np.int64)
            tags = self._own_groups([place for place, _ in own], request) if request.keys else None
            columns = tuple(self._words([row[name] for _, row in own], scope[name]) for name in ties)
            words = TieBreak(columns, mix_of(secret), own_places(ties)) if ties else None
            mask = retained(whose, group=tags, rows=words, key=choice_key(secret), limits=limits)
            for (place, row), there in zip(own, mask, strict=True):
                if there:
                    left[place].append(row)
        return left

    def _own_groups(self, places: Sequence[_Place], request: Request) -> Any:
        """The groups of one unit's rows: by their tags, or by their order where two of its groups share a tag."""
        own = sorted(set(places), key=_ascending)
        tags = {place: self._tag(place, request) for place in own}
        if len(set(tags.values())) < len(own):
            tags = {place: rank for rank, place in enumerate(own)}
        return np.array([tags[place] for place in places], np.int64)

    def _tag(self, place: _Place, request: Request) -> int:
        """A group as a number: its place among all groups, or a hash where not all keys are known."""
        if None in request.domains:
            return _signed(self._hash(*place))
        number = 0
        for at, domain in zip(place, request.domains, strict=True):
            number = number * len(domain or ()) + at
        return number

    def _words(self, values: list[Any], kind: Kind) -> Any:
        """A column that breaks ties, as 64-bit words."""
        if kind.type == "text":
            return np.array([self._hash(value) for value in values], np.uint64)
        return words_of(pyarrow.array(values, ARROW[kind.type]))

    def rows(self, relation: Relation, columns: Mapping[str, str], schema: Schema, secret: bytes) -> pyarrow.Table:
        """Columns of a relation under new names, and `unit`, a number for each unit unless each row is one."""
        relation = rows_within(relation, schema, used=map(Name, columns))
        rows, shape = list(self._plan(schema, secret, relation, columns).rows()), shape_of(relation, schema)
        made = {
            new: pyarrow.array([row[name] for row in rows], ARROW[shape.columns[name].type])
            for name, new in columns.items()
        }
        if shape.unit not in (None, ROW):
            numbers = {unit: i for i, unit in enumerate(dict.fromkeys(row[UNIT] for row in rows))}
            made[UNIT] = pyarrow.array([numbers[row[UNIT]] for row in rows], pyarrow.int64())
        return pyarrow.table(made)

    def _plan(self, schema: Schema, secret: bytes, relation: Relation, used: Collection[str]) -> Rows:
        read: dict[str, list[str]] = defaultdict(list)
        for table, name in columns_read(relation, schema, used):
            read[table].append(name)
        tables = {table.name: self._read(table.name) for table in tables_read(relation, schema)}
        return Rows(relation, used, schema, tables, self._hash, join_seed(secret), read, limited_in(relation))

    def _read(self, name: str) -> list[Row]:
        """Rows as they are stored; dates as days, timestamps as microseconds."""
        table = self._tables[name]
        columns = {field.name: _values(table.column(field.name)) for field in table.schema}
        types = self.stored(name)
        return [{n: (values[i], types[n]) for n, values in columns.items()} for i in range(len(table))]


def _stored(type: pyarrow.DataType) -> str:
    """The name of an Arrow type (`contract.STORED`)."""
    names = {"int8": "TINYINT", "int16": "SMALLINT", "int32": "INTEGER", "int64": "BIGINT", "float": "FLOAT"}
    names |= {f"u{name}": f"U{stored}" for name, stored in names.items()}
    names |= {"double": "DOUBLE", "bool": "BOOLEAN", "string": "VARCHAR", "large_string": "VARCHAR"}
    names |= {"date32[day]": "DATE", "timestamp[us]": "TIMESTAMP"}
    names |= {f"timestamp[{unit}]": f"TIMESTAMP_{unit.upper()}" for unit in ("s", "ms")}
    if pyarrow.types.is_decimal(type):
        return f"DECIMAL({type.precision},{type.scale})"
    return "ENUM" if pyarrow.types.is_dictionary(type) else names.get(str(type), str(type).upper())


def _values(column: pyarrow.ChunkedArray) -> list[Any]:
    if pyarrow.types.is_date32(column.type):
        return list(column.cast(pyarrow.int32()).to_pylist())
    if not pyarrow.types.is_timestamp(column.type):
        return list(column.to_pylist())
    by = _MICROSECONDS[column.type.unit]
    return [None if value is None else value * by for value in column.cast(pyarrow.int64()).to_pylist()]


def _signed(word: int) -> int:
    return word - 2**64 if word >= 2**63 else word


# Keys

_OUTSIDE = object()


def _key(e: Expression, domain: tuple[Value, ...] | None, scope: Mapping[str, Kind]) -> Callable[[Row], Any]:
    """The place of a row's key in its domain, or the key itself where the domain is unknown."""
    kind, value = kind_of(e, scope), value_of(e, scope)
    if domain is None:
        return value
    if kind.type == "real" and kind.grid is not None and kind.bounded:
        value = steps_of(e, kind.grid, *step_bounds(kind, kind.grid), scope)
        domain = tuple(None if v is None else int(Fraction(v) / kind.grid) for v in domain)  # type: ignore[arg-type]
    places = {float(v) if isinstance(v, Fraction) else v: i for i, v in enumerate(domain)}
    return lambda row: places.get(value(row), _OUTSIDE)


def _ascending(place: _Place) -> Any:
    """By what groups are in ascending order: key after key, NULL last."""
    return [(value is None, value) for value in place]


def _released(order: Sequence[_Place], request: Request, scope: Mapping[str, Kind]) -> pyarrow.Table:
    columns = {}
    for i, (e, domain) in enumerate(zip(request.keys, request.domains, strict=True)):
        kind = kind_of(e, scope)
        found = [place[i] if domain is None else domain[place[i]] for place in order]
        plain = [float(v) if isinstance(v, Fraction) else v for v in found]
        columns[f"key{i}"] = pyarrow.array(plain, ARROW[kind.type])
    return pyarrow.table(columns)
