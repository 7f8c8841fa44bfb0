"""What strangers write: questions that would make groups, records of answers, texts in charts.

A column with `group = false` may be filtered, alike for all groups. So of a table that holds every other value once for
each value of that column, the rows with one of its values alone lie in the groups in the same shares, or in none.
"""

import json
import random
import re
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import pyarrow
from tests.attack.tables import Shelf
from tests.attack.trial import Convicted

import noisette as nz
from noisette import charts
from noisette.answers import check
from noisette.charts.legible import LONGEST
from noisette.errors import NoisetteError
from noisette.text import aligned

# Groups of a column that is not grouped

SPEND = nz.Approx(900, "1e-6")  # noise is not 0 with p < 1e-100
VALUES = ("cold", "flu", "hiv")
_COLUMNS = {
    "dx": {"keys": list(VALUES), "nullable": False, "group": False},
    "k": {"keys": ["A", "B"], "nullable": False},
    "x": {"bounds": [0, 2], "nullable": False},
}


def _of_value(value: str) -> nz.Curator:
    """One unit for each k and x, whose rows all have that value."""
    rows = [(k, x) for k in "AB" for x in range(3)]
    table = pyarrow.table(
        {
            "u": list(range(len(rows))),
            "dx": [value] * len(rows),
            "k": [k for k, _ in rows],
            "x": [x for _, x in rows],
        }
    )
    policy = {"tables": {"v": {"unit": "u", "rows": 2, "columns": _COLUMNS}}}
    return nz.open({"v": table}, budget=nz.Approx(10**6, "1/2"), policy=policy)


def _condition(draw: random.Random, depth: int = 2) -> str:
    if depth and draw.random() < 0.6:
        one, other = (_condition(draw, depth - 1) for _ in range(2))
        form = draw.choice(["({} AND {})", "({} OR {})", "(NOT {} AND {})", "CASE WHEN {} THEN {} ELSE FALSE END"])
        return form.format(one, other)
    return draw.choice(["dx = 'hiv'", "dx <> 'flu'", "x > 0", "x = 1", "k = 'A'", "dx IN ('flu', 'cold')", "x < 2"])


def _question(draw: random.Random) -> str:
    """A question about numbers of rows, whose keys and conditions look at everything."""
    a, b = (_condition(draw) for _ in range(2))
    key, count = draw.choice(["k", "x", "x > 0"]), "COUNT(*) AS n"
    slices = f"SELECT u, 1 AS g, x FROM v WHERE {a} UNION ALL SELECT u, 2 AS g, x FROM v WHERE {b}"
    return draw.choice(
        [
            f"SELECT {key} AS g, {count} FROM v WHERE {a} GROUP BY 1",
            f"SELECT {key} AS g, {count} FROM v WHERE {a} AND {b} GROUP BY 1",
            f"SELECT g, {count} FROM (SELECT {key} AS g, x FROM v WHERE {a}) AS t WHERE x < 2 GROUP BY g",
            f"SELECT g, {count} FROM ({slices}) AS t GROUP BY g",
            f"SELECT CASE WHEN {a} THEN 1 ELSE 0 END AS g, {count} FROM v WHERE {b} GROUP BY 1",
            f"SELECT f.x IS NULL AS g, {count} FROM v LEFT JOIN (SELECT u, x FROM v WHERE {a}) AS f ON v.u = f.u "
            "GROUP BY 1",
            f"SELECT v.k AS g, {count} FROM v JOIN (SELECT DISTINCT u FROM v WHERE {a}) AS f ON v.u = f.u GROUP BY 1",
            f"SELECT m AS g, {count} FROM (SELECT u, MAX(x) AS m FROM v WHERE {a} GROUP BY u) AS t GROUP BY 1",
            f"SELECT m AS g, {count} FROM (SELECT u, MAX(CASE WHEN {a} THEN 1 ELSE 0 END) AS m FROM v GROUP BY u) AS t "
            "GROUP BY 1",
        ]
    )


def groups(seed: int, shelf: Shelf | None = None) -> Counter[str]:
    """Random questions over a column that is not grouped."""
    draw, found = random.Random(f"groups {seed}"), Counter[str]()
    data = {value: _of_value(value) for value in VALUES}
    for _ in range(6):
        question = _question(draw)
        found += Counter(questions=1)
        try:
            answers = [data[value].sql(question, spend=SPEND) for value in VALUES]
        except NoisetteError:
            found += Counter(refused=1)
            continue
        found += Counter(answered=1)
        counted = [tuple(one.to_arrow().column("n").to_pylist()) for one in answers]
        if len({tuple(Fraction(n, sum(one)) for n in one) for one in counted if any(one)}) > 1:
            raise Convicted("groups", f"groups of dx: {dict(zip(VALUES, counted, strict=True))}", question)
    return found


