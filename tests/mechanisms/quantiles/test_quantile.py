"""The quantile mechanism: its theorem by enumeration of small tables, its sampler, its refusals, its broken twins."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.goodness import ALPHA, p_value
from tests.tapes import Script

import noisette as nz
from noisette.audit.contract import checks_of
from noisette.audit.divergence import largest_loss, laws_of, renyi
from noisette.audit.finding import Effort
from noisette.errors import InputError, PrivacyError
from noisette.exact.random import SYSTEM
from noisette.mechanisms import Quantile, calibrate
from noisette.mechanisms.contract import Output
from noisette.mechanisms.quantiles.quantile import examples
from noisette.privacy.sensitivity import Sensitivity

ADD_REMOVE, REPLACE = nz.Neighbours
HALF = Fraction(1, 2)
LOOK = Effort(array=3000, slow_array=3000, single=1500, vector=1500)
EXAMPLES = [
    Quantile(1, q="1/2", cells=5),
    Quantile("1/3", q="9/10", cells=12),
    Quantile(6, q="1/4", cells=3, neighbours=REPLACE, groups=1),
    Quantile(2, q=0, cells=4),
    Quantile("5/2", q=1, cells=7, neighbours=REPLACE, groups=1),
    Quantile(1, q="1/3", cells=2, rows=3, groups=1),
    Quantile("0.7", q="0.123456789", cells=9, rows=2),
]


def found(check, m, effort):
    return checks_of(m)[check](m, effort)


def rank_errors(values, q, cells):
    """The definition, from the values themselves."""
    target = q * len(values)
    spans = [(sum(v < o for v in values), sum(v <= o for v in values)) for o in range(cells)]
    return [max(low - target, target - high, Fraction(0)) for low, high in spans]


def histogram(values, cells):
    return np.bincount(np.array(values, int), minlength=cells)


def tables(cells, most):
    return [t for n in range(most + 1) for t in itertools.combinations_with_replacement(range(cells), n)]


def neighbours_of(table, relation, cells):
    for i in range(len(table)):
        rest = table[:i] + table[i + 1 :]
        if relation is ADD_REMOVE:
            yield rest
        else:
            yield from (tuple(sorted((*rest, v))) for v in range(cells))


def step(q, relation):
    return Fraction(1) if relation is REPLACE else max(q, 1 - q)


# The theorem


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("relation", nz.Neighbours)
@pytest.mark.parametrize("q", [0, 1, HALF, Fraction(1, 4), Fraction(2, 3)])
def test_one_record_moves_rank_errors_by_a_step_within_a_range(q, relation):
    cells, moves, ranges = 5, set(), set()
    errors = {t: rank_errors(t, Fraction(q), cells) for t in tables(cells, 5)}
    assert all(min(e) == 0 for e in errors.values())
    for table, e in errors.items():
        for other in neighbours_of(table, relation, cells):
            change = [b - a for a, b in zip(e, errors[other], strict=True)]
            moves |= {abs(c) for c in change}
            ranges.add(max(change) - min(change))
    assert max(moves) == step(Fraction(q), relation)
    assert max(ranges) == (1 if q in (0, 1) else 2 * step(q, relation))


def mp_law(values, m):
    """The law to 50 digits, from the definition and the rate that solves the theorem's equation."""
    e, k, s = mpmath.mpf(m.epsilon.numerator) / m.epsilon.denominator, m.cells, step(m.q, m.neighbours)
    t = e
    if m.q not in (0, 1) and k > 2:
        t = mpmath.findroot(lambda t: t + mpmath.log((k - 1) / (1 + (k - 2) * mpmath.exp(-t))) - e, 0.6 * e)
    weights = [mpmath.exp(-t * d.numerator / d.denominator / s) for d in rank_errors(values, m.q, k)]
    return np.array([w / mpmath.fsum(weights) for w in weights])


