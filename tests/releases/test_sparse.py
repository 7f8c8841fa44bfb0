"""Sparse counts: exactly the law of the full release, filtered or sampled; bars that hold for what is released.

The law of small tables is compared with that of noise on every cell, and broken twins are convicted: a chance that is
off by a factor, empty cells placed on filled ones, a threshold off by one.
"""

import math
import tracemalloc
from collections import Counter
from fractions import Fraction
from functools import partial
from itertools import combinations, product

import numpy as np
import pytest
from scipy.stats import chi2
from tests.goodness import ALPHA, fewest, p_value, pmf_fit
from tests.timing import times_as_long

import noisette as nz
from noisette.errors import InputError
from noisette.exact.random import SYSTEM
from noisette.laws import DiscreteLaplace
from noisette.query.measure import Contribution
from noisette.releases.sparse import filters, priority
from noisette.releases.sparse.bars import filtered, noise_of_sum, poisson_means, sampled
from noisette.releases.sparse.counts import Released, SparseCounts
from noisette.releases.sparse.filters import Filter
from noisette.releases.sparse.priority import Priority, first, reaching_float
from noisette.releases.sparse.zeros import distinct, placed, uniform_each

ADD_REMOVE, REPLACE = nz.Neighbours.ADD_REMOVE, nz.Neighbours.REPLACE
CELLS, X, DRAWS = 4, {1: 3}, 4_000


def made(**rule):
    return SparseCounts.calibrated(1, CELLS, **rule)


def drawn(counts):
    return counts(list(X), list(X.values()))


# The law of the full release, filtered


def category(v, least, both):
    """Absent, at the threshold, one above it, or beyond; on either side."""
    if not (abs(v) if both else v) >= least:
        return 0
    return int(math.copysign(min(abs(v) - least, 2) + 1, v))


def full_law(least, both, scale=1.0):
    """The exact chance of each table of categories, from noise on all cells."""
    law, each = DiscreteLaplace(scale), []
    for cell in range(CELLS):
        chances = Counter()
        for z in range(-80, 81):
            chances[category(X.get(cell, 0) + z, least, both)] += float(law.pmf(z))
        each.append(chances)
    return {
        key: math.prod(chances[part] for chances, part in zip(each, key, strict=True))
        for key in product(*(sorted(chances) for chances in each))
    }


def fit(draw, least, both):
    """How well draws fit the full release; a table that it cannot give is a misfit."""
    law, seen = full_law(least, both), Counter()
    for _ in range(DRAWS):
        released = draw()
        table = dict(zip(released.codes.tolist(), released.v.tolist(), strict=True))
        key = tuple(category(table[cell], least, both) if cell in table else 0 for cell in range(CELLS))
        seen[key if len(table) == released.codes.size else None] += 1
    keys = sorted(law, key=law.__getitem__)
    return p_value([seen[None], *(seen[key] for key in keys)], [0, *(law[key] for key in keys)])


@pytest.mark.slow
@pytest.mark.parametrize(("least", "both"), [(1, False), (2, False), (1, True), (2, True)])
def test_filtered_cells_have_the_law_of_the_full_release(least, both):
    counts = made(threshold=least, both=both)
    assert fit(lambda: drawn(counts), least, both) > ALPHA  # fails with p < 1e-12


def half_the_chance(monkeypatch):
    right = Filter.bounds
    monkeypatch.setattr(Filter, "bounds", lambda self, scale: lambda bits: right(self, scale)(bits - 1))


def on_filled_cells(monkeypatch):
    monkeypatch.setattr(filters, "placed", lambda ranks, codes: ranks)


def one_too_high(monkeypatch):
    right = filters.added
    monkeypatch.setattr(filters, "added", lambda x, y: right(x, y) + 1)


def above_and_not_at(monkeypatch):
    monkeypatch.setattr(Filter, "kept", lambda self, v: v > self.threshold)


def less_noise(monkeypatch):
    right = filters.vector.geometric_noise
    monkeypatch.setattr(filters.vector, "geometric_noise", lambda b, n, rng: right(b * Fraction(1, 2), n, rng))


