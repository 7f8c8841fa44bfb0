"""Tight composition: closed forms, enumeration and peers' brackets; never below the truth and hardly above it."""

import itertools
import math
import operator
from fractions import Fraction
from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import noisette as nz
from noisette.errors import InputError
from noisette.privacy.convert import gaussian_delta
from noisette.privacy.guarantee import Losses
from noisette.privacy.pld import compose
from noisette.privacy.pld.compose import Direction, composed_delta, composed_epsilon
from noisette.privacy.pld.loss import LatticeLaplace, LatticeNormal, Normal, Response, Subsampled
from noisette.privacy.pld.tight import optimal_delta, tight_delta, tight_epsilon

TOLERANCE = 1e-3


def never_below_and_near(found: float, truth: float, relative: float = TOLERANCE) -> None:
    assert truth * (1 - 1e-12) <= found <= truth * (1 + relative)


# Closed forms


@pytest.mark.parametrize(
    ("k", "sigma", "delta", "epsilon"),
    [
        (1, 1, 1e-5, 4.3771780956812245),
        (100, 10, 1e-6, 4.886554117462212),
        (100, 20, 1e-5, 1.9930914044151196),
        (1000, 50, 1e-6, 2.9216005904270457),
        (10000, 100, 1e-6, 4.886554117462212),
    ],
)
def test_gaussians_are_one_gaussian(k, sigma, delta, epsilon):
    """In closed form, and on the lattice as if no closed form were known."""
    parts = {Normal(Fraction(1, sigma)): k}
    never_below_and_near(composed_epsilon(parts, delta), epsilon)
    never_below_and_near((nz.Gaussian(sigma).guarantee(1) * k).epsilon_at(delta), epsilon, 1e-6)


@pytest.mark.parametrize("exponent", [3, 9, 30, 100, 250])
def test_small_deltas_keep_their_digits(exponent):
    parts, delta = {Normal(Fraction(1, 10)): 100}, 10.0**-exponent
    eps = composed_epsilon(parts, delta)
    assert 0.98 * delta <= gaussian_delta(Fraction(1), Fraction(eps)) <= delta
    assert composed_delta(parts, eps) == pytest.approx(delta, rel=0.02)


@pytest.mark.parametrize(
    ("k", "e0", "d0", "delta", "epsilon"),
    [
        (2, "1", "0", "1e-6", 1.999998128904084),
        (10, "0.1", "0", "1e-6", 0.9993709057217587),
        (10, "1", "0", "1e-5", 9.999770634534942),
        (30, "0.1", "0", "1e-5", 2.1101544222423825),
        (100, "0.1", "0", "1e-6", 4.7745675881079865),
        (10, "0.1", "1e-8", "1e-6", 0.9994338329022889),
    ],
)
def test_optimal_composition(k, e0, d0, delta, epsilon):
    """Kairouz-Oh-Viswanath, by their sum and on the lattice; the geometric mechanism on counts is the same pair."""
    one = nz.Approx(e0, d0)
    never_below_and_near((one * k).epsilon_at(delta), epsilon, 1e-8)
    loss = Response(one.epsilon, one.delta)
    never_below_and_near(composed_epsilon({loss: k}, float(delta)), epsilon, 1e-6)
    if one.delta == 0:
        never_below_and_near((nz.Geometric(1 / one.epsilon).guarantee(1) * k).epsilon_at(delta), epsilon, 1e-6)


def test_ten_thousand_databases():
    """A textbook example: 1/800 each keeps (1, e^-32) in all, by optimal composition; 1/715.511 is the most."""
    delta = Fraction(math.exp(-32))
    assert optimal_delta(Fraction(1, 800), Fraction(0), 10_000, Fraction(1)) == pytest.approx(1.4959831466085032e-17)
    assert nz.Pure("1/800") * 10_000 <= nz.Approx(1, delta)
    assert nz.Pure(Fraction(1000, 715_512)) * 10_000 <= nz.Approx(1, delta)
    assert not nz.Pure(Fraction(1000, 715_510)) * 10_000 <= nz.Approx(1, delta)


