"""Random questions about the tables of `tables`, through every front end: SQL, frames, and each question there is.

A question is a text that can be printed and asked again: SQL, or Python with `nz` and `t`, which gives a table. Those
of `noisette.questions` are found by their files and asked as the JSON of their examples; `PYTHON` also writes most of
them in random ways.
"""

import importlib
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import noisette as nz
from noisette.curator.asking import query_of
from noisette.curator.purchases.bounds import Bounds
from noisette.query.plan import Query
from noisette.questions import FILES
from noisette.releases.maps.catalogue import STRATEGIES

SPENDS = [nz.Approx(1, "1e-6"), nz.Pure(1), nz.ZCDP("1/4"), nz.Approx("1/1000", "1e-9")]


@dataclass(frozen=True)
class Question:
    """What is asked, and what is spent on it; of SQL its parts are known, so that it can be made smaller."""

    python: str = ""
    source: str = "v"
    where: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()
    spend: Any = SPENDS[0]
    sets: str = ""

    def __str__(self) -> str:
        return self.python or self.sql

    @property
    def sql(self) -> str:
        """The text of a SELECT."""
        outputs = ", ".join((*self.keys, *(f"{a} AS a{i}" for i, a in enumerate(self.aggregates))))
        where = f" WHERE {' AND '.join(self.where)}" if self.where else ""
        by = f" GROUP BY {', '.join(self.keys)}" if self.keys else ""
        by = f" GROUP BY {self.sets} ({', '.join(self.keys)})" if self.keys and self.sets else by
        return f"SELECT {outputs} FROM {self.source}{where}{by}"

    def built(self, curator: Any) -> Any:
        """What `curator.ask` takes."""
        return (
            eval(self.python, {"nz": nz, "t": curator.table, "bounds": _bounds(curator)}) if self.python else self.sql
        )

    def smaller(self) -> Iterator["Question"]:
        """The same with one part less."""
        for name in ("where", "keys", "aggregates"):
            parts = getattr(self, name)
            for i in range(len(parts)):
                less = replace(self, **{name: parts[:i] + parts[i + 1 :]})
                if less.aggregates or less.keys:
                    yield less


def _bounds(curator: Any) -> Callable[[str, str], Bounds]:
    """What is asked for where an analyst buys bounds."""
    return lambda table, column: Bounds(curator.schema[table], curator.schema[table].column(column))


def random_question(rng: random.Random) -> Question:
    """SQL more often than not; otherwise a frame or one of `noisette.questions`."""
    spend = rng.choice(SPENDS) if rng.random() < 0.3 else SPENDS[0]
    if rng.random() < 0.65:
        return replace(_sql(rng), spend=spend)
    name = rng.choice(sorted(PYTHON))
    if name == "bounds" and rng.random() < 0.8:  # which takes long, by its thousands of cells
        name = "frame"
    return Question(python=PYTHON[name](rng), spend=spend)


# SQL

