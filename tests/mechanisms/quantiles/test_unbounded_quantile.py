"""A quantile without bounds: its law by sums over all noise, all neighbours of small tables, its broken twins."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tests.goodness import ALPHA, p_value
from tests.mechanisms.histograms import histograms, worst
from tests.tapes import Script

import noisette as nz
from noisette.errors import InputError
from noisette.mechanisms.quantiles.unbounded_quantile import UnboundedQuantile, examples

ADD_REMOVE, REPLACE = nz.Neighbours
ONE = {relation: nz.sensitivity.histogram(neighbours=relation) for relation in nz.Neighbours}


def tail(scale, n):
    """P(noise >= n)."""
    return math.exp(-max(n, 0) / float(scale))


def by_definition(m, counts, over=1.0, queries=1.0):
    """P(step), noise by noise; a factor makes the threshold's or the queries' noise smaller than stated."""
    b, n = m.q.denominator, sum(counts)
    scales = over * b / m.threshold_rate, queries * b / m.rate
    f = [int(b * (sum(counts[: i + 1]) - m.q * n)) for i in range(m.steps)]
    law = dict.fromkeys([*range(m.steps), None], 0.0)
    for z in range(math.ceil(70 * scales[0]) + max(0, max(f) - m.centre)):
        left = tail(scales[0], z) - tail(scales[0], z + 1)
        for i in range(m.steps):
            stops = tail(scales[1], z + m.centre - f[i])
            law[i] += left * stops
            left *= -math.expm1(-max(z + m.centre - f[i], 0) / float(scales[1]))
        law[None] += left
    return law


@pytest.mark.parametrize("own", nz.Neighbours)
@pytest.mark.parametrize("q", ["0", "1", "1/2", "1/4", "2/3"])
@pytest.mark.parametrize("epsilon", ["1/2", 3])
def test_every_pair_of_small_tables_keeps_what_is_stated_under_both_relations(epsilon, q, own):
    m = UnboundedQuantile(epsilon, q=q, steps=3, base=2, neighbours=own)
    laws = {counts: m.outcomes(counts) for counts in histograms(4, 3)}
    for relation in nz.Neighbours:
        stated = float(m.guarantee(ONE[relation]).epsilon)
        assert 0.7 * stated <= worst(laws, relation) <= stated * (1 + 1e-9)
    assert m.guarantee(ONE[own]) == nz.Pure(epsilon, neighbours=own)


@pytest.mark.parametrize("m", [UnboundedQuantile(1, q="1/3", steps=3, base=2), UnboundedQuantile(2, q=1, steps=2)])
def test_the_law_is_that_of_the_definition(m):
    for counts in histograms(m.steps + 1, 2):
        law, true = m.outcomes(counts), by_definition(m, counts)
        assert list(law.values()) == pytest.approx(list(true.values()), rel=1e-9, abs=1e-14)
        assert math.fsum(law.values()) == pytest.approx(1, abs=1e-12)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("twin", [{"over": 0.5}, {"queries": 0.5}], ids=str)
def test_half_the_noise_is_convicted(twin):
    m = UnboundedQuantile(1, q="1/2", steps=3, base=2)
    laws = {counts: by_definition(m, counts) for counts in histograms(4, 3)}
    broken = {counts: by_definition(m, counts, **twin) for counts in histograms(4, 3)}
    assert worst(laws, ADD_REMOVE) <= 1 + 1e-9
    assert worst(broken, ADD_REMOVE) > 1.2


def test_the_general_theorem_charges_more():
    m = UnboundedQuantile(1, q="9/10", steps=100)
    step = max(m.q, 1 - m.q)
    assert step * (m.threshold_rate + 2 * m.rate) > Fraction(14, 10) * m.guarantee(1).epsilon


@pytest.mark.slow
def test_draws_follow_the_law():
    m, counts = UnboundedQuantile(1, q="2/3", steps=6, base=2), [1, 0, 4, 2, 6, 3, 1]
    law, draws = m.outcomes(counts), [m(counts) for _ in range(4000)]
    assert p_value([draws.count(y) for y in law], list(law.values())) > ALPHA
    loud = replace(m, epsilon="1/2").outcomes(counts)
    assert p_value([draws.count(y) for y in law], [loud[y] for y in law]) < ALPHA


@pytest.mark.parametrize("m", examples, ids=repr)
def test_errors_stay_within_the_interval(m):
    rng = np.random.default_rng()
    for _ in range(5):
        counts = rng.integers(0, 5, m.steps + 1)
        for level in (0.5, 0.95):
            within = math.fsum(p for y, p in m.outcomes(counts).items() if m.error(y, counts) <= m.interval(level))
            assert within >= level - 1e-12


def test_errors_are_distances_of_ranks():
    m = UnboundedQuantile(1, q="1/2", steps=3)
    assert [m.error(y, [1, 2, 3, 2]) for y in (0, 1, 2, None)] == [3, 1, 0, 2]


# Steps


def test_values_are_counted_by_thresholds():
    m = UnboundedQuantile(1, q="1/2", steps=4, base=2, low=1, unit=3)
    assert [m.threshold(i) for i in range(4)] == pytest.approx([1, 4, 10, 22])
    assert m.count([0, 1, 3.9, 9, 22.5, math.inf, -math.inf, math.nan]).tolist() == [2, 2, 1, 0, 2]
    assert m.count([]).tolist() == [0] * 5


def test_it_finds_the_scale_of_values_nobody_bounded():
    m = UnboundedQuantile(1, q="19/20", steps=3000, base="1.01")
    for scale in (0.5, 100, 1e9):
        values = np.random.default_rng().exponential(scale, 10_000)
        step = m(m.count(values))
        assert m.threshold(step) == pytest.approx(np.quantile(values, 0.95), rel=0.15)


def test_none_is_beyond_the_last_threshold():
    m = UnboundedQuantile(100, q="1/2", steps=10, base=2)
    assert m(m.count([1e9] * 1000)) is None
    assert m(m.count([-1.0] * 1000)) == 0


def test_the_centre_makes_early_and_late_alike():
    """Noise alone: P(N >= Z + centre) is near a half."""
    for m in (UnboundedQuantile("1/5", q="1/2"), UnboundedQuantile("1/5", q="9/10")):
        z, n = (float(s) for s in (m.q.denominator / m.threshold_rate, m.q.denominator / m.rate))
        above = sum((tail(z, k) - tail(z, k + 1)) * tail(n, k + m.centre) for k in range(int(40 * z)))
        assert 0.35 < above < 0.65


# Calibration and refusals


@pytest.mark.parametrize("promise", [nz.Pure("1/3"), nz.Approx("1/3", "1e-6"), nz.ZCDP("1/5")], ids=str)
@pytest.mark.parametrize("relation", nz.Neighbours)
def test_promises_are_kept(promise, relation):
    size = ONE[relation].scaled(3)
    m = UnboundedQuantile.calibrated(promise, size, q="3/4", steps=50)
    assert m.guarantee(size) <= promise
    assert m.guarantee(size).neighbours is relation


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 0}, {"q": "3/2"}, {"q": -1}, {"q": Fraction(1, 2**21)}, {"steps": 0}, {"steps": "9"}, {"base": 1},
        {"base": "1/2"}, {"base": 2, "steps": 2000}, {"unit": 0}, {"low": math.nan}, {"neighbours": None},
    ],
    ids=str,
)  # fmt: skip
def test_bad_parameters_are_refused(options):
    with pytest.raises(InputError) as error:
        UnboundedQuantile(**{"epsilon": 1, "q": "1/2", "steps": 9, **options})
    assert str(error.value).endswith(".")


@pytest.mark.parametrize("counts", [None, "", [], [1, 2], [1, -2, 3], [1.0, 2.0, 3.0], [2**41, 0, 0]], ids=str)
def test_bad_counts_are_refused_before_anything_is_drawn(counts):
    with pytest.raises(InputError):
        UnboundedQuantile(1, q="1/2", steps=2)(counts, Script())