@pytest.mark.parametrize(
    ("k", "scale", "low", "high"),
    [
        (2, 1, 1.999976000032004, 1.9999960000120038),
        (10, 10, 0.9989780640041571, 0.9989780894874485),
        (100, 10, 4.6926455773447975, 4.69266741655913),
        (100, 50, 0.8186431037614458, 0.8193574894644463),
        (100_000, 100, 19.356796292287857, 19.381666909052562),
    ],
)
def test_laplace_lies_in_the_peers_bracket(k, scale, low, high):
    """dp_accounting 0.6, optimistic and pessimistic."""
    eps = (nz.Laplace(scale).guarantee(1) * k).epsilon_at("1e-6")
    assert low <= eps <= high * (1 + 1e-6)


def test_a_mix_of_fifty_lies_in_the_peers_bracket():
    """dp_accounting 0.6, optimistic and pessimistic."""
    laplace = [nz.Laplace(10 + i).guarantee(1) * 3 for i in range(25)]
    gaussian = [nz.Gaussian(20 + i).guarantee(1) * 5 for i in range(25)]
    eps = reduce(operator.add, laplace + gaussian).epsilon_at("1e-6")
    assert 2.738993536369982 <= eps <= 2.748146986932933 * (1 + 1e-6)


@pytest.mark.parametrize(
    ("k", "sigma", "rate", "delta", "low", "high"),
    [
        (1000, "1", "0.01", 1e-6, 2.074518424241299, 2.124522530140901),
        (1000, "1", "0.01", 1e-5, 1.7782397279070383, 1.828243645591767),
        (1000, "1.1", "0.02", 1e-6, 3.652079964561313, 3.7020829274480986),
        (100, "2", "0.1", 1e-6, 2.6700353708864544, 2.6750357412985606),
    ],
)
def test_subsampled_gaussians_lie_in_the_peers_bracket(k, sigma, rate, delta, low, high):
    loss = Subsampled(Normal(1 / Fraction(sigma)), Fraction(rate))
    assert low <= composed_epsilon({loss: k}, delta) <= high * (1 + 1e-5)


def test_one_subsampled_gaussian_by_its_closed_form():
    loss = Subsampled(Normal(Fraction(1)), Fraction(1, 10))
    never_below_and_near(composed_delta({loss: 1}, 1.0), 0.0002071214860213921)


def test_sampling_everybody_changes_nothing():
    whole = composed_epsilon({Subsampled(Normal(Fraction(1, 4)), Fraction(1)): 20}, 1e-6)
    assert whole == pytest.approx(composed_epsilon({Normal(Fraction(1, 4)): 20}, 1e-6), rel=1e-5)


def test_subsampling_amplifies_pure_guarantees():
    """(epsilon, delta) -> (ln(1 + q(e^eps - 1)), q delta)."""
    loss = Subsampled(Response(Fraction(1), Fraction(1, 10**6)), Fraction(1, 10))
    assert Subsampled(Response(Fraction(1)), Fraction(1, 10)).pure() == pytest.approx(0.1585650787404291, abs=1e-15)
    assert loss.atoms()[1].sum() + loss.certain() == pytest.approx(1, abs=1e-15)
    assert 1e-7 <= composed_delta({loss: 1}, 0.1585650787404291) <= 5e-6  # epsilon to a relative 1e-5


# Enumeration


def enumerated(parts: list[tuple[np.ndarray, np.ndarray]], eps: float) -> float:
    """delta(eps) of the product of laws of few atoms, term by term."""
    total = 0.0
    for combination in itertools.product(*(list(zip(*part, strict=True)) for part in parts)):
        loss, mass = sum(c[0] for c in combination), math.prod(c[1] for c in combination)
        total += mass * max(0.0, -math.expm1(eps - loss))
    return total


@pytest.mark.parametrize("eps", [0.0, 0.3, 1.0, 2.0])
def test_mixed_lattice_losses_agree_with_enumeration(eps):
    a, b, c = Response(Fraction(1, 2)), LatticeNormal(Fraction(1), 1), LatticeLaplace(Fraction(9, 10), 3)
    alpha = math.exp(-0.3)
    atoms = np.array([0.9, 0.3, -0.3, -0.9])
    middle = (1 - alpha) / (1 + alpha)
    masses = np.array([1 / (1 + alpha), alpha * middle, alpha**2 * middle, alpha**3 / (1 + alpha)])
    truth = enumerated([a.atoms(), b.atoms(), (atoms, masses), a.atoms()], eps)
    never_below_and_near(composed_delta({a: 2, b: 1, c: 1}, eps), truth)