JOINS = {
    "v": "",
    "v JOIN p ON v.k = p.j": "p",
    "v JOIN p ON v.x = p.j": "p",
    "v JOIN p ON v.u = p.j": "p",
    "v JOIN p ON v.u = p.j AND v.k = p.j": "p",
    "v LEFT JOIN p ON v.k = p.j": "p",
    "p JOIN v ON p.j = v.u": "p",
    "v JOIN q ON v.g = q.g": "q",
    "v LEFT JOIN q ON v.g = q.g": "q",
    "v JOIN l ON v.u = l.u": "l",
    "v JOIN l ON v.u = l.u AND v.k = l.k": "l",
    "v LEFT JOIN l ON v.u = l.u": "l",
    "v JOIN v AS w ON v.u = w.u": "w",
    "v JOIN v AS w ON v.u = w.u AND v.g = w.g": "w",
    "v JOIN v AS w ON v.u = w.u JOIN l ON v.u = l.u": "w",
    "v JOIN l ON v.u = l.u JOIN p ON l.k = p.j": "l",
    "(SELECT u, COUNT(*) AS k, MAX(k) AS x, SUM(x) AS y FROM v GROUP BY u) AS v": "s",
    "(SELECT u, g, COUNT(*) AS k, AVG(x) AS x FROM v GROUP BY u, g) AS v": "s",
    "(SELECT u, k, MAX(x) AS x, COUNT(*) AS y FROM v GROUP BY u, k) AS v": "s",
    "(SELECT u, g, b, COUNT(*) AS k, SUM(x) AS x FROM v GROUP BY u, g, b) AS v": "s",
    "(SELECT u, LOWER(g) AS g, COUNT(*) AS k FROM v GROUP BY u, LOWER(g)) AS v": "s",
    "(SELECT u, x > 1 AS b, MIN(k) AS k, COUNT(*) AS x FROM v GROUP BY u, x > 1) AS v": "s",
    "(SELECT u, g, COUNT(*) AS k FROM v GROUP BY u, g) AS v JOIN l ON v.u = l.u": "l",
    "(SELECT u, g, COUNT(*) AS k FROM v GROUP BY u, g) AS v JOIN p ON v.k = p.j": "p",
    "(SELECT u, COUNT(*) AS k, MIN(y) AS x FROM l GROUP BY u) AS v": "s",
    "(SELECT u, k, COUNT(*) AS x FROM l GROUP BY u, k) AS v": "s",
    "l AS v": "l",
    "c AS v": "",
    "c AS v JOIN o ON v.r = o.r": "o",
    "o JOIN c AS v ON o.r = v.r": "o",
    "o LEFT JOIN c AS v ON o.r = v.r": "o",
    "c AS v JOIN c AS w ON v.r = w.r": "w",
    "v JOIN o ON v.u = o.u": "o",
    "c AS v JOIN o ON v.r = o.r JOIN l ON o.u = l.u": "l",
    "c AS v JOIN p ON v.k = p.j JOIN o ON v.r = o.r": "p",
    "(SELECT r, COUNT(*) AS k, MAX(x) AS x FROM c GROUP BY r) AS v JOIN o ON v.r = o.r": "o",
    "(SELECT * FROM v UNION ALL SELECT u, 'a', k, x, d, b FROM v WHERE v.k > 0) AS v": "",
    "(SELECT u, g, k, x, d, b FROM v UNION ALL SELECT u, g, k, -x, d, b FROM v) AS v JOIN p ON v.k = p.j": "p",
    "(SELECT u, g, k FROM v UNION ALL SELECT u, 'b', k + 1 FROM v) AS v JOIN l ON v.u = l.u": "l",
    "v JOIN l ON v.k = l.k": "l",
    "v JOIN v AS w ON v.g = w.g": "w",
    "v JOIN v AS w ON v.x = w.x AND v.g = w.g": "w",
    "v JOIN l ON v.x = l.y": "l",
    "c AS v JOIN l ON v.k = l.k JOIN p ON v.k = p.j": "l",
    "(SELECT u, k, g, MAX(x) AS x FROM v GROUP BY u, k, g) AS v JOIN v AS w ON v.k = w.k": "w",
    "c AS v JOIN o ON v.r = o.r JOIN l ON v.x = l.y": "l",
}
"""Relations, and which other table has more columns there."""

