"""Names that are words to us: a table, a column, a key, an alias or an analyst may be called like any of them.

Each question is asked of one world under plain names and again with a word in one place of them. It costs the same, its
mechanisms are the same and so is what it answers; or it is refused by a sentence, and nothing is charged.
"""

import ast
import datetime
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow
from tests.attack.tables import Shelf
from tests.attack.trial import Convicted

import noisette as nz
from noisette.errors import InputError

PACKAGE = Path(nz.__file__).parent
SPEND = nz.Approx(900, "1e-6")
"""So much that noise is 0 except with p < 1e-25 (e^-90 for each of the units that a question counts ten rows of)."""

# Words

SENTINELS = (
    *(
        "row",
        "rows",
        "each row",
        "each question",
        "private",
        "public",
        "unit",
        "units",
        "person",
        "order",
        "rank",
        "tag",
    ),
    *(
        "code",
        "identity",
        "domain",
        "count",
        "child",
        "parent",
        "key0",
        "k0",
        "c0",
        "n",
        "n_low",
        "group",
        "all",
        "unknown",
        "when",
        "a.b",
    ),
)
"""Words that stand for states, kinds and units, and the columns that engines add."""

_SHAPE = re.compile(r"(?!noisette_)[A-Za-z_][A-Za-z_0-9 ]{0,23}")  # no table may begin with noisette_
_CALLS = {"column", "subquery", "field", "alias_", "to_identifier"}


@cache
def words() -> tuple[str, ...]:
    """All texts that the plan, the policy and the engines compare with, or name a column or a table of theirs."""
    found = set(SENTINELS)
    for package in ("query", "engines", "policy"):
        for file in (PACKAGE / package).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                found.update(word for each in _meant(node) if (word := _text(each)) is not None)
    return tuple(sorted(found))


def _meant(node: ast.AST) -> Iterator[ast.expr | None]:
    """The expressions of a node that may be a word of ours."""
    match node:
        case ast.Compare(left, _, others):
            yield from (left, *others, *(part for other in others for part in getattr(other, "elts", ())))
        case ast.Call(func, arguments) if getattr(func, "attr", getattr(func, "id", "")) in _CALLS:
            yield from arguments
        case ast.Dict(keys):
            yield from keys
        case ast.Assign([ast.Name(name)], value) | ast.AnnAssign(ast.Name(name), _, value) if name.strip("_").isupper():
            yield value
        case ast.MatchValue(value):
            yield value
        case ast.JoinedStr([ast.Constant(begin), ast.FormattedValue()]):
            yield ast.Constant(f"{begin}0")


def _text(node: ast.expr | None) -> str | None:
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, str) and _SHAPE.fullmatch(value) else None


# The world

PLAIN = {
    "table": "visits",
    "places": "wards",
    "unit": "patient",
    "key": "ward",
    "number": "cost",
    "day": "came",
    "mark": "colour",
    "alias": "v",
    "output": "found",
    "value": "north",
    "analyst": "ann",
}
ROLES = tuple(PLAIN)
COLUMNS = ("unit", "key", "output", "number", "day", "mark")  # each has a name of its own
KEYS = ("north", "south", "west")


