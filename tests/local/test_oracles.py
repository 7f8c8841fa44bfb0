"""Published variances of frequency oracles, and what each of them does beyond the contract."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from tests.tapes import walk

from noisette import local
from noisette.errors import InputError
from noisette.local.affine import prime_from
from noisette.local.bitsets import has
from noisette.local.frequencies import on_simplex
from noisette.local.hadamard import transformed
from noisette.local.intervals import binomial_means
from noisette.local.rappor import bloom_bits
from noisette.mechanisms import RandomizedResponse

LARGE = 4_294_967_291  # a prime: buckets are even to nine digits, as with an ideal hash


@pytest.mark.parametrize(
    ("protocol", "variance"),
    [
        (local.GRR(1, domain=16), 5.662),
        (local.OUE(1, domain=16), 3.683),
        (local.SUE(1, domain=16), 3.918),
        (local.OLH(1, domain=LARGE), 3.692),
        (local.SubsetSelection(1, domain=16), 3.111),
        (local.HadamardResponse(1, domain=16), 4.683),
        (local.GRR(1, domain=128), 43.60),
        (local.SubsetSelection(1, domain=128), 3.610),
        (local.SubsetSelection(1, domain=1024), 3.674),
        (local.GRR(4, domain=16), 0.0239),
        (local.SubsetSelection(4, domain=16), 0.0239),
        (local.OUE(4, domain=16), 0.0760),
        (local.HadamardResponse(4, domain=16), 1.076),
        (local.SubsetSelection(1, domain=256), 3.646),
        (local.SubsetSelection(2, domain=256, size=31), 0.7108),
        (local.SubsetSelection(3, domain=256), 0.2110),
        (local.SubsetSelection(4, domain=256, size=5), 0.0681),
        (local.OUE(2, domain=256), 0.7241),
        (local.OUE(3, domain=256), 0.2206),
        (local.HadamardResponse(2, domain=256), 1.724),
        (local.HadamardResponse(3, domain=256), 1.221),
        (local.SubsetSelection(2, domain=1024), 0.7207),
        (local.SubsetSelection(3, domain=1024), 0.2182),
        (local.SubsetSelection(4, domain=1024), 0.0739),
    ],
    ids=lambda x: repr(x).replace("Fraction", ""),
)
def test_published_variances(protocol, variance):
    digits = len(str(variance).split(".")[1])
    assert round(protocol.variance(), digits) == variance


@pytest.mark.slow
def test_the_best_size_of_sets_is_found():
    for epsilon, k in itertools.product(("1/2", 1, 2, 3, 4, 7), (3, 16, 50, 256)):
        sizes = {w: local.SubsetSelection(epsilon, domain=k, size=w).noise()[0] for w in range(1, k)}
        assert local.SubsetSelection(epsilon, domain=k).noise()[0] == min(sizes.values())
        bucketed = {g: local.OLH(epsilon, domain=k, buckets=g).noise()[0] for g in range(2, prime_from(k) + 1)}
        assert local.OLH(epsilon, domain=k).noise()[0] <= min(bucketed.values()) * Fraction(101, 100)


def test_olh_has_four_buckets_at_epsilon_1_and_affine_maps_are_no_worse_than_ideal_hashes():
    assert local.OLH(1, domain=LARGE).buckets == 4
    ideal = 3.6916546174566887  # q = 1/g
    assert local.OLH(1, domain=LARGE).variance() == pytest.approx(ideal, rel=1e-8)
    assert all(local.OLH(1, domain=k).variance() < ideal for k in (5, 16, 100, 1000, 10**5))


def test_affine_subsets_have_the_variance_of_all_subsets_of_a_prime_domain():
    for epsilon, k in itertools.product(("1/2", 1, 3), (5, 17, 101, 1009)):
        assert local.AffineSubsets(epsilon, domain=k).noise() == local.SubsetSelection(epsilon, domain=k).noise()


def test_one_set_of_one_value_is_randomized_response():
    assert local.SubsetSelection(4, domain=16, size=1).noise() == local.GRR(4, domain=16).noise()


def test_pets():
    pets = local.GRR(math.log(3), domain=2)
    assert float(pets.own) == pytest.approx(3 / 4)
    assert pets.variance(1000, share=0.3) == pytest.approx(3 / 4000)
    assert pets.variance(50) == pytest.approx(RandomizedResponse(math.log(3)).variance(50))
    assert pets.guarantee() == RandomizedResponse(math.log(3)).guarantee()


def test_splitting_people_beats_splitting_epsilon():
    k, n = 20, 125_208
    people, budget = local.SplitQueries(1, queries=k), local.GRR(Fraction(1, k), domain=2)
    assert people.variance(n) == pytest.approx((k / (4 * math.tanh(0.5) ** 2) - 0.25) / n)
    assert budget.variance(n) / people.variance(n) > 17  # of at most k = 20
    assert local.SplitQueries(1, queries=1).noise() == local.GRR(1, domain=2).noise()


def test_rappor_accounts_for_one_report_and_for_all():
    m = local.Rappor(f="1/2", p="1/2", q="3/4", domain=4, length=64, hashes=2)
    assert float(m.guarantee_forever().epsilon) == pytest.approx(4 * math.log(3))
    assert m.bit_chances == (Fraction(9, 16), Fraction(11, 16))
    assert float(m.epsilon) == pytest.approx(2 * math.log((11 / 16 * 7 / 16) / (9 / 16 * 5 / 16)))
    assert m.epsilon < m.guarantee_forever().epsilon


def test_rappors_permanent_bits_are_as_private_as_stated():
    m = local.Rappor(f="1/2", p="1/3", q="2/3", domain=4, length=7, hashes=2)
    laws = [walk(m.permanent, value, least=0)[0] for value in range(4)]
    assert all(len(law) == 2**7 and sum(law.values()) == 1 for law in laws)
    worst = max(one[kept] / other[kept] for one, other in itertools.permutations(laws, 2) for kept in one)
    assert m.guarantee_forever().epsilon == pytest.approx(math.log(worst))
    assert log_down(worst) <= m.guarantee_forever().epsilon


def log_down(x):
    """Twenty digits of a logarithm, rounded down."""
    with mpmath.workdps(40):
        return Fraction(int(mpmath.floor(mpmath.log(mpmath.mpf(x.numerator) / x.denominator) * 10**20)), 10**20)


@pytest.mark.parametrize("f", ["1/4", "1/2", "9/10"])
def test_rappor_flips_each_permanent_bit_half_as_often_as_f_says(f):
    m = local.Rappor(f=f, p="1/3", q="2/3", domain=2, length=3, hashes=1)
    for value in range(2):
        ones = bloom_bits(value, 3, 1)
        law, dropped = walk(m.permanent, value, least=0)
        assert dropped == 0
        for i in range(3):
            flipped = sum(chance for kept, chance in law.items() if has(kept, i) != (i in ones))
            assert flipped == m.f / 2


# Decoding


def supports(m, report, v):
    if isinstance(m, local.OLH):
        a, b, bucket = report
        return ((a + 1) * v + b) % m.prime * m.buckets // m.prime == bucket
    a, b = report
    return ((a + 1) * v + b) % m.prime < m.size


@pytest.mark.parametrize(
    "protocol", [local.OLH("1/2", domain=60), local.AffineSubsets(2, domain=60)], ids=["OLH", "sets"]
)
@pytest.mark.parametrize("people", [1, 700])
def test_arcs_are_counted_like_one_report_after_the_other(protocol, people):
    rows = protocol.clients(np.arange(people) % 60)
    slow = [sum(supports(protocol, y, v) for y in rows.tolist()) for v in range(60)]
    assert protocol.counted(rows).tolist() == slow
    if isinstance(protocol, local.OLH):
        assert protocol.supports(rows, [3, 59]).tolist() == [slow[3], slow[59]]


def test_many_multipliers_are_counted_in_parts(monkeypatch):
    m = local.OLH(1, domain=60)
    rows = m.clients(np.arange(500) % 60)
    whole = m.counted(rows)
    monkeypatch.setattr("noisette.local.affine._CELLS", 100)
    assert np.array_equal(m.counted(rows), whole)
    assert np.array_equal(m.supports(rows, np.arange(60)), whole)


def test_a_huge_domain_is_asked_for_a_list_of_values():
    m = local.OLH(4, domain=LARGE)
    people = np.array([4_000_000_000] * 3000 + [7] * 1000)
    found = m.supports(m.clients(people), [4_000_000_000, 7, 12345])
    shares = (found / 4000 - float(m.other)) / float(m.own - m.other)
    sd = m.variance(4000, share=0.75) ** 0.5 + m.variance(4000) ** 0.5
    assert np.abs(shares - [0.75, 0.25, 0]).max() < 7.5 * sd  # fails with p < 1e-12


def test_transforms_are_those_of_the_matrix():
    rows = np.random.default_rng(1).integers(0, 9, (3, 16))
    signs = [[(-1) ** (i & j).bit_count() for j in range(16)] for i in range(16)]
    assert np.array_equal(transformed(rows), rows @ np.array(signs))


@pytest.mark.parametrize("protocol", [local.ProjectiveGeometry(2, domain=300), local.ProjectiveGeometry(4, domain=99)])
def test_points_and_vectors(protocol):
    r, t = protocol.prime, protocol.dimensions
    vectors = protocol.vectors(np.arange(protocol.cells))
    assert len({tuple(v) for v in vectors.tolist()}) == protocol.cells == (r**t - 1) // (r - 1)
    for factor in (1, 2, r - 1):
        assert np.array_equal(protocol.points(vectors * factor % r), np.arange(protocol.cells))
    counts = np.random.default_rng(2).integers(0, 10**9, protocol.cells)
    orthogonal = vectors[: protocol.domain] @ vectors.T % r == 0
    assert np.array_equal(protocol.support(counts), orthogonal @ counts)


# Post-processing and bars


def test_norm_sub_is_the_nearest_possible():
    draw = np.random.default_rng(5)
    for _ in range(50):
        shares = draw.normal(0.2, 0.5, 5)
        near = on_simplex(shares)
        assert near.sum() == pytest.approx(1)
        assert near.min() >= 0
        others = draw.dirichlet(np.ones(5), 200)
        assert (np.linalg.norm(others - shares, axis=1) >= np.linalg.norm(near - shares) - 1e-12).all()
    assert on_simplex(np.array([0.2, 0.5, 0.3])) == pytest.approx([0.2, 0.5, 0.3])


@pytest.mark.parametrize("n", [1, 3, 40])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_bars_hold_for_coins_of_two_kinds_exactly(n, level):
    """The law of the sum is a convolution of two binomial ones; coverage is computed."""
    from scipy.stats import binom

    low, high = binomial_means(np.arange(n + 1), n, level)
    for p, q in ((0.9, 0.01), (0.5, 0.27), (0.7, 0.3)):
        for with_value in {0, 1, n // 2, n}:
            own = binom.pmf(np.arange(with_value + 1), with_value, p)
            law = np.convolve(own, binom.pmf(np.arange(n - with_value + 1), n - with_value, q))
            mean = (with_value * p + (n - with_value) * q) / n
            assert law[(low <= mean) & (mean <= high)].sum() >= level - 1e-12


# Extremes

KINDS = [local.GRR, local.SUE, local.OUE, local.OLH, local.AffineSubsets, local.SubsetSelection, local.HadamardResponse,
         local.ProjectiveGeometry]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", ["1e-9", "0.001", 20, 100])
@pytest.mark.parametrize("domain", [2, 3, 200])
def test_extremes_have_finite_estimates(kind, epsilon, domain):
    protocol = kind(epsilon, domain=domain)
    found = protocol.estimate(protocol.clients(np.arange(40) % domain))
    low, high = found.interval()
    assert np.isfinite([found.shares, found.variance(), low, high]).all()
    assert (found.variance() >= 0).all()
    if epsilon == 100 and kind not in (
        local.OUE,
        local.HadamardResponse,
    ):  # these blur the own value whatever epsilon is
        assert found.shares == pytest.approx(np.bincount(np.arange(40) % domain, minlength=domain) / 40)


# Bad input


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: local.GRR(0, domain=3), "epsilon must be above 0"),
        (lambda: local.OUE(1, domain=1), "domain must be a whole number, at least 2"),
        (lambda: local.OLH(101, domain=4), "epsilon must be at most 100"),
        (lambda: local.OUE(1, domain=10**6), "use OLH or ProjectiveGeometry"),
        (lambda: local.SubsetSelection(1, domain=10**6), "use AffineSubsets"),
        (lambda: local.SubsetSelection(1, domain=5, size=5), "size must be below domain"),
        (lambda: local.AffineSubsets(1, domain=5, size=5), "size must be below 5"),
        (lambda: local.OLH(1, domain=5, buckets=6), "buckets must be at most 5"),
        (lambda: local.OLH(1, domain=2**32), "hash longer values to 32 bits"),
        (lambda: local.GRR("1e-10", domain=3), "epsilon must be at least 1e-9"),
        (lambda: local.HadamardResponse(1, domain=2**30).empty(), "too large for an aggregate: use OLH"),
        (lambda: local.OLH(1, domain=2**30).empty(), "ask its `supports` for a list of values"),
        (lambda: local.ProjectiveGeometry(1, domain=2**30), "use OLH"),
        (lambda: local.HadamardResponse(1, domain=4, blocks=5), "blocks must be at most domain"),
        (lambda: local.Rappor(f=0, p=".5", q=".7", domain=2, length=9, hashes=1), "f must lie strictly"),
        (lambda: local.Rappor(f=".5", p=".7", q=".5", domain=2, length=9, hashes=1), "p must be above 0 and below q"),
        (lambda: local.Rappor(f=".5", p=".5", q=".7", domain=9, length=5, hashes=1), "domain must be at most length"),
        (lambda: local.Rappor(f=".5", p=".5", q=".7", domain=4, length=4, hashes=1), "cannot tell the values apart"),
        (lambda: local.GRR(1, domain=3).variance(share=2), "share must lie between 0 and 1"),
        (lambda: local.SubsetSelection(1, domain=6, size=2).estimate([[7]]), "a set of 2 values"),
        (lambda: local.OUE(1, domain=3).estimate([[8]]), "a row of 1 bytes that holds 3 bits"),
    ],
)
def test_bad_input_is_refused(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()


def test_primes():
    sieve = [p for p in range(2, 500) if all(p % d for d in range(2, p))]
    assert [prime_from(n) for n in range(1, 498)] == [next(p for p in sieve if p >= n) for n in range(1, 498)]
    assert prime_from(LARGE) == LARGE