# Records

STRANGE: tuple[Any, ...] = (
    *(
        "1e1000000000",
        "-1e-1000000000",
        "9" * 50_000,
        "1/" + "3" * 5000,
        "nan",
        "inf",
        "0x10",
        "1_0",
        "½",
        "",
        "\ud800",
    ),
    *(0, -1, 1e308, 10**4000, True, None, [], {}, [[]] * 50, {"one of": 3}, {"kind": "Pure"}),
)
_SECONDS = 2.0


@cache
def _records() -> tuple[str, ...]:
    table = pyarrow.table({"x": [1, 2, 3], "k": ["a", "b", "a"]})
    policy = {"tables": {"v": {"columns": {"x": {"bounds": [0, 9]}, "k": {"keys": ["a", "b"]}}}}}
    data = nz.open({"v": table}, budget=nz.Approx(100, "1e-3"), policy=policy)
    asked = ["SELECT COUNT(*) AS n FROM v", "SELECT k, AVG(x) AS a, MEDIAN(x) AS m FROM v GROUP BY k"]
    return tuple(data.sql(one, spend=spend).to_json() for one in asked for spend in (nz.Pure(1), nz.ZCDP("1/2")))


def _places(part: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to each value within a record."""
    inner = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    for name, value in inner:
        yield (*way, name)
        yield from _places(value, (*way, name))


def records(seed: int, shelf: Shelf | None = None, checked: Callable[[str], Any] = check) -> Counter[str]:
    """Records of which some values are strange."""
    draw, found = random.Random(f"records {seed}"), Counter[str]()
    for _ in range(40):
        record = json.loads(draw.choice(_records()))
        for _ in range(draw.choice([1, 1, 2])):
            *way, last = draw.choice(list(_places(record)))
            part = record
            for step in way:
                part = part[step]
            part[last] = draw.choice(STRANGE)
        found += _checked(json.dumps(record), checked)
    return found


def _checked(record: str, checked: Callable[[str], Any]) -> Counter[str]:
    begun, kept = time.process_time(), 1
    try:
        checked(record)
    except NoisetteError:
        kept = 0
    except Exception as fault:
        raise Convicted("records", f"{type(fault).__name__} in place of a sentence", record) from None
    if time.process_time() - begun > _SECONDS:
        raise Convicted("records", "it takes seconds to check", record)
    return Counter(questions=1, answered=kept, refused=1 - kept)


# Texts

PARTS = (
    *(
        "a",
        " ",
        "\n",
        "\x00",
        "\x1b[2J",
        "\x9b31m",
        "\u202e",
        "\u2066",
        "\u200d",
        "\ufeff",
        "\ufffe",
        "\uffff",
        "\ud800",
    ),
    *("</script>", "[/red]", "&x;", "]]>", "\U0001f469\u200d", "\u0301", "datum['k']", "__proto__", "\U000e0041", "…"),
)
_DRAWABLE = re.compile("[\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*")
_NUMBERS = ([1, 2, 3], [0, 1, 2], [2, 3, 4])
_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def _strings(spec: Any) -> Iterator[str]:
    if isinstance(spec, str):
        yield spec
    elif isinstance(spec, dict):
        for name, part in spec.items():
            yield from (name, *_strings(part))
    elif isinstance(spec, list | tuple):
        for part in spec:
            yield from _strings(part)


def texts(seed: int, shelf: Shelf | None = None) -> Counter[str]:
    """Random texts in all places of a chart, of an error and of a table."""
    draw = random.Random(f"texts {seed}")
    for _ in range(20):
        t, other = ("".join(draw.choices(PARTS, k=draw.choice([1, 3, 40, 500]))) for _ in range(2))
        chart = charts.answer({t: [t, other, "c"]}, {other: _NUMBERS}, note=t)
        wrong = [one for one in _strings(chart.spec) if not _DRAWABLE.fullmatch(one) or len(one) > LONGEST]
        if wrong:
            raise Convicted("texts", "a chart holds a text that cannot be drawn", ascii(wrong[0][:80]))
        shown = str(NoisetteError(t)).replace("\n", "") + aligned([t], [[other]]).replace("\n", "")
        if any(unicodedata.category(c) in _UNSEEN for c in shown):
            raise Convicted("texts", "what is not seen is printed as it is", ascii(t[:80]))
    return Counter(worlds=20)