NAMES = {"": [], "p": ["p.f", "p.j"], "q": ["q.f"], "l": ["l.k"], "w": ["w.k", "w.x"], "s": [], "o": ["o.y"]}
CONDITIONS = [
    "{k} = 1",
    "{k} BETWEEN 0 AND 2",
    "{k} > 0",
    "{k} IS NULL",
    "NOT {k} = 2",
    "{x} > 0.5",
    "{x} <= 2",
    "{x} IS NOT NULL",
    "v.g = 'a'",
    "v.g <> 'a'",
    "v.g LIKE 'a%'",
    "v.g IN ('a', 'B')",
    "LOWER(v.g) = 'a'",
    "v.b",
    "v.b IS NOT NULL",
    "v.d >= DATE '2020-01-02'",
    "v.d IS NULL",
    "({k} = 1 OR {x} > 1)",
    "CASE WHEN v.g = 'a' THEN {k} = 1 ELSE {x} > 0 END",
    f"v.u = {2**60}",
    "v.u <> 'a'",
    f"{{k}} = {2**60}",
    "YEAR(v.d) = 2020",
    "v.g ILIKE 'A%' OR RIGHT(v.g, 1) = ' '",
    "REGEXP_MATCHES(v.g, '^[^a].?$')",
    "LENGTH(v.g || 'é') > 1",
    "v.g IS DISTINCT FROM 'a'",
    "TRY_CAST(v.g AS INTEGER) IS NULL",
    "v.d + INTERVAL 1 MONTH > DATE '2020-02-01'",
    "v.d::DATE - DATE '2020-01-02' >= 0",
    "DATE_DIFF('week', v.d, v.d + INTERVAL 9 DAY) = 1",
    "STRFTIME(v.d, '%Y') = '2020'",
    "v.k IN (SELECT j FROM p)",
    "EXISTS (SELECT * FROM q WHERE q.g = v.g)",
    "v.k NOT IN (SELECT j FROM p WHERE j IS NOT NULL)",
    "NOT EXISTS (SELECT * FROM q WHERE q.g = v.g AND q.f > 1)",
    "{k} % 2 = 1",
    "ROUND(LEAST(GREATEST({x}, -1), 2), 1) > 0.5",
]
KEYS = [
    "v.g",
    "{k}",
    "v.b",
    "LOWER(v.g)",
    "UPPER(v.g)",
    "YEAR(v.d)",
    "v.d",
    "{x}",
    "{x} > 1",
    "FLOOR({k} / 2)",
    "CASE WHEN {x} > 1 THEN 'a' WHEN v.g = 'b' THEN v.g ELSE 'z' END",
    "LEAST(GREATEST({k}, 0), 2)",
    "{n}",
    "{n} + {k}",
    "LEFT(v.g, 1)",
    "REPLACE(v.g, 'a', 'b') || '/'",
    "SPLIT_PART(v.g, ' ', 1)",
    "DATE_TRUNC('month', v.d)",
    "STRFTIME(v.d, '%m')",
    "EXTRACT(dow FROM v.d)",
    "{k} % 3",
    "WIDTH_BUCKET({x}, 0, 2, 2)",
]
AGGREGATES = [
    "COUNT(*)",
    "COUNT(*)",
    "COUNT({x})",
    "COUNT(DISTINCT v.u)",
    "COUNT(DISTINCT v.g)",
    "COUNT(DISTINCT {k})",
    "SUM({k})",
    "SUM({x})",
    "AVG({x})",
    "AVG({k})",
    "STDDEV({x})",
    "VARIANCE({k})",
    "MEDIAN({k})",
    "QUANTILE({k}, [0.25, 0.5, 0.75])",
    "CORR({k}, {x})",
    "COUNT(*) / SUM(COUNT(*)) OVER ()",
    "COVAR_POP(LEAST(GREATEST({x}, 0), 2), {k})",
    "REGR_SLOPE({k}, LEAST(GREATEST({x}, -1), 1)) FILTER (WHERE {k} > 0)",
    "MIN({x})",
    "MAX({k})",
    "SUM(LEAST(GREATEST({x}, 0), 2))",
    "SUM(LEAST(GREATEST({k}, -1), 2))",
    "SUM(CASE WHEN v.g = 'a' THEN {k} ELSE 1 END)",
    "SUM(CASE WHEN {x} > 1 THEN 1 ELSE 0 END)",
    "COUNT(CASE WHEN v.b THEN 1 END)",
    "SUM({k} * {k} - {k})",
    "SUM({n})",
    "SUM(ABS({k}) + 1)",
    "COUNT(DISTINCT {x})",
    "AVG(v.g = 'a')",
    "SUM(v.b)",
    "SUM(LEAST(LENGTH(v.g), 3))",
    "SUM({k} % 4)",
    "SUM(SQRT(LEAST(GREATEST({x}, 0), 2)))",
    "SUM(LN(LEAST(GREATEST({x}, 1), 3)))",
    "SUM(LEAST(GREATEST({x} / {k}, -1), 2))",
    "COUNT(SQRT({k} - 1))",
    "AVG(GREATEST(LN({x}), -1))",
    "AVG(ROUND(LEAST(GREATEST({x}, -1), 2), 1))",
    "SUM(POWER(LEAST(GREATEST({k}, -1), 2), 3))",
    "SUM(LEAST(GREATEST(TRY_CAST(v.g AS DOUBLE), 0), 1))",
    "SUM(DATE_DIFF('day', DATE '2020-01-01', v.d))",
    "COUNT(DISTINCT WEEK(v.d))",
]


