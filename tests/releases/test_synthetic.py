"""RAKE on codes: what one unit moves, what is charged, twins that are convicted, and rows that look like the table."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

import noisette as nz
from noisette.errors import InputError
from noisette.mechanisms import Exponential, Gaussian
from noisette.privacy import as_promise
from noisette.releases.synthetic.coarsening import coarsened, nonnegative, one_ways, smoothed, total
from noisette.releases.synthetic.rake import Rake, score
from noisette.releases.synthetic.schedule import STEPS, Schedule
from noisette.releases.synthetic.tables import Attribute, Coarse, CodedRows, all_pairs

ADD_REMOVE, REPLACE = nz.Neighbours.ADD_REMOVE, nz.Neighbours.REPLACE
SIZES = (2, 3)
CELLS = list(product(range(2), range(3)))
BINS = [Coarse(np.arange(2), 2), Coarse(np.array([0, 1, 1]), 2)]


def attributes(*sizes, ordered=False):
    return [Attribute(f"a{i}", size, ordered) for i, size in enumerate(sizes)]


def correlated(rows, sizes, follow=0.8, seed=7):
    """Each attribute follows the first one with some probability."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, sizes[0], rows)
    columns = [first]
    for size in sizes[1:]:
        own = rng.integers(0, size, rows)
        columns.append(np.where(rng.random(rows) < follow, first * size // sizes[0], own))
    return CodedRows.of(np.column_stack(columns), sizes)


def tv(one, other, columns, sizes):
    shape = [sizes[c] for c in columns]
    found = []
    for codes in (one, other):
        cell = np.ravel_multi_index([codes[c] for c in columns], shape)
        found.append(np.bincount(cell, minlength=int(np.prod(shape))) / len(cell))
    return float(np.abs(found[0] - found[1]).sum() / 2)


# What one unit moves


def neighbours(rows, relation):
    """All tables with one unit of at most that many rows more (or in its place another one) beside a fixed one."""
    units = [unit for n in range(rows + 1) for unit in combinations_with_replacement(CELLS, n)]
    rest = [(0, 0), (1, 2), (1, 1)]
    others = [()] if relation is ADD_REMOVE else units
    for one, other in product(units, others):
        yield CodedRows.of([*rest, *one], SIZES), CodedRows.of([*rest, *other], SIZES)


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE], ids=str)
@pytest.mark.parametrize("rows", [1, 2])
def test_tables_and_scores_move_by_what_is_stated_and_no_less(rows, relation):
    made = Schedule.calibrated("1,1e-9", SIZES, rows=rows, neighbours=relation)
    model = np.array([[0.3, 1.7], [2.25, 0.0]])
    squares, ends, lengths = set(), set(), set()
    for one, other in neighbours(rows, relation):
        tables = [(one.one_way(i), other.one_way(i)) for i in range(2)]
        tables.append(tuple(each.pairs(BINS, [(0, 1)])[0, 1] for each in (one, other)))
        moves = [np.asarray(a) - np.asarray(b) for a, b in tables]
        squares |= {int((move**2).sum()) for move in moves}
        lengths |= {int(np.abs(move).sum()) for move in moves}
        ends.add(abs(score(tables[2][0], model, 1.0) - score(tables[2][1], model, 1.0)))
    assert max(squares) == made.moved.l2_squared
    assert max(lengths) == made.moved.l1
    assert max(ends) <= made.score_moves
    assert max(ends) >= made.score_moves * 0.6


def test_scores_of_two_pairs_move_apart_by_twice_that():
    made, model = Schedule.calibrated("1,1e-9", SIZES), np.array([[9.0, 0.0], [0.0, 0.0]])
    up = score(np.array([[10, 0], [0, 0]]), model, 0.0) - score(np.array([[9, 0], [0, 0]]), model, 0.0)
    down = score(np.array([[9, 0], [0, 0]]), model, 0.0) - score(np.array([[8, 0], [0, 0]]), model, 0.0)
    assert up - down == 2 * made.score_moves


# What is charged


SPENDS = ["1,1e-9", "0.1,1e-6", "10,1e-9", "rho=0.01", "1e-4,1e-12"]


@pytest.mark.parametrize("strategy", ["rake", "mst", "aim"])
@pytest.mark.parametrize("spend", SPENDS)
@pytest.mark.slow_after(1)
def test_all_parts_together_keep_the_promise_and_use_most_of_it(spend, strategy):
    made = Schedule.calibrated(spend, (85, 9, 100, 16, 2, 7), strategy=strategy, rows=2)
    promise = as_promise(spend)
    assert made.guarantee() <= promise.restated(ADD_REMOVE)
    wider = as_promise(spend).share("9/10", delta=1) if "rho" not in spend else promise.share("4/5")
    assert not made.guarantee() <= wider.restated(ADD_REMOVE)