@pytest.mark.slow
@pytest.mark.parametrize("twin", [half_the_chance, on_filled_cells, one_too_high, above_and_not_at, less_noise])
def test_broken_twins_are_convicted(twin, monkeypatch):
    twin(monkeypatch)
    counts = made(threshold=2)
    assert fit(lambda: drawn(counts), 2, False) < ALPHA  # typically below 1e-60


def loss(scale, least, c):
    """The largest privacy loss of one cell that has c rows or c + 1."""
    law = DiscreteLaplace(scale)
    values = np.arange(least, least + 60)
    one, other = (
        np.append(law.pmf(values - x), 1 - law.upper(least - x) if x < least else law.upper(x - least + 1))
        for x in (c, c + 1)
    )
    return float(np.max(np.abs(np.log(one / other))))


def test_the_guarantee_is_that_of_one_cell_and_tight():
    """Cells are independent, and a row changes one of them by one."""
    for least in (1, 2, 7, 30):
        losses = [loss(1.0, least, c) for c in range(40)]
        assert max(losses) == pytest.approx(1.0, abs=1e-9)
        assert max(loss(0.8, least, c) for c in range(40)) > 1.2  # the twin with less noise
    assert made(threshold=2).guarantee() <= nz.Pure(1)


def test_what_a_unit_can_move():
    for part, relation, l1 in [
        (Contribution(1, 1, 1), ADD_REMOVE, 1),
        (Contribution(1, 1, 1), REPLACE, 2),
        (Contribution(3, 2, 5), ADD_REMOVE, 5),
        (Contribution(3, 2, 5), REPLACE, 10),
    ]:
        counts = SparseCounts.calibrated("1/2", 10**9, size=10, part=part, neighbours=relation)
        assert counts.noise.scale == 2 * l1
        assert counts.guarantee() <= nz.Pure("1/2")
        assert counts.guarantee().neighbours is relation
        assert not counts.guarantee() <= nz.Pure("0.49")


# Which empty cells


@pytest.mark.parametrize(("n", "k"), [(5, 2), (5, 3), (4, 1), (6, 5)])
def test_every_set_of_empty_cells_has_the_same_chance(n, k):
    seen = Counter(tuple(distinct(n, k, SYSTEM).tolist()) for _ in range(2_000))
    sets = list(combinations(range(n), k))
    assert set(seen) <= set(sets)
    assert p_value([seen[one] for one in sets], [1 / len(sets)] * len(sets)) > ALPHA  # fails with p < 1e-12


def test_ranks_are_placed_past_the_filled_cells():
    for filled in [[], [0], [5], [0, 1, 2], [1, 3, 4], list(range(6))]:
        codes = np.array(filled, np.int64)
        ranks = np.arange(6 - codes.size)
        assert placed(ranks, codes).tolist() == [cell for cell in range(6) if cell not in filled]
    last = 2**62 - 1
    assert placed(np.array([last - 2]), np.array([0, 7])).tolist() == [last]


def test_uniform_numbers_up_to_each():
    most = np.tile([1, 2, 3, 7], 5_000)
    found = uniform_each(most, SYSTEM)
    for top in (1, 2, 3, 7):
        seen = np.bincount(found[most == top], minlength=top + 1)
        assert seen[0] == 0
        assert p_value(seen[1:], [1 / top] * top) > ALPHA  # fails with p < 1e-12
    huge = uniform_each(np.array([2**62, 2**62 - 1, 2**31, 2**31 + 1, 2**33 - 1]), SYSTEM)
    assert (huge >= 1).all()
    assert (huge <= [2**62, 2**62 - 1, 2**31, 2**31 + 1, 2**33 - 1]).all()


@pytest.mark.parametrize("scale", ["1/3", "1", "5/2", "1000"])
@pytest.mark.parametrize("both", [False, True])
def test_chances_are_enclosed(scale, both):
    law = DiscreteLaplace(scale)
    for least in (1, 3, 40):
        low, high = Filter(least, both).bounds(Fraction(scale))(100)
        assert 0 <= high - low <= 2
        assert low / 2**100 == pytest.approx(float(law.upper(least)) * (1 + both), rel=1e-9, abs=1e-25)


