"""Smooth bounds and distances: against all small tables and graphs, their neighbours, and theirs in turn."""

import itertools
import math
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from tests.timing import times_as_long

import noisette as nz
from noisette.errors import InputError
from noisette.mechanisms.smooth.order import Order
from noisette.mechanisms.smooth.statistic import Fall, largest, near_logs, pieces, sensitivity_steps
from noisette.mechanisms.smooth.triangles import TriangleCount
from noisette.mechanisms.smooth.trimmed import Trimmed, TrimmedAverage

ADD_REMOVE, REPLACE = nz.Neighbours
TOP = 3
BETAS = [Fraction(1, 10), Fraction(1, 2), Fraction(2)]


def tables(n, top=TOP):
    return list(itertools.combinations_with_replacement(range(top + 1), n))


@cache
def neighbours(x, relation, top=TOP):
    """All neighbours whose values lie in 0 .. top, sorted."""
    less = {(*x[:i], *x[i + 1 :]) for i in range(len(x))}
    more = {tuple(sorted((*y, v))) for y in (less if relation is REPLACE else {x}) for v in range(top + 1)}
    return (more if relation is REPLACE else more | less) - {x}


def rank(x, q):
    """The value at rank q n by counting: the least value with at least q n values up to it; 0 if there is none."""
    return next((v for v in x if sum(w <= v for w in x) >= q * len(x)), 0)


def furthest(world, answer, around):
    """A_0, A_1, … of every table of a world: the largest local sensitivity within so many changes."""
    gaps = {x: max(abs(answer[x] - answer[y]) for y in around(x)) for x in world}
    while True:
        yield gaps
        gaps = {x: max(gaps[x], *(gaps[y] for y in around(x))) for x in world}


def changes(world, answer, around):
    """D(x, y) for every table and every answer, by search in the world."""
    distance = {(x, y): 0 if answer[x] == y else math.inf for x in world for y in set(answer.values())}
    while True:
        nearer = {
            (x, y): min(d, 1 + min((distance[z, y] for z in around(x) if z in answer), default=math.inf))
            for (x, y), d in distance.items()
        }
        if nearer == distance:
            return distance
        distance = nearer


def size(fall, beta):
    return fall.gap * math.exp(-beta * fall.changes)


def told(statistic, x):
    """The distance of every point of the span, as the statistic's pieces say."""
    table = statistic.read(x)
    sizes, distances = pieces(statistic.span, statistic.value(table), statistic.reaches(table))
    low, high = statistic.span
    assert sizes.sum() == high - low + 1
    return dict(zip(range(low, high + 1), np.repeat(distances, sizes).tolist(), strict=True))


# Quantiles


@pytest.mark.parametrize("q", ["1/2", "1/5", "3/4", 1])
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_the_smooth_sensitivity_of_a_quantile_is_that_of_all_tables(q, n):
    statistic, world = Order(q, 0, TOP, neighbours=REPLACE), tables(n)
    answer = {x: rank(x, statistic.q) for x in world}
    gaps = list(itertools.islice(furthest(world, answer, lambda x: neighbours(x, REPLACE)), n + 2))
    for x, beta in itertools.product(world, BETAS):
        table = statistic.read(list(x))
        assert statistic.value(table) == answer[x]
        brute = max(level[x] * math.exp(-beta * k) for k, level in enumerate(gaps))
        assert size(statistic.smooth(table, beta), beta) == pytest.approx(brute, rel=1e-12)


def off_by_one(x, beta, top=TOP):
    """A broken twin: the slide's formula, j <= k (erratum E14)."""
    m, padded = (len(x) + 1) // 2, [0] * len(x) + sorted(x) + [top] * (len(x) + 1)
    place = len(x) + m - 1
    return max(
        max(padded[place + j] - padded[place + j - k - 1] for j in range(k + 1)) * math.exp(-beta * k)
        for k in range(len(x) + 1)
    )