def test_lattice_laplace_is_its_atoms():
    loss, t = LatticeLaplace(Fraction(1), 4), np.array([-1.0, -0.6, -0.5, 0.0, 0.4, 0.99, 1.0])
    alpha = math.exp(-0.25)
    atoms = np.array([1.0, 0.5, 0.0, -0.5, -1.0])
    p = np.array([1.0, alpha * (1 - alpha), alpha**2 * (1 - alpha), alpha**3 * (1 - alpha), alpha**4]) / (1 + alpha)
    assert p.sum() == pytest.approx(1)
    up, down = loss.above(t), loss.below(t)
    for i, threshold in enumerate(t):
        assert up[0][i] == pytest.approx(p[atoms > threshold].sum())
        assert up[1][i] == pytest.approx((p * np.exp(-atoms))[atoms > threshold].sum())
        assert up[0][i] + down[0][i] == pytest.approx(1)
        assert up[1][i] + down[1][i] == pytest.approx(1)


@pytest.mark.parametrize("split", [(1, 1), (2, 1), (1, 1, 1)])
def test_one_long_move_dominates_several_short_ones(split):
    """What lets one loss stand for all vectors of the same l1 length (docs/proofs/composition.md)."""
    together = {LatticeLaplace(Fraction(1, 2) * d, d): split.count(d) for d in set(split)}
    one = {LatticeLaplace(Fraction(sum(split), 2), sum(split)): 1}
    for eps in (0.0, 0.4, 0.9):
        assert composed_delta(together, eps) <= composed_delta(one, eps) * (1 + 1e-9)


def test_a_coarser_lattice_dominates_a_finer_one():
    for eps in (0.0, 0.5, 0.9):
        deltas = [composed_delta({LatticeLaplace(Fraction(1), steps): 3}, eps) for steps in (1, 2, 4, 64)]
        assert deltas == sorted(deltas, reverse=True)


# The algebra


epsilons = st.fractions("1/20", 2, max_denominator=100)
some = st.one_of(
    st.builds(nz.Pure, epsilons),
    st.builds(nz.ZCDP, st.fractions("1/1000", "1/2", max_denominator=1000)),
    st.builds(lambda s: nz.Gaussian(s).guarantee(1), st.fractions(1, 20, max_denominator=10)),
    st.builds(lambda s: nz.Laplace(s).guarantee(1), st.fractions(1, 20, max_denominator=10)),
)


@pytest.mark.slow
@settings(max_examples=20)
@given(some, some, some)
def test_composition_commutes_and_associates(a, b, c):
    one, other = ((a + b) + c).epsilon_at("1e-6"), (c + (a + b)).epsilon_at("1e-6")
    assert one == pytest.approx(other, rel=1e-6)
    assert one == pytest.approx((a + (b + c)).epsilon_at("1e-6"), rel=1e-6)


@pytest.mark.slow
@settings(max_examples=20)
@given(some, st.integers(1, 50))
def test_k_fold_is_monotone_and_below_the_basic_bound(g, k):
    more, less = (g * (k + 1)).epsilon_at("1e-6"), (g * k).epsilon_at("1e-6")
    assert less <= more * (1 + 1e-4)
    if isinstance(g, nz.Pure):
        assert less <= float(k * g.epsilon) * (1 + 1e-12)
    deltas = [(g * k).delta_at(e) for e in (0, "0.5", 1, 3)]
    assert deltas == sorted(deltas, reverse=True)


def test_counts_cannot_be_forgotten():
    g = nz.Laplace(1).guarantee(1) * 1000 + nz.Gaussian(10).guarantee(1) * 10
    assert sum(k for _, k in g.losses.parts) == 1010
    assert (g + g).losses == (g * 2).losses
    assert (nz.RandomizedResponse(1).guarantee() * 10).epsilon_at() == 10


def test_sums_state_basic_composition_and_know_more():
    g = nz.Pure("0.1") * 100
    assert g == nz.Pure(10)
    assert g.epsilon_at() == 10
    assert g.epsilon_at("1e-6") < 4.775
    assert nz.Pure(10).epsilon_at("1e-6") > 9.99, "a single 10-DP release is not a hundred of 0.1"