class Meter:
    """Mechanisms that add up what they were asked for, and leave numbers as they are."""

    def __init__(self, monkeypatch):
        self.square, self.range = Fraction(0), Fraction(0)
        gaussian, exponential = Gaussian.__call__, Exponential.__call__

        def noised(mechanism, x, rng):
            self.square += 1 / mechanism.sigma**2
            return gaussian(mechanism, x, rng)

        def picked(mechanism, scores, rng):
            self.range += (Fraction(2 * STEPS) / mechanism.scale) ** 2
            return exponential(mechanism, scores, rng)

        monkeypatch.setattr(Gaussian, "__call__", noised)
        monkeypatch.setattr(Exponential, "__call__", picked)


@pytest.mark.parametrize("strategy", ["rake", "mst", "aim"])
@pytest.mark.parametrize("rows", [40, 20_000])
@pytest.mark.slow
def test_what_is_drawn_is_at_most_what_was_charged(monkeypatch, strategy, rows):
    sizes = (4, 3, 5, 2, 6, 3, 4)
    made = Rake.calibrated("rho=0.02", attributes(*sizes), strategy=strategy)
    meter = Meter(monkeypatch)
    made(correlated(rows, sizes))
    spent = meter.square / 2 + meter.range / 8
    assert spent <= Fraction("0.02")
    assert spent > Fraction("0.018")


@pytest.mark.parametrize("spend", ["0,1e-9", "rho=0"])
def test_nothing_is_refused_before_anything_is_read(spend):
    with pytest.raises(InputError, match="above 0"):
        Rake.calibrated(spend, attributes(2, 2))


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE], ids=str)
@pytest.mark.parametrize("sizes", [(3,), (3, 2), (4, 3, 5, 2, 6)], ids=str)
def test_pure_epsilons_add_up_exactly(sizes, relation):
    made = Schedule.calibrated("1/3", sizes, rows=3, neighbours=relation)
    assert made.guarantee() == nz.Pure("1/3", neighbours=relation)


# What is released reads nothing else


class Watched(CodedRows):
    """Tables that forbid their length."""

    def __len__(self):
        raise AssertionError


@pytest.mark.slow
def test_the_number_of_rows_is_bought():
    sizes = (4, 3, 2)
    made = Rake.calibrated("0.05,1e-9", attributes(*sizes))
    table = correlated(30, sizes)
    found = {made(Watched(table.codes, table.sizes)).rows for _ in range(8)}
    assert len(found) >= 4  # equal numbers of rows, with noise of hundreds, have a chance below 1e-9


def test_each_table_is_read_once():
    sizes = (4, 3, 5)
    made = Rake.calibrated("1,1e-9", attributes(*sizes), rows=1)
    reads = []

    class Counted(CodedRows):
        def one_way(self, i):
            reads.append(("one", i))
            return super().one_way(i)

        def pairs(self, coarse, wanted):
            reads.append(("pairs", len(wanted)))
            return super().pairs(coarse, wanted)

    table = correlated(2000, sizes)
    made(Counted(table.codes, table.sizes))
    assert reads == [("one", 0), ("one", 1), ("one", 2), ("pairs", 3)]


# Rows that look like the table


