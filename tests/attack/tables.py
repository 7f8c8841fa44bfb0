"""Small odd tables, their neighbours, and the ways to store them.

A world is a value: tables of SQL literals, a policy, a way to store them, and one victim. Literals are compared as
texts, so whose row is whose is decided here and not by the engine; the pools hold no two texts for one unit.

    `v` private rows (u unit, g text, k whole number, x number, d moment, b truth value) · `l` more of the same units ·
    `o` orders of the same units (u unit, r key, y number) · `c` children of orders (r, and columns as v has) ·
    `p`, `q` public tables to join with, on numbers and on texts
"""

import datetime
import json
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import duckdb

import noisette as nz
from noisette.privacy import Neighbours

BIG = 2**60
NUMBERS = ["0", "1", "2", "3", "-1", str(2**31 - 1), str(2**53), str(2**53 + 1), str(BIG), str(BIG + 1), str(2**63 - 1)]
REALS = [
    "0.0",
    "1.0",
    "2.0",
    "0.5",
    "2.5",
    "-1.0",
    "2.0000000001",
    str(float(2**53)),
    str(float(BIG)),
    "1e308",
    "-1e308",
]
ODD_REALS = ["'nan'", "'inf'", "'-inf'", "-0.0"]
TEXTS = ["'a'", "'b'", "'A'", "'B'", "'a '", "''", "' '", "'á'", "'a' || chr(0)", "'ß'", "'ﬁ'", "'a' || chr(10)"]
DAYS = ["2020-01-01", "2020-01-02", "2020-01-03", "2020-01-04", "1970-01-01", "0001-01-01", "9999-12-31"]
FAR_DAYS = ["infinity", "-infinity", "0044-03-15 (BC)", "200000-01-01"]
TIMES = ["2020-01-01 00:00:01", "2020-01-01 12:00:00", "2020-01-02 00:00:01", "2020-01-03 23:59:59.999999"]
WIDE = [str(2**64), str(10**37), str(-(10**37))]
UUIDS = [f"'00000000-0000-0000-0000-{i:012x}'" for i in (1, 2, 10, 2**40)]


def quoted(texts):
    return [f"'{text}'" for text in texts]


POOLS: dict[str, list[str]] = {
    "BIGINT": NUMBERS,
    "SMALLINT": ["0", "1", "2", "3", "-1", "32767"],
    "UBIGINT": ["0", "1", "2", "3", str(BIG), str(2**64 - 1)],
    "HUGEINT": [*NUMBERS, *WIDE],
    "DOUBLE": [*REALS, *ODD_REALS],
    "FLOAT": ["0.0", "1.0", "2.0", "0.5", "16777216.0", *ODD_REALS],
    "DECIMAL(38,0)": [*NUMBERS, *WIDE],
    "DECIMAL(18,3)": ["0", "1", "2", "0.5", "1.999", "2.001", "-1"],
    "DECIMAL(38,37)": ["0", "1", "2", "0.5", "1.9999999999999999999999999999999999999", "-1"],
    "VARCHAR": TEXTS,
    "VARCHAR(9)": ["'0'", "'1'", "'2'", "' 2 '", "'-1'", "'x'", "'1e9'", "'0.5'", "'99999999999999999999'", "''"],
    "VARCHAR COLLATE NOCASE": TEXTS,
    "VARCHAR COLLATE NOACCENT": TEXTS,
    "ENUM('a', 'b', 'A', 'a ', '')": ["'a'", "'b'", "'A'", "'a '", "''"],
    "UUID": UUIDS,
    "DATE": quoted([*DAYS, *FAR_DAYS]),
    "TIMESTAMP": quoted([*TIMES, *DAYS, "infinity", "-infinity", "290000-01-01"]),
    "TIMESTAMP_S": quoted([*TIMES[:3], *DAYS]),
    "TIMESTAMP_MS": quoted([*TIMES[:3], *DAYS]),
    "TIMESTAMP_NS": quoted([*TIMES, "2020-01-01 00:00:00.000000001", "1700-01-01", "2262-01-01"]),
    "BOOLEAN": ["TRUE", "FALSE"],
}
"""Literals of each stored type, the plain ones first; NULL may be anywhere."""