def test_a_size_sets_the_least_threshold():
    for cells, size in [(10**15, 100), (10**6, 1), (50, 10), (10, 10**6)]:
        counts = SparseCounts.calibrated("1/2", cells, size=size)
        assert counts.empty <= size
        lower = counts.rule.threshold - 1
        assert lower == 0 or cells * Filter(lower).chance(2.0) > size


# Samples


def dense(counts, size):
    """The full release: noise and a uniform number for every cell, and the first of all."""
    x = np.array([X.get(cell, 0) for cell in range(CELLS)])
    v = counts.noise(x)
    u = uniform_each(np.full(CELLS, priority.ONE), SYSTEM)
    chosen, threshold = first(size, np.arange(CELLS), v, u)
    order = np.sort(chosen)
    return Released(counts, order, v[order], threshold)


def seen(draw, number=2_000):
    """Outcomes: the cells, their noisy counts as far as 3, and the power of 2 of the threshold."""
    found = Counter()
    for _ in range(number):
        released = draw()
        power = math.frexp(released.threshold)[1] if released.threshold else -1
        found[tuple(released.codes.tolist()), tuple(np.clip(released.v, -3, 4).tolist()), min(power, 5)] += 1
    return found


def alike(one, other):
    """A test of homogeneity of two samples; rare outcomes are taken together."""
    keys = [key for key in one.keys() | other.keys() if one[key] + other[key] >= 20]
    table = np.array([[sample[key] for key in keys] for sample in (one, other)], float)
    rest = [sum(sample.values()) - sum(row) for sample, row in zip((one, other), table, strict=True)]
    table = np.column_stack([table, rest]) if sum(rest) else table
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    return float(chi2.sf(((table - expected) ** 2 / expected).sum(), table.shape[1] - 1))


@pytest.mark.slow
@pytest.mark.parametrize(("size", "begin"), [(1, None), (2, None), (1, 4), (2, 0)])
def test_a_sample_has_the_law_of_the_full_release(size, begin, monkeypatch):
    if begin is not None:
        monkeypatch.setattr(Priority, "begin", lambda self, scale, cells: begin)
    counts = made(sample=size)
    lazily = seen(lambda: drawn(counts))
    assert alike(lazily, seen(lambda: dense(counts, size))) > ALPHA  # fails with p < 1e-11


def fewer_in_each_round(monkeypatch):
    right = priority._between
    monkeypatch.setattr(priority, "_between", lambda *asked: lambda bits: right(*asked)(bits - 1))


def the_usual_noise(monkeypatch):
    right = priority._proposed

    def proposed(scale, number, k, rng):
        size = 1 + np.asarray(priority.vector.geometric_noise(scale, number, rng))
        return size, right(scale, number, k, rng)[1]

    monkeypatch.setattr(priority, "_proposed", proposed)


@pytest.mark.slow
@pytest.mark.parametrize(("twin", "draws"), [(fewer_in_each_round, 2_500), (the_usual_noise, 8_000)])
def test_broken_samples_are_convicted(twin, draws, monkeypatch):
    counts = made(sample=1)
    right = seen(lambda: dense(counts, 1), draws)
    monkeypatch.setattr(Priority, "begin", lambda self, scale, cells: 3)
    twin(monkeypatch)
    assert alike(seen(lambda: drawn(counts), draws), right) < ALPHA  # typically below 1e-60


@pytest.mark.slow
def test_a_sample_of_filtered_cells_has_their_law():
    counts = made(sample=1, threshold=2)

    def full():
        x = np.array([X.get(cell, 0) for cell in range(CELLS)])
        v = counts.noise(x)
        some = np.flatnonzero(v >= 2)
        chosen, threshold = first(1, some, v[some], uniform_each(np.full(some.size, priority.ONE), SYSTEM))
        return Released(counts, some[chosen], v[some][chosen], threshold)

    assert alike(seen(lambda: drawn(counts)), seen(full)) > ALPHA  # fails with p < 1e-11


