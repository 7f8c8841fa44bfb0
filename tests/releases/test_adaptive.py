"""The adaptive tree: every branch of what it may measure, what each unit pays on it, and the law of small trees."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from noisette.errors import InputError
from noisette.mechanisms import Gaussian, Geometric
from noisette.privacy import Approx, Neighbours, Pure
from noisette.releases.adaptive import AdaptiveTree, one_node
from noisette.releases.consistent import consistent, gathered, projected
from noisette.releases.tree import Tree

ROW = one_node(1, Neighbours.ADD_REMOVE)
F = Fraction
TREES = [
    AdaptiveTree(Geometric(1), ROW, Tree(4, (4, 2, 1)), (F(1, 4), F(1, 4), F(1, 2))),
    AdaptiveTree(Geometric(2), ROW, Tree(3, (2, 1)), (F(2, 5), F(3, 5))),
    AdaptiveTree(Geometric("1/3"), ROW, Tree(2, (1,)), (F(1),)),
    AdaptiveTree(Geometric("1/2"), ROW, Tree(5, (4, 2, 1)), (F(1, 2), F(1, 4), F(1, 4))),
    AdaptiveTree(Gaussian(3), ROW, Tree(4, (4, 2, 1)), (F(3, 5), F(16, 25), F(12, 25))),
    AdaptiveTree(Gaussian(3), ROW, Tree(5, (4, 2, 1)), (F(3, 5), F(16, 25), F(12, 25))),
]
MANY, FEW = 1e9, -1e9


def transcript(made, script):
    """What is asked on one branch, (level, nodes, share) in turn; released numbers are large or small by a script."""
    asked, rest = [], iter(script)

    def ask(level, nodes, share):
        asked.append((level, nodes, share))
        return np.array([MANY if next(rest, True) else FEW for _ in nodes])

    made._walk(ask)
    return asked


def paid(made, asked, change):
    """What a unit pays that changes the cells by `change`: over measured nodes, share times change, or its square."""
    sums = [np.asarray(level) for level in made.tree.sums(np.array(change))]
    norm = (lambda v, w: (v * w) ** 2) if made.smooth else (lambda v, w: abs(v) * w)
    return sum((norm(int(sums[level][node]), share) for level, nodes, share in asked for node in nodes), F(0))


def branches(made):
    """Every branch once."""
    nodes = sum(made.tree.nodes(i) for i in range(made.tree.levels))
    found = [transcript(made, script) for script in itertools.product([False, True], repeat=min(9, 2 * nodes))]
    return list(
        {repr([(level, nodes.tolist(), share) for level, nodes, share in asked]): asked for asked in found}.values()
    )


def placements(cells, rows):
    return [
        tuple(np.bincount(some, minlength=cells))
        for some in itertools.combinations_with_replacement(range(cells), rows)
    ]


@pytest.mark.parametrize("made", TREES, ids=lambda made: f"{made.tree.cells} {type(made.noise).__name__}")
def test_a_row_pays_one_on_every_branch(made):
    found = {paid(made, asked, row) for asked in branches(made) for row in np.eye(made.tree.cells, dtype=int).tolist()}
    if made.smooth:  # shares that stop are rounded down
        assert max(found) == 1
        assert min(found) > 1 - F(1, 10**15)
    else:
        assert found == {F(1)}


@pytest.mark.slow
@pytest.mark.parametrize("made", TREES, ids=lambda made: f"{made.tree.cells} {type(made.noise).__name__}")
def test_a_unit_of_three_rows_pays_most_with_all_of_them_in_one_cell(made):
    cells = made.tree.cells
    most = 9 if made.smooth else 3
    for asked in branches(made):
        pays = {place: paid(made, asked, place) for place in placements(cells, 3)}
        assert max(pays.values()) <= most
        assert most - max(pay for place, pay in pays.items() if max(place) == 3) < F(1, 10**14)
        pairs = itertools.combinations(placements(cells, 2), 2)
        replaced = max(paid(made, asked, np.subtract(a, b)) for a, b in pairs)
        assert replaced <= (8 if made.smooth else 4)  # one_node(2, REPLACE)
    squares, l1 = one_node(2, Neighbours.REPLACE).l2_squared, one_node(2, Neighbours.REPLACE).l1
    assert (squares, l1) == (8, 4)


@pytest.mark.slow
def test_broken_twins_pay_more(monkeypatch):
    made, right = TREES[0], AdaptiveTree._children

    def generous(self, level, nodes):  # goes on below nodes that stopped
        return np.unique(np.concatenate([right(self, level, nodes), np.arange(self.tree.nodes(level + 1))]))

    row = [0, 1, 0, 0]
    monkeypatch.setattr(AdaptiveTree, "_children", generous)
    assert max(paid(made, asked, row) for asked in branches(made)) > 1
    monkeypatch.undo()
    monkeypatch.setattr(AdaptiveTree, "_rest", lambda self, level: F(1))  # a stopped node is measured with all again
    assert max(paid(made, asked, row) for asked in branches(made)) > 1


def law(made, x, values):
    """The probability of every transcript whose numbers are among `values`; the others are left out."""
    sums, found = made.tree.sums(np.array(x)), {}

    def walk(prefix, p):
        numbers = iter(prefix)

        def ask(level, nodes, share):
            got = list(itertools.islice(numbers, len(nodes)))
            if len(got) < len(nodes):
                raise MissingError(level, nodes[len(got)], share)
            return np.array(got, float)

        try:
            made._walk(ask)
        except MissingError as more:
            level, node, share = more.args
            for value in values:
                walk((*prefix, value), p * made.at(share).pmf(value, int(sums[level][node])))
            return
        found[prefix] = p

    walk((), 1.0)
    return found


class MissingError(Exception):
    """The walk asks for one more number."""


@pytest.mark.slow
@pytest.mark.parametrize(("x", "near"), [((0, 3), (1, 3)), ((2, 2), (2, 1)), ((5, 0), (6, 0))])
def test_the_law_of_a_small_tree_keeps_epsilon_and_reaches_it(x, near):
    made = AdaptiveTree(Geometric(1), ROW, Tree(2, (2, 1)), (F(2, 5), F(3, 5)), F(3))
    one, other = (law(made, table, range(-3, 9)) for table in (x, near))
    assert sum(one.values()) > 0.5
    assert {len(t) for t in one} == {2, 3}  # stopped, and not
    losses = [abs(math.log(one[t] / other[t])) for t in one]
    assert max(losses) == pytest.approx(1)
    twin = AdaptiveTree(Geometric("4/5"), ROW, made.tree, made.shares, made.patience)
    far = [
        abs(math.log(a / b))
        for a, b in zip(law(twin, x, range(-3, 9)).values(), law(twin, near, range(-3, 9)).values(), strict=True)
    ]
    assert max(far) > 1.2


def test_released_numbers_say_all():
    x = np.repeat([0, 3, 900, 0, 50], [100, 20, 30, 200, 50])
    for spend in (1, "1,1e-6"):
        made = AdaptiveTree.calibrated(spend, cells=400, gaussian=spend != 1)
        released = made.measure(x)
        assert np.array_equal(made.infer(made.read(released)), made.infer(made.read(released.copy())))
        levels = made.read(released)
        assert sum(len(level.y) + len(level.again) for level in levels) == len(released)
        found, counts = made.infer(levels), consistent(made.tree, levels)
        assert (found >= 0).all()
        assert found.sum() == pytest.approx(max(gathered(made.tree, levels)[0][0].sum(), 0))
        assert counts[0].sum() == pytest.approx(found.sum())


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("rows", [1, 5])
def test_guarantees_keep_the_promise_and_use_it(neighbours, rows):
    pure = AdaptiveTree.calibrated("1/2", cells=300, rows=rows, neighbours=neighbours)
    assert pure.guarantee() == Pure("1/2", neighbours=neighbours)
    promise = Approx("1/2", "1e-6", neighbours=neighbours)
    smooth = AdaptiveTree.calibrated(promise, cells=300, rows=rows, neighbours=neighbours, gaussian=True)
    assert smooth.guarantee() <= promise
    assert (
        not AdaptiveTree(
            Gaussian(smooth.noise.sigma * F(99, 100)), smooth.moved, smooth.tree, smooth.shares
        ).guarantee()
        <= promise
    )
    assert smooth.noise.sigma >= rows  # k, not sqrt(k), rows of a unit may be in one node


def test_the_noise_that_errs_less_is_taken():
    assert isinstance(AdaptiveTree.calibrated("1,1e-6", cells=10).noise, Geometric)
    assert isinstance(AdaptiveTree.calibrated("1,1e-2", cells=5000).noise, Gaussian)


@pytest.mark.parametrize("shares", [(F(1, 2),), (F(1, 2), F(3, 4)), (F(1), F(0))])
def test_bad_shares_are_refused(shares):
    with pytest.raises(InputError, match="share above 0 for each level"):
        AdaptiveTree(Geometric(1), ROW, Tree(4, (2, 1)), shares)


def test_without_noise_large_counts_are_exact():
    made = AdaptiveTree(Geometric("1/1000"), ROW, Tree(70, (16, 4, 1)), (F(1, 3),) * 3)
    x = np.arange(70) * 1000 + 500
    assert np.abs(made(x) - x).max() < 1  # fails with p < 1e-100: noise of scale 3/1000


def test_projections_are_the_nearest_points():
    rng = np.random.default_rng(7)
    rows, totals = rng.normal(size=(200, 5)) * 3, rng.uniform(0, 6, 200)
    rows[::7, 4] = -np.inf  # a child that is not there
    found = projected(rows, totals)
    assert np.allclose(found.sum(axis=1), totals)
    assert (found >= 0).all()
    for row, total, point in zip(rows, totals, found, strict=True):  # the conditions of Karush, Kuhn and Tucker
        inside = point > 1e-12
        cut = (row - point)[inside]
        assert np.allclose(cut, cut[0])
        assert (row[~inside] <= cut[0] + 1e-9).all()
        assert total == pytest.approx(point.sum())
