"""Triangles through a curator: which rows are edges, every neighbour of small graphs, what is told and refused."""

import datetime
import itertools
import math
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pyarrow
import pytest

import noisette as nz
from noisette.engines.duckdb.source import DuckDB
from noisette.errors import InputError
from noisette.query.schema import Limits

ADD_REMOVE, REPLACE = nz.Neighbours.ADD_REMOVE, nz.Neighbours.REPLACE
TOWNS = ["A", "B", "C", "D", "E"]
SECRET = bytes(range(16))
DAYS = [datetime.date(2024, 2, 27 + i) for i in range(3)]
VERTICES = {"a": {"keys": TOWNS}, "b": {"keys": TOWNS}}


def table(people):
    """Rows (person, a, b) of people, each with a list of texts such as "AB"; a dot is NULL."""
    rows = [(i, *(None if end == "." else end for end in edge)) for i, edges in enumerate(people) for edge in edges]
    types = {"person": pyarrow.int64(), "a": pyarrow.string(), "b": pyarrow.string()}
    return pyarrow.table(
        {name: pyarrow.array([row[i] for row in rows], t) for i, (name, t) in enumerate(types.items())}
    )


@lru_cache
def schema(limit):
    rules = {"t": {"unit": "person", "rows": limit, "columns": VERTICES}}
    return nz.open({"t": table([])}, budget=1, policy={"tables": rules}).schema


class Graphs:
    """Many small tables in one engine, each of which is read once."""

    def __init__(self, tables):
        self.names = {repr(people): f"t{i}" for i, people in enumerate(tables)}
        self.source, self.known = DuckDB({f"t{i}": table(p) for i, p in enumerate(tables)}, threads=1), {}

    def edges(self, offer, people):
        """What the mechanism would be called with."""
        name, request = self.names[repr(people)], offer.procedure.prepared.request
        key = name, request.limits
        if key not in self.known:
            request = replace(request, source=replace(request.source, table=name))
            moved, described = replace(offer.procedure.prepared, request=request), replace(schema(1)["t"], name=name)
            self.known[key] = offer.procedure.statistic.records(moved, self.source, {name: described}, SECRET)
        return self.known[key]

    def worst(self, offer, pairs):
        """The largest probability by which two laws exceed e^epsilon of each other."""
        eps = float(offer.guarantee.epsilon)
        gaps = [0.0]
        for pair in pairs:
            one, other = (offer.procedure.mechanism.outcomes(self.edges(offer, people)) for people in pair)
            for p, q in ((one, other), (other, one)):
                gaps.append(sum(max(0.0, p[y] - math.exp(eps) * q[y]) for y in p))
        return max(gaps)


OPTIONS = [("A.",), ("AB",), ("CC",), ("BA", "AC"), ("DE", "DE"), ("AX",), ("DE", "AE", "BE")]
RESTS = [
    [],
    [("AB",), ("BC",), ("AC",)],
    [("AC", "AD", "AE"), ("BC",), ("BD",), ("BE",)],
    [tuple(map("".join, itertools.combinations(TOWNS, 2)))] * 2,
]
TABLES = [*RESTS, *([*rest, option] for rest in RESTS for option in OPTIONS)]


def neighbours(relation):
    if relation is ADD_REMOVE:
        return [(rest, [*rest, option]) for rest in RESTS for option in OPTIONS]
    return [([*rest, a], [*rest, b]) for rest in RESTS for a, b in itertools.combinations(OPTIONS, 2)]


@pytest.fixture(scope="module")
def graphs():
    return Graphs(TABLES)


@pytest.mark.slow
@pytest.mark.parametrize("relation", nz.Neighbours, ids=str)
@pytest.mark.parametrize("limit", [1, 2])
@pytest.mark.parametrize("by", ["smooth", "inverse"])
def test_triangles_hide_every_person(graphs, relation, limit, by):
    offer = nz.Triangles("a", "b", by=by).offer(schema(limit), nz.Pure(3), relation, 0.95)
    assert offer.guarantee <= nz.Pure(3, neighbours=relation)
    assert graphs.worst(offer, neighbours(relation)) <= 1e-12


@pytest.mark.slow
def test_one_edge_more_of_each_person_shows():
    """Two books: whoever owns both of their spines moves the number by twice what noise for one edge hides."""
    pages = 10
    books = [(s + i, s + 2 + page) for s in (0, pages + 2) for i in (0, 1) for page in range(pages)]
    spines = [(0, 1), (pages + 2, pages + 3)]
    last = {"bounds": [0, 2 * pages + 3], "nullable": False}
    rules = {"t": {"unit": "person", "rows": 1, "columns": {"a": last, "b": last}}}

    def opened(rows):
        owners = [*range(len(books)), -1, -1][: len(rows)]
        data = {"person": owners, "a": [a for a, _ in rows], "b": [b for _, b in rows]}
        return nz.open({"t": pyarrow.table(data)}, budget=1, policy={"tables": rules})

    def excess(limits):
        laws = []
        for curator in (opened(books), opened(books + spines)):
            offer = nz.Triangles("a", "b", by="smooth").offer(curator.schema, nz.Pure(3), ADD_REMOVE, 0.95)
            assert offer.procedure.prepared.request.limits == Limits(rows=1)
            request = replace(offer.procedure.prepared.request, limits=limits)
            kept = replace(offer.procedure.prepared, request=request)
            wide = replace(offer.procedure.mechanism, span=(-500, 2500))
            laws.append(wide.outcomes(offer.procedure.statistic.records(kept, curator._source, curator.schema, SECRET)))
        return max(sum(max(0.0, p[y] - math.exp(3) * q[y]) for y in p) for p, q in itertools.permutations(laws))

    assert excess(Limits(rows=1)) <= 1e-12
    assert excess(Limits(rows=2)) > 1e-3


