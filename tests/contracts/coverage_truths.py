"""What questions of `test_coverage_of_questions.py` answer without noise, computed plainly of the rows.

A truth gets the rows as arrays, the name of a number and the values beside it: the row of the answer.
"""

import json
from ast import literal_eval
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack
from scipy.sparse.csgraph import maximum_bipartite_matching
from tests.contracts.coverage_rows import KEYS, SIDE

import noisette as nz
from noisette.exact.random import SYSTEM
from noisette.releases.sketches.frequencies import CountSketch

LEVEL = 0.95


# How numbers are told apart


def of_answer(offer, drawn, columns):
    """The numbers with bars of an answer, by the values of the other columns."""
    beside = [column.values.to_pylist() for column in columns if not column.measured]
    many = len(columns[0].values)
    keys = list(zip(*beside, strict=True)) if beside else [()] * many
    for column in columns:
        if column.measured:
            value = column.values.to_numpy(zero_copy_only=False).astype(float)
            yield keys, column.name, value, np.asarray(column.low, float), np.asarray(column.high, float)


def estimated(*values):
    """The answer, and what its value estimates for each of some values."""

    def shown(offer, drawn, columns):
        yield from of_answer(offer, drawn, columns)
        table = offer.value(drawn).estimate(list(values))
        numbers = (table.column(name).to_numpy() for name in ("count", "count_low", "count_high"))
        yield [(value,) for value in values], "estimate", *numbers

    return shown


def counted(*asked):
    """The answer, and what its value counts for each of some conditions."""

    def shown(offer, drawn, columns):
        yield from of_answer(offer, drawn, columns)
        value = offer.value(drawn)
        found = [value.count(*one) for one in asked]
        parts = np.array([(one.n if hasattr(one, "n") else one.value, one.low, one.high) for one in found], float).T
        yield [(repr(one),) for one in asked], "count", *parts

    return shown


def read(offer, source, schema):
    return offer.draw(source, schema, bytes(16))


def in_blocks(offer, source, schema):
    """What is made of the outputs for ten blocks: to run a function is dear, and has no noise."""
    return offer.procedure.aggregate.draw([one.tobytes() for one in blocks_of(source.t)], SYSTEM)


@dataclass(frozen=True)
class Asked:
    """A question, its truth, and how it is drawn and shown; a stream `asks` in a session of its own."""

    question: Any
    truth: Callable[..., float]
    times: int = 300
    delta: bool = False
    draw: Callable[..., Any] = read
    shown: Callable[..., Any] = of_answer
    asks: Callable[..., Any] | None = None

    def releases(self, world, spend, times):
        """The numbers of each of many releases: keys, name, numbers, and both ends of their bars."""
        promise = nz.privacy.as_promise(f"{spend},1e-6" if self.delta else spend)
        if self.asks is not None:
            for i in range(times):
                session = world.curator.stream(replace(self.question, name=f"{spend} {i}"), spend=promise)
                yield list(self.asks(session))
            return
        offer = self.question.offer(world.curator.schema, promise, nz.Neighbours.ADD_REMOVE, LEVEL)
        for _ in range(times):
            drawn = self.draw(offer, world, world.curator.schema)
            [columns] = offer.answers(drawn)
            yield list(self.shown(offer, drawn, columns))


# Truths


def number(value):
    """One number, of all rows."""
    return lambda t, name, *key: value(t)


def among(t, **values):
    """How many rows have these values; None is any."""
    chosen = np.ones(len(t), bool)
    for name, value in values.items():
        if value is not None:
            chosen &= t[name] == value
    return int(chosen.sum())


def meeting(t, query):
    """How many rows meet a query such as {"x": [0, 7], "k": "a"}."""
    chosen = np.ones(len(t), bool)
    for name, value in query.items():
        low, high = value if isinstance(value, list | tuple) else (value, value)
        if low is not None:
            chosen &= t[name] >= low
        if high is not None:
            chosen &= t[name] <= high
    return int(chosen.sum())