WHOLE = ["BIGINT", "SMALLINT", "UBIGINT", "HUGEINT", "DECIMAL(38,0)", "DOUBLE", "VARCHAR(9)"]
NUMERIC = [*WHOLE, "FLOAT", "DECIMAL(18,3)", "DECIMAL(38,37)"]
TEXTUAL = [
    *["VARCHAR"] * 5,
    "VARCHAR COLLATE NOCASE",
    "VARCHAR COLLATE NOACCENT",
    "ENUM('a', 'b', 'A', 'a ', '')",
    "UUID",
]
MOMENTS = ["DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"]
UNITS = [*NUMERIC, *TEXTUAL, "DATE", "TIMESTAMP", "TIMESTAMP_NS"]
STORAGES = ["duckdb", "arrow", "parquet"]
LIMITS = [
    {"rows": 1},
    {"rows": 2},
    {"groups": 1, "rows_per_group": 1},
    {"groups": 2, "rows_per_group": 2},
    {"rows": 3, "groups": 2, "rows_per_group": 2},
    {"rows": "each question", "most_rows": 4},
    {"groups": 9, "rows_per_group": 1},
]
NOBODY = ("NULL", "'nan'")  # a row of such a unit belongs to nobody


@dataclass(frozen=True)
class Table:
    """Columns with the types they are stored as, and rows of literals."""

    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str, ...], ...]

    def statements(self, name: str) -> Iterator[str]:
        """SQL that makes it."""
        yield f"CREATE TABLE {name} ({', '.join(f'{column} {type}' for column, type in self.columns)})"
        if self.rows:
            yield f"INSERT INTO {name} VALUES {', '.join('(' + ', '.join(row) + ')' for row in self.rows)}"


