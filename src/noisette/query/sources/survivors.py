"""The rows that are kept of each unit: fetched as numbers, chosen by `bounding`, in columns that can be grouped again.

Whose a row is and where it counts must be exact, and the choice for a unit may depend on nothing but its own rows, so
that no other unit can change it. Whole numbers are their own identity. Other units, and groups of unknown keys, are
represented by a hash, which is a function of the value alone; where two values share a hash, the units that this
concerns are chosen for one by one. (Numbers in order of appearance or rank would be exact too, but one new unit would
shift all others, and with them what is kept of them.)
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow
from numpy.typing import NDArray
from sqlglot import exp

from noisette.query.bounding import dense, kept
from noisette.query.compile import INTEGERS, Stored, selected, unit_type
from noisette.query.measure import Request
from noisette.query.schema import Limits, Schema
from noisette.query.sources.grouping import Valued, coded, matched, numbered, request_rows, told
from noisette.query.sources.keys import Key
from noisette.query.sources.session import Session
from noisette.query.stability import UNIT
from noisette.query.syntax import column

__all__ = ["Survivors", "hash_of", "survivors"]

_Codes = NDArray[np.int64]
_Words = NDArray[np.uint64]
_NULL = -(2**63)  # stands for NULL where steps are their own hash: no number of steps is as small


@dataclass(frozen=True)
class Survivors:
    """Rows that are kept: `rows` holds `code`, the values, and `head`, TRUE in one row of each unit in each group.

    `size` is how many codes there are; `keys` what they stand for, if the keys were unknown.
    """

    rows: pyarrow.Table
    size: int
    keys: pyarrow.Table | None


def survivors(
    session: Session,
    request: Request,
    keys: Sequence[Key],
    values: Mapping[Valued, str],
    schema: Schema,
    stored: Stored,
    secret: bytes,
    *,
    heads: bool,
) -> Survivors:
    """The rows that are kept of each unit."""
    with session.lent() as lend:
        names = [*values.values(), UNIT]
        rows = coded(request_rows(request, keys, values, schema, stored), keys, names, lend)
        if all(key.values is not None for key in keys):
            size, found = math.prod(key.size for key in keys), None
            rows = numbered(rows, keys, names)
        else:
            found = _groups(session, rows, len(keys))
            size, places = len(found), {f"g{i}": f"g{i}" for i in range(len(keys))}
            rows, names = matched(rows, lend(found), places, {"code": "code", "tag": "tag"}, names), [*names, "tag"]
        plain = unit_type(request.source, schema, stored) in INTEGERS
        units = None if plain else _colliding_units(session, rows)
        if units is not None:
            rows = matched(rows, lend(units), {UNIT: UNIT}, {"identity": "identity"}, ["code", *names])
            names.append("identity")
        fetched = session.run(_as_numbers(rows, ["code", *names], values, plain=plain))
    crowd = _Crowd.of(fetched, values, grouped=bool(keys))
    mask = crowd.kept(_key(secret), request.limits or Limits(), _repeated(units), _repeated(found))
    left = fetched.select(["code", *values.values()]).filter(pyarrow.array(mask))
    if heads:
        left = left.append_column("head", crowd.heads(mask, size))
    return Survivors(left, size, None if found is None else told(found, keys))


def _key(secret: bytes) -> bytes:
    return hashlib.sha256(b"noisette: which rows of a unit are kept" + secret).digest()[:16]


# From the engine


def hash_of(*values: exp.Expr) -> exp.Expr:
    """The engine's 64-bit hash of values."""
    return exp.Anonymous(this="hash", expressions=[value.copy() for value in values])


def _groups(session: Session, rows: exp.Select, count: int) -> pyarrow.Table:
    """The groups of unknown keys in ascending order: g0, g1, ..., their `code` and their `tag`."""
    names = [f"g{i}" for i in range(count)]
    different = selected(rows, {name: column(name) for name in names}).distinct()
    made = {name: column(name) for name in names} | {"tag": hash_of(*(column(name) for name in names))}
    order = [exp.Ordered(this=column(name), nulls_first=False) for name in names]
    found = session.run(selected(different, made).order_by(*order))
    return found.append_column("code", pyarrow.array(np.arange(len(found))))


