"""How many queries a holdout answers: each promise is recomputed from its theorem, and one is played out."""

import math
from fractions import Fraction

import numpy as np
import pytest

import noisette as nz
from noisette.errors import InputError
from noisette.holdout.adaptive_queries import ROUTES, accuracy, fixed_queries, most_queries, rows_needed
from noisette.holdout.bounds import hoeffding
from noisette.holdout.transfer import gap_at, laplace_error, posterior_gap


def by_route(found):
    return {one.route: one for one in found}


def test_the_numbers_of_the_page():
    assert {one.route: one.queries for one in most_queries(10_000, "0.05", "0.05")} == {
        "splitting": 8, "gaussian": 6, "laplace": 4,
    }  # fmt: skip
    found = rows_needed(500, "0.05", "0.05")
    assert [(one.route, one.n) for one in found] == [
        ("gaussian", 114_178),
        ("splitting", 990_500),
        ("laplace", 2_041_651),
    ]


@pytest.mark.parametrize(("n", "tau"), [(10_000, "0.05"), (100_000, "0.05"), (20_000, "0.1")])
def test_one_query_more_is_too_many(n, tau):
    for one in most_queries(n, tau, "0.05"):
        assert one.tau <= float(tau)
        assert ROUTES[one.route](n, one.queries + 1, Fraction("0.05")).tau > float(tau)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("queries", "tau"), [(1, "0.05"), (30, "0.1"), (500, "0.05")])
def test_one_row_less_is_too_few(queries, tau):
    for one in rows_needed(queries, tau, "0.05"):
        assert one.tau <= float(tau)
        assert ROUTES[one.route](one.n - 1, queries, Fraction("0.05")).tau > float(tau)


def test_splitting_is_hoeffding_with_bonferroni():
    one = by_route(most_queries(10_000, "0.05", "0.05"))["splitting"]
    assert one.queries * hoeffding(10_000 // one.queries, one.tau) <= 0.05 * (1 + 1e-9)
    assert 9 * hoeffding(10_000 // 9, "0.05") > 0.05


def test_laplace_noise_is_about_the_best():
    one = by_route(accuracy(100_000, 20, "0.05"))["laplace"]
    for scale in np.linspace(0.5, 2, 16) * float(one.noise):
        tau = laplace_error(float(scale), 20, "0.05") / 100_000 + gap_at(20 / float(scale), 0, "0.05")
        assert one.tau <= tau * (1 + 1e-3)


@pytest.mark.slow
def test_gaussian_noise_is_about_the_best():
    """The same bound by a search over sigma and the split of beta, with the guarantee's own search for epsilon."""
    n, m, beta = 100_000, 100, 0.05
    one = by_route(accuracy(n, m, beta))["gaussian"]

    def tau(sigma, share):
        noise = sigma * math.sqrt(2 * math.log(2 * m / (beta * (1 - share))))
        return noise / n + posterior_gap(nz.Gaussian(sigma).guarantee(1) * m, beta * share)

    tried = [tau(float(one.noise) * k, share) for k in (0.8, 1, 1.25) for share in (0.3, 0.6, 0.8, 0.9, 0.95)]
    assert one.tau <= min(tried) * (1 + 2e-3)
    assert min(tried) <= one.tau * 1.02


def jung(n, m, beta):
    """The bound with the constants of Jung et al. 2020: alpha + (e^epsilon - 1) + c + 2d, beta/c + delta/d."""
    best = 1.0
    for sigma in np.geomspace(10, n, 60):
        for e in np.geomspace(1e-3, 0.2, 40):
            delta = float(nz.privacy.convert.gaussian_delta(Fraction(math.sqrt(m) / sigma), Fraction(e)))
            for c in (1e-2, 1e-3, 1e-4):  # and alpha fails with a chance of c beta/2
                alpha = sigma * math.sqrt(2 * math.log(2 * m / (c * beta / 2))) / n
                best = min(best, alpha + math.expm1(e) + c + 4 * delta / beta)
    return best


@pytest.mark.slow
def test_the_constants_are_far_below_those_published():
    assert accuracy(200_000, 100, "0.05")[0].tau < jung(200_000, 100, 0.05) / 2


@pytest.mark.slow
def test_many_rows_make_gaussian_noise_win():
    winners = [most_queries(n, "0.05", "0.05")[0] for n in (1_000, 10_000, 100_000, 1_000_000)]
    assert [one.route for one in winners] == ["splitting", "splitting", "gaussian", "gaussian"]
    assert winners[3].queries > 50 * winners[2].queries  # as n squared
    assert most_queries(500, "0.05", "0.05") == ()
    assert fixed_queries(1_000, "0.05", "0.05") == math.floor(0.025 * math.exp(5)) == 3


def test_an_analyst_who_overfits_stays_within_tau():
    """Random queries, then one that adds up those which looked good: without noise it is off by more than tau.

    The promise fails with a chance of at most 0.05 for any analyst; for this one by far less than 1e-9, since the last
    query is off by tau only if its noise alone is beyond seven sigma.
    """
    n, m = 8_100, 50
    promised = by_route(accuracy(n, m, "0.05"))["gaussian"]
    rng, noise = np.random.default_rng(4), nz.Gaussian(promised.noise)
    holdout, fresh = (rng.integers(0, 2, (n, m - 1)) for _ in range(2))
    labels, fresh_labels = (rng.integers(0, 2, n) for _ in range(2))

    def last(answers):
        """A vote of all queries, each in the direction in which its answer lies."""
        signs = np.where(np.asarray(answers) > 0.5, 1, -1)
        return [((2 * x - 1) @ signs > 0) == y for x, y in ((holdout, labels), (fresh, fresh_labels))]

    right = holdout == labels[:, None]
    exact, _ = last(right.mean(0))
    noisy, truth = last(noise(right.sum(0).astype(float)) / n)
    assert exact.mean() > 0.5 + 0.02
    assert abs(noise(float(noisy.sum())) / n - truth.mean()) < promised.tau


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: most_queries(0, "0.05", "0.05"), "n must be a whole number, at least 1."),
        (lambda: most_queries(10, 2, "0.05"), "tau must lie strictly between 0 and 1."),
        (lambda: rows_needed(0, "0.05", "0.05"), "queries must be a whole number, at least 1."),
        (lambda: accuracy(10, 1, 0), "beta must lie strictly between 0 and 1."),
    ],
)
def test_bad_input_gets_one_sentence(call, sentence):
    with pytest.raises(InputError, match=sentence):
        call()