@dataclass(frozen=True)
class World:
    """Tables by name, what their owner declares, and who is the victim: a unit, or else the first row of v.

    `other` are the rows of whoever takes the victim's place, by table.
    """

    tables: dict[str, Table]
    policy: dict[str, Any]
    victim: str | None
    other: dict[str, tuple[tuple[str, ...], ...]]
    storage: str = "duckdb"

    @property
    def private(self) -> list[str]:
        """The tables that protect somebody."""
        return [name for name in self.tables if not self.policy["tables"][name].get("public")]

    def without(self) -> "World":
        """The same without the victim."""
        return self._with(dict.fromkeys(self.private, ()))

    def replaced(self) -> "World":
        """The same with somebody else in the victim's place."""
        return self._with(self.other)

    def neighbours(self) -> dict[Neighbours, "World"]:
        """A neighbour for each relation."""
        return {Neighbours.ADD_REMOVE: self.without(), Neighbours.REPLACE: self.replaced()}

    def _with(self, rows: dict[str, tuple[tuple[str, ...], ...]]) -> "World":
        changed = {name: replace(table, rows=(*self._others(name), *rows.get(name, ()))) for name, table in self._own()}
        return replace(self, tables={**self.tables, **changed})

    def _own(self) -> list[tuple[str, Table]]:
        return [(name, self.tables[name]) for name in self.private]

    def _others(self, name: str) -> tuple[tuple[str, ...], ...]:
        rows = self.tables[name].rows
        if self.victim is None:
            return rows[1:] if name == "v" else rows
        mine = {self.victim}
        if name == "c":  # whoever leaves takes along what refers to their orders
            mine = {row[1] for row in self.tables["o"].rows if same(row[0]) == self.victim}
        return tuple(row for row in rows if same(row[0]) not in mine)

    def smaller(self, question: str) -> Iterator["World"]:
        """The same with a row less, or with a plainer value."""
        for name, table in self.tables.items():
            fixed = 1 if self.victim is None and name == "v" else 0  # there is a victim
            if len(table.rows) > fixed and name != "v" and f" {name} " not in f"{question} ":
                yield self._changed(name, ())
            for i in range(fixed, len(table.rows)):
                yield self._changed(name, table.rows[:i] + table.rows[i + 1 :])
        for name, rows in self.other.items():
            for i in range(len(rows) if self.victim else 0):
                yield replace(self, other={**self.other, name: rows[:i] + rows[i + 1 :]})
        for name, table in self.tables.items():
            for at, (column, type) in enumerate(table.columns):
                plain = POOLS.get(type, ["1"])[0]
                for i, row in enumerate(table.rows):
                    if column != "u" and row[at] != plain:
                        changed = (*row[:at], plain, *row[at + 1 :])
                        yield self._changed(name, (*table.rows[:i], changed, *table.rows[i + 1 :]))

    def _changed(self, name: str, rows: tuple[tuple[str, ...], ...]) -> "World":
        return replace(self, tables={**self.tables, name: replace(self.tables[name], rows=rows)})

    def stored(self, folder: Path, engine: duckdb.DuckDBPyConnection) -> Any:
        """What `nz.open` takes, in a folder that is empty."""
        if self.storage == "duckdb":
            return self._database(folder / "world.duckdb", engine)
        found = {}
        for name, table in self.tables.items():
            engine.execute(f"DROP TABLE IF EXISTS {name}")
            for line in table.statements(name):
                engine.execute(line)
            path = folder / f"{name}.parquet"
            if self.storage == "parquet":
                engine.execute(f"COPY {name} TO '{path}' (FORMAT parquet)")
            found[name] = str(path) if self.storage == "parquet" else engine.table(name).to_arrow_table()
        return found

    def _database(self, path: Path, engine: duckdb.DuckDBPyConnection) -> str:
        engine.execute(f"ATTACH '{path}' AS world")
        for name, table in self.tables.items():
            for line in table.statements(f"world.{name}"):
                engine.execute(line)
        engine.execute("DETACH world")
        return str(path)

    def __str__(self) -> str:
        made = [f"{line};" for name, table in self.tables.items() for line in table.statements(name)]
        whose = "the first row of v" if self.victim is None else f"u = {self.victim}"
        instead = f"in its place: {self.other}" if any(self.other.values()) else "nobody in its place"
        return "\n".join(
            [
                *made,
                f"policy {json.dumps(self.policy, default=str)}",
                f"stored as {self.storage}; victim: {whose}; {instead}",
            ]
        )


def same(unit: str) -> str:
    """One literal for each unit: -0.0 is 0.0."""
    return "0.0" if unit == "-0.0" else unit


# Random worlds


def random_world(rng: random.Random) -> World:
    """A small world with odd types and values."""
    unit = rng.choice(UNITS)
    number, text = rng.choice(NUMERIC), rng.choice(TEXTUAL)
    types = {
        "v": {
            "u": unit,
            "g": rng.choice(TEXTUAL),
            "k": rng.choice(WHOLE),
            "x": number,
            "d": rng.choice(MOMENTS),
            "b": "BOOLEAN",
        },
        "l": {"u": unit if rng.random() < 0.7 else rng.choice(UNITS), "k": rng.choice(WHOLE), "y": rng.choice(NUMERIC)},
        "p": {"j": rng.choice([*NUMERIC, unit, unit]), "f": "INTEGER"},
        "q": {"g": text, "f": "INTEGER"},
    }
    by_row = rng.random() < 0.25
    people = rng.sample(_named(unit), 4)
    tables = {name: Table(tuple(t.items()), _rows(rng, name, t, people)) for name, t in types.items()}
    victim = (
        None if by_row else same(rng.choice([row[0] for row in tables["v"].rows if row[0] not in NOBODY] or people))
    )
    other = {n: _rows(rng, n, types[n], [victim or rng.choice(people)], 3) for n in ("v", *([] if by_row else ["l"]))}
    if by_row:
        other = {"v": other["v"][:1] or _rows(rng, "v", types["v"], people, 1)[:1]}
    else:  # one unit takes the place of one: a row of somebody else would make no neighbour
        other = {name: tuple(row for row in rows if same(row[0]) == victim) for name, rows in other.items()}
    storage = rng.choice(STORAGES)
    world = World(tables, _policy(rng, types, by_row=by_row), victim, other, storage)
    return world if victim is None else _with_children(rng, world, unit, people)