def is_smooth(world, answer, bound, around, beta):
    return all(
        abs(answer[x] - answer[y]) <= bound[x] * (1 + 1e-12) and bound[x] <= bound[y] * math.exp(beta) * (1 + 1e-12)
        for x in world
        for y in around(x)
        if y in answer
    )


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("q", ["1/2", "1/3", "9/10", 1])
@pytest.mark.parametrize("relation", nz.Neighbours)
def test_the_bound_is_smooth_and_covers_all_neighbours(q, relation):
    statistic = Order(q, 0, TOP, neighbours=relation)
    world = [x for n in range(6) if n or relation is ADD_REMOVE for x in tables(n)]
    answer = {x: rank(x, statistic.q) for x in world}
    for beta in BETAS:
        bound = {x: size(statistic.smooth(statistic.read(list(x)), beta), beta) for x in world}
        assert all(statistic.value(statistic.read(list(x))) == answer[x] for x in world)
        assert is_smooth(world, answer, bound, lambda x: neighbours(x, relation), beta)


def test_local_sensitivity_and_the_slides_formula_are_convicted():
    world, beta = tables(5), Fraction(1, 10)
    answer = {x: rank(x, Fraction(1, 2)) for x in world}
    local = {x: max(abs(answer[x] - answer[y]) for y in neighbours(x, REPLACE)) for x in world}
    for twin in (local, {x: off_by_one(x, beta) for x in world}):
        assert not is_smooth(world, answer, twin, lambda x: neighbours(x, REPLACE), beta)


@pytest.mark.parametrize("q", ["1/2", "1/5", "2/3", 1])
@pytest.mark.parametrize("relation", nz.Neighbours)
def test_the_distances_of_a_quantile_are_those_of_a_search(q, relation):
    statistic, top = Order(q, 0, 2, neighbours=relation), 2
    world = tables(4, top) if relation is REPLACE else [x for n in range(10) for x in tables(n, top)]
    answer = {x: rank(x, statistic.q) for x in world}
    true = changes(world, answer, lambda x: neighbours(x, relation, top))
    known = {x: told(statistic, list(x)) for x in world}
    exact = relation is REPLACE or statistic.q == Fraction(1, 2)
    for x in (x for x in world if len(x) <= 4):
        for y in range(top + 1):
            assert 0 <= true[x, y] - known[x][y] <= (0 if exact or y in x else 1)
            assert all(abs(known[x][y] - known[z][y]) <= 1 for z in neighbours(x, relation, top))


def naive(table, first, last, beta):
    falls = (
        Fall(int(table[j] - table[i]), j - i - 1 - (last - first))
        for i in range(first + 1)
        for j in range(last, len(table))
        if j - i - 1 >= last - first
    )
    return max(size(fall, beta) for fall in falls)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("beta", [Fraction(1, 1000), Fraction(1, 20), Fraction(1), Fraction(30)])
def test_halving_finds_what_all_pairs_have(beta):
    draw = np.random.default_rng()
    for n in (1, 2, 7, 60, 150):
        for top in (1, 5, 10**6, 2**58):
            x = draw.integers(0, top, n, endpoint=True)
            for statistic in (Order("1/2", 0, top), Order("1/7", -top, 2 * top, neighbours=REPLACE)):
                table = statistic.read(x)
                m = math.ceil(statistic.q * n)
                assert size(statistic.smooth(table, beta), beta) == pytest.approx(naive(table, m, m, beta), rel=1e-9)


@pytest.mark.parametrize(
    ("x", "beta", "known"),
    [
        ([0, 3, 4, 7, 10], "1/10", 7.4081822068171785),
        ([0, 3, 4, 7, 10], 1, 3.0),
        ([4, 5, 5, 6, 9], "1/2", 2.4261226388505337),
    ],
)
def test_known_values(x, beta, known):
    """Found by others, over all tables of five values in 0 .. 10."""
    statistic = Order("1/2", 0, 10, neighbours=REPLACE)
    assert size(statistic.smooth(statistic.read(x), Fraction(beta)), Fraction(beta)) == pytest.approx(known, rel=1e-12)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("spread", [10**9, 3])