@pytest.mark.parametrize("rest", [nz.Pure("0.1"), nz.Approx("0.01", "1e-9")])
def test_an_epsilon_is_certified_or_infinite(rest):
    """Total variation times e^epsilon can exceed delta everywhere; then there is no epsilon to give."""
    g = nz.Gaussian(100).guarantee(1) * 100_000 + nz.Laplace(10).guarantee(1) + rest
    eps = g.epsilon_at("1e-6")
    assert eps == math.inf or g.delta_at(eps) <= 1.0001e-6


def test_nothing_added_is_nothing():
    assert (nz.Pure(1) * 0).epsilon_at("1e-6") == 0
    assert (nz.Pure(0) + nz.Pure(1)) == nz.Pure(1)
    assert (nz.Gaussian(1).guarantee(0)).delta_at(0) == 0
    assert tight_delta((), Fraction(0), Fraction(0)) == 0
    assert tight_epsilon((), Fraction(0), Fraction(1, 10)) == 0


def test_samples_of_discrete_noise_keep_their_slack_beside_zcdp():
    """Without a proof for their Rényi divergences, samples are shifted there; plain discrete Gaussian noise is not."""
    mu, some, none = Fraction(1, 10), Fraction(1, 10**4), Fraction(0)

    def delta(loss):
        return tight_delta(((loss, 1),), Fraction(1, 1000), Fraction(1, 4))

    assert delta(Normal(mu, some)) == delta(Normal(mu, none))
    assert delta(Subsampled(Normal(mu, some), Fraction(1, 2))) > 1.5 * delta(
        Subsampled(Normal(mu, none), Fraction(1, 2))
    )


# Discrete Gaussian noise accounted as continuous


@pytest.mark.parametrize("s", [1, 2, 5, 30])
def test_discrete_noise_is_near_rounded_continuous_noise_point_by_point(s):
    """g <= r e^(1/(16 s^2)) everywhere, r <= g e^((Y^2 + 1)/(24 s^2)) up to Y s; half as much is too little."""
    from scipy.special import ndtr

    y = np.arange(0, 12 * s + 1)
    rounded = ndtr((0.5 - y) / s) - ndtr((-0.5 - y) / s)
    discrete = np.exp(-(y**2) / (2 * s**2))
    discrete /= 2 * discrete.sum() - 1
    assert np.all(discrete <= rounded * np.exp(1 / (16 * s**2)))
    excess = ((y / s) ** 2 + 1) / (24 * s**2)
    assert np.all(rounded <= discrete * np.exp(excess) * (1 + 1e-12))
    assert not np.all(rounded <= discrete * np.exp(excess / 2))
    assert not np.all(discrete <= rounded * np.exp(1 / (32 * s**2)))


def summed(s: int, k: int, eps: float) -> float:
    """delta(eps) of k whole numbers that move by one, with discrete Gaussian noise: the sum of the noise tells all."""
    y = np.arange(-12 * s, 12 * s + 1)
    one = np.exp(-(y**2) / (2 * s**2))
    masses = reduce(np.convolve, [one / one.sum()] * k)
    losses = (2 * np.arange(-12 * s * k, 12 * s * k + 1) + k) / (2 * s**2)
    return float((masses * np.maximum(0.0, -np.expm1(eps - losses))).sum())


@pytest.mark.parametrize("s", [1, 2, 8, 40])
@pytest.mark.parametrize("k", [1, 3])
def test_discrete_noise_is_never_below_its_own_sum(s, k):
    """What is accounted as continuous covers the discrete law; without the shift it would not."""
    mu, variation = Fraction(1, s), Fraction(1, 8 * s * s)
    for eps in (0.0, 0.25 / s, 1 / s, 3 / s, 6 / s):
        assert summed(s, k, eps) <= tight_delta(((Normal(mu, variation), k),), Fraction(0), Fraction(eps))
    assert summed(s, k, 1 / s) > tight_delta(((Normal(mu), k),), Fraction(0), Fraction(1, s))


def test_a_hundred_thousand_gaussians_have_no_slack_to_speak_of():
    g = nz.Gaussian(100).guarantee(1) * 100_000
    truth = (nz.ZCDP(0) + nz.Profile(Losses(((Normal(Fraction(1, 100)), 100_000),)))).epsilon_at("1e-6")
    never_below_and_near(g.epsilon_at("1e-6"), truth, 1e-8)  # rounding answers to the grid moves them apart
    assert truth == pytest.approx(19.42365647405066, rel=1e-9)