@pytest.mark.slow
@pytest.mark.parametrize("relation", nz.Neighbours)
@pytest.mark.parametrize(
    ("epsilon", "q", "cells", "reached"),
    [
        (1, "1/2", 6, 0.9),
        (4, "1/2", 4, 0.98),
        ("1/2", "1/4", 5, 0.88),
        (2, 0, 6, 0.99),
        (3, 1, 3, 0.99),
        (1, "2/3", 2, 0.94),
    ],
)
def test_every_pair_of_small_tables_keeps_epsilon_and_some_nearly_reach_it(epsilon, q, cells, reached, relation):
    m = Quantile(epsilon, q=q, cells=cells, neighbours=relation, groups=1)
    with mpmath.workdps(50):
        laws = {t: mp_law(t, m) for t in tables(cells, 5)}
    y = np.arange(cells)
    for table, law in laws.items():
        assert m.pmf(y, histogram(table, cells)) == pytest.approx(law.astype(float), rel=1e-12)
    logs = {t: np.log(law.astype(float)) for t, law in laws.items()}
    pairs = [(a, b) for a in laws for b in neighbours_of(a, relation, cells)]
    worst = max(np.abs(logs[a] - logs[b]).max() for a, b in pairs)
    assert reached * float(m.epsilon) <= worst <= float(m.epsilon) * (1 + 1e-12)
    rho = float(m.guarantee(1).losses.parts[0][0].rho())
    some = pairs[:: max(1, len(pairs) // 400)]
    for order in (1.1, 2, 10):
        assert max(renyi(np.exp(logs[a]), np.exp(logs[b]), order) for a, b in some) <= rho * order * (1 + 1e-9)


@pytest.mark.parametrize("relation", nz.Neighbours)
@pytest.mark.parametrize("q", ["1/2", 0, 1, "1/4", "9/10"])
@pytest.mark.parametrize("cells", [2, 3, 40])
def test_the_guarantee_is_tight_for_any_number_of_records(cells, q, relation):
    for epsilon, rows in itertools.product(("1/3", 6), (1, 3)):
        m = Quantile(epsilon, q=q, cells=cells, rows=rows, neighbours=relation, groups=1)
        assert m.guarantee(rows) == nz.Pure(epsilon, neighbours=relation)
        for x, y, d in [*m.pairs(), m._worst_pair(5)]:
            stated = float(m.guarantee(d).epsilon)
            assert (1 - 1e-9) * stated <= largest_loss(*laws_of(m, x, y)) <= stated * (1 + 1e-9)


def together(*laws):
    """The loss of independent groups, each with its law before and after."""
    before, after = (np.multiply.outer(laws[0][i], laws[1][i]) for i in (0, 1))
    return largest_loss(before, after)


@pytest.mark.parametrize("q", ["1/2", 0, "9/10"])
def test_two_records_in_two_groups_cost_twice_as_much(q):
    m = Quantile(1, q=q, cells=6)
    gained = laws_of(m, *m.pairs()[0][:2])
    assert together(gained, gained) == pytest.approx(2, rel=1e-9)
    assert m.guarantee(2) == nz.Pure(2, neighbours=ADD_REMOVE)
    assert replace(m, groups=1).guarantee(2).epsilon <= replace(m, groups=2).guarantee(3).epsilon * Fraction(2, 3) <= 2


def test_a_record_may_be_replaced_by_one_in_another_group():
    m = Quantile(1, q="2/3", cells=6, neighbours=REPLACE)
    within, across = replace(m, groups=1).pairs()[0], replace(m, epsilon=HALF, neighbours=ADD_REMOVE)
    gained = laws_of(across, *across.pairs()[0][:2])
    lost = laws_of(across, [140, 60, 0, 0, 0, 100], [140, 60, 0, 0, 0, 99])  # from all with L = q n, away from q n
    assert together(gained, lost) == pytest.approx(1, rel=1e-9)
    assert largest_loss(*laws_of(m, *within[:2])) < 0.75
    assert replace(m, groups=1).rank_error() < 0.75 * m.rank_error()  # there it need not be paid for


def test_the_rho_of_a_record_that_is_replaced_across_groups():
    def rho(m):
        return float(m.guarantee(1).losses.parts[0][0].rho())

    for q, share in (("9/10", 2), ("1/2", 4)):  # two steps of 9/10 in two groups; a whole one in one group, twice 1/2
        m = Quantile(1, q=q, cells=6, neighbours=REPLACE)
        assert rho(m) == pytest.approx(share * rho(replace(m, epsilon=HALF, neighbours=ADD_REMOVE)), rel=1e-12)


def test_two_cells_cost_half_and_many_nearly_all_of_the_general_bound():
    """P proportional to e^(-D g): the general theorem says 2 s g."""
    rates = [
        float(Quantile(1, q="1/2", cells=k).rank_error(0.5) / max(math.log(k - 1), 1e-9)) for k in (3, 1000, 10**6)
    ]
    assert rates == pytest.approx([0.70, 0.9995, 1.0], abs=0.02)
    assert Quantile(1, q="1/2", cells=2).pmf(1, [3, 0]) == pytest.approx(1 / (1 + math.exp(2 * 1.5)))


class HalfSensitive(Quantile):
    """A broken twin: takes the step for half of what it is."""

    @property
    def _step(self):
        return super()._step / 2


@pytest.mark.parametrize("relation", nz.Neighbours)
@pytest.mark.parametrize(("q", "shift"), [(HALF, 2), (HALF, -9), (0, 3), (1, "-1/2"), (Fraction(1, 4), 1)])
def test_a_shifted_target_keeps_epsilon_on_every_pair_of_small_tables(q, shift, relation):
    m = Quantile(2, q=q, cells=4, neighbours=relation, groups=1, shift=shift)
    laws = {t: m.pmf(np.arange(4), histogram(t, 4)) for t in tables(4, 5)}
    worst = max(
        np.abs(np.log(laws[t] / laws[o])).max() for t in laws for o in neighbours_of(t, relation, 4) if o in laws
    )
    assert worst <= 2 + 1e-9
    assert worst >= 0.9  # nearly 2 only for far fewer records than the shift


def test_a_target_far_outside_is_reached_at_full_price():
    m = Quantile(8, q=HALF, cells=3, shift=50)
    few, more = (m.pmf(np.arange(3), [0, 0, n]) for n in (20, 21))
    assert np.log(few[0] / more[0]) == pytest.approx(8, rel=1e-6)
    assert m([0, 0, 20]) == 2


def test_half_the_sensitivity_is_convicted():
    m = HalfSensitive(1, q="1/2", cells=20)
    x, y, _ = Quantile(1, q="1/2", cells=20).pairs()[0]
    assert largest_loss(*laws_of(m, x, y)) > 1.8
    assert not found("loss", _Claims(m, x, y), LOOK).passed
    assert found("loss", _Claims(Quantile(1, q="1/2", cells=20), x, y), LOOK).passed


class _Claims:
    """A mechanism with a pair of our choice."""

    def __init__(self, m, x, y):
        self.m, self.pair = m, (x, y, 1)

    def pairs(self):
        return [self.pair]

    def __getattr__(self, name):
        return getattr(self.m, name)


# The contract, as far as it is about tables


@pytest.mark.parametrize("m", [m for m in EXAMPLES if m not in examples], ids=repr)
@pytest.mark.parametrize(
    "check",
    ["sums to one", "private", "loss", "tight", pytest.param("one by one", marks=pytest.mark.slow), "refusals"],
)
def test_other_examples_keep_the_contract(m, check):
    finding = found(check, m, LOOK)
    assert finding.passed, finding


@pytest.mark.parametrize("m", [m for m in EXAMPLES if m.groups != 1], ids=repr)
def test_relations_are_named_and_cost_their_due(m):
    assert found("relations", m, LOOK).passed
    assert found("relations", replace(m, neighbours=REPLACE), LOOK).passed


class ByNumber:
    """Two tables by number, so that an array of answers is a matrix of counts."""

    kind = Output.REPORT

    def __init__(self, m):
        table = np.ones(m.cells, int)
        other = table - (np.arange(m.cells) == 0 if m.neighbours is REPLACE else 0)
        self.m, self.tables = m, np.array([table, other + (np.arange(m.cells) == m.cells - 1)])

    def __call__(self, x, rng=SYSTEM):
        return self.m(self.tables[x], rng)

    def pmf(self, y, x):
        return self.m.pmf(y, self.tables[x])

    def support(self, x):
        return self.m.support(self.tables[x])

    def guarantee(self, distance=1):
        return self.m.guarantee(distance)

    def pairs(self):
        return [(0, 1, 1)]


class Quiet(ByNumber):
    """A broken twin: twice the epsilon that it states."""

    def __call__(self, x, rng=SYSTEM):
        return replace(self.m, epsilon=2 * self.m.epsilon)(self.tables[x], rng)


CROWDED = Quantile(1, q="1/2", cells=40), Quantile("1/2", q="9/10", cells=30, neighbours=REPLACE)


@pytest.mark.slow
@pytest.mark.parametrize("m", CROWDED, ids=repr)
@pytest.mark.parametrize("check", ["arrays", "one by one", "independent", "lattice", "black box"])
def test_matrices_follow_the_law_of_single_histograms(m, check):
    finding = found(check, ByNumber(m), LOOK)
    assert finding.passed, finding


@pytest.mark.slow
@pytest.mark.parametrize("m", CROWDED, ids=repr)
def test_a_quiet_twin_is_convicted(m):
    assert not found("arrays", Quiet(m), LOOK).passed
    assert not found("one by one", Quiet(m), LOOK).passed


# The sampler


TABLES = {
    "empty": ([0] * 6, "1/2"),
    "constant": ([0, 0, 9, 0, 0, 0], "1/2"),
    "tied": ([1, 50, 0, 2, 50, 1], "1/2"),
    "spread": ([2, 1, 3, 1, 2, 2], "1/3"),
    "minimum": ([0, 2, 1, 0, 3, 1], 0),
    "maximum": ([0, 2, 1, 0, 3, 1], 1),
    "on an edge": ([3, 0, 0, 0, 0, 3], "1/2"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_draws_follow_the_pmf(name):
    counts, q = TABLES[name]
    m = Quantile("3/2", q=q, cells=6)
    singles, rows = [m(counts) for _ in range(1500)], m([counts] * 1500)
    assert all(type(y) is int for y in singles)
    for draws in (singles, rows):
        assert p_value(np.bincount(draws, minlength=6), m.pmf(range(6), counts)) > ALPHA


def test_laws_of_special_tables():
    m = Quantile(2, q="1/2", cells=4, groups=1)
    assert m.pmf(range(4), [0, 0, 0, 0]).tolist() == [0.25] * 4
    assert m.pmf(1, [0, 200, 0, 0]) == pytest.approx(1)
    assert m.pmf(range(4), [5, 0, 0, 5]).tolist() == [0.25] * 4  # every cell holds the rank 5
    smallest, largest = (Quantile(2, q=q, cells=4) for q in (0, 1))
    assert smallest.pmf(range(4), [0, 0, 99, 0]) == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0])  # none below
    assert largest.pmf(range(4), [0, 99, 0, 0]) == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3])
    assert m.pmf([-1, 4, 1.5], [1, 1, 1, 1]).tolist() == [0, 0, 0]