def test_ten_times_as_many_records_take_at_most_about_ten_times_as_long(spread):
    statistic, x = Order("1/2", 0, 2**40), 2**39 + np.random.default_rng(1).integers(0, spread, 100_000)
    many, few = (lambda x=x: statistic.smooth(statistic.read(x), Fraction(1, 100)) for x in (x, x[:10_000]))
    assert times_as_long(many, few, rounds=3) < 50  # a comparison of all pairs takes a hundred times as long


def test_ties_of_floats_are_decided_exactly():
    """3 for no change and 7 for one are as much, to 30 places of beta = ln(7/3): the next place decides."""
    with mpmath.workdps(60):
        near = Fraction(int(mpmath.floor(mpmath.log(mpmath.mpf(7) / 3) * 10**30)), 10**30)
    gaps, changes = np.array([3, 7]), np.array([0, 1])
    assert largest(gaps, changes, near) == 1
    assert largest(gaps, changes, near + Fraction(1, 10**30)) == 0
    assert near_logs(gaps, changes, near)[0] == pytest.approx(near_logs(gaps, changes, near)[1])


def test_steps_cover_the_gap_and_no_more():
    for gap, step in itertools.product(
        (1, 2, 3, 10, 10**6, 2**60), (Fraction(1, 64), Fraction(1, 70), Fraction(1, 999))
    ):
        j = sensitivity_steps(gap, step)
        assert math.exp(step * j) >= gap * (1 - 1e-12)
        assert gap == 1 or math.exp(step * (j - 1)) < gap


# Trimmed sums


@pytest.mark.parametrize(("n", "trim"), [(1, 0), (3, 0), (4, 0), (3, 1), (4, 1), (5, 1), (5, 2)])
def test_the_smooth_sensitivity_of_a_trimmed_sum_is_that_of_all_tables(n, trim):
    statistic, world = Trimmed(n, 0, TOP, trim=trim), tables(n)
    answer = {x: sum(x[trim : n - trim]) for x in world}
    gaps = list(itertools.islice(furthest(world, answer, lambda x: neighbours(x, REPLACE)), n + 2))
    for x, beta in itertools.product(world, BETAS):
        table = statistic.read(list(x))
        assert statistic.value(table) == answer[x]
        brute = max(level[x] * math.exp(-beta * k) for k, level in enumerate(gaps))
        assert size(statistic.smooth(table, beta), beta) == pytest.approx(brute, rel=1e-12)


@pytest.mark.parametrize("n", [1, 2, 4])
def test_the_distances_of_a_sum_are_those_of_a_search(n):
    statistic, world = Trimmed(n, 0, TOP), tables(n)
    true = changes(world, {x: sum(x) for x in world}, lambda x: neighbours(x, REPLACE))
    for x in world:
        assert told(statistic, list(x)) == {y: true[x, y] for y in range(n * TOP + 1)}


def trimmed_mean(x, trim, parts):
    kept = x[trim : len(x) - trim] if len(x) > 2 * trim else ()
    return math.floor(Fraction(parts * sum(kept), len(kept))) if kept else 0


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("trim", "parts"), [(0, 1), (0, 12), (1, 12), (2, 7)])
def test_the_bound_of_a_trimmed_mean_is_smooth_and_covers_all_neighbours(trim, parts):
    statistic, world = TrimmedAverage(0, TOP, trim=trim, parts=parts), [x for n in range(9) for x in tables(n)]
    answer = {x: trimmed_mean(x, trim, parts) for x in world}
    read = {x: statistic.read(list(x)) for x in world}
    assert all(statistic.value(read[x]) == answer[x] for x in world)
    for beta in (*BETAS, Fraction(10)):
        bound = {x: size(statistic.smooth(read[x], beta), beta) for x in world}
        assert is_smooth(world, answer, bound, lambda x: neighbours(x, ADD_REMOVE), beta)