@pytest.mark.parametrize("scale", ["1/2", "1", "4"])
@pytest.mark.parametrize("k", [0, 1, 3])
def test_noise_of_empty_cells_whose_priority_reaches_a_power_of_2(scale, k):
    a, t = math.exp(-1 / float(Fraction(scale))), 2**k
    law = DiscreteLaplace(scale)
    z = np.arange(1, 400)
    chance = float(2 * np.sum(law.pmf(z) * np.minimum(z, t) / t))
    assert reaching_float(float(Fraction(scale)), t) == pytest.approx(chance)
    low, high = priority._reaching(Fraction(scale), t, 64)
    assert float(low) == pytest.approx(chance)
    assert 0 < high - low < Fraction(1, 2**60)
    size, u = priority._proposed(Fraction(scale), 50_000, k, SYSTEM)
    total = np.sum(np.minimum(z, t) * a**z)
    assert pmf_fit(size, lambda one: min(one, t) * a**one / total, 1, 300) > ALPHA  # fails with p < 1e-12
    assert priority.reaching(size, u, k).all()
    part = (u - 1) / (np.minimum(size, t) / t * priority.ONE)  # uniform from 0 to 1
    assert p_value(tenths(part), [0.1] * 10) > ALPHA  # fails with p < 1e-12
    if k:  # the twin whose u is any number
        assert p_value(tenths((u - 1) / priority.ONE), [0.1] * 10) < ALPHA  # typically below 1e-100


def tenths(part):
    return np.bincount((part * 10).astype(int), minlength=10)


@pytest.mark.parametrize(("k", "last"), [(0, 1), (1, 2), (2, 3), (0, 3)])
def test_noise_of_empty_cells_between_two_powers_of_2(k, last):
    a, z = math.exp(-1 / 2), np.arange(1, 300)
    mass = a**z * (np.minimum(z, 2**k) / 2**k - np.minimum(z, 2**last) / 2**last)
    v, u = priority._drawn(Fraction(2), 20_000, k, last, SYSTEM)
    assert priority.reaching(v, u, k).all()
    assert not priority.reaching(v, u, last).any()
    assert pmf_fit(np.abs(v), lambda one: mass[one - 1] / mass.sum(), 1, 200) > ALPHA  # fails with p < 1e-12
    assert p_value([np.sum(v > 0), np.sum(v < 0)], [0.5, 0.5]) > ALPHA  # fails with p < 1e-12
    first_round = np.abs(priority._drawn(Fraction(2), 20_000, k, None, SYSTEM)[0])  # the twin that forgets the last one
    assert pmf_fit(first_round, lambda one: mass[one - 1] / mass.sum(), 1, 200) < ALPHA  # typically below 1e-100
    low, high = (end / 2**64 for end in priority._between(Fraction(2), k, last)(64))
    right = (reaching_float(2.0, 2**k) - reaching_float(2.0, 2**last)) / (1 - reaching_float(2.0, 2**last))
    assert low == pytest.approx(right)
    assert high == pytest.approx(right)


def test_the_first_of_equal_priorities_goes_by_its_number():
    v, u = np.array([3, -6, 3, 100]), np.array([2**60, 2**61, 2**60, 1])
    chosen, threshold = first(2, np.array([9, 8, 7, 6]), v, u)
    assert (sorted(chosen.tolist()), threshold) == ([2, 3], 12.0)
    assert first(9, np.array([9, 8]), np.array([3, 0]), np.array([1, 1]))[0].tolist() == [0]