def _colliding_units(session: Session, rows: exp.Select) -> pyarrow.Table | None:
    """All units with a number and their `tag`, if there are two with one hash; None otherwise, which is always."""
    different = selected(rows, {UNIT: column(UNIT)}).distinct()
    tagged = selected(different, {"tag": hash_of(column(UNIT))})
    both = {"units": exp.Count(this=exp.Star()), "tags": exp.Count(this=exp.Distinct(expressions=[column("tag")]))}
    counts = session.run(selected(tagged, both)).to_pylist()[0]
    if counts["units"] == counts["tags"]:
        return None
    found = session.run(selected(different, {UNIT: column(UNIT), "tag": hash_of(column(UNIT))}))
    return found.append_column("identity", pyarrow.array(np.arange(len(found))))


def _as_numbers(rows: exp.Select, names: Sequence[str], values: Mapping[Valued, str], *, plain: bool) -> exp.Select:
    """The unit as a whole number or its hash, and the `content` of a row, a hash of its values."""
    made: dict[str, exp.Expr] = {name: column(name) for name in names}
    made[UNIT] = exp.cast(column(UNIT), "BIGINT") if plain else hash_of(column(UNIT))
    if len(values) > 1 or any(wanted[0] == "value" for wanted in values):
        made["content"] = hash_of(*(column(name) for name in values.values()))
    return selected(rows, made)


def _repeated(tagged: pyarrow.Table | None) -> _Codes:
    """The tags that stand for more than one unit or group."""
    if tagged is None:
        return np.empty(0, np.int64)
    tags, counts = np.unique(_words(tagged.column("tag")), return_counts=True)
    return tags[counts > 1].view(np.int64)


def _words(found: pyarrow.ChunkedArray) -> _Words:
    """Whole numbers of 64 bits, NULL as the smallest."""
    if found.null_count:
        found = found.fill_null(_NULL)
    return np.asarray(found.to_numpy()).view(np.uint64)


# The choice


@dataclass(frozen=True)
class _Crowd:
    """Rows as arrays: the choice depends on `unit`, `tag` and `content`; `identity` and `code` say what is the same."""

    unit: _Codes
    identity: _Codes
    tag: _Codes | None
    code: _Codes
    content: _Words | None  # None: all rows of a unit in a group are alike

    @staticmethod
    def of(fetched: pyarrow.Table, values: Mapping[Valued, str], *, grouped: bool) -> "_Crowd":
        """The arrays of what was fetched."""
        there = {
            name: _words(fetched.column(name))
            for name in (UNIT, "identity", "tag", "code", "content")
            if name in fetched.column_names
        }
        unit, code = there[UNIT].view(np.int64), there["code"].view(np.int64)
        identity, tag = there.get("identity", unit).view(np.int64), there.get("tag", code).view(np.int64)
        content = there["content"] if "content" in there else _own_hash(fetched, values)
        return _Crowd(unit, identity, tag if grouped else None, code, content)

    def kept(self, key: bytes, limits: Limits, units: _Codes, tags: _Codes) -> NDArray[np.bool_]:
        """Which rows are kept; `units` and `tags` are the hashes that do not tell what they stand for."""
        mask = kept(self.unit, group=self.tag, rows=self.content, key=key, limits=limits)
        doubt = np.isin(self.unit, units) if len(units) else np.zeros(len(self.unit), bool)
        if self.tag is not None and len(tags):
            doubt |= np.isin(self.tag, tags)
        for one in np.unique(self.identity[doubt]):
            at = np.flatnonzero(self.identity == one)
            group = None if self.tag is None else _own_groups(self.tag[at], self.code[at])
            rows = None if self.content is None else self.content[at]
            mask[at] = kept(self.unit[at], group=group, rows=rows, key=key, limits=limits)
        return mask

    def heads(self, mask: NDArray[np.bool_], size: int) -> pyarrow.Array:
        """TRUE in one of the kept rows of each unit in each group, NULL in the others."""
        owner, _ = dense(self.identity[mask])
        _, first = np.unique(owner * size + self.code[mask], return_index=True)
        other = np.ones(len(owner), bool)
        other[first] = False
        return pyarrow.array(np.ones(len(owner), bool), mask=other)


def _own_hash(fetched: pyarrow.Table, values: Mapping[Valued, str]) -> _Words | None:
    """Without values all rows are alike; steps or presence alone are their own hash."""
    if not values:
        return None
    only = fetched.column(next(iter(values.values())))
    return _words(only.cast(pyarrow.int64()))


def _own_groups(tag: _Codes, code: _Codes) -> _Codes:
    """The groups of one unit: by their tags if these are different, else by their rank among its own groups."""
    ranks = np.unique(code, return_inverse=True)[1]
    return tag if len(np.unique(tag)) == ranks.max() + 1 else ranks.astype(np.int64)