def opened(names: Mapping[str, str], *, unit: bool = True) -> Any:
    """60 people with three rows each, and a public table of their wards; without a `unit` each row is one."""
    keys = [names["value"] if key == "north" else key for key in KEYS]
    people, days = [i // 3 for i in range(180)], [datetime.date(2024, 1, 1 + i % 20) for i in range(180)]
    visits = {
        names["unit"]: people,
        names["key"]: [keys[i % 7 % 3] for i in range(180)],
        names["number"]: [i % 11 for i in range(180)],
        names["day"]: days,
        names["mark"]: [("red", "blue")[i % 2] for i in range(180)],
    }
    columns = {
        names["key"]: {"keys": keys},
        names["number"]: {"bounds": [0, 10]},
        names["day"]: {"bounds": [datetime.date(2024, 1, 1), datetime.date(2024, 12, 31)]},
    }
    whose = {"unit": names["unit"], "rows": 3} if unit else {}
    rules = {names["table"]: {**whose, "columns": columns}, names["places"]: {"public": True}}
    tables = {names["table"]: pyarrow.table(visits), names["places"]: pyarrow.table({names["key"]: keys[:2]})}
    return nz.open(tables, budget=nz.Approx(100_000, "1e-3"), policy={"tables": rules})


def _sql(text: str) -> Callable[[Mapping[str, str]], Any]:
    def asked(names: Mapping[str, str]) -> str:
        quoted = {role: '"' + name.replace('"', '""') + '"' for role, name in names.items()}
        return text.format(**quoted, text="'" + names["value"].replace("'", "''") + "'")

    return asked


QUESTIONS: dict[str, Callable[[Mapping[str, str]], Any]] = {
    "groups": _sql("SELECT {key}, count(*) AS {output}, sum({number}) AS s FROM {table} AS {alias} GROUP BY {key}"),
    "a condition": _sql("SELECT count(*) AS {output} FROM {table} AS {alias} WHERE {alias}.{key} = {text}"),
    "unknown keys": _sql("SELECT {mark} AS {output}, count(*) AS n FROM {table} GROUP BY {mark}"),
    "units": _sql("SELECT count(DISTINCT {unit}) AS {output} FROM {table} AS {alias}"),
    "of each unit": _sql(
        "SELECT count(*) AS n FROM (SELECT {unit}, sum({number}) AS {output} FROM {table} GROUP BY {unit}) AS {alias} "
        "WHERE {alias}.{output} > 15"
    ),
    "a join on units": _sql(
        "SELECT count(*) AS {output} FROM {table} AS {alias} JOIN {table} AS w ON {alias}.{unit} = w.{unit}"
    ),
    "a union": _sql(
        "SELECT count(*) AS n FROM (SELECT {unit}, {key} FROM {table} WHERE {number} = 1 UNION ALL "
        "SELECT {unit}, {key} FROM {table} WHERE {number} = 2) AS {alias}"
    ),
    "a public table": _sql(
        "SELECT {alias}.{key}, count(*) AS n FROM {table} AS {alias} JOIN {places} AS p ON {alias}.{key} = p.{key} "
        "GROUP BY {alias}.{key}"
    ),
    "a quantile": _sql("SELECT median({number}) AS {output} FROM {table} AS {alias} WHERE {day} > DATE '2024-01-03'"),
    "a frame": lambda names: ("frame", names),
    "a histogram": lambda names: nz.Histogram(names["number"], of=names["table"]),
    "a hierarchy": lambda names: nz.Hierarchy(
        names["key"], {"g": [names["value"]], "h": ["south", "west"]}, of=names["table"]
    ),
    "distinct values": lambda names: nz.Distinct(names["number"], names["table"], most=1),
    "the most frequent": lambda names: nz.Top(names["key"], 2, of=names["table"]),
    "a stream": lambda names: nz.Stream(
        names["day"], since="2024-01-01", until="2024-01-21", every="5 days", of=names["table"], events=3
    ),
}


@dataclass(frozen=True)
class Outcome:
    """What a question came to: its price, its mechanisms and its values, without a name; `refused` says why not."""

    price: str = ""
    mechanisms: tuple[Any, ...] = ()
    values: tuple[Any, ...] = ()
    refused: str | None = None


def outcome(curator: Any, question: Callable[[Mapping[str, str]], Any], names: Mapping[str, str]) -> Outcome:
    """Ask; a refusal must come before the charge."""
    before = len(curator.ledger.entries)
    try:
        found = _values(curator, question(names), names)
    except InputError as refusal:
        if len(curator.ledger.entries) > before:
            raise Convicted("words", f"refused after the charge: {refusal}") from None
        return Outcome(refused=str(refusal))
    entry = curator.ledger.entries[-1]
    parts = tuple(repr({k: part.get(k) for k in ("mechanism", "parameters", "sensitivity")}) for part in entry.parts)
    return Outcome(repr(entry.guarantee), parts, found)


def _values(curator: Any, question: Any, names: Mapping[str, str]) -> tuple[Any, ...]:
    if isinstance(question, nz.Stream):
        stream = curator.stream(question, spend=nz.Pure(2000), analyst=names["analyst"])
        while stream.left:
            stream.step()
        return tuple(stream.to_arrow()["n"].to_pylist())
    if isinstance(question, tuple):
        frame = curator.table(names["table"]).group_by(names["key"])
        question = frame[names["number"]].sum()
    answer = curator.ask(question, spend=SPEND, analyst=names["analyst"])
    rows = [tuple(_plain(value, names) for value in row.values()) for row in answer.rows()]
    return tuple(sorted(rows, key=repr))


def _plain(value: Any, names: Mapping[str, str]) -> Any:
    return PLAIN["value"] if value == names["value"] else value


@cache
def expected(name: str) -> Outcome:
    """What a question comes to under plain names."""
    return outcome(opened(PLAIN), QUESTIONS[name], PLAIN)


def tried(
    word: str,
    roles: Iterable[str],
    questions: Iterable[str] = tuple(QUESTIONS),
    opens: Callable[[Mapping[str, str]], Any] = opened,
) -> dict[str, str]:
    """Ask questions with a word in some places at once; those that were refused, with their sentences."""
    names, refusals = PLAIN | dict.fromkeys(roles, word), {}
    curator = opens(names)
    for name in questions:
        found = outcome(curator, QUESTIONS[name], names)
        if found.refused is not None:
            refusals[name] = found.refused
        elif found != expected(name):
            places = " and ".join(roles)
            raise Convicted("words", f"{word!r} as {places} changes the answer to {name}", expected(name), found)
    return refusals


def words_at_random(seed: int, shelf: Shelf) -> Counter[str]:
    """A word of the code in some of the places where one can stand at once."""
    chance = random.Random(seed)
    word, column = chance.choice(words()), chance.choice(COLUMNS)
    roles = [column, *(role for role in ROLES if role not in COLUMNS and chance.random() < 0.5)]
    asked, refused = len(QUESTIONS), len(tried(word, roles))
    return Counter(worlds=1, questions=asked, answered=asked - refused, refused=refused)
