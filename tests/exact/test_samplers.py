"""Every sampler is walked over all its coin tapes, and its broken twins are found out by the same walk."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import binom
from tests import goodness, tapes
from tests.goodness import ALPHA
from tests.tapes import Script, exp, misfits, walk

from noisette.exact import samplers
from noisette.exact.random import SYSTEM
from noisette.exact.rational import exp_bounds

F = Fraction


def coin(chance):
    return lambda value: chance if value else 1 - chance


def geometric_pmf(scale):
    return lambda z: exp(-z / F(scale)) * (1 - exp(-1 / F(scale))) if z >= 0 else F(0)


def laplace_pmf(scale):
    q = exp(-1 / F(scale))
    return lambda z: (1 - q) / (1 + q) * exp(-abs(z) / F(scale))


def gaussian_pmf(s2):
    return lambda z: tapes.exact(goodness.gaussian_pmf(s2, z))


def low_part_pmf(t):
    total = sum(exp(-F(u, t)) for u in range(t))
    return lambda u: exp(-F(u, t)) / total


def logistic_pmf(g, weight):
    return coin(1 / (1 + weight * exp(-g)))


def binomial_pmf(n, p):
    return lambda k: math.comb(n, k) * p**k * (1 - p) ** (n - k)


# The walks: (sampler, arguments, law, values that must occur, least mass followed)

WALKS = [
    (samplers.uniform, (7,), lambda _: F(1, 7), range(7), 0),
    (samplers.bernoulli, (F(3, 7),), coin(F(3, 7)), (True, False), 0),
    (samplers.bernoulli, (F(0),), coin(F(0)), (), 0),
    (samplers.bernoulli, (F(1),), coin(F(1)), (), 0),
    *[
        (samplers.bernoulli_exp, (F(g),), coin(exp(-F(g))), (True, False), F(1, 10**12))
        for g in ("0", "1/1000", "1/3", "1", "4/3", "2", "11/2")
    ],
    *[(samplers._attempt_low_part, (t,), low_part_pmf(t), range(t), F(1, 10**9)) for t in (1, 2, 3, 10)],
    *[
        (samplers.geometric, (F(scale),), geometric_pmf(scale), range(3), F(1, 10**5))
        for scale in ("1/3", "1", "2/3", "3/2", "2", "3")
    ],
    *[
        (samplers._attempt_laplace, (F(scale),), laplace_pmf(scale), range(-2, 3), F(1, 10**5))
        for scale in ("1/3", "1", "2/3", "2", "5/2")
    ],
    (samplers.discrete_laplace, (F(1),), laplace_pmf(1), range(-2, 3), F(1, 10**5)),
    *[
        (samplers._attempt_gaussian, (F(s2), t), gaussian_pmf(F(s2)), (-1, 0, 1), F(1, 10**5))
        for s2, t in (("1/10", 1), ("1/4", 1), ("1", 2), ("9/4", 2))
    ],
    *[
        (sampler, (F(g), F(weight)), logistic_pmf(F(g), F(weight)), (True, False), F(1, 10**5))
        for sampler in (samplers._attempt_logistic, samplers.logistic)
        for g, weight in (("0", 1), ("1/2", 1), ("1", 3), ("3", 1), ("1", "2/5"))
    ],
    *[
        (samplers.binomial, (n, F(p)), binomial_pmf(n, F(p)), range(n + 1), F(1, 10**5))
        for n, p in ((0, "1/3"), (1, "1/3"), (2, "1/2"), (3, "3/4"), (2, "2/7"), (3, "1"), (2, "0"))
    ],
    (samplers.binomial, (2, samplers.exp_real(F(1))), binomial_pmf(2, exp(-1)), range(3), F(1, 10**5)),
]


def name(walk):
    sampler, arguments, *_ = walk
    shown = ",".join("e^-g" if callable(a) else str(a) for a in arguments)
    return f"{sampler.__name__.removeprefix('_')}({shown})"


@pytest.mark.parametrize("case", WALKS, ids=name)
def test_every_tape_gives_the_law(case):
    sampler, arguments, pmf, support, least = case
    walked = walk(sampler, *arguments, least=least)
    assert walked[1] < F(1, 16)
    assert not misfits(walked, pmf, support)


@pytest.mark.parametrize(("s2", "t"), [("1/2", 1), ("1", 2), ("9/4", 2), ("30", 6), ("30", 5)])
def test_gaussian_keeps_a_laplace_candidate_with_the_ratio_of_the_laws(s2, t, monkeypatch):
    def kept(z):
        monkeypatch.setattr(samplers, "discrete_laplace", lambda scale, rng: z)
        masses, dropped = walk(samplers._attempt_gaussian, F(s2), t, least=F(1, 10**9))
        assert dropped < F(1, 10**5)
        return masses.get(z, 0) * laplace_pmf(t)(z)

    for z in range(-2, 3):
        assert float(kept(z) / kept(0)) == pytest.approx(math.exp(-z * z / (2 * F(s2))), rel=1e-4)


# Broken twins


def even_exp(g, rng):
    """A coin of e^-g that takes even for odd."""
    return not samplers.bernoulli_exp(g, rng)


def two_zeros(scale, rng):
    """A Laplace attempt that does not reject -0."""
    negative = rng.flip(1, 2)
    z = samplers.geometric(scale, rng)
    return -z if negative else z


def one_more(scale, rng):
    return samplers.geometric(scale, rng) + 1


def no_sign(scale, rng):
    return samplers.geometric(scale, rng)


def cut_tail(scale, rng):
    z = samplers._attempt_laplace(scale, rng)
    return z if z is not None and abs(z) < 4 else None


def without_unit(g, rng):
    """A coin of e^-g that forgets the whole part of g."""
    return samplers.bernoulli_exp(g % 1, rng)


TWINS = [
    (even_exp, (F(1, 3),), coin(exp(-F(1, 3)))),
    (without_unit, (F(4, 3),), coin(exp(-F(4, 3)))),
    (one_more, (F(1),), geometric_pmf(1)),
    (two_zeros, (F(1),), laplace_pmf(1)),
    (no_sign, (F(1),), laplace_pmf(1)),
    (cut_tail, (F(1),), laplace_pmf(1)),
    *[(samplers.geometric, (scale,), geometric_pmf(1)) for scale in (F(4, 5), F(5, 4))],
    *[(samplers._attempt_laplace, (scale,), laplace_pmf(1)) for scale in (F(4, 5), F(5, 4))],
    *[(samplers._attempt_gaussian, (s2, 1), gaussian_pmf(F(1, 2))) for s2 in (F(8, 25), F(25, 32))],
    (samplers._attempt_gaussian, (F(1, 2), 1), laplace_pmf(1)),
    *[(samplers._attempt_logistic, (g, F(1)), logistic_pmf(F(1), F(1))) for g in (F(4, 5), F(5, 4))],
    (samplers.binomial, (2, F(1, 3)), binomial_pmf(2, F(4, 15))),
]


@pytest.mark.slow_after(7)
@pytest.mark.parametrize(("twin", "arguments", "pmf"), TWINS)
def test_broken_twins_do_not_pass_the_walk(twin, arguments, pmf):
    assert misfits(walk(twin, *arguments), pmf)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "below", "right"),
    [
        (lambda: samplers.discrete_laplace(F(5)), goodness.laplace(F(5)), True),
        (lambda: samplers.discrete_laplace(F(4)), goodness.laplace(F(5)), False),
        (lambda: samplers.discrete_laplace(F(25, 4)), goodness.laplace(F(5)), False),
        (lambda: two_zeros(F(5), SYSTEM), goodness.laplace(F(5)), False),
        (lambda: samplers.geometric(F(5)), goodness.geometric(F(5)), True),
        (lambda: one_more(F(5), SYSTEM), goodness.geometric(F(5)), False),
        (lambda: samplers.discrete_gaussian(F(25)), goodness.gaussian(F(25)), True),
        (lambda: samplers.discrete_gaussian(F(16)), goodness.gaussian(F(25)), False),
    ],
)
def test_draws_tell_a_sampler_from_its_twin(draw, below, right):
    p = goodness.fit([draw() for _ in range(20_000)], below, goodness.integers(60))
    assert (p > ALPHA) == right


# Samplers whose uniform is 64 bits wide: its words are chosen around the place where the answer changes.


def binary_places(x, bits):
    """floor(2^bits x) as 64-bit words."""
    scaled = math.floor(x * 2**bits)
    return [scaled >> (bits - 64 * k) & (2**64 - 1) for k in range(1, bits // 64 + 1)]


@pytest.mark.parametrize("g", ["1/1000", "1", "7/3", "30"])
def test_real_coin_is_true_just_below_its_chance(g):
    bounds = samplers.exp_real(F(g))
    first, second = binary_places(exp(-F(g)), 128)
    assert samplers.bernoulli_real(bounds, Script(first - 1)) is True
    assert samplers.bernoulli_real(bounds, Script(first + 1)) is False
    assert samplers.bernoulli_real(bounds, Script(first, second - 1)) is True
    assert samplers.bernoulli_real(bounds, Script(first, second + 1)) is False


def test_real_coin_goes_on_from_the_bits_it_is_given():
    first, second = binary_places(exp(-1), 128)
    high, low = first >> 32, (first << 32 | second >> 32) & (2**64 - 1)
    for shift in (-1, 1):
        answer = samplers.bernoulli_real(samplers.exp_real(F(1)), Script(low + shift), prefix=high, known=32)
        assert answer is (shift < 0)


@pytest.mark.parametrize(("x", "answer"), [(0, False), (1, True)])
def test_sure_coins_are_sure(x, answer):
    for word in (0, 5, 2**64 - 1):
        assert samplers.bernoulli_real(lambda bits: (x << bits, x << bits), Script(word)) is answer


def weights(*exponents):
    return lambda bits: [samplers.exp_real(F(g))(bits) for g in exponents]


@pytest.mark.parametrize("exponents", [(0, 1, 2), (3, "1/2", 0, "1/7"), (40, 1), (1, 40)])
def test_categorical_changes_its_mind_exactly_at_the_cell_walls(exponents):
    masses = [exp(-F(g)) for g in exponents]
    for i in range(1, len(masses)):
        first, second = binary_places(sum(masses[:i]) / sum(masses), 128)
        for script, chosen in (
            (Script(first, second - 1), i - 1),
            (Script(first, second + 1), i),
            (Script(max(first - 1, 0), 0), i - 1),
            (Script(min(first + 1, 2**64 - 1), 2**64 - 1), i),
        ):
            assert samplers.categorical(weights(*exponents), script) == chosen


@pytest.mark.parametrize("word", [0, 2**63, 2**64 - 1])
def test_categorical_never_takes_what_has_no_weight(word):
    nothing, something = (lambda bits: (0, 0)), samplers.exp_real(F(1))
    table = [nothing, something, nothing]
    assert samplers.categorical(lambda bits: [w(bits) for w in table], Script(word, 5)) == 1


@pytest.mark.slow
def test_categorical_draws():
    masses = [exp(-F(g)) for g in (0, 1, 2)]
    draws = [samplers.categorical(weights(0, 1, 2)) for _ in range(20_000)]
    assert goodness.p_value(np.bincount(draws), [float(m / sum(masses)) for m in masses]) > ALPHA


# Binomial


@pytest.mark.parametrize(("n", "p", "k"), [(5, "0", 0), (5, "1", 5), (10**30, "1", 10**30), (0, "1/2", 0)])
def test_sure_binomials(n, p, k):
    assert samplers.binomial(n, F(p)) == k


def test_binomial_of_a_real_number_that_is_one():
    assert samplers.binomial(5, samplers.exp_real(F(0))) == 5


@pytest.mark.slow
@pytest.mark.parametrize(("n", "p"), [(10, "1/3"), (4097, "1/2"), (10_001, "2/7"), (10**9, "1/1000")])
def test_binomial_draws(n, p):
    draws = np.array([samplers.binomial(n, F(p)) for _ in range(2000)])
    edges = np.unique(binom.ppf(np.linspace(0.01, 0.99, 99), n, float(F(p))).astype(int))
    assert goodness.fit(draws, lambda e: binom.cdf(e - 1, n, float(F(p))), edges) > ALPHA


@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 6, 13])
def test_central_rejection_is_exact_for_few_coins(n, monkeypatch):
    monkeypatch.setattr(samplers, "_FEW", 4)
    draws = [samplers._binomial_half(n, SYSTEM) for _ in range(20_000)]
    assert goodness.pmf_fit(draws, binomial_pmf(n, F(1, 2)), 0, n) > ALPHA
    assert goodness.pmf_fit(draws, binomial_pmf(n, F(9, 20)), 0, n) < ALPHA


@pytest.mark.parametrize(("half", "i"), [(3, 1), (3, 3), (100, 7), (5000, 200), (10**12, 3 * 10**6)])
def test_central_acceptance_is_enclosed(half, i):
    with mpmath.workdps(120):
        log = 2 * mpmath.loggamma(half + 1) - mpmath.loggamma(half + i + 1) - mpmath.loggamma(half - i + 1)
        if half < 10**4:
            log = mpmath.log(mpmath.mpf(math.comb(2 * half, half + i)) / math.comb(2 * half, half))
        truth = tapes.exact(mpmath.exp(log + mpmath.mpf(2 * i * i) / (2 * half + 1)))
    for bits in (8, 72, 136):
        lo, hi = samplers._central_acceptance(half, i)(bits)
        assert lo <= truth * 2**bits <= hi <= lo + 2
    z = F(2 * i - 1, 2 * half + 1)
    assert 1 - 2 * i * z**3 / 3 / (1 - z * z) <= truth <= 1


def test_bounds_of_a_coin_hold_where_few_bits_are_asked_for():
    """Bounds that forget to use the other end of e^-g are wrong in one of ten of these cases."""
    for i in range(1, 300):
        g, weight = F(12) + F(i, 97), F(100_000) + F(i * i, 7)
        least, most = (F(end, 1 << 200) for end in exp_bounds(-g, 200))
        for bits in (8, 16):
            lo, hi = samplers._logistic_real(g, weight)(bits)
            assert F(lo, 1 << bits) <= 1 / (1 + weight * most)
            assert 1 / (1 + weight * least) <= F(hi, 1 << bits)


@pytest.mark.parametrize(("g", "weight"), [(F(20), F(4 * 10**8)), (F(13), F(10**6)), (F(90), F(7))])
def test_a_coin_of_a_large_weight_is_enclosed_and_quick(g, weight):
    """1 / (1 + weight e^-g) lies between its bounds, and 400 coins take no time, whatever attempts it would take."""
    p = logistic_pmf(g, weight)(True)
    lo, hi = samplers._logistic_real(g, weight)(80)
    assert F(lo, 1 << 80) <= F(float(p)) * (1 + F(1, 10**14))
    assert F(float(p)) * (1 - F(1, 10**14)) <= F(hi, 1 << 80)
    assert hi - lo <= 2
    heads = sum(samplers.logistic(g, weight) for _ in range(400))
    assert goodness.fewest(400, float(p)) <= heads <= goodness.most(400, float(p))