def float_softmax(m, counts):
    """A broken twin: e^(g (n - D)) in floats, which overflows for large tables."""
    weights = np.exp([float(sum(counts) - d) for d in rank_errors(np.repeat(range(m.cells), counts), m.q, m.cells)])
    law = np.nan_to_num(weights / weights.sum())
    return int(np.searchsorted(np.cumsum(law), np.random.default_rng().random()))


@pytest.mark.slow
def test_a_float_softmax_is_convicted():
    m, small, large = Quantile(2, q="1/2", cells=3), [1, 2, 1], [800, 1, 800]
    with np.errstate(over="ignore", invalid="ignore"):
        draws = [float_softmax(m, large) for _ in range(50)]
    assert p_value(np.bincount(draws, minlength=4), [*m.pmf(range(3), large), 0]) < ALPHA
    honest = [m(large) for _ in range(500)]
    assert p_value(np.bincount(honest, minlength=3), m.pmf(range(3), large)) > ALPHA
    assert max(float_softmax(m, small) for _ in range(50)) < 3  # it looks right on small ones


def test_coins_turn_where_the_law_says():
    """The chosen cell is kept with e^(-g D) 2^40 / W exactly: words just below and above decide."""
    m, counts = Quantile(1, q="1/2", cells=4, groups=1), [7, 0, 0, 1]
    width, w = 0, []
    for d in rank_errors([0] * 7 + [3], HALF, 4):
        rate = mpmath.mpf(2) * m_rate(m)
        w.append(int(mpmath.floor(mpmath.exp(-rate * float(d) / 2) * (2**40 + 2**20))) + 1)
    for cell, d in enumerate(rank_errors([0] * 7 + [3], HALF, 4)):
        with mpmath.workprec(300):
            p = mpmath.ldexp(mpmath.exp(-m_rate(m) * mpmath.mpf(d.numerator) / d.denominator), 40) / w[cell]
            turn = int(mpmath.floor(mpmath.ldexp(p, 64)))
        assert m(counts, Script(width, turn - 1)) == cell
        assert m(counts, Script(width, turn + 1, 0, 0)) == 0  # another attempt, at the first cell
        width += w[cell]