# Which rows are edges


def edges_of(people, limit=9):
    offer = nz.Triangles("a", "b").offer(schema(limit), nz.Pure(1), ADD_REMOVE, 0.95)
    source = DuckDB({"t": table(people)}, threads=1)
    found = offer.procedure.statistic.records(offer.procedure.prepared, source, schema(limit), SECRET)
    return {frozenset((TOWNS[i], TOWNS[j])) for i, j in found.tolist()}, offer, found


@pytest.mark.slow
def test_loops_nulls_and_strangers_are_no_edges_and_repeats_are_one():
    people = [("AB", "BA", "AB"), ("CC", ".A", "B.", "..", "AX", "YZ"), ("BC",)]
    found, offer, numbers = edges_of(people)
    assert found == {frozenset("AB"), frozenset("BC")}
    assert offer.procedure.mechanism.statistic.value(offer.procedure.mechanism.statistic.read(numbers)) == 0
    found, offer, numbers = edges_of([*people, ("CA",)])
    assert offer.procedure.mechanism.statistic.value(offer.procedure.mechanism.statistic.read(numbers)) == 1


@pytest.mark.slow
def test_vertices_are_those_of_the_policy_and_not_of_the_data():
    for people in ([], [("AB",)], [("XY", "A.")]):
        _, offer, _ = edges_of(people)
        assert offer.procedure.mechanism.statistic.nodes == len(TOWNS)


def test_a_person_counts_with_so_many_edges():
    found, _, _ = edges_of([("AB", "AC", "AD", "AE")], limit=2)
    assert len(found) == 2


@pytest.mark.parametrize(
    ("values", "rules"),
    [
        ([1, 2, 3, 4], {"bounds": [1, 4]}),
        (["x", "y", "z"], {"keys": ["x", "y", "z"], "nullable": False}),
        ([1.0, 2.0, 7.0], {"keys": [1, 2, 7]}),
        (DAYS, {"bounds": [DAYS[0], DAYS[-1]]}),
    ],
    ids=["whole numbers", "texts", "reals", "dates"],
)
def test_vertices_of_any_type(values, rules):
    pairs = list(itertools.combinations(values, 2))
    data = pyarrow.table({"a": [a for a, _ in pairs], "b": [b for _, b in pairs]})
    policy = {"tables": {"t": {"columns": {"a": rules, "b": rules}}}}
    curator = nz.open({"t": data}, budget=1000, policy=policy)
    answer = curator.ask(nz.Triangles("a", "b"), spend=90)
    assert answer.rows()[0]["triangles"] == math.comb(len(values), 3)
    assert answer.unit == "row"


def test_whole_numbers_beyond_their_bounds_make_no_edge():
    """As the nearer bound 99 would be 3, and -50 would be 1: then there were a triangle more."""
    data = pyarrow.table({"a": [1, 2, 1, 1, 2, -50], "b": [2, 3, 3, 2, 99, 3]})  # 1-2, 2-3, 1-3
    policy = {"tables": {"t": {"columns": {"a": {"bounds": [1, 3]}, "b": {"bounds": [1, 3]}}}}}
    curator = nz.open({"t": data}, budget=1000, policy=policy)
    assert curator.ask(nz.Triangles("a", "b"), spend=90).rows()[0]["triangles"] == 1
    few = nz.open({"t": data.slice(3)}, budget=1000, policy=policy)
    assert few.ask(nz.Triangles("a", "b"), spend=90).rows()[0]["triangles"] == 0


# Through a curator


@pytest.fixture
def friends():
    rng = np.random.default_rng(3)
    nodes = 60
    pairs = [(i, j) for i in range(nodes) for j in range(i) if rng.random() < 0.2]
    data = pyarrow.table(
        {
            "one": [f"p{i}" for i, _ in pairs],
            "other": [f"p{j}" for _, j in pairs],
            "year": rng.integers(2000, 2020, len(pairs)),
            "note": ["?"] * len(pairs),
        }
    )
    names = [f"p{i}" for i in range(nodes)]
    columns = {"one": {"keys": names}, "other": {"keys": names}, "year": {"bounds": [2000, 2019]}}
    return nz.open(
        {"friends": data}, budget=nz.Approx(1000, "1e-4"), policy={"tables": {"friends": {"columns": columns}}}
    ), pairs