def _sql(rng: random.Random) -> Question:
    source = "v" if rng.random() < 0.4 else rng.choice(list(JOINS))
    others = NAMES[JOINS[source]]

    def some(texts: list[str], most: int) -> tuple[str, ...]:
        found = []
        for text in rng.sample(texts, rng.choice([0, *range(most + 1)])):
            other = rng.choice(others) if others else "v.k"
            names = {"k": rng.choice(["v.k", "v.k", other]), "x": "v.x" if rng.random() < 0.8 else other, "n": other}
            found.append(text.format(**names))
        return tuple(dict.fromkeys(found))

    aggregates = some(AGGREGATES, 3) or ("COUNT(*)",)
    sets = rng.choice(["ROLLUP", "CUBE"]) if rng.random() < 0.15 else ""
    return Question(source=source, where=some(CONDITIONS, 2), keys=some(KEYS, 2), aggregates=aggregates, sets=sets)


# Python: frames, and every question by its name


def _rows(rng: random.Random) -> str:
    return rng.choice(
        [
            't("v")',
            't("v")',
            't("v").where("k > 0")',
            """t("v").where("g = 'a' OR x > 1")""",
            't("v").join(t("l"), on="u")',
            't("v").join(t("p"), on={"k": "j"})',
            't("v").join(t("p"), on={"u": "j"})',
            't("v").join(t("q"), on="g", how="left")',
            't("c")',
            't("c").join(t("o"), on="r")',
        ]
    )


def _whole(rng: random.Random) -> str:
    return rng.choice(
        ["LEAST(GREATEST(k, 0), 3)", "k", "LEAST(GREATEST(x, 0), 2)", "x", "CASE WHEN b THEN 1 ELSE 2 END"]
    )


def _framed(rng: random.Random) -> str:
    by = rng.choice(['.group_by("g")', '.group_by("b", n="LOWER(g)")', "", '.group_by(y="YEAR(d)")'])
    of = rng.choice(["count()", 'sum("LEAST(GREATEST(k, 0), 2)")', 'mean("LEAST(GREATEST(x, 0), 2)")', 'median("k")'])
    return f"{_rows(rng)}{by}.{of}"


def _choose(rng: random.Random) -> str:
    score = rng.choice(["COUNT(*)", "SUM(LEAST(GREATEST(v.k, 0), 2))", "SUM(LEAST(GREATEST(v.x, -1), 1))"])
    source = rng.choice(["v", "v JOIN l ON v.u = l.u", "v JOIN p ON v.k = p.j"])
    lead = rng.random() < 0.3
    return f"nz.Choose([0, 1, 2], score=lambda c: f'SELECT {score} FROM {source} WHERE v.k = {{c}}', lead={lead})"


def _best(rng: random.Random) -> str:
    score = rng.choice(["COUNT(*)", "SUM(LEAST(GREATEST(k, 0), 2))"])
    return f"nz.Best({{str(c): f'SELECT {score} AS n FROM v WHERE k = {{c}}' for c in (0, 1)}}, by='n', runs=2)"


def _above(rng: random.Random) -> str:
    of, most = rng.choice(["counts", "numbers"]), rng.choice([1, 2, 3, 4, 8])
    return f"nz.Above({rng.choice([0, 2])}, sensitivity={most}, of='{of}')"


def _cube(rng: random.Random) -> str:
    columns = {
        "k": "LEAST(GREATEST(k, 0), 2)",
        "g": "CASE WHEN g = 'a' THEN 'a' WHEN g = 'b' THEN 'b' ELSE 'z' END",
        "b": "b",
        "x": "x > 1",
        "plain": rng.choice(["g", "d", "k"]),
    }
    some = rng.sample(sorted(columns), rng.randint(1, 4))
    return f"nz.Cube({ {name: columns[name] for name in some} }, ways={rng.randint(1, len(some))}, of={_rows(rng)})"


def _map(rng: random.Random) -> str:
    x, y = rng.choice(["k", "LEAST(GREATEST(k, -1), 3)"]), rng.choice(["x", "LEAST(GREATEST(x, 0), 2)"])
    bounds = rng.choice(["None", "None", "(0, 0, 1, 1)", "(-1, 0, 2, 2)"])
    options = f"cells={rng.choice([1, 2, 3])}, bounds={bounds}, strategy={rng.choice(sorted(STRATEGIES))!r}"
    return f"nz.Map({x!r}, {y!r}, {options}, of={_rows(rng)})"


def _some(rng: random.Random) -> list[str]:
    return rng.sample(["k", "x", "d", "LEAST(GREATEST(k, 0), 3)"], rng.randint(1, 3))


