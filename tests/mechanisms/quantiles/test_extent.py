"""Both ends of values without bounds: the law by sums over all noise, all neighbours of small tables, broken twins."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tests.goodness import ALPHA, p_value
from tests.mechanisms.histograms import histograms, worst

import noisette as nz
from noisette.errors import InputError, PrivacyError
from noisette.mechanisms import Extent, Quantile
from noisette.mechanisms.quantiles.extent import examples

ADD_REMOVE, REPLACE = nz.Neighbours
ONE = {relation: nz.sensitivity.histogram(neighbours=relation) for relation in nz.Neighbours}


def tail(rate, n):
    """P(noise >= n)."""
    return math.exp(-float(rate) * max(n, 0))


def first(queries, over, queried, within):
    """P(the first query above), and last P(none), noise by noise."""
    chances = [0.0] * (len(queries) + 1)
    for z in range(math.ceil(60 / float(over)) + max([0, *(f - within for f in queries)])):
        left = tail(over, z) - tail(over, z + 1)
        for i, f in enumerate(queries):
            chances[i] += left * tail(queried, z + within - f)
            left *= -math.expm1(-float(queried) * max(z + within - f, 0))
        chances[-1] += left
    return chances


def by_definition(m, counts, *, over=1, queried=1, apart=True):
    """P(low, high); factors make noise smaller than stated, and not `apart` the second search looks at all cells."""
    p, r, p_falling, r_falling = m.rates
    *lows, none = first(list(itertools.accumulate(counts)), p * over, r * queried, m.within)
    law = {None: none}
    for low, chance in enumerate(lows):
        left = [-sum(counts[i:]) for i in range(low + 1 if apart else 0, m.cells)]
        for i, q in enumerate(first(left, p_falling * over, r_falling * queried, -m.beyond)):
            high = max(low, low + i if apart else i - 1)
            law[low, high] = law.get((low, high), 0.0) + chance * q
    return law


@pytest.mark.parametrize("own", nz.Neighbours)
@pytest.mark.parametrize(("epsilon", "within"), [("1/2", 2), (1, 3), (3, 1)])
def test_every_pair_of_small_tables_keeps_what_is_stated_and_some_reach_it(epsilon, within, own):
    m = Extent(epsilon, cells=3, within=within, beyond=1, neighbours=own)
    laws = {counts: m.outcomes(counts) for counts in histograms(3, within + 2)}
    for relation in nz.Neighbours:
        assert worst(laws, relation) == pytest.approx(float(m.guarantee(ONE[relation]).epsilon), rel=1e-9)
    assert m.guarantee(ONE[own]) == nz.Pure(epsilon, neighbours=own)


def test_several_records_are_so_many_times_one():
    m = Extent(1, cells=3, within=3, beyond=0)
    laws = {counts: m.outcomes(counts) for counts in histograms(3, 4)}
    apart = [(a, b) for a in laws for b in laws if sum(abs(x - y) for x, y in zip(a, b, strict=True)) == 2]
    found = max(abs(math.log(laws[a][y] / laws[b][y])) for a, b in apart for y in laws[a])
    assert found == pytest.approx(float(m.guarantee(2).epsilon), rel=1e-9)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    "m", [Extent(1, cells=4, within=2, beyond=1), Extent(2, cells=3, within=4, beyond=2, neighbours=REPLACE)]
)
def test_the_law_is_that_of_the_definition(m):
    for counts in histograms(m.cells, 2):
        law, true = m.outcomes(counts), by_definition(m, list(counts))
        assert set(law) == set(true)
        assert [law[y] for y in true] == pytest.approx(list(true.values()), rel=1e-9, abs=1e-14)
        assert math.fsum(law.values()) == pytest.approx(1, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("twin", [{"over": 2}, {"queried": 2}, {"apart": False}], ids=str)
def test_half_the_noise_and_a_second_search_over_all_cells_are_convicted(twin):
    m = Extent(1, cells=3, within=3, beyond=1)
    laws = {counts: by_definition(m, list(counts)) for counts in histograms(3, 5)}
    broken = {counts: by_definition(m, list(counts), **twin) for counts in histograms(3, 5)}
    assert worst(laws, ADD_REMOVE) <= 1 + 1e-9
    assert worst(broken, ADD_REMOVE) > 1.3


@pytest.mark.slow
def test_draws_follow_the_law():
    m, counts = Extent(1, cells=6, within=3, beyond=1), [1, 0, 4, 2, 0, 2]
    law, draws = m.outcomes(counts), [m(counts) for _ in range(4000)]
    assert p_value([draws.count(y) for y in law], list(law.values())) > ALPHA
    loud = replace(m, epsilon="1/2").outcomes(counts)
    assert p_value([draws.count(y) for y in law], [loud[y] for y in law]) < ALPHA


@pytest.mark.parametrize("relation", nz.Neighbours)
def test_what_is_calibrated_meets_no_empty_cells(relation):
    """The chance that noise alone ends a search, computed from the law of an empty table."""
    m = Extent.calibrated(nz.Pure("1/2", neighbours=relation), 3, cells=40, level=0.99)
    assert m.guarantee(3) == nz.Pure("1/2", neighbours=relation)
    assert 0.9 <= m.outcomes([0] * 40)[None] / 0.99 <= 1 / 0.99
    nearer = replace(m, within=m.within - round(3 / m.rates[1]))
    assert nearer.outcomes([0] * 40)[None] < 0.99


def test_it_aims_four_times_further_out_than_quantiles_0_and_1_do():
    """Each of these has half of epsilon, and moves both ways when it aims within."""
    cells, level = 500, 0.999
    half = Quantile(Fraction(1, 2), q=0, cells=cells, shift=1)
    aimed = math.log(cells / (1 - level)) / half.rate
    assert Extent.calibrated(nz.Pure(1), cells=cells, level=level).within < aimed / 4


def found(law):
    return [(y, p) for y, p in law.items() if y is not None]


@pytest.mark.slow
def test_ends_are_found_and_too_few_values_are_none():
    m = Extent.calibrated(nz.Pure(1), cells=200, level=1 - 1e-9)
    values = [0] * 100 + [500, 0, 0, 500] + [0] * 96
    assert {m(values)[0] for _ in range(20)} == {100}
    assert math.fsum(p for (_, high), p in found(m.outcomes(values)) if high in range(103, 106)) > 0.9
    assert math.fsum(p for (_, high), p in found(m.outcomes(values)) if high < 103) < 1e-9
    assert m.outcomes([1] + [0] * 199)[None] > 0.99


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("m", examples, ids=repr)
def test_errors_stay_within_the_interval(m):
    rng = np.random.default_rng()
    for _ in range(5):
        counts = rng.integers(0, 5, m.cells)
        for level in (0.5, 0.95):
            within = math.fsum(p for y, p in m.outcomes(counts).items() if m.error(y, counts) <= m.interval(level))
            assert within >= level


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Extent(0, cells=4, within=1, beyond=0), "epsilon"),
        (lambda: Extent(1, cells=1, within=1, beyond=0), "cells"),
        (lambda: Extent(1, cells=2**20 + 1, within=1, beyond=0), "cells"),
        (lambda: Extent(1, cells=4, within=0, beyond=0), "within"),
        (lambda: Extent(1, cells=4, within=True, beyond=0), "within"),
        (lambda: Extent(1, cells=4, within=1, beyond=-1), "beyond"),
        (lambda: Extent(1, cells=4, within=1, beyond=0, neighbours="replace"), "neighbours"),
        (lambda: Extent.calibrated(nz.Pure(1), cells=4, level=1), "level"),
        (lambda: Extent.calibrated(nz.Pure(1), 0, cells=4), "sensitivity"),
        (lambda: Extent.calibrated(nz.Pure(0), cells=4), "no release"),
    ],
)
def test_bad_parameters_are_refused(make, why):
    with pytest.raises(InputError, match=why):
        make()


def test_relations_are_not_mixed():
    with pytest.raises(PrivacyError, match="relation"):
        Extent.calibrated(nz.Pure(1, neighbours=ADD_REMOVE), ONE[REPLACE], cells=4)


@pytest.mark.parametrize(
    "counts", [[1, 2], [1, 2, 3, -1], [0.5, 1, 1, 1], ["1"] * 4, None, [[1, 2, 3, 4]], [2**61] * 4]
)
def test_bad_counts_are_refused(counts):
    with pytest.raises(InputError):
        Extent(1, cells=4, within=1, beyond=0)(counts)