@pytest.mark.slow
def test_sums_of_a_sample_are_unbiased_and_their_bars_hold():
    cells, x = 60, np.zeros(60, int)
    x[:12] = [40, 3, 7, 1, 25, 12, 5, 9, 2, 30, 6, 18]
    counts = SparseCounts.calibrated(1, cells, sample=15)
    filled, half = np.flatnonzero(x), x[:8].sum()
    errors, held, plain = [], 0, []
    for _ in range(1_000):
        released = counts(filled, x[filled])
        some = released.codes < 8
        total = released.total(some, 8)
        errors.append(total.n - half)
        plain.append(released.v[some].sum() - half)
        held += total.low <= half <= total.high
    spread = np.std(errors) / math.sqrt(len(errors))
    assert abs(np.mean(errors)) < 7.5 * spread  # fails with p < 1e-13
    assert held >= fewest(1_000, 0.95)  # fails with p < 1e-12
    assert abs(np.mean(plain)) > 20 * np.std(plain) / math.sqrt(len(plain))  # the twin without weights


# Error bars


EVERY = np.arange(-100, 260)


def bars_of(counts, threshold):
    return Released(counts, np.arange(EVERY.size), EVERY, threshold).bars(0.95)


def coverage(counts, c, ends, threshold=0.0):
    """The exact chance that a bar holds, given that a cell of c rows is released."""
    law, v = counts.noise.law, EVERY
    rule = counts.filter
    chance = np.ones(v.size) if rule is None else rule.kept(v).astype(float)
    if isinstance(counts.rule, Priority):
        chance *= np.minimum(np.abs(v), threshold) / threshold
    chance = law.pmf(v - c) * chance
    low, high = ends
    return float(np.sum(chance[(low <= c) & (c <= high)]) / np.sum(chance))


RULES = [
    (SparseCounts.calibrated("1/2", 10**9, threshold=20), 0.0),
    (SparseCounts.calibrated("1/2", 10**9, threshold=20, both=True), 0.0),
    (SparseCounts.calibrated("1/2", 10**9, sample=20), 13.7),
    (SparseCounts.calibrated("1/2", 10**9, sample=20), 1.0),
    (SparseCounts.calibrated("1/2", 10**9, sample=20, threshold=10), 30.5),
    (SparseCounts.calibrated("1/2", 10**9, sample=20, threshold=30), 10.5),
]


@pytest.mark.parametrize(("counts", "threshold"), RULES, ids=str)
def test_bars_hold_given_that_a_cell_is_released(counts, threshold):
    ends = bars_of(counts, threshold)
    found = [coverage(counts, c, ends, threshold) for c in range(150)]
    assert min(found) >= 0.95 - 1e-9
    assert found[-1] < 0.99


def test_bars_that_forget_the_choice_do_not_hold():
    counts = RULES[0][0]
    half = counts.noise.interval(0.95)
    assert coverage(counts, 100, (EVERY - half, EVERY + half)) >= 0.95
    assert coverage(counts, 0, (EVERY - half, EVERY + half)) < 1e-6


def test_chances_of_release_add_up():
    law, v = DiscreteLaplace(2), np.arange(-300, 301)
    for c in (0.0, 3.0, 25.0):
        mass = law.pmf(v - c)
        for t in (-30.0, -4.0, 0.0, 1.0, 2.0, 9.0, 15.0, 40.0):
            up = v >= t
            at = np.array([t]), np.array([c])
            one = filtered(law, 5, both=False)(*at)[0]
            assert one == pytest.approx(mass[up & (v >= 5)].sum(), rel=1e-6)
            two = filtered(law, 5, both=True)(*at)[0]
            assert two == pytest.approx(mass[up & (abs(v) >= 5)].sum(), rel=1e-6)
            for top in (1.0, 7.0, 9.5):
                three = sampled(law, top)(*at)[0]
                assert three == pytest.approx((mass * np.minimum(abs(v), top))[up].sum(), rel=1e-6)
                four = sampled(law, top, 5)(*at)[0]
                assert four == pytest.approx((mass * np.minimum(abs(v), top))[up & (v >= 5)].sum(), rel=1e-6)