KEYS = ["BIGINT", "BIGINT", "SMALLINT", "UBIGINT", "HUGEINT", "DECIMAL(38,0)", *TEXTUAL, "DATE", "TIMESTAMP"]
"""Types that foreign keys can be stored as."""


def _with_children(rng: random.Random, world: World, unit: str, people: list[str]) -> World:
    """The world with orders, whose keys are all different, and children that refer to them."""
    key = rng.choice(KEYS)
    child = rng.choice(["BIGINT", "SMALLINT"]) if key == "SMALLINT" else key
    pool = POOLS[key] if rng.random() < 0.3 else POOLS[key][:4]
    keys = rng.sample(pool, min(len(pool), rng.choice([2, 3, 4])))
    number, text = rng.choice(NUMERIC), rng.choice(TEXTUAL)
    types = {
        "o": {"u": unit, "r": key, "y": number},
        "c": {"r": child, "g": text, "k": rng.choice(WHOLE), "x": number, "d": rng.choice(MOMENTS), "b": "BOOLEAN"},
    }
    orders = tuple((rng.choice([*people, world.victim or ""]), r, rng.choice(POOLS[number][:4])) for r in keys[:-1])
    mine = [r for u, r, _ in orders if same(u) == world.victim] or keys[-1:]
    other = tuple((world.victim or "", r, rng.choice(POOLS[number][:4])) for r in mine)
    lost = ["NULL", *(value for value in POOLS[child][:6] if value in POOLS[key])]
    made = {
        "o": Table(tuple(types["o"].items()), orders),
        "c": Table(tuple(types["c"].items()), _children(rng, types["c"], [*keys * 3, *lost])),
    }
    link = {"unit": {"through": "o", "on": {"r": "r"}}}
    rules = {
        "o": {"unit": "u", **rng.choice(LIMITS), "columns": _declared(rng, {"y": number})},
        "c": {
            **link,
            **rng.choice(LIMITS),
            "columns": _declared(rng, {n: t for n, t in types["c"].items() if n != "r"}),
        },
    }
    others = {"o": other, "c": _children(rng, types["c"], mine)[:4]}
    policy = {"tables": {**world.policy["tables"], **rules}}
    return replace(world, tables={**world.tables, **made}, policy=policy, other={**world.other, **others})


def _children(rng: random.Random, types: dict[str, str], keys: list[str]) -> tuple[tuple[str, ...], ...]:
    rows = _rows(rng, "c", types, [])
    return tuple((rng.choice(keys), *row[1:]) for row in rows)


def _named(type: str) -> list[str]:
    """Values of units, each under one text."""
    return [value for value in POOLS[type] if value not in ("-0.0", "'nan'")]


def _rows(
    rng: random.Random, name: str, types: dict[str, str], people: list[str], most: int = 9
) -> tuple[tuple[str, ...], ...]:
    size = rng.choice([0, 1, 2, 3, 5, most]) if most > 3 else rng.randint(1, most)
    return tuple(tuple(_value(rng, name, column, type, people) for column, type in types.items()) for _ in range(size))


def _value(rng: random.Random, table: str, column: str, type: str, people: list[str]) -> str:
    if column == "u":
        fits = table == "v" or all(person in POOLS[type] for person in people)
        pool = people if fits else POOLS[type]
        return (
            rng.choice(pool)
            if rng.random() < 0.9
            else rng.choice(["NULL", *(v for v in POOLS[type] if v in ("'nan'", "-0.0"))])
        )
    if column == "f":
        return rng.choice(["1", "2", "3"])
    if rng.random() < 0.1:
        return "NULL"
    return rng.choice(POOLS[type][:4]) if rng.random() < 0.6 else rng.choice(POOLS[type])