def test_too_much_variation_tells_nothing():
    coarse = ((Normal(Fraction(1, 10), Fraction(1, 10)), 2),)
    assert tight_delta(coarse, Fraction(0), Fraction(1)) == 1
    assert tight_epsilon(coarse, Fraction(0), Fraction(1, 10)) == math.inf
    with pytest.raises(InputError, match="lattice step"):
        Normal(Fraction(1), Fraction(1, 4))


# What is left out


SAMPLED = [
    {Subsampled(Normal(Fraction(1)), Fraction(1, 100)): 1000},
    {Subsampled(Normal(Fraction(1, 4)), Fraction(1, 100)): 10_000},
    {Subsampled(Normal(Fraction(2)), Fraction(1, 2)): 3, Response(Fraction(1, 2)): 4},
    {Subsampled(LatticeLaplace(Fraction(1), 3), Fraction(1, 10)): 50},
    {Subsampled(Response(Fraction(2), Fraction(1, 10**9)), Fraction(1, 5)): 20, Normal(Fraction(1, 3)): 1},
]


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("parts", SAMPLED)
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-12])
def test_leaving_a_direction_out_changes_nothing(parts, delta, monkeypatch):
    """Chernoff's bound leaves out what cannot be the worse; with both directions computed the result is the same."""
    eps = composed_epsilon(parts, delta)
    found = composed_delta(parts, eps)
    each = [
        way.curve().epsilon_at(delta) for way in compose._directions(parts, lambda total: total.tilt_for_delta(delta))
    ]
    for way in compose._directions(parts, lambda total: total.tilt_for_mean(eps)):
        assert way.curve().delta_at(eps) <= way.bound(eps) + 1e-7 * delta
    monkeypatch.setattr(Direction, "bound", lambda *_: 1.0)
    assert composed_epsilon(parts, delta) == eps == pytest.approx(max(each), rel=1e-7)
    assert composed_delta(parts, eps) == found


def test_a_direction_is_left_out_where_that_is_certain(monkeypatch):
    calls = []
    curve = Direction.curve
    monkeypatch.setattr(Direction, "curve", lambda self: calls.append(self.reverse) or curve(self))
    composed_epsilon(SAMPLED[0], 1e-6)
    assert calls == [False]


@pytest.mark.parametrize("parts", [*SAMPLED, {LatticeLaplace(Fraction(1, 10), 2**40): 300}, {Normal(Fraction(2)): 1}])
@pytest.mark.parametrize("delta", [1e-2, 1e-9])
def test_a_short_window_is_close_to_a_long_one(parts, delta, monkeypatch):
    """Masses that fold back into the window are counted twice, never left out."""
    short = composed_epsilon(parts, delta)
    for module in ("discretize", "compose"):
        monkeypatch.setattr(f"noisette.privacy.pld.{module}.LOG_TINY", -35.0)
    monkeypatch.setattr("noisette.privacy.pld.compose._TOLERANCES", [(1e-8, 1 << 18)])
    never_below_and_near(short, composed_epsilon(parts, delta), 1e-5)


@pytest.mark.parametrize("parts", SAMPLED)
def test_fewer_points_where_there_is_little_mass_cost_little(parts, monkeypatch):
    few = composed_epsilon(parts, 1e-6)
    monkeypatch.setattr("noisette.privacy.pld.compose._strides", lambda *_: None)
    never_below_and_near(few * (1 + 1e-9), composed_epsilon(parts, 1e-6), 2e-6)


def test_deltas_out_of_reach_are_bounded():
    """Where delta underflows the bound is all there is."""
    assert composed_delta({Normal(Fraction(1, 84)): 1}, 0.5) < 1e-240
    assert composed_delta({Subsampled(Normal(Fraction(1, 300)), Fraction(1, 10)): 5}, 4.28) < 1e-240


def test_a_ledger_counts_like_with_like():
    loss = Response(Fraction(1))
    assert Losses(((loss, 2),)) + Losses(((loss, 3),)) == Losses(((loss, 5),))


@pytest.mark.slow
def test_a_hundred_thousand_of_each():
    mixed = nz.Laplace(2000).guarantee(1) * 100_000 + nz.Gaussian(3000).guarantee(1) * 100_000
    eps = mixed.epsilon_at("1e-9")
    rho = 100_000 * (1 / 2000**2 / 2 + 1 / 3000**2 / 2)
    assert 0.9 * nz.ZCDP(Fraction(rho)).epsilon_at("1e-9") < eps < nz.ZCDP(Fraction(rho)).epsilon_at("1e-9")