@pytest.mark.parametrize(("trim", "parts"), [(0, 12), (1, 12)])
def test_the_bound_of_a_trimmed_mean_is_above_that_of_all_tables_and_not_far(trim, parts):
    statistic, beta = TrimmedAverage(0, TOP, trim=trim, parts=parts), Fraction(1, 2)
    world = [x for n in range(11) for x in tables(n)]
    inner = {x for x in world if len(x) < 10}
    answer = {x: trimmed_mean(x, trim, parts) for x in world}
    gaps = {x: max(abs(answer[x] - answer[y]) for y in neighbours(x, ADD_REMOVE)) for x in inner}
    true = dict.fromkeys(inner, 0.0)
    for k in range(5):
        true = {x: max(true[x], gaps[x] * math.exp(-beta * k)) for x in inner}
        gaps = {x: max(gaps[x], *(gaps.get(y, 0) for y in neighbours(x, ADD_REMOVE))) for x in inner}
    ratios = [size(statistic.smooth(statistic.read(list(x)), beta), beta) / true[x] for x in inner if len(x) < 6]
    assert min(ratios) >= 1 - 1e-12
    assert sorted(ratios)[len(ratios) // 2] < 2


class Nearer(TrimmedAverage):
    """A broken twin: gaps are divided by as many values as are left, as if none could go."""

    def _gaps(self, table):
        m = len(table) - 2 - 2 * self.trim
        k = np.arange(max(0, m - 1))
        return -(-super()._gaps(table) * (m - 1 - k) // (m + 1))


class Still(TrimmedAverage):
    """A broken twin: the gaps of the table at hand, whatever could change."""

    def smooth(self, table, beta):
        return Fall(max(1, int((*self._gaps(table), self.furthest)[0])), 0)


@pytest.mark.parametrize(("twin", "beta"), [(Nearer, Fraction(2)), (Still, Fraction(1, 10))])
def test_broken_trimmed_means_are_convicted(twin, beta):
    world = [x for n in range(7) for x in tables(n)]
    answer = {x: trimmed_mean(x, 1, 12) for x in world}
    for kind, right in ((TrimmedAverage, True), (twin, False)):
        statistic = kind(0, TOP, trim=1, parts=12)
        bound = {x: size(statistic.smooth(statistic.read(list(x)), beta), beta) for x in world}
        assert is_smooth(world, answer, bound, lambda x: neighbours(x, ADD_REMOVE), beta) is right


def test_a_trimmed_mean_of_many_records_moves_little():
    statistic, x = TrimmedAverage(-(10**6), 10**6, trim=200, parts=1000), np.random.default_rng().normal(0, 300, 50_000)
    table = statistic.read(x.astype(int))
    fall = statistic.smooth(table, Fraction(1, 10))
    kept = np.sort(x.astype(int))[200:-200]
    assert statistic.value(table) == math.floor(1000 * int(kept.sum()) / len(kept))
    assert 1 <= size(fall, Fraction(1, 10)) <= 1000 * 1000 / 49_000
    with pytest.raises(InputError, match="use Smooth"):
        statistic.reaches(table)


# TriangleCount


def graphs(nodes):
    edges = list(itertools.combinations(range(nodes), 2))
    world = [frozenset(kept) for k in range(len(edges) + 1) for kept in itertools.combinations(edges, k)]

    def triangles(graph):
        return sum(
            {(a, b), (a, c), (b, c)} <= graph for a, b, c in itertools.combinations(range(nodes), 3)
        )  # fmt: skip

    return world, {g: triangles(g) for g in world}, lambda g: [g ^ {edge} for edge in edges]


@pytest.mark.parametrize("nodes", [3, 4, 5])
def test_gaps_of_triangles_are_those_of_all_graphs(nodes):
    statistic, (world, answer, around) = TriangleCount(nodes), graphs(nodes)
    levels = list(itertools.islice(furthest(world, answer, around), 2 * nodes))
    for g in world:
        graph = statistic.read(sorted(g))
        assert statistic.value(graph) == answer[g]
        gaps = [*graph.gaps.tolist(), *[nodes - 2] * len(levels)]
        assert gaps[: len(levels)] == [level[g] for level in levels]


@pytest.mark.slow
def test_rungs_move_by_one_at_most_and_never_claim_too_many_changes():
    statistic, (world, answer, around) = TriangleCount(4), graphs(4)
    true = changes(world, answer, around)
    rungs = {g: told(statistic, sorted(g)) for g in world}
    for g in world:
        assert all(rungs[g][answer[h]] <= true[g, answer[h]] for h in world)
        assert all(abs(rungs[g][y] - rungs[h][y]) <= 1 for h in around(g) for y in range(5))
    statistic, (world, _, around) = TriangleCount(5), graphs(5)
    rungs = {g: told(statistic, sorted(g)) for g in world}
    assert all(abs(rungs[g][y] - rungs[h][y]) <= 1 for g in world for h in around(g) for y in range(11))


@pytest.mark.slow
def test_a_large_graph():
    draw = np.random.default_rng()
    edges = draw.integers(0, 500, (4000, 2))
    statistic, edges = TriangleCount(500), edges[edges[:, 0] != edges[:, 1]]
    graph = statistic.read(edges)
    adjacent = np.zeros((500, 500), int)
    adjacent[edges[:, 0], edges[:, 1]] = adjacent[edges[:, 1], edges[:, 0]] = 1
    assert graph.triangles == np.trace(adjacent @ adjacent @ adjacent) // 6
    assert graph.gaps[-1] == 498
    reach, _ = statistic.reaches(graph)
    assert reach[-1] >= statistic.span[1] - graph.triangles > reach[-2]


# Refusals

LISTS = [math.nan, None, "12", True, [1.5, 2], [[1, 2], [3]], [[1, 2]], [1, None], ["a"], [True, 1], {}, 3]


@pytest.mark.parametrize("bad", LISTS, ids=repr)
@pytest.mark.parametrize("statistic", [Order("1/2", 0, 9), Trimmed(2, 0, 9), TrimmedAverage(0, 9), TriangleCount(5)])
def test_bad_tables_are_refused_in_a_sentence(statistic, bad):
    if isinstance(statistic, TriangleCount) and bad == [[1, 2]]:
        return
    with pytest.raises(InputError) as error:
        statistic.read(bad)
    assert str(error.value).endswith(".")
    assert ". " not in str(error.value)


@pytest.mark.parametrize("edges", [[(0, 5)], [(-1, 0)], [(2, 2)], [(0, 1, 2)], [0, 1]])
def test_bad_edges_are_refused(edges):
    with pytest.raises(InputError):
        TriangleCount(5).read(edges)


def test_bad_parameters_are_refused():
    for make in (
        lambda: Order(0, 0, 9), lambda: Order("3/2", 0, 9), lambda: Order("1/2", 9, 9), lambda: Order("1/2", 0, 2**61),
        lambda: Order("1/2", 0, 1.5), lambda: Order("1/2", 0, 9, neighbours=1), lambda: Trimmed(4, 0, 9, trim=2),
        lambda: Trimmed(0, 0, 9), lambda: Trimmed(2**30, 0, 2**31), lambda: TriangleCount(2),
        lambda: TriangleCount(10**6),
        lambda: TrimmedAverage(0, 9, trim=-1), lambda: TrimmedAverage(0, 9, parts=0), lambda: TrimmedAverage(9, 0),
        lambda: TrimmedAverage(0, 2**40, parts=2**30), lambda: TrimmedAverage(0, 2**40, parts=2**19).read([1] * 9),
    ):  # fmt: skip
        with pytest.raises(InputError):
            make()
    with pytest.raises(InputError):
        Order("1/2", 0, 9, neighbours=REPLACE).read([])
    with pytest.raises(InputError):
        Trimmed(3, 0, 9).read([1, 2])


def test_values_beyond_the_bounds_count_as_the_bounds():
    statistic = Order("1/2", 0, 9)
    assert statistic.read([-5, 4, 10**30]).tolist() == statistic.read([0, 4, 9]).tolist()