def test_bounds_of_sums_hold():
    law = DiscreteLaplace(2)
    assert 2 * law.upper(math.floor(noise_of_sum(law, 1, 0.05)) + 1) <= 0.05
    sums = law.sample((20_000, 30), SYSTEM).sum(axis=1)
    bound = noise_of_sum(law, 30, 0.05)
    assert np.mean(np.abs(sums) <= bound) >= fewest(20_000, 0.95) / 20_000  # fails with p < 1e-12
    assert np.mean(np.abs(sums) <= bound / 2) < 0.95
    low, high = poisson_means(9, 0.05)
    assert low < 9 < high
    assert noise_of_sum(DiscreteLaplace("1/1000"), 5, 0.05) < 1


def test_totals_of_filtered_cells():
    counts = SparseCounts.calibrated(1, 10**12, threshold=25)
    released = Released(counts, np.array([3, 8, 9]), np.array([500, 26, 90]), 0.0)
    total = released.total(np.array([True, True, False]), 10**12)
    assert total.n == 526
    assert total.low <= 500 <= total.high
    assert total.low > 480
    assert "count as empty" in total.covers
    assert released.total(np.zeros(3, bool), 5).high == 0


# Sizes


def test_time_and_memory_are_those_of_what_is_filled_and_released():
    """1e15 cells, 1e5 of them filled, or 1e4."""
    cells = 10**15
    codes = np.unique(np.random.default_rng(1).integers(0, cells, 100_000))
    for rule in ({"size": 1000}, {"size": 1000, "sample": 5_000}, {"sample": 5_000}):
        counts = SparseCounts.calibrated(1, cells, **rule)
        tracemalloc.start()
        released = counts(codes, np.full(codes.size, 100))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 60_000_000
        many, few = (partial(counts, some, np.full(some.size, 100)) for some in (codes, codes[::10]))
        assert times_as_long(many, few, rounds=3) < 50  # at most ten; a loop over the cells would not end
        assert (np.diff(released.codes) > 0).all()
        assert released.codes.size <= codes.size + 2_000 if "sample" not in rule else released.codes.size == 5_000


def test_the_largest_table_and_empty_ones():
    counts = SparseCounts.calibrated(1, 2**62, size=50)
    released = counts([2**62 - 1, 0], [10**6, 10**6])
    assert {0, 2**62 - 1} <= set(released.codes.tolist())
    assert abs(int(released.v[-1]) - 10**6) < 60
    assert SparseCounts.calibrated(1, 10**15, size=50)([], []).codes.size < 200  # fails with p < 1e-50
    assert SparseCounts.calibrated(1, 1, threshold=3)([0], [50]).codes.tolist() == [0]  # fails with p < 1e-20
    all_of_them = SparseCounts.calibrated(1, 5, sample=100)([2], [50])
    assert all_of_them.threshold == 0
    assert (all_of_them.weights == all_of_them.v).all()


def test_a_cell_that_is_listed_with_0_is_an_empty_cell():
    counts = SparseCounts.calibrated(1, 100, threshold=10)
    assert counts([5], [0]).codes.size <= 3


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: SparseCounts.calibrated(1, 10),
        lambda: SparseCounts.calibrated(1, 10, size=3, threshold=3),
        lambda: SparseCounts.calibrated(1, 2**62 + 1, size=3),
        lambda: SparseCounts.calibrated(1, 0, size=3),
        lambda: SparseCounts.calibrated(1, 10, size=0),
        lambda: SparseCounts.calibrated(1, 10, threshold=0),
        lambda: SparseCounts.calibrated(1, 10, threshold=1.5),
        lambda: SparseCounts.calibrated(1, 10**15, threshold=1),
        lambda: SparseCounts.calibrated(1, 10, sample=0),
        lambda: SparseCounts.calibrated(1, 10, sample=10**8),
        lambda: SparseCounts.calibrated(1, 10, sample=3, threshold=2, both=True),
        lambda: made(threshold=2)([1, 1], [2, 2]),
        lambda: made(threshold=2)([4], [2]),
        lambda: made(threshold=2)([-1], [2]),
        lambda: made(threshold=2)([1], [2, 3]),
        lambda: made(threshold=2)([1.0], [2]),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(wrong):
    with pytest.raises(InputError) as refused:
        wrong()
    assert str(refused.value).endswith(".")