def lower_median(t):
    return float(np.sort(t["x"])[(len(t) - 1) // 2]) if len(t) else np.nan


def quartile_range(t):
    """The s-th largest less the s-th smallest, s = n/4 rounded down and one more."""
    x, s = np.sort(t["x"]), len(t) // 4 + 1
    return float(x[-s] - x[s - 1]) if len(t) else np.nan


def centres(t, name, *key):
    return lower_median(t) if name == "centre" else quartile_range(t)


def at(q):
    return lambda t: float(np.quantile(t["x"], q, method="inverted_cdf")) if len(t) else np.nan


def ranked(t):
    """The value at rank 9/10 n, rounded up; of no rows the lower bound."""
    return float(np.sort(t["x"])[int(np.ceil(0.9 * len(t))) - 1]) if len(t) else 0.0


def trimmed(t):
    kept = np.sort(t["x"])[10 : len(t) - 10]
    return float(kept.mean()) if len(kept) else 0.0


def leads(t, scores, chosen):
    found = scores(t)
    return found[chosen] - max(score for name, score in found.items() if name != chosen)


def by_key(t):
    return {key: among(t, k=key) for key in KEYS}


def credited(t, limit):
    """How many values can be credited, each to a unit that holds it, at most `limit` to a unit."""
    if not len(t):
        return 0
    _, who = np.unique(t["who"], return_inverse=True)
    _, what = np.unique(t["x"], return_inverse=True)
    once = csr_array((np.ones(len(t)), (what, who)), (what.max() + 1, who.max() + 1))
    graph = csr_array(hstack([once] * limit))
    graph.indices, graph.indptr = (part.astype(np.int32) for part in (graph.indices, graph.indptr))  # for older scipy
    return int((maximum_bipartite_matching(graph, perm_type="column") >= 0).sum())


def flows(t, name, *middles):
    cell = [int(middle // 4) for middle in middles]
    ends = t["x"] // 4, t["y"] // 4, (SIDE - 1 - t["x"]) // 4, (SIDE - 1 - t["y"]) // 4
    return int(np.logical_and.reduce([end == one for end, one in zip(ends, cell, strict=True)]).sum())


def left_by_rows(t, name, limit):
    _, many = np.unique(t["who"], return_counts=True)
    over = np.maximum(many - limit, 0)
    lost, whole = over.sum(), many.sum()
    return {"units": (over > 0).sum(), "left_out": lost, "share": lost / whole if whole else np.nan}[name]


def left_by_bounds(t, name, low, high):
    below, above = (t["x"] < low).sum(), (t["x"] > high).sum()
    return {"below": below, "above": above, "share": (below + above) / len(t) if len(t) else np.nan}[name]


def pairs(t):
    return int((np.unique(t["x"], return_counts=True)[1] ** 2).sum())


def triangles(t):
    edge = np.zeros((SIDE, SIDE), int)
    edge[t["x"], t["y"]] = edge[t["y"], t["x"]] = 1
    np.fill_diagonal(edge, 0)
    return int(np.trace(edge @ edge @ edge)) // 6


def sketched(t, name, *key):
    if name == "estimate":
        return among(t, u=key[0])
    values, many = np.unique(t["u"], return_counts=True)
    return float(CountSketch.of(values.tolist(), many, depth=3, width=16, key=0).cells[key])


def grouped_keys(t, name, group, key):
    return among(t, k=key) if key is not None else sum(among(t, k=one) for one in GROUPS[group])


def lines(column):
    def truth(t, name, key):
        if name == "n":
            return among(t, **{column: key})
        low, high = literal_eval(key)
        return meeting(t, {column: [low, high]})

    return truth


def of_cube(t, name, marginal, k, x):
    return among(t, k=k, x=x)


def of_sparse(t, name, *key):
    if name == "n":
        return among(t, x=key[0], y=key[1])
    return meeting(t, *literal_eval(key[0]))


def weighted(t, name, query):
    return meeting(t, json.loads(query))


def mwem_cells(t, name, cell):
    return meeting(t, {part.split(" = ")[0]: _typed(part.split(" = ")[1]) for part in cell.split(", ")})


def _typed(text):
    return text if text in KEYS else int(text)


def best(t, name, label):
    low = {"below": 16, "all": 32}[label]
    x = t["x"][t["x"] < low]
    if name == "score":
        return x.sum()
    return x.mean() if len(x) else np.nan


def of_sql(t, name, u):
    t = t.where(t["u"] == u)
    return len(t) if name == "n" else t["x"].mean() if len(t) else np.nan


def blocks_of(t):
    """What a function gave for each of ten blocks, the middle of the bounds where it failed."""
    found = np.full(10, 15.5)
    found[: min(10, len(t))] = t["x"][:: max(1, len(t) // 10)][:10]
    return found


# Streams


def queries_of(session):
    """What an oracle answers, one query after the other."""
    for query in [*QUERIES, QUERIES[0]]:
        one = session.ask(query)
        yield [(json.dumps(query),)], "value", *np.array([[one.value], [one.low], [one.high]], float)


def alerts_of(session):
    """What is above a threshold, of each key until the stream ends."""
    for key in KEYS:
        if session.left and (one := session.ask(f"SELECT COUNT(*) AS n FROM t WHERE k = '{key}'")):
            yield [(key,)], "value", *np.array([[one.value], [one.low], [one.high]], float)


def steps_of(session):
    """What is published after each of four days."""
    for _ in range(4):
        session.step()
    table = session.to_arrow()
    keys = list(zip(table["until"].to_pylist(), table["k"].to_pylist(), strict=True))
    yield keys, "n", *(table[name].to_numpy().astype(float) for name in ("n", "n_low", "n_high"))


def so_far(t, name, until, key):
    return int(((t["day"] < np.datetime64(until)) & (t["k"] == key)).sum())


GROUPS = {"one": ["a", "c"], "two": ["b"], "three": ["d"]}


def _mean(rows):
    return float(rows["x"].to_numpy().mean())


QUERIES = [{"x": [0, 3]}, {"x": [4, 30]}, {"x": [31, None]}, {"k": "a", "x": [0, 15]}, {"k": "d"}]
ENDS = [(0, 15), (3, 3), (28, 31), (1, 30)]
_CUT = "SELECT SUM(x) AS score, AVG(x) AS mean FROM t WHERE x < {0}"

TRUTHS = {
    "above": Asked(nz.Above(60, positives=2, sensitivity=2), lambda t, name, key: among(t, k=key), 40, asks=alerts_of),
    "apply": Asked(
        nz.Apply(_mean, blocks=10, bounds=(0, SIDE - 1)), number(lambda t: float(blocks_of(t).mean())), draw=in_blocks
    ),
    "apply median": Asked(
        nz.Apply(_mean, blocks=10, bounds=(0, SIDE - 1), aggregate="median"),
        number(lambda t: float(np.quantile(blocks_of(t), 0.5, method="inverted_cdf"))),
        draw=in_blocks,
    ),
    "best": Asked(nz.Best({"below": _CUT.format(16), "all": _CUT.format(32)}, by="score", runs=2), best, 30),
    "centre": Asked(nz.Centre("x", width=4), centres, delta=True),
    "centre spread": Asked(nz.Centre("x"), centres, 100, delta=True),
    "choose": Asked(
        nz.Choose(KEYS, score="SELECT COUNT(*) FROM t WHERE k = '{}'".format, lead=True),
        lambda t, name, chosen: leads(t, by_key, chosen),
    ),
    "cube": Asked(nz.Cube(["k", "x"]), of_cube),
    "distinct": Asked(nz.Distinct("x"), lambda t, name, limit: credited(t, limit)),
    "flows": Asked(nz.Flows(("x", "y"), (f"{SIDE - 1} - x", f"{SIDE - 1} - y"), cells=8), flows),
    "fourier": Asked(nz.Fourier("x", most=9), lines("x"), shown=counted(*ENDS)),
    "frequency_sketch": Asked(
        nz.FrequencySketch("u", width=16, depth=3), sketched, shown=estimated("u0", "u5", "u7", "u9", "none")
    ),
    "heavy_hitters": Asked(
        nz.HeavyHitters("u", memory=4),
        lambda t, name, u: among(t, u=u),
        delta=True,
        shown=estimated("u0", "u5", "u7", "u9", "none"),
    ),
    "hierarchy": Asked(nz.Hierarchy("k", GROUPS), grouped_keys),
    "left_out": Asked(nz.LeftOut(rows=[1, 2]), left_by_rows),
    "left_out bounds": Asked(nz.LeftOut("x", bounds=[(0, 15), (5, 31), (10, 20)]), left_by_bounds),
    "mode": Asked(nz.Mode("k", lead=True), lambda t, name, chosen: leads(t, by_key, chosen)),
    "multiplicative_weights": Asked(nz.MultiplicativeWeights(["k", "x"], QUERIES, rounds=3), weighted),
    "multiplicative_weights ways": Asked(nz.MultiplicativeWeights(["k", "x"], ways=1), mwem_cells),
    "order_statistic": Asked(nz.OrderStatistic("x", "9/10", by="smooth"), number(ranked)),
    "oracle": Asked(nz.Oracle(["k", "x"], updates=3), weighted, 40, asks=queries_of),
    "quantiles": Asked(
        nz.Quantiles("x", ["1/10", "1/2", "9/10"]), lambda t, name, *key: at(int(name.split("_")[1]) / 100)(t)
    ),
    "ranges": Asked(nz.Ranges("x"), lines("x"), shown=counted(*ENDS)),
    "self_join": Asked(nz.SelfJoin("x", most=64), number(pairs)),
    "sparse_table": Asked(nz.SparseTable(["x", "y"], size=5), of_sparse),
    "sparse_table sample": Asked(
        nz.SparseTable(["x", "y"], sample=40), of_sparse, 150, shown=counted(({"x": (0, 3)},), ({"y": (31, 31)},))
    ),
    "spread": Asked(nz.Spread("x"), number(quartile_range), 150, delta=True),
    "sql": Asked(nz.Sql("SELECT u, COUNT(*) AS n, AVG(x) AS mean FROM t GROUP BY u"), of_sql, delta=True),
    "stream": Asked(
        nz.Stream("day", since="2024-01-01", until="2024-01-05", by="k", events=2), so_far, 40, asks=steps_of
    ),
    "top": Asked(nz.Top("u", 2), lambda t, name, u: among(t, u=u), delta=True),
    "triangles": Asked(nz.Triangles("x", "y"), number(triangles)),
    "triangles inverse": Asked(nz.Triangles("x", "y", by="inverse"), number(triangles)),
    "trimmed_mean": Asked(nz.TrimmedMean("x", 10), number(trimmed)),
    "workload": Asked(nz.Workload(QUERIES), weighted),
}
"""What is asked, by file."""

ELSEWHERE = {
    "histogram": "tests/contracts/test_coverage_of_releases.py::test_bars_of_histograms_hold_for_each_range",
    "map": "tests/contracts/test_coverage_of_releases.py::test_bars_of_maps_hold_for_each_region",
}
"""Questions that are judged by another test."""

WITHOUT_BARS = {
    "nearest": nz.Nearest("x", "y", place=(3, 4), k=20),
    "synthetic": nz.Synthetic(["k", "x"]),
}
"""Questions whose numbers have no bars."""
