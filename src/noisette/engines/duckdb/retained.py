"""The retained rows of each unit: fetched as numbers, chosen by `bounding`, in columns that can be grouped again.

Whose a row is and where it counts must be exact, and the choice for a unit may depend on nothing but its own rows, so
that no other unit can change it. Whole numbers are their own identity. Other units, and groups of unknown keys, are
represented by a hash, which is a function of the value alone. Beside its hash such a unit is fetched as it is, and
numbered by its value: the numbers say exactly which rows are of one unit, the hash says which of them are retained.
(By numbers in order of appearance alone one new unit would shift all others, and with them what they retain.) A unit
that has two groups with one hash numbers its own groups by the order of their keys instead (`bounding`).
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray
from sqlglot import exp

from noisette.engines.bounding import MOST_GROUPS, dense, first_groups, firsts, own_groups, retained
from noisette.engines.bounding.words import pieces, sampled
from noisette.engines.contract import INTEGERS, base_type
from noisette.engines.duckdb.fetch import BATCH, BATCH_WITH_TEXT, IDENTITY, Columns, Maker, as_held, fetched, taken
from noisette.engines.duckdb.identity import bytes_of
from noisette.engines.duckdb.session import Session
from noisette.engines.sql.group_by import coded, matched, numbered, released_keys, unit_rows
from noisette.engines.sql.keys import Key
from noisette.engines.sql.stored import Stored
from noisette.engines.sql.syntax import choose, column, hash_of, number, selected, try_cast
from noisette.engines.sql.tables import unit_type
from noisette.engines.tie_break import TieBreak, choice_key, mix_of, narrowest, own_places, words_of
from noisette.query.kind import Kind
from noisette.query.measure import Request
from noisette.query.schema import Limits, Schema
from noisette.query.shape import UNIT
from noisette.query.stability import shape_of

__all__ = ["RetainedRows", "retained_rows", "single_row"]

_Codes = NDArray[np.int64]

_SHORT = 64  # bytes of a unit that is fetched with each of its rows


@dataclass(frozen=True)
class RetainedRows:
    """Retained rows: `rows` holds `code`, the columns, and `first`, TRUE in one row of each unit in each group.

    A row whose code is NULL is not retained.
    `size` is how many codes there are; `keys` what they stand for, if the keys were unknown.
    """

    rows: pyarrow.Table
    size: int
    keys: pyarrow.Table | None


def retained_rows(
    session: Session,
    request: Request,
    keys: Sequence[Key],
    columns: Mapping[str, str],
    ties: Sequence[str],
    schema: Schema,
    stored: Stored,
    secret: bytes,
    *,
    firsts: bool,
) -> RetainedRows:
    """The retained rows of each unit, with columns of the relation under new names; `ties` break ties among them."""
    scope = shape_of(request.source, schema).columns
    broken_by = {name: columns[name] if scope[name].type != "text" else f"t{i}" for i, name in enumerate(ties)}
    made = {new: _narrow(column(name), scope[name]) for name, new in columns.items()}
    made |= {new: hash_of(column(name)) for name, new in broken_by.items() if new not in made}
    with session.registered() as register:
        names = [*made, UNIT]
        rows = coded(unit_rows(request, keys, made, schema, stored, secret), keys, names, register)
        if all(key.values is not None for key in keys):
            size, found = math.prod(key.size for key in keys), None
            rows = numbered(rows, keys, names)
        else:
            found = _groups(session, rows, len(keys))
            size, places = len(found), {f"g{i}": f"g{i}" for i in range(len(keys))}
            rows, names = matched(rows, register(found), places, {"code": "code", "tag": "tag"}, names), [*names, "tag"]
        stored_unit = base_type(unit_type(request.source, schema, stored))
        plain = stored_unit in INTEGERS
        choice = _Choice(choice_key(secret), request.limits or Limits(), _repeated(found))
        few = size if plain and found is None else None
        whole = plain and (not firsts or single_row(choice.limits))

        def read(rows: exp.Select, names: Sequence[str]) -> _Fetched:
            fetch = _as_numbers(rows, names, size, stored_unit)
            makers = _makers(fetch, columns, broken_by.values(), scope)
            return _fetched(session, fetch, makers, choice, few, whole=whole)

        fetched_rows = read(rows, names)
        if fetched_rows.long:
            units = register(_numbered_units(session, rows))
            rows = matched(rows, units, {UNIT: UNIT}, {IDENTITY: IDENTITY}, ["code", *names])
            fetched_rows = read(rows, [*names, IDENTITY])
    left, choice = [], fetched_rows.choice
    while fetched_rows.parts:
        arrays = fetched_rows.parts.pop()
        part = _Rows.of(arrays, broken_by, mix_of(secret), grouped=bool(keys))
        at = np.flatnonzero(part.retained(choice))
        made = {"code": taken(part.code, at, Kind("integer", nullable=False))}
        made |= {new: taken(arrays[new], at, scope[name]) for name, new in columns.items()}
        left.append(pyarrow.table(made | ({"first": part.firsts(at, size, choice.limits)} if firsts else {})))
    left += [_as_retained(*pair, left[0].schema) for pair in fetched_rows.whole]
    return RetainedRows(pyarrow.concat_tables(left), size, None if found is None else released_keys(found, keys))


@dataclass(frozen=True)
class _Fetched:
    """Rows to choose from, in parts, by what is left of the choice.

    `whole` are batches whose rows are all retained, except for those that a mask marks: these are among the parts.
    """

    parts: list[Columns]
    choice: "_Choice"
    whole: list[tuple[pyarrow.RecordBatch, NDArray[np.bool_]]] = field(default_factory=list)

    @property
    def long(self) -> bool:
        """Whether some unit was too long to be fetched."""
        return any(part.get(IDENTITY, part) is None for part in self.parts)


def _makers(
    rows: exp.Select, columns: Mapping[str, str], broken_by: Collection[str], scope: Mapping[str, Kind]
) -> dict[str, Maker]:
    """The columns to retain, hashes of text, `unit` and `code`; `tag` and `identity` where hashes may collide."""
    there = {name for name in rows.named_selects if name in (UNIT, "tag", "code")}
    makers: dict[str, Maker] = {new: as_held(new, scope[name]) for name, new in columns.items()}
    if IDENTITY in rows.named_selects:
        makers[IDENTITY] = lambda batch: bytes_of(batch.column(IDENTITY))
    return makers | {name: _numbers(name) for name in (*there, *(n for n in broken_by if n not in makers))}


def _fetched(
    session: Session, rows: exp.Select, makers: Mapping[str, Maker], choice: "_Choice", size: int | None, *, whole: bool
) -> _Fetched:
    """The rows, in parts. Where unit and code are plain numbers, two things are done on the way, without sorting.

    With few codes the bound on groups is applied. Or else, if `whole`, units without more rows than any limit are set
    aside: all of their rows are retained, as they are.
    """
    limit = choice.limits.groups
    grouped = size is not None and limit is not None and limit < size <= MOST_GROUPS
    if not grouped and not whole:
        most = BATCH_WITH_TEXT if IDENTITY in makers else BATCH
        read = session.stream(rows, most, lambda reader: fetched(((b, None) for b in _some(reader)), makers, UNIT))
        return _Fetched(read, choice)
    batches = session.stream(rows, BATCH, lambda reader: list(_some(reader)))
    every = [(batch, None) for batch in batches]
    if not grouped:
        units = [makers[UNIT](batch) for batch in batches]
        if _mostly_crowded(units, choice.limits):
            return _Fetched(fetched(every, makers, UNIT), choice)
        masks = _crowded(units, choice.limits)
        whole_rows = list(zip(batches, masks, strict=True))
        some = pyarrow.Table.from_batches([batch.filter(mask) for batch, mask in whole_rows]).combine_chunks()
        crowded = some.to_batches(max_chunksize=BATCH) or [batches[0].slice(0, 0)]
        return _Fetched(fetched([(batch, None) for batch in crowded], makers, UNIT), choice, whole_rows)
    assert size is not None
    assert limit is not None
    pairs = [(makers[UNIT](batch), makers["code"](batch)) for batch in batches]
    chosen = first_groups(pairs, groups=size, limit=limit, key=choice.key)
    if chosen is None:
        return _Fetched(fetched(every, makers, UNIT), choice)
    left = replace(choice, limits=replace(choice.limits, groups=None))
    return _Fetched(fetched(list(zip(batches, chosen, strict=True)), makers, UNIT), left)


def _crowded(units: Sequence[_Codes], limits: Limits) -> list[NDArray[np.bool_]]:
    """For each batch the rows of units that have more rows than some limit; other units retain all of their rows."""
    owner, owners = dense(np.concatenate(units))
    crowded = (np.bincount(owner, minlength=owners) > _least(limits)).take(owner)
    return np.split(crowded, np.cumsum([len(unit) for unit in units])[:-1])


def _mostly_crowded(units: Sequence[_Codes], limits: Limits) -> bool:
    """Whether three rows of four are of such units, by those of one unit in 64: then it saves nothing to tell them."""
    some = [unit[piece][sampled(unit[piece])] for unit in units for piece in pieces(len(unit))]
    counts = np.unique(np.concatenate([np.empty(0, np.int64), *some]), return_counts=True)[1]
    return bool(4 * counts[counts > _least(limits)].sum() > 3 * counts.sum())


def _least(limits: Limits) -> int:
    return min(limit for limit in (limits.rows, limits.groups, limits.rows_per_group) if limit is not None)


def _as_retained(batch: pyarrow.RecordBatch, others: NDArray[np.bool_], schema: pyarrow.Schema) -> pyarrow.Table:
    """A batch as it is, without a copy; rows that are not retained have no code.

    Where the first row of a unit in a group is marked, a unit has one row in it.
    """
    made = {name: batch.column(name) for name in schema.names if name != "first"}
    if others.any():
        made["code"] = pyarrow.array(batch.column("code").to_numpy(), mask=others)
    first = {"first": pyarrow.array(np.ones(len(batch), bool))} if "first" in schema.names else {}
    return pyarrow.table(made | first).cast(schema)


def _numbers(name: str) -> Maker:
    """Whole numbers as they come, hashes as the same 64 bits with a sign."""
    return lambda batch: _signed(np.asarray(batch.column(name).to_numpy()))


def _signed(numbers: NDArray[Any]) -> NDArray[Any]:
    return numbers.view(np.int64) if numbers.dtype == np.uint64 else numbers


def _some(reader: pyarrow.RecordBatchReader) -> Iterator[pyarrow.RecordBatch]:
    """The batches that have rows; without any, one empty batch, which has the types of the columns."""
    nothing = True
    for batch in reader:
        if len(batch):
            nothing = False
            yield batch
    if nothing:
        yield pyarrow.RecordBatch.from_pylist([], schema=reader.schema)


def _narrow(sql: exp.Expr, kind: Kind) -> exp.Expr:
    """The same integers in less memory; no clean value is lost."""
    smaller = narrowest(kind)
    return sql if smaller is None else try_cast(sql, smaller)


# From the engine


def _groups(session: Session, rows: exp.Select, count: int) -> pyarrow.Table:
    """The groups of unknown keys in ascending order: g0, g1, ..., their `code` and their `tag`."""
    names = [f"g{i}" for i in range(count)]
    different = selected(rows, {name: column(name) for name in names}).distinct()
    made = {name: column(name) for name in names} | {"tag": hash_of(*(column(name) for name in names))}
    order = [exp.Ordered(this=column(name), nulls_first=False) for name in names]
    found = session.run(selected(different, made).order_by(*order))
    return found.append_column("code", pyarrow.array(np.arange(len(found))))


def _numbered_units(session: Session, rows: exp.Select) -> pyarrow.Table:
    """All units with numbers as their `identity`."""
    found = session.run(selected(rows, {UNIT: column(UNIT)}).distinct())
    return found.append_column(IDENTITY, pyarrow.array(np.arange(len(found))))


def _as_numbers(rows: exp.Select, names: Sequence[str], size: int, stored_unit: str) -> exp.Select:
    """The unit as a whole number or its hash, its `identity` where it is a hash, and the code in few bits."""
    made: dict[str, exp.Expr] = {name: column(name) for name in names}
    plain = stored_unit in INTEGERS
    made[UNIT] = exp.cast(column(UNIT), "BIGINT") if plain else hash_of(column(UNIT))
    if not plain and IDENTITY not in made:
        made[IDENTITY] = _short(column(UNIT)) if stored_unit == "VARCHAR" else column(UNIT)
    made["code"] = _narrow(column("code"), Kind("integer", Fraction(0), Fraction(size)))
    return selected(rows, made)


def _short(text: exp.Expr) -> exp.Expr:
    """A text that is short, else NULL: a few rows must not fill the memory."""
    length = exp.Anonymous(this="strlen", expressions=[text])
    return choose((exp.LTE(this=length, expression=number(_SHORT)), text.copy()), otherwise=exp.null())


def _repeated(tagged: pyarrow.Table | None) -> _Codes:
    """The tags that more than one group has."""
    if tagged is None:
        return np.empty(0, np.int64)
    tags, counts = np.unique(words_of(tagged.column("tag")), return_counts=True)
    return tags[counts > 1].view(np.int64)


# The choice


@dataclass(frozen=True)
class _Rows:
    """Rows as arrays: the choice depends on `unit`, `tag` and `content`; `identity` and `code` say what is the same."""

    unit: _Codes
    identity: _Codes
    identities: int
    tag: _Codes | None
    code: _Codes
    content: TieBreak | None  # None: all rows of a unit in a group are alike

    @staticmethod
    def of(arrays: Columns, broken_by: Mapping[str, str], mix: np.uint64, *, grouped: bool) -> "_Rows":
        """The arrays of what was fetched, with the columns that break ties."""
        unit, code = arrays[UNIT], arrays["code"]
        arrays = {IDENTITY: unit, "tag": code} | arrays
        ties = tuple(arrays[name] for name in broken_by.values())
        content = TieBreak(ties, mix, own_places(list(broken_by))) if ties else None
        return _Rows(unit, *dense(arrays[IDENTITY]), arrays["tag"] if grouped else None, code, content)

    def retained(self, choice: "_Choice") -> NDArray[np.bool_]:
        """Which rows are retained."""
        group = self.tag
        if group is not None and len(choice.tags):
            some = np.flatnonzero(np.isin(group, choice.tags))
            group = own_groups(self.identity, group, self.code, some)
        return retained(
            self.unit,
            identity=self.identity,
            group=group,
            rows=self.content,
            key=choice.key,
            limits=choice.limits,
        )

    def firsts(self, at: NDArray[np.intp], size: int, limits: Limits) -> pyarrow.Array:
        """TRUE in one of the retained rows of each unit in each group, NULL in the others."""
        if single_row(limits):
            return pyarrow.array(np.ones(len(at), bool))
        other = np.ones(len(at), bool)
        other[firsts(self.identity[at] * size + self.code[at], self.identities * size)] = False
        return pyarrow.array(np.ones(len(at), bool), mask=other)


@dataclass(frozen=True)
class _Choice:
    """What a choice depends on beside the rows; `tags` are hashes of groups that collide."""

    key: bytes
    limits: Limits
    tags: _Codes


def single_row(limits: Limits) -> bool:
    """Whether a unit has one row in a group at most."""
    return 1 in (limits.rows, limits.rows_per_group)
