"""The adaptive map: every branch of what it may measure, what each unit pays on it, and the law of tiny maps."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from noisette.errors import InputError, PrivacyError
from noisette.mechanisms import Gaussian, Geometric
from noisette.privacy import Approx, Neighbours, Pure
from noisette.releases.adaptive import at_share, one_node
from noisette.releases.consistent import consistent, gathered
from noisette.releases.maps.adaptive import AdaptiveMap
from noisette.releases.maps.stored import kept_map, map_table

F = Fraction
ROW = one_node(1, Neighbours.ADD_REMOVE)
MANY, FEW = 1e9, -1e9


def small(noise, shape, blocks):
    """A tiny map with all of its promise divided."""
    if isinstance(noise, Gaussian):  # squares: 2/100 and at most 98/100
        shares = {2: (F(7, 10), F(7, 10)), 3: (F(5, 10), F(6, 10), F(60, 100))}[len(blocks) + 1]
        return AdaptiveMap.laid(noise, ROW, shape, blocks, shares, (F(1, 10), F(1, 10)))
    shares = {2: (F(1, 4), F(3, 5)), 3: (F(1, 4), F(1, 4), F(7, 20))}[len(blocks) + 1]
    return AdaptiveMap.laid(noise, ROW, shape, blocks, shares, (F(1, 10), F(1, 20)))


MAPS = {
    "2 x 2": small(Geometric(1), (2, 2), ((1, 1),)),
    "2 x 3": small(Geometric(2), (2, 3), ((1, 2),)),
    "1 x 4": small(Geometric("1/2"), (1, 4), ((1, 1), (1, 2))),
    "2 x 2, normal": small(Gaussian(3), (2, 2), ((1, 1),)),
    "2 x 3, normal": small(Gaussian(3), (2, 3), ((1, 2),)),
    "1 x 4, normal": small(Gaussian(3), (1, 4), ((1, 1), (1, 2))),
}
each_map = pytest.mark.parametrize("name", MAPS)


def share_of(made, noise):
    return made.noise.sigma / noise.sigma if made.smooth else made.noise.scale / noise.scale


def asked(made, script, x):
    """The exact numbers of one branch and the shares they are measured with; a script says which noisy ones are large.

    The exact counts must be as many as are announced.
    """
    rest, found = iter(script), []

    def take(exact, many, noise):
        if many:
            counts, share = exact(), share_of(made, noise)
            assert len(counts) == many
            found.extend((int(count), share) for count in counts)
        return np.array([MANY if next(rest, True) else FEW for _ in range(many)])

    made._walk(np.array(x).reshape(made.shape), take)
    return found


def branches(made):
    """For every branch, what each cell adds to each measured number, and the shares: exact counts are linear."""
    decisive = sum(made.shape) + sum(a * b for a, b in made.blocks) + 4  # along the axes, nodes; others are skipped
    rows, found = np.eye(math.prod(made.shape), dtype=int), {}
    for script in itertools.product([True, False], repeat=min(decisive, 8)):
        one = asked(made, script, rows.sum(axis=0))
        if tuple(one) not in found:
            counts = [[count for count, _ in asked(made, script, row)] for row in rows]
            found[tuple(one)] = np.array(counts).T, [share for _, share in one]
    return list(found.values())


def paid(made, branch, change):
    """What a unit pays that changes the cells by `change`: over measured numbers, share times change, or its square."""
    moved, total = branch[0] @ change, F(0)
    for one, share in zip(moved.tolist(), branch[1], strict=True):
        if one:
            total += (one * share) ** 2 if made.smooth else abs(one) * share
    return total


def placements(cells, rows):
    return [np.bincount(some, minlength=cells) for some in itertools.combinations_with_replacement(range(cells), rows)]


@pytest.mark.slow
@each_map
def test_a_row_pays_one_on_every_branch(name):
    made = MAPS[name]
    known = branches(made)
    assert len(known) > 3
    found = {paid(made, branch, row) for branch in known for row in np.eye(math.prod(made.shape), dtype=int)}
    if made.smooth:  # shares of the rest are rounded down
        assert 1 - F(1, 50) < min(found) <= max(found) <= 1
    else:
        assert found == {F(1)}


@pytest.mark.slow
@each_map
def test_a_unit_of_several_rows_pays_most_with_all_of_them_in_one_cell(name):
    made = MAPS[name]
    cells = math.prod(made.shape)
    two, three = placements(cells, 2), placements(cells, 3)
    for branch in branches(made):
        alone = max(paid(made, branch, place) for place in three if max(place) == 3)
        assert max(paid(made, branch, place) for place in three) == alone <= (9 if made.smooth else 3)
        replaced = max(paid(made, branch, a - b) for a, b in itertools.combinations(two, 2))
        assert replaced <= (8 if made.smooth else 4)  # one_node(2, REPLACE)
    moved = one_node(2, Neighbours.REPLACE)
    assert (moved.l2_squared, moved.l1) == (8, 4)


@pytest.mark.slow
def test_broken_twins_pay_more(monkeypatch):
    made, row = MAPS["2 x 3"], np.eye(6, dtype=int)[2]

    def worst(one):
        return max(paid(one, branch, row) for branch in branches(one))

    right = AdaptiveMap.rest
    assert worst(made) == 1
    monkeypatch.setattr(AdaptiveMap, "rest", lambda self, level, part=1: right(self, level))  # both get all
    assert worst(made) > 1
    monkeypatch.undo()
    monkeypatch.setattr(AdaptiveMap, "__post_init__", lambda self: None)
    free = replace(made, shares=tuple(share / (1 - sum(made.along)) for share in made.shares))  # axes cost nothing
    assert worst(free) > 1
    monkeypatch.undo()
    with pytest.raises(InputError, match="share above 0"):
        replace(made, shares=free.shares)


# The law of tiny maps


class MissingError(Exception):
    """The walk asks for one more number."""


def law(made, x, values):
    """The probability of every transcript whose numbers are among `values`; the others are left out."""
    found = {}

    def walk(prefix, p):
        numbers, next_law = iter(prefix), None

        def take(exact, many, noise):
            nonlocal next_law
            got = list(itertools.islice(numbers, many))
            if len(got) < many:
                next_law = (noise, int(exact()[len(got)]))
                raise MissingError
            return np.array(got, float)

        try:
            made._walk(np.array(x), take)
        except MissingError:
            noise, count = next_law
            for value in values:
                walk((*prefix, value), p * noise.pmf(value, count))
            return
        found[prefix] = p

    walk((), 1.0)
    return found


def losses(made, x, near, values):
    one, other = law(made, x, values), law(made, near, values)
    if set(one) != set(other):
        return [math.inf]
    return [abs(math.log(one[t] / other[t])) for t in one]


PAIR = AdaptiveMap(Geometric(1), ROW, (1, 2), ((1, 1),), (F(2, 5), F(3, 5)), (), (F(4),), ())
ALONG = replace(PAIR, along=(F(1, 10), F(1, 10)), shares=(F(1, 4), F(11, 20)), least=(F(9), F(9)))
NEAR = [([[0, 3]], [[1, 3]]), ([[2, 2]], [[2, 1]]), ([[5, 0]], [[6, 0]])]


@pytest.mark.slow
@pytest.mark.parametrize(("x", "near"), NEAR)
def test_the_law_of_a_tiny_map_keeps_epsilon_and_reaches_it(x, near):
    values = (-2, 0, 1, 3, 5, 8)
    assert {len(t) for t in law(PAIR, x, values)} == {3}  # node, again, union; or node and two cells
    assert max(losses(PAIR, x, near, values)) == pytest.approx(1)
    assert max(losses(replace(PAIR, noise=Geometric("4/5")), x, near, values)) > 1.2
    assert max(losses(ALONG, x, near, (-9, 12))) == pytest.approx(1)


def test_a_twin_that_decides_by_exact_counts_is_convicted(monkeypatch):
    right = AdaptiveMap._level

    def peeking(self, counts, level, parents, nodes, take):
        few = (counts.of(level, nodes) < 5).all()
        return right(replace(self, limits=(F(10**9 if few else -(10**9)),)), counts, level, parents, nodes, take)

    monkeypatch.setattr(AdaptiveMap, "_level", peeking)
    deep = replace(PAIR, shape=(1, 3), blocks=((1, 1),))  # three cells: stopped or not shows in how much is released
    assert max(losses(deep, [[4, 0, 0]], [[5, 0, 0]], (0, 6))) == math.inf


# What is released


@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (1, 40), (17, 9), (17, 19), (64, 64)])
@pytest.mark.parametrize("spend", ["1", "1,1e-6"])
def test_released_numbers_say_all(shape, spend):
    x = np.arange(math.prod(shape)).reshape(shape) % 7 * 40
    made = AdaptiveMap.calibrated(spend, shape=shape, gaussian="," in spend)
    released = made.measure(x)
    kept, numbers = kept_map(map_table(made, released))
    fit, again = made.read(released), kept.read(numbers)
    assert kept == made
    assert np.array_equal(fit.x, again.x)
    assert fit.x.shape == shape
    assert (fit.x >= 0).all()
    top = gathered(fit.splits, fit.levels)[0][0].sum()
    assert fit.x.sum() == pytest.approx(max(top, 0))
    assert consistent(fit.splits, fit.levels)[0].sum() == pytest.approx(fit.x.sum())


def test_without_noise_counts_are_exact():
    x = (np.arange(380) * 1000 + 500).reshape(19, 20)
    made = replace(AdaptiveMap.calibrated(1, shape=(19, 20)), noise=Geometric("1/1000"))
    assert len(made.blocks) > 2
    assert np.abs(made.read(made.measure(x)).x - x).max() < 1  # fails with p < 1e-30: noise of scale 1/50


def test_heavy_cells_of_an_axis_stand_alone():
    x = np.zeros((64, 64), int)
    x[10, :], x[:, 33] = 300, 300
    made = AdaptiveMap.calibrated(1, shape=x.shape)
    fit = made.read(made.measure(x))  # fails with p < 1e-9: half of the rows against noise of scale 40
    assert {10, 11} <= set(fit.splits.edges[0][0].tolist())
    assert {33, 34} <= set(fit.splits.edges[0][1].tolist())
    even = replace(made, heavy=F(1))
    assert len(even.read(even.measure(x)).splits.edges[0][0]) == 3


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("rows", [1, 5])
def test_guarantees_keep_the_promise_and_use_it(neighbours, rows):
    pure = AdaptiveMap.calibrated("1/2", shape=(30, 40), rows=rows, neighbours=neighbours)
    assert pure.guarantee() == Pure("1/2", neighbours=neighbours)
    promise = Approx("1/2", "1e-6", neighbours=neighbours)
    smooth = AdaptiveMap.calibrated(promise, shape=(30, 40), rows=rows, neighbours=neighbours, gaussian=True)
    assert smooth.guarantee() <= promise
    less = replace(smooth, noise=Gaussian(smooth.noise.sigma * F(99, 100)))
    assert not less.guarantee() <= promise
    assert smooth.noise.sigma >= rows  # k, not sqrt(k): all rows of a unit may be in one node
    shares = [share_of(smooth, noise) for noise, _ in smooth.parts]
    assert 1 - F(1, 10**6) < sum(share**2 for share in shares) <= 1


def test_the_smaller_noise_is_taken():
    made = AdaptiveMap.calibrated("1,1e-6", shape=(64, 64))
    other = AdaptiveMap.calibrated("1,1e-6", shape=(64, 64), gaussian=not made.smooth)
    assert at_share(made.noise, made.shares[-1])[1] <= at_share(other.noise, other.shares[-1])[1]


def test_bad_input_is_refused():
    made = AdaptiveMap.calibrated(1, shape=(20, 20))
    with pytest.raises(InputError, match="needs a limit"):
        replace(made, limits=())
    for shape in ((0, 4), (4,), (4, 4, 4), (1 << 14, 1 << 14)):
        with pytest.raises(InputError, match="two axes of at least one cell"):
            AdaptiveMap.calibrated(1, shape=shape)
    for x in (np.zeros((20, 3), int), np.zeros((20, 20))):
        with pytest.raises(InputError, match="one whole number for each"):
            made.measure(x)
    table = map_table(made, made.measure(np.zeros((20, 20), int))).replace_schema_metadata({})
    with pytest.raises(PrivacyError, match="was changed"):
        kept_map(table)