def count(pairs):
    edges = {frozenset(pair) for pair in pairs}
    nodes = sorted({node for pair in pairs for node in pair})
    return sum(
        all(frozenset(side) in edges for side in itertools.combinations(three, 2))
        for three in itertools.combinations(nodes, 3)
    )


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("by", [None, "smooth", "inverse"])
@pytest.mark.parametrize("spend", [nz.Pure(2), nz.Approx(2, "1e-7"), nz.ZCDP(2)], ids=repr)
def test_the_answer_is_near(friends, by, spend):
    curator, pairs = friends
    true = count(pairs)
    answer = curator.ask(nz.Triangles("one", "other", by=by), spend=spend, level=1 - 1e-6)
    [row] = answer.rows()
    assert isinstance(row["triangles"], int)
    assert row["triangles_low"] <= true <= row["triangles_high"]


@pytest.mark.slow
def test_both_ends_are_alike_and_the_same_question_is_free(friends):
    curator, _ = friends
    first = curator.ask(nz.Triangles("one", "other"), spend=1)
    assert curator.ask(nz.Triangles("other", "one", of=curator.table("friends")), spend=1).rows() == first.rows()
    assert (
        curator.ask(nz.Triangles("other", "one"), spend=1, level=0.5)["triangles"].values == first["triangles"].values
    )
    assert len(curator.budget.entries) == 1
    late = curator.table("friends").where("year >= 2015")
    curator.ask(nz.Triangles("one", "other", of=late), spend=1)
    assert len(curator.budget.entries) == 2


def test_the_better_mechanism_is_chosen_without_the_data(friends):
    curator, _ = friends
    found = {by: curator.explain(nz.Triangles("one", "other", by=by), spend=1) for by in (None, "smooth", "inverse")}
    assert found[None].columns == found["smooth"].columns
    assert "vertices" in repr(found[None])
    assert curator.budget.entries == ()


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (lambda: nz.Triangles("one", "one"), "two columns"),
        (lambda: nz.Triangles("one", "note"), "vertices must be public"),
        (lambda: nz.Triangles("one", "year"), "of one sort"),
        (lambda: nz.Triangles("one", "nothing"), "nothing"),
        (lambda: nz.Triangles("one", 7), "b must be a text"),
        (lambda: nz.Triangles("one", "other", by="count"), "by must"),
        (lambda: nz.Triangles("one", "other", of="the friends"), "of must"),
        (lambda: nz.Triangles("year >= 2005", "year >= 2006"), "3 to 2,000"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_questions_get_one_sentence_and_cost_nothing(friends, question, said):
    curator, _ = friends
    for ask in (curator.ask, curator.explain):
        with pytest.raises(InputError, match=said) as caught:
            ask(question(), spend=1)
        assert str(caught.value).endswith(".")
        assert "p1" not in str(caught.value)
    assert curator.budget.entries == ()


def test_a_person_with_unlimited_edges_and_too_many_vertices_are_refused():
    data = pyarrow.table({"person": [1], "a": [1], "b": [2]})
    rules = {"columns": {"a": {"bounds": [0, 10**9]}, "b": {"bounds": [0, 5]}}}
    curator = nz.open({"t": data}, budget=9, policy={"tables": {"t": {**rules, "unit": "person"}}})
    with pytest.raises(InputError, match="how many rows of one person"):
        curator.ask(nz.Triangles("a", "b"), spend=1)
    curator = nz.open({"t": data}, budget=9, policy={"tables": {"t": rules}})
    with pytest.raises(InputError, match="3 to 2,000"):
        curator.ask(nz.Triangles("a", "b"), spend=1)
    assert curator.budget.entries == ()


@pytest.mark.parametrize(
    "people", [[], [("..",)], [("XX", "YY")], [("AB",) * 50]], ids=["none", "null", "strange", "many"]
)
def test_nothing_in_the_data_is_an_error(people):
    for extra in ([], [("AB", "CD", ".X")]):  # without and with the victim
        policy = {"tables": {"t": {"unit": "person", "rows": 2, "columns": VERTICES}}}
        curator = nz.open({"t": table([*people, *extra])}, budget=100, policy=policy)
        for by in ("smooth", "inverse"):
            [row] = curator.ask(nz.Triangles("a", "b", by=by), spend=1).rows()
            assert 0 <= row["triangles"] <= 10


@pytest.mark.slow
def test_two_thousand_vertices():
    rng = np.random.default_rng(0)
    data = pyarrow.table({"a": rng.integers(0, 2000, 20_000), "b": rng.integers(0, 2000, 20_000)})
    columns = {name: {"bounds": [0, 1999], "nullable": False} for name in "ab"}
    curator = nz.open({"t": data}, budget=10, policy={"tables": {"t": {"columns": columns}}})
    [row] = curator.ask(nz.Triangles("a", "b", by="inverse"), spend=1).rows()
    assert 0 <= row["triangles"] < 3000
