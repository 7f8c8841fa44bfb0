"""Named strategies for maps: what a row pays on every branch, exact laws of small maps, and broken twins."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from tests.goodness import fewest, most

from noisette.errors import InputError
from noisette.exact.random import SYSTEM
from noisette.mechanisms import Exponential, Gaussian, Geometric
from noisette.privacy import Neighbours
from noisette.releases.adaptive import one_node
from noisette.releases.maps import levels
from noisette.releases.maps.boxes import Layer, halves
from noisette.releases.maps.grids import AdaptiveGrid, UniformGrid
from noisette.releases.maps.kd_tree import KdTree, ranks
from noisette.releases.maps.priv_tree import UNIT, PrivTree, path_constant
from noisette.releases.maps.quadtree import QuadTree
from noisette.releases.maps.transcript import Sums, drawn

ADD_REMOVE, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
F = Fraction

TREES = {
    "quadtree": QuadTree.calibrated(1, shape=(4, 4)),
    "quadtree that stops": QuadTree.calibrated(1, shape=(4, 5), patience=3),
    "quadtree of cubes": QuadTree.calibrated(1, shape=(3, 2, 2), patience=3),
    "quadtree, gaussian": QuadTree.calibrated("1,1e-6", shape=(4, 5), patience=3, gaussian=True),
    "kd-tree": KdTree.calibrated(1, shape=(5, 4), kd_levels=3, patience=3),
    "hybrid": KdTree.calibrated(1, shape=(5, 4), kd_levels=2, quad_levels=2, patience=3),
    "uniform grid": UniformGrid.calibrated(1, shape=(6, 7)),
    "adaptive grid": AdaptiveGrid.calibrated(1, shape=(31, 22)),
}


# What a row pays on every branch


def transcript(made, rng):
    """All that is asked on one branch: (noise, boxes), or the boxes whose medians are chosen."""
    asked = []

    def ask(many, draw):
        if hasattr(draw, "args"):  # counts of boxes
            noise, low, high = draw.args
            asked.append((noise, low, high))
            assert len(low) == many
            return rng.choice([-1e6, -1.0, 40.0, 1e6], many)
        known = dict(zip(draw.__code__.co_freevars, (cell.cell_contents for cell in draw.__closure__), strict=True))
        chosen = known["chosen"]
        asked.append((None, known["low"][chosen], known["high"][chosen]))
        length = (known["high"] - known["low"])[chosen, known["axis"][chosen]]
        return rng.integers(0, length - 1).astype(float)

    made._walk(ask)
    return asked


def paid(made, asked, cell):
    """What one row in a cell pays: what each box that holds it costs."""
    total = F(0)
    for noise, low, high in asked:
        times = int(((low <= cell) & (high > cell)).all(axis=1).sum())
        total += times * (2 / made.scale if noise is None else worth(noise))
    return total


def worth(mechanism):
    """What a mechanism is worth for one row, up to a factor of 2 for Gaussian noise."""
    if isinstance(mechanism, Gaussian):
        return 1 / mechanism.sigma**2
    return (2 if isinstance(mechanism, Exponential) else 1) / mechanism.scale


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("name", TREES)
def test_a_row_pays_for_each_level_once_on_every_branch(name):
    made, rng = TREES[name], np.random.default_rng(1)
    limit = sum((worth(mechanism) for mechanism, _ in made.parts), F(0))
    cells = np.indices(made.shape).reshape(len(made.shape), -1).T[::7]
    found = {paid(made, asked, cell) for asked in (transcript(made, rng) for _ in range(25)) for cell in cells}
    assert max(found) <= limit
    assert max(found) > limit * (1 - F(1, 10**12))
    if "gaussian" not in name:
        assert limit == 1
        assert name in ("kd-tree", "hybrid") or min(found) == 1  # a box of two cells needs no median


def test_a_tree_that_measures_stopped_boxes_with_everything_is_found(monkeypatch):
    made, rng = TREES["quadtree that stops"], np.random.default_rng(1)
    monkeypatch.setattr(levels, "together", lambda noise: Geometric(1))
    asked = [transcript(made, rng) for _ in range(20)]
    assert max(paid(made, one, np.zeros(2)) for one in asked) > 1


# Exact laws


def law(made, x, values):
    """The probability of every transcript of counts whose numbers are among `values`."""
    sums, found = Sums.of(np.array(x), made.shape), {}

    def walk(prefix, p):
        numbers = iter(prefix)

        def ask(many, draw):
            got = list(itertools.islice(numbers, many))
            if len(got) < many:
                noise, low, high = draw.args
                place = slice(len(got), len(got) + 1)
                raise MissingError(noise, int(sums.within(low[place], high[place])[0]))
            return np.array(got, float)

        try:
            made._walk(ask)
        except MissingError as more:
            noise, exact = more.args
            for value in values:
                walk((*prefix, value), p * noise.pmf(value, exact))
            return
        found[prefix] = p

    walk((), 1.0)
    return found


class MissingError(Exception):
    """The walk asks for one more number."""


def losses(made, x, near, values):
    one, other = law(made, x, values), law(made, near, values)
    assert one.keys() == other.keys()
    return [abs(math.log(one[t] / other[t])) for t in one], {len(t) for t in one}, sum(one.values())


SQUARE = QuadTree.calibrated(1, shape=(2, 2), patience="1/2")
PAIR = QuadTree.calibrated(1, shape=(1, 2), patience="1/2")
LINE = UniformGrid.calibrated(4, shape=(1, 3), total="1/4")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "x", "near", "values", "lengths"),
    [
        (SQUARE, [[0, 1], [2, 0]], [[0, 1], [3, 0]], range(-1, 3), {2, 5}),
        (PAIR, [[0, 3]], [[1, 3]], range(-2, 5), {2, 3}),
        (LINE, [[2, 1, 0]], [[2, 1, 1]], range(0, 21, 4), {2, 3, 4}),
    ],
    ids=["2 x 2", "two cells", "grid"],
)
def test_the_law_of_a_small_map_keeps_epsilon_and_reaches_it(made, x, near, values, lengths):
    epsilon = float(made.guarantee().epsilon)
    found, seen, _ = losses(made, x, near, values)
    assert seen == lengths
    assert max(found) == pytest.approx(epsilon)
    twin = type(made)(made.shape, tuple(Geometric(one.scale * F(4, 5)) for one in made.noise), made.moved)
    assert max(losses(twin, x, near, values)[0]) > 1.2 * epsilon


def small_tables(length, most_rows):
    return [
        np.bincount(some, minlength=length)
        for n in range(most_rows + 1)
        for some in itertools.combinations_with_replacement(range(length), n)
    ]


def split_law(table, scale):
    scores = ranks(Sums.of(np.array([table]), (1, len(table))), np.array([0, 0]), np.array([1, len(table)]), 1)
    return Exponential(scale, candidates=len(scores)).pmf(np.arange(len(scores)), scores)


def median_losses(scale):
    """The largest loss of a split of four cells with up to four rows, by a row more and by a row replaced."""
    tables = {tuple(table): split_law(table, scale) for table in small_tables(4, 5)}
    add, swap, cells = 0.0, 0.0, np.eye(4, dtype=int)
    for table, one in tables.items():
        for cell, other in itertools.product(range(4), repeat=2):
            more, moved = tuple(table + cells[cell]), tuple(table + cells[cell] - cells[other])
            add = max(add, np.abs(np.log(one / tables[more])).max()) if more in tables else add
            swap = max(swap, np.abs(np.log(one / tables[moved])).max()) if moved in tables else swap
    return add, swap


@pytest.mark.slow
def test_medians_lose_what_their_sensitivity_says():
    add, swap = median_losses(F(2))  # scores are twice ranks: 2 times 1/2 rank, and 1 rank
    assert 0.7 < add <= 1
    assert 1.2 < swap <= 2
    twin = median_losses(F(1))  # it takes the sensitivity for half of what it is
    assert twin[0] > 1
    assert twin[1] > 2


def test_stated_guarantees_of_medians_use_both_directions():
    for rows, neighbours in itertools.product((1, 3), (ADD_REMOVE, REPLACE)):
        made = KdTree.calibrated(1, shape=(16, 16), rows=rows, neighbours=neighbours, kd_levels=3)
        k = rows if neighbours is ADD_REMOVE else 2 * rows
        assert 3 * F(2 * k) / made.scale == F(3, 10)


# PrivTree


def splits(made, b):
    """P(b plus noise is above 0), to full relative precision, and P(not)."""
    a, b = -1 / float(made.structure.scale), int(b)
    if b <= 0:
        p = math.exp(a * (1 - b)) / (1 + math.exp(a))
        return math.log(p), math.log1p(-p)
    q = math.exp(a * b) / (1 + math.exp(a))
    return math.log1p(-q), math.log(q)


def path_loss(made, counts, rows=1):
    """The largest loss over all depths at which the path of a row may end, in both directions."""
    up, worst = 0.0, 0.0
    for depth, c in enumerate(counts):
        one, other = (splits(made, made.biased(np.array(n), depth)) for n in (c, c + rows))
        worst = max(worst, abs(up + other[1] - one[1]))
        up += other[0] - one[0]
        worst = max(worst, abs(up))
    return worst


def small_paths(depth, most_rows):
    return itertools.combinations_with_replacement(range(most_rows, -1, -1), depth)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("shape", [(1024,), (1024, 1024), (64, 64, 64)], ids=["line", "plane", "space"])
@pytest.mark.parametrize("epsilon", ["1/10", 1, 8], ids=str)
def test_every_path_of_counts_keeps_the_budget_of_the_bits(shape, epsilon):
    made = PrivTree.calibrated(epsilon, shape=shape)
    limit = float(F(epsilon)) / 2
    assert max(path_loss(made, path) for path in small_paths(5, 6)) <= limit
    step = made.decay / UNIT
    long = [[math.ceil(first - fall * depth) for depth in range(40)] for first in range(40) for fall in (0, 0.5)]
    falling = [[round(start * step * 9 * (1 - depth / 40)) for depth in range(40)] for start in (0.5, 1, 2)]
    worst = max(path_loss(made, np.maximum(path, 0)) for path in [*long, *falling, *near_worst(made)])
    assert worst <= limit
    assert worst > limit * (0.95 if epsilon == "1/10" else 0.5)


def near_worst(made):
    """Constant counts that come to lie just above 0 at some depth, less than a decay before they are clamped."""
    step = made.decay / UNIT
    return [[max(0, math.ceil(k * step) + more) for _ in range(k + 2)] for k in range(1, 12) for more in (-1, 0, 1)]


def test_more_rows_and_both_relations_cost_in_proportion():
    for rows, neighbours in itertools.product((1, 3), (ADD_REMOVE, REPLACE)):
        made = PrivTree.calibrated(1, shape=(256, 256), rows=rows, neighbours=neighbours)
        assert made.guarantee().epsilon == 1
        times = 1 if neighbours is ADD_REMOVE else 2
        assert times * max(path_loss(made, path, rows) for path in [*small_paths(4, 5), *near_worst(made)]) <= 0.5


def test_priv_tree_without_decay_loses_more_at_every_depth():
    made = PrivTree.calibrated(1, shape=(1024, 1024))
    twin = PrivTree.calibrated(1, shape=(1024, 1024))
    object.__setattr__(twin, "decay", 0)
    assert path_loss(made, [0] * 10) <= 0.5
    assert path_loss(twin, [1] * 10) > 1


def structures(made, x):
    """The probability of every structure of a small map."""
    sums = Sums.of(np.array(x), made.shape)

    def below(low, high, depth):
        """{leaves: probability} of one box."""
        if (high - low).max() == 1:
            return {(tuple(low),): 1.0}
        yes, no = splits(made, made.biased(sums.within(low[None], high[None])[0], depth))
        found = {(tuple(low),): math.exp(no)}
        parts = [below(a, b, depth + 1) for a, b in zip(*halves(low[None], high[None])[:2], strict=True)]
        for some in itertools.product(*(part.items() for part in parts)):
            leaves = tuple(itertools.chain(*(leaf for leaf, _ in some)))
            found[leaves] = math.exp(yes) * math.prod(p for _, p in some)
        return found

    return below(np.zeros(len(made.shape), int), np.array(made.shape), 0)


@pytest.mark.parametrize("neighbours", [ADD_REMOVE, REPLACE], ids=["add or remove", "replace"])
def test_the_law_of_all_structures_keeps_the_budget(neighbours):
    made = PrivTree.calibrated(2, shape=(4, 2), neighbours=neighbours)
    tables = [
        np.reshape(x, (4, 2)) for x in [[0] * 8, [1] + [0] * 7, [1, 1, 0, 0, 2, 0, 0, 0], [3, 0, 0, 1, 0, 0, 0, 1]]
    ]
    for x in tables:
        one = structures(made, x)
        assert math.fsum(one.values()) == pytest.approx(1)
        for cell in np.ndindex(4, 2):
            more = x.copy()
            more[cell] += 1
            if neighbours is REPLACE:
                more[np.unravel_index(x.argmax(), x.shape)] -= 1
            if more.min() < 0:
                continue
            other = structures(made, more)
            assert max(abs(math.log(one[t] / other[t])) for t in one) <= 1


def test_bits_and_counts_together_need_both_budgets():
    """A twin whose counts are bought with the budget of the bits again loses more than is stated."""
    made = PrivTree.calibrated(1, shape=(1024, 1024))
    twin = PrivTree(made.shape, made.structure, made.decay, Geometric(1), made.moved)
    bits = max(path_loss(made, path) for path in near_worst(made))
    assert bits + 1 / float(made.counts.scale) <= 1
    assert bits + 1 / float(twin.counts.scale) > 1.2
    assert twin.guarantee().epsilon > 1


def test_the_drawn_bits_have_the_stated_chance():
    """Each of the six bounds fails with a probability below 1e-12 for a sound tree."""
    made, many = PrivTree.calibrated(1, shape=(1, 2)), 20_000
    one = Layer.whole(made.shape)
    layer = Layer(*(np.repeat(part, many, axis=0) for part in (one.low, one.high, one.parent, one.kind, one.y)))
    for count, depth in ((0, 0), (3, 1), (30, 2)):
        sums = Sums.of(np.array([[count, 0]]), made.shape)
        hits = int(drawn(lambda ask, at=depth: made._splits(ask, layer, at), sums, SYSTEM).sum())
        p = math.exp(splits(made, made.biased(np.array(count), depth))[0])
        assert fewest(many, p) <= hits <= most(many, p)
        assert not fewest(many, 0.9 * p) <= hits <= most(many, 0.9 * p)


def test_a_decay_that_is_too_small_is_refused():
    made = PrivTree.calibrated(1, shape=(16, 16))
    with pytest.raises(InputError, match="decay must be at least"):
        PrivTree(made.shape, made.structure, made.decay - 2, made.counts, made.moved)


def test_the_path_constant_is_below_the_published_one_and_above_its_terms():
    for beta in (2, 4, 8, 16):
        terms = 1 + math.fsum(1 / (2 * beta**r - 1) for r in range(60))
        assert terms < path_constant(beta) * (1 + F(1, 10**12))
        assert path_constant(beta) < F(2 * beta - 1, beta - 1)


# What one unit moves


def test_units_of_several_rows_move_a_level_as_stated():
    for rows, neighbours in itertools.product((1, 2, 3), (ADD_REMOVE, REPLACE)):
        for name in ("quadtree", "uniform grid", "adaptive grid"):
            made = type(TREES[name]).calibrated("1/2", shape=(8, 8), rows=rows, neighbours=neighbours)
            assert made.moved == one_node(rows, neighbours)
            assert made.guarantee().epsilon == F(1, 2)
            assert sum(made.moved.l1 / one.scale for one in made.noise) == F(1, 2)