def m_rate(m):
    with mpmath.workprec(300):
        k = m.cells
        e = mpmath.exp(-mpmath.mpf(m.epsilon.numerator) / m.epsilon.denominator)
        return -2 * mpmath.log(2 * (k - 1) * e / (1 + mpmath.sqrt(1 + 4 * (k - 1) * (k - 2) * e)))


@pytest.mark.slow
def test_large_tables_and_awkward_numbers():
    m = Quantile("0.3", q="0.123456789012345678", cells=1000)
    counts = np.full(1000, 10**9)
    assert abs(m(counts) - 123) <= 1
    assert Quantile(1000, q="1/2", cells=3)([10**18, 0, 10**18 - 1]) == 0
    assert 0 <= Quantile("1e-9", q="1/2", cells=10)(np.arange(10)) < 10
    assert Quantile(1, q="1/2", cells=3)(np.array([1, 2, 2000], np.uint64)) == 2


# What to expect


@pytest.mark.parametrize("m", EXAMPLES[:5], ids=repr)
def test_rank_errors_are_as_stated(m):
    level, rate = 0.9, math.log(9 * (m.cells - 1)) / m.rank_error(0.9)
    for table in tables(m.cells, 3):
        errors = np.array([float(d) for d in rank_errors(table, m.q, m.cells)])
        law = m.pmf(range(m.cells), histogram(table, m.cells))
        assert law[errors <= m.rank_error(level)].sum() >= level - 1e-12
        assert (law * errors**2).sum() <= m.variance() * (1 + 1e-12)
    others = m.cells - 1
    t = np.linspace(0, 60, 60_001) / rate  # one cell at 0 and all others at t is the worst that there is
    weights = others * np.exp(-rate * t)
    assert (t**2 * weights / (1 + weights)).max() == pytest.approx(m.variance(), rel=1e-6)
    assert (t[weights / (1 + weights) <= 1 - level]).min() == pytest.approx(m.rank_error(level), abs=1e-3 / rate)
    assert m.interval(level) == m.rank_error(level)