def _weights(rng: random.Random) -> str:
    if rng.random() < 0.5:
        some = rng.sample(["b", "LEAST(GREATEST(k, 0), 3)", "x > 1", rng.choice(["g", "LOWER(g)"])], rng.randint(1, 3))
        return f"nz.MultiplicativeWeights({some}, rounds={rng.choice([1, 3])}, of={_rows(rng)})"
    columns = _some(rng)
    queries = (
        [{}, {columns[0]: [0, 1]}, {columns[-1]: [None, None]}] if "d" not in columns else [{}, {"d": [None, None]}]
    )
    total = rng.choice([None, 100])
    return (
        f"nz.MultiplicativeWeights({columns}, {queries}, bins={rng.choice([None, 4])}, total={total}, of={_rows(rng)})"
    )


COLUMNS = {"visits": "v", "patient_id": "u", "age": "k", "ward": "g", "diagnosis": "g", "cost": "x"}


def _as_json(file: str) -> Callable[[random.Random], str]:
    """The examples of a question as JSON, with tables and columns of these worlds in place of the hospital's."""
    examples = importlib.import_module(f"noisette.questions.{file}").examples
    names = re.compile(r"\b(" + "|".join(COLUMNS) + r")\b")
    texts = [names.sub(lambda name: COLUMNS[name[0]], example.to_json()) for example in examples]
    return lambda rng: f"nz.questions.from_json({rng.choice(texts)!r})"