def _policy(rng: random.Random, types: dict[str, dict[str, str]], *, by_row: bool) -> dict[str, Any]:
    owned = {} if by_row else {"unit": "u"}
    tables: dict[str, Any] = {
        "v": {**owned, **({} if by_row else rng.choice(LIMITS)), "columns": _declared(rng, types["v"])},
        "l": {**owned, **({} if by_row else rng.choice(LIMITS)), "columns": _declared(rng, types["l"])},
        "p": {"public": True, "columns": {"f": {"bounds": [1, 3]}} | _declared(rng, {"j": types["p"]["j"]})},
        "q": {"public": True, "columns": {"f": {"bounds": [1, 3]}}},
    }
    return {"tables": tables}


def _declared(rng: random.Random, types: dict[str, str]) -> dict[str, Any]:
    """Bounds, keys and the like of some columns."""
    found: dict[str, Any] = {}
    for column, type in types.items():
        if column == "u" or rng.random() < 0.3:
            continue
        rules: dict[str, Any] = {"nullable": rng.random() < 0.7}
        if column in ("k", "j", "y", "x") and type in NUMERIC:
            rules |= _numbers(rng, column, type)
        elif column == "g" and type != "UUID":
            messy = {"trim": True, "fold": True}
            mapped = {"keys": ["a"], "map": {"b": ["B ", "á"]}, "other": "z"}
            rules |= rng.choice([{}, {"keys": ["a", "b"]}, {"keys": ["a", "A", ""]}, messy, mapped, messy | mapped])
        elif column == "d":
            days = {"bounds": [datetime.date(2020, 1, 1), datetime.date(2020, 1, 3)]}
            rules |= rng.choice([{}, days])
        if column in ("g", "k", "x", "y"):  # joins on it use that many rows with one value
            rules["rows_per_value"] = 1 + len(found) % 3
        found[column] = rules
    return found


def _numbers(rng: random.Random, column: str, type: str) -> dict[str, Any]:
    whole = {"type": "integer"} if column == "k" or rng.random() < 0.3 else {"type": "real"}
    if whole["type"] == "integer":
        return whole | rng.choice(
            [{}, {"bounds": [0, 2]}, {"bounds": [-1, 2]}, {"keys": [0, 2]}, {"bounds": [0, 2], "keys": [0, 2]}]
        )
    return whole | rng.choice([{}, {"bounds": [0, 2]}, {"bounds": [-1, 2]}, {"bounds": [0, 2], "grid": "0.5"}])


# Storing


class Storable(Protocol):
    """A world of any sort: what is declared of it, its neighbours, smaller ones, and how it is stored."""

    policy: dict[str, Any]

    def neighbours(self) -> dict[Neighbours, Any]:
        """A neighbour for each relation."""
        ...

    def smaller(self, question: str) -> Iterator[Any]:
        """Worlds that have less in them."""
        ...

    def stored(self, folder: Path, engine: duckdb.DuckDBPyConnection) -> Any:
        """What `nz.open` takes, in a folder that is empty."""
        ...


class Shelf:
    """Worlds on disk or in memory, each in a folder of its own, of which the last few are held.

    `shrinks`: whether a conviction is made smaller before it is shown · `place` puts tables into another engine (see
    `engines`).
    """

    def __init__(self, folder: Path, *, most: int = 12, shrinks: bool = True, place: Any = None) -> None:
        self.folder, self.most, self.number, self.shrinks, self.place = folder, most, 0, shrinks, place
        self.engine = duckdb.connect(config={"threads": 1})

    def opened(self, world: Storable, **options: Any) -> Any:
        """A curator of the world, as its owner opens it; `InputError` where the owner is told to mend something."""
        policy = world.policy if self.place is None else self.place.allowed(world.policy)
        options = {"budget": nz.Approx(10**6, "1/2"), "policy": policy, **options}
        return nz.open(self.source(world), **options)

    def source(self, world: Storable) -> Any:
        """What `nz.open` takes."""
        self.number += 1
        shutil.rmtree(self.folder / str(self.number - self.most), ignore_errors=True)
        place = self.folder / str(self.number)
        place.mkdir(parents=True)
        if self.place is None:
            return world.stored(place, self.engine)
        return self.place.put(replace(world, storage="arrow").stored(place, self.engine))  # type: ignore[type-var]