def test_the_level_must_be_one():
    for level in (0, 1, -1, math.nan):
        with pytest.raises(InputError, match="level"):
            EXAMPLES[0].rank_error(level)
    assert Quantile(1, q="1/2", cells=2).rank_error(0.5) == 0


# Calibration


epsilons = st.fractions("1/100", 20, max_denominator=1000)
deltas = st.fractions("1/1000000", "1/10", max_denominator=10**6)
relations = st.sampled_from(nz.Neighbours)
promises = st.one_of(
    st.builds(nz.Pure, epsilons, neighbours=relations),
    st.builds(nz.Approx, epsilons, deltas, neighbours=relations),
    st.builds(nz.ZCDP, epsilons, neighbours=relations),
)


@pytest.mark.slow
@given(
    promise=promises,
    size=st.integers(1, 50),
    q=st.fractions(0, 1, max_denominator=20),
    cells=st.integers(2, 2**22),
    groups=st.sampled_from([None, 1, 7]),
)
def test_what_is_asked_for_is_kept_and_not_wasted(promise, size, q, cells, groups):
    m = calibrate(Quantile, promise, sensitivity=size, q=q, cells=cells, groups=groups)
    assert m.guarantee(size) <= promise
    more = replace(m, epsilon=m.epsilon * Fraction(1001, 1000))
    assert not more.guarantee(size) <= promise, "the promise should be used up"