SHAPES = {
    "few columns": (5, 4),
    "one column": (7,),
    "many columns": (3,) * 16,
    "a huge domain": (20_000, 4, 3),
    "ordinary": (8, 5, 6, 2, 9),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.slow
def test_codes_stay_within_their_attributes_and_pairs_fit(name):
    sizes = SHAPES[name]
    table = correlated(20_000, sizes)
    found = Rake.calibrated("1,1e-9", attributes(*sizes))(table)
    assert all(((codes >= 0) & (codes < size)).all() for codes, size in zip(found.codes, sizes, strict=True))
    assert abs(found.rows - 20_000) < 20_000 * 0.1
    if name not in ("one column", "a huge domain"):
        errors = [tv(table.codes, found.codes, pair, sizes) for pair in all_pairs(len(sizes))]
        assert np.mean(errors) < 0.06


@pytest.mark.slow
def test_independent_columns_stay_independent():
    """Rows must not invent correlations: also not between columns whose pair was never measured."""
    rng = np.random.default_rng(3)
    sizes = (12, 12, 12, 4, 4, 4, 30, 30)
    table = CodedRows.of(np.column_stack([rng.integers(0, s, 40_000) for s in sizes]), sizes)
    kinds = [Attribute(f"a{i}", s, ordered=i % 2 == 0) for i, s in enumerate(sizes)]
    found = Rake.calibrated("1,1e-9", kinds)(table)
    for i, j in all_pairs(len(sizes)):
        joint = np.zeros((sizes[i], sizes[j]))
        np.add.at(joint, (found.codes[i], found.codes[j]), 1 / found.rows)
        apart = np.outer(joint.sum(axis=1), joint.sum(axis=0))
        assert np.abs(joint - apart).sum() / 2 < 0.08


@pytest.mark.slow
def test_rows_come_in_no_order():
    sizes = (8, 5, 6)
    found = Rake.calibrated("1,1e-9", attributes(*sizes))(correlated(20_000, sizes))
    for codes in found.codes:
        same = np.mean(codes[1:] == codes[:-1])
        assert abs(same - (np.bincount(codes) ** 2).sum() / len(codes) ** 2) < 0.03


@pytest.mark.parametrize("rows", [0, 1, 20])
def test_a_tiny_table_gives_a_table(rows):
    sizes = (4, 3, 2)
    found = Rake.calibrated("0.1,1e-9", attributes(*sizes))(correlated(rows, sizes))
    assert found.rows >= 1
    assert all(len(codes) == found.rows for codes in found.codes)


# Coarsening


def test_total_weighs_tables_by_their_precision():
    assert total([np.array([10.0]), np.array([40.0])], [1.0, 2.0]) == pytest.approx(16.0)
    assert total([np.array([-5.0])], [1.0]) == 1.0


@pytest.mark.parametrize("mass", [1.0, 40.0, 1000.0])
def test_projection_is_the_nearest(mass):
    y = np.array([5.0, -3.0, 20.0, 1.0])
    found = nonnegative(y, mass)
    assert found.sum() == pytest.approx(mass)
    assert (found >= 0).all()
    moved = found - y
    assert np.ptp(moved[found > 0]) == pytest.approx(0)
    assert (moved[found == 0] >= moved[found > 0].max() - 1e-9).all()


def test_smoothing_keeps_what_stands_out_and_evens_out_noise():
    truth = np.full(64, 100.0)
    truth[20] = 5000.0
    noise = np.random.default_rng(1).normal(0, 50, 64)
    found = smoothed(Attribute("a", 64, ordered=True), truth + noise, 50.0)
    assert np.abs(found - truth).sum() < 0.75 * np.abs(noise).sum()
    assert abs(found[20] - 5000) < 200
    assert found.sum() == pytest.approx((truth + noise).sum(), rel=0.05)


@pytest.mark.parametrize("nullable", [False, True])
@pytest.mark.parametrize("ordered", [False, True])
def test_bins_cover_all_codes(ordered, nullable):
    rng = np.random.default_rng(5)
    for size in (1, 2, 3, 50):
        p = nonnegative(rng.exponential(100, size), 10_000.0)
        found = coarsened(Attribute("a", size, ordered, nullable), p, 10.0, 20.0)
        assert sorted(set(found.bin_of.tolist())) == list(range(found.bins))
        if ordered:
            assert (np.diff(found.bin_of[: size - nullable]) >= 0).all()


def test_one_ways_add_up_to_one_number_of_rows():
    kinds = attributes(3, 2)
    rows, found = one_ways(kinds, [np.array([5.0, -1.0, 9.0]), np.array([6.0, 8.0])], [1.0, 1.0])
    assert all(table.sum() == pytest.approx(rows) for table in found)


# Twins


def test_a_score_against_true_one_way_tables_moves_too_far():
    """The twin's model moves with the data, so its score moves by more than is charged."""

    def twin(table):
        exact = table.pairs(BINS, [(0, 1)])[0, 1]
        return score(exact, np.outer(exact.sum(axis=1), exact.sum(axis=0)) / exact.sum(), 0.0)

    limit = Schedule.calibrated("1,1e-9", SIZES).score_moves
    moves = [abs(twin(one) - twin(other)) for one, other in neighbours(1, ADD_REMOVE)]
    assert max(moves) > limit


def test_less_noise_breaks_the_promise():
    made, promise = Schedule.calibrated("1,1e-9", (8, 5, 6)), as_promise("1,1e-9").restated(ADD_REMOVE)
    assert made.guarantee() <= promise
    less = replace(
        made,
        singles=tuple(_narrower(one) for one in made.singles),
        forest=_narrower(made.forest),
        round=_narrower(made.round),
    )
    assert not less.guarantee() <= promise


def _narrower(noise):
    return Gaussian(noise.sigma * Fraction(4, 5))