@pytest.mark.parametrize("delta", ["0.5", "1e-6", "1e-100"])
@pytest.mark.parametrize(
    "g",
    [
        nz.Laplace(10).guarantee(1) * 10**6,
        nz.Laplace(1).guarantee(1) * 10**4,
        nz.Laplace("0.01").guarantee(1) * 2,
        nz.Pure(2) * 100 + nz.Staircase(20).guarantee() * 3,
        nz.Approx(0, "1e-120") * 3 + nz.Pure(1),
        nz.Pure("1e-6") * 10**6 + nz.Pure("1e-5") * 100,
    ],
)
def test_large_and_small_losses_stay_consistent(g, delta):
    """No overflow, no warning, and what epsilon(delta) gives is what delta(epsilon) confirms."""
    eps = g.epsilon_at(delta)
    assert g.delta_at(Fraction(eps)) <= float(delta) * 1.001
    assert eps == 0 or g.delta_at(Fraction(eps) * 99 / 100) > float(delta)


def test_a_million_laplace_releases_by_the_central_limit():
    """Mean and variance of the loss fix the answer to a per mille; an overflow once made it 14 % smaller."""
    eps0 = 0.1
    grid = np.linspace(-eps0, eps0, 200_001)
    density = np.exp(-(eps0 - grid) / 2) / 4
    step = grid[1] - grid[0]
    first = (density * grid).sum() * step + 0.5 * eps0 - 0.5 * eps0 * math.exp(-eps0)
    square = (density * grid**2).sum() * step + 0.5 * eps0**2 * (1 + math.exp(-eps0))
    centre, spread = 1e6 * first, math.sqrt(1e6 * (square - first**2))
    eps = (nz.Laplace(10).guarantee(1) * 10**6).epsilon_at("1e-6")
    assert eps == pytest.approx(centre + 4.75 * spread, rel=2e-3)


@pytest.mark.parametrize("inverse", [10, 12, 15, 16, 17, 24])
def test_noise_far_below_one_tells_the_loss_of_its_only_likely_output(inverse):
    sigma = Fraction(1, inverse)
    never_below_and_near(nz.Gaussian(sigma, grid=1).guarantee(1).epsilon_at(1e-6), inverse**2 / 2 - 2e-6, 1e-3)


def test_sampled_losses_at_a_tiny_delta_have_an_epsilon():
    """Between two regimes of the tilt no lattice holds both: then Chernoff's bound, no more than by whole orders."""
    q, sigma, count = 0.01, 2, 200
    rates = nz.privacy.sampling.poisson(nz.Gaussian(sigma).guarantee(1), "1/100") * count

    def by_orders(delta):
        """The best of whole orders.   [Mironov-Talwar-Zhang 2019; Canonne-Kamath-Steinke 2020]"""
        found = []
        for a in range(2, 45):
            terms = [
                math.comb(a, k) * (1 - q) ** (a - k) * q**k * math.exp((k * k - k) / (2 * sigma**2)) for k in range(a)
            ]
            renyi = math.log(math.fsum(terms) + q**a * math.exp((a * a - a) / (2 * sigma**2))) / (a - 1)
            found.append(count * renyi + (-math.log(delta) - math.log(a)) / (a - 1) + math.log1p(-1 / a))
        return min(found)

    found = [rates.epsilon_at(delta) for delta in ("1e-12", "1e-18", "1e-24")]
    assert found == sorted(found)
    assert found[2] <= by_orders(1e-24)


def test_a_tiny_loss_beside_large_ones_takes_no_more_room():
    """A lattice that divides the tiny loss would have 10^11 points; what it adds is no more than its epsilon."""
    tiny, wide = LatticeLaplace(Fraction(625, 562949953421312), 10_000), Normal(Fraction(1, 5), Fraction(0))
    moment, _ = compose.moments_of({tiny: 1, wide: 1})
    for tilt in (0.5, 3.0, 20.0):
        alone = 0.2**2 * tilt * (tilt + 1) / 2
        assert alone <= moment(tilt) <= alone * (1 + 1e-3)