def test_sensitivities_of_histograms_count_records():
    one, gone = nz.sensitivity.histogram(neighbours=REPLACE), nz.sensitivity.histogram()
    m = Quantile(1, q="1/2", cells=50, groups=1)
    assert m.guarantee(gone) == m.guarantee(1) == nz.Pure(1, neighbours=ADD_REMOVE)
    assert m.guarantee(one).neighbours is REPLACE
    assert m.guarantee(one).epsilon == m.guarantee(2).epsilon  # s is 1/2 and 1
    assert m.guarantee(gone.times(3)) == m.guarantee(3)
    assert m.guarantee(Sensitivity(5, 5, 1, 5, neighbours=ADD_REMOVE)) == m.guarantee(5)  # five cells by one each
    assert m.guarantee(Sensitivity(10, 10, 1, 10, neighbours=REPLACE)) == m.guarantee(one.times(5))  # ten cells
    assert m.guarantee(nz.sensitivity.count(neighbours=REPLACE)) == m.guarantee(one)
    assert m.guarantee(0) == nz.Pure(0, neighbours=ADD_REMOVE)
    assert m.guarantee("3/2") == m.guarantee(2)
    for sensitivity in (one, gone.times(2), 3):
        made = Quantile.calibrated(nz.Pure(1), sensitivity, q="1/4", cells=9)
        assert made.guarantee(sensitivity).epsilon == 1
    with pytest.raises(PrivacyError):
        Quantile.calibrated(nz.Pure(1, neighbours=ADD_REMOVE), one, q="1/4", cells=9)


@pytest.mark.slow
def test_many_quantiles_compose_by_their_range():
    m = calibrate(Quantile, nz.ZCDP("1/10"), q="1/2", cells=1000, times=9)
    assert m.guarantee(1) * 9 <= nz.ZCDP("1/10")
    assert float(m.epsilon) > 0.995 * math.sqrt(8 * 0.1 / 9)  # by epsilon^2/2 it would be half of that
    shared = calibrate(Quantile, nz.Approx(1, "1e-6"), q="1/2", cells=1000, times=9)
    assert shared.guarantee(1) * 9 <= nz.Approx(1, "1e-6")


# What is refused


@pytest.mark.parametrize(
    "options",
    [
        {"q": 1.5}, {"q": -0.1}, {"q": math.nan}, {"q": True}, {"q": "x"}, {"cells": 1}, {"cells": 2.5},
        {"cells": 2**22 + 1}, {"epsilon": 0}, {"epsilon": 1001}, {"epsilon": math.nan}, {"rows": 0}, {"rows": 0.5},
        {"groups": 0}, {"neighbours": "replace"},
    ],
    ids=repr,
)  # fmt: skip
def test_bad_parameters_are_refused(options):
    with pytest.raises(InputError) as error:
        Quantile(**{"epsilon": 1, "q": HALF, "cells": 8, **options})
    assert str(error.value).endswith(".")


@pytest.mark.parametrize(
    "counts",
    [
        [], [[]], 3, [1, 2], [1, 2, 3, 4], [1, -1, 3], [1.0, 2.0, 3.0], [1, math.nan, 2], [1, 2, "3"], None,
        [[[1, 2, 3]]],
        [True, False, True], [[1, 2, 3], [1, 2]], [2**61, 2**61, 0], [10**400, 1, 1], [[1, 2, 3], [1, -2, 3]],
        np.ma.masked_array([1, 2, 3], [True, False, False]), [[1, 2, 3]] * 3,
    ],
    ids=str,
)  # fmt: skip
def test_bad_counts_are_refused_before_any_coin_is_drawn(counts):
    m = Quantile(1, q="1/2", cells=3, groups=2)
    with pytest.raises(InputError) as error:
        m(counts, Script())
    assert str(error.value).endswith(".")
    assert ". " not in str(error.value)


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, True, "1e400", None])
def test_bad_sensitivities_are_refused(bad):
    with pytest.raises(InputError):
        calibrate(Quantile, 1, sensitivity=bad, q="1/2", cells=8)