PYTHON: dict[str, Callable[[random.Random], str]] = {
    "Flows": lambda rng: (
        'nz.Flows(("LEAST(GREATEST(k, 0), 2)", "LEAST(GREATEST(x, 0), 2)"), ("LEAST(GREATEST(k, -1), 2)", '
        f'"{rng.choice(["x", "LEAST(GREATEST(x, -1), 2)"])}"), cells={rng.choice([1, 2])}, of={_rows(rng)})'
    ),
    **{f"json {file}": _as_json(file) for file in FILES if file not in ("above", "apply", "stream")},
    "frame": _framed,
    "bounds": lambda rng: f"bounds('{rng.choice(['v', 'l'])}', '{rng.choice(['k', 'x', 'd', 'y'])}')",
    "Above": _above,
    "Apply": lambda rng: f"nz.Apply(lambda rows: 0.5, blocks=2, bounds=(0, 1), of={_rows(rng)})",
    "Best": _best,
    "Centre": lambda rng: f'nz.Centre("{rng.choice(["k", "x", "d"])}", of={_rows(rng)}{rng.choice(["", ", width=4"])})',
    "Choose": _choose,
    "Fourier": lambda rng: (
        f'nz.Fourier("{rng.choice(["k", "x", "d"])}", bins={rng.choice(["None", "8"])}, of={_rows(rng)})'
    ),
    "Hierarchy": lambda rng: f"nz.Hierarchy('b', {{'yes': [True], 'no': [False]}}, of={_rows(rng)})",
    "Histogram": lambda rng: (
        f'nz.Histogram("{rng.choice(["k", "x", "d", "b", "g", "FLOOR(x)"])}", bins={rng.choice(["None", "3", "700"])}, '
        f"unbiased={rng.random() < 0.3}, of={_rows(rng)})"
    ),
    "Workload": lambda rng: (
        f"nz.Workload([{{'k': [0, 1]}}, {{'k': [None, 2], {rng.choice(['b', 'LOWER(g)'])!r}: True}}, "
        f"{{{rng.choice(['x', 'd'])!r}: [None, None]}}], of={_rows(rng)})"
    ),
    "MultiplicativeWeights": _weights,
    "Oracle": lambda rng: (
        f"nz.Oracle({_some(rng)}, updates={rng.choice([1, 3])}, bins={rng.choice([None, 4])}, of={_rows(rng)})"
    ),
    "Stream": lambda rng: (
        f"nz.Stream('d', since='2020-01-01', until='2020-01-05', every='{rng.choice([1, 2])} days', "
        f"by={rng.choice(['None', repr('b'), repr('g'), repr('LEAST(GREATEST(k, 0), 3)')])}, "
        f"events={rng.choice([None, 1, 2])}, of={_rows(rng)}, "
        + rng.choice(
            ["window=2)", "ends='d')", "sum='x')", "sum='LEAST(GREATEST(k, -1), 2)')", "sum='x', window=2)", ")"]
        )
    ),
    "Ranges": lambda rng: (
        f'nz.Ranges("{rng.choice(["k", "x", "d", "LEAST(GREATEST(k, 0), 3)"])}", bins={rng.choice(["None", "5"])}, '
        f"prefixes={rng.random() < 0.3}, of={_rows(rng)})"
    ),
    "Distinct": lambda rng: f'nz.Distinct("{rng.choice(["g", "k", "x", "LOWER(g)"])}", most=4, of={_rows(rng)})',
    "SelfJoin": lambda rng: f'nz.SelfJoin("{rng.choice(["g", "k", "x", "LOWER(g)", "d"])}", most=4, of={_rows(rng)})',
    "FrequencySketch": lambda rng: (
        f'nz.FrequencySketch("{rng.choice(["g", "k", "x", "d"])}", width=8, of={_rows(rng)})'
    ),
    "HeavyHitters": lambda rng: f'nz.HeavyHitters("{rng.choice(["g", "k", "x", "d"])}", memory=3, of={_rows(rng)})',
    "Cube": _cube,
    "LeftOut": lambda rng: (
        "nz.LeftOut("
        + rng.choice(["rows=[1, 2, 4]", 'groups=[1, 2], by="g"', '"k", bounds=[(0, 1), (-1, 2)]'])
        + f", of={_rows(rng)})"
    ),
    "Map": _map,
    "Mode": lambda rng: f'nz.Mode("{rng.choice(["g", "k", "b", "d", "LOWER(g)"])}", of={_rows(rng)})',
    "Nearest": lambda rng: (
        'nz.Nearest("LEAST(GREATEST(k, 0), 3)", "LEAST(GREATEST(FLOOR(x), 0), 3)", place=(1, 1), '
        f'k=2, tell="{rng.choice(["distance", "place"])}", of={_rows(rng)})'
    ),
    "OrderStatistic": lambda rng: (
        f'nz.OrderStatistic("{_whole(rng)}", of={_rows(rng)}, by="{rng.choice(["smooth", "inverse"])}")'
    ),
    "Quantiles": lambda rng: (
        f'nz.Quantiles("{_whole(rng)}", {rng.choice([[0.5], [0, 1], [0.25, 0.5, 0.75], [0.1, 0.2, 0.3, 1]])}, '
        f"of={_rows(rng)})"
    ),
    "SparseTable": lambda rng: (
        f'nz.SparseTable(["LEAST(GREATEST(k, 0), 3)", "{rng.choice(["b", "x > 1", "g", "d", "x"])}"], '
        f"{rng.choice(['threshold=3', 'size=5', 'sample=4', 'sample=4, threshold=2'])}, of={_rows(rng)})"
    ),
    "Synthetic": lambda rng: (
        f'nz.Synthetic(["LEAST(GREATEST(k, 0), 3)", "{rng.choice(["b", "x > 1", "g", "d", "x"])}"], '
        f"bins={rng.choice([4, 256])}, strategy='{rng.choice(['rake', 'mst', 'aim'])}', of={_rows(rng)})"
    ),
    "Spread": lambda rng: f'nz.Spread("{rng.choice(["k", "x", "d"])}", of={_rows(rng)})',
    "Top": lambda rng: f'nz.Top("{rng.choice(["g", "k", "LOWER(g)"])}", 2, of={_rows(rng)})',
    "Triangles": lambda rng: (
        f'nz.Triangles("LEAST(GREATEST(k, 0), 3)", "LEAST(GREATEST(FLOOR(x), 0), 3)", of={_rows(rng)})'
    ),
    "TrimmedMean": lambda rng: f'nz.TrimmedMean("{_whole(rng)}", trim=1, of={_rows(rng)})',
}
"""How each question is written: as JSON, by its name in `noisette.questions`, and what can be asked besides."""


def streamed(curator: Any) -> list[Query]:
    """Questions of a stream: what `Above` compares with its threshold."""
    texts = [
        "SELECT COUNT(*) FROM v",
        "SELECT COUNT(DISTINCT u) FROM v WHERE k > 0",
        "SELECT SUM(LEAST(GREATEST(k, -1), 2)) FROM v",
    ]
    return [query_of(text, curator.schema) for text in texts]


def consulted(offer: Any) -> list[dict[str, Any]]:
    """Queries of an oracle: all rows, and one value of each column."""
    return [{}, *({axis.name: axis.label(axis.cells // 2)} for axis in offer.cells.axes)]
