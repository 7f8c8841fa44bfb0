"""Noise of a norm on Z^d, against sums over boxes that hold all but nothing of it."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from tests.goodness import ALPHA, p_value

from noisette.exact.random import SYSTEM
from noisette.exact.rational import precision
from noisette.laws import NormBall
from noisette.laws.norm_ball import _attempt_round, _cube_weights, _differences, _shell_weights, _theta

NORMS = [1, 2, math.inf]
SMALL = [(1, Fraction(1), 45), (2, Fraction(1, 2), 25), (2, Fraction(2), 70), (3, Fraction(2, 3), 26)]


def box(dimension: int, width: int) -> np.ndarray:
    return np.array(list(itertools.product(range(-width, width + 1), repeat=dimension)))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("d", "s", "width"), SMALL)
def test_statistics_agree_with_enumeration(norm, d, s, width):
    ball, z = NormBall(norm, s, dimension=d), box(d, width)
    p = ball.pmf(z)
    assert p.sum() == pytest.approx(1, abs=1e-9)
    assert ball.variance() == pytest.approx(np.sum(p * z[:, 0] ** 2), rel=1e-7)
    largest = abs(z).max(axis=1)
    for t in (0, 1, 4):
        assert ball.tail(t) == pytest.approx(p[abs(z[:, 0]) > t].sum(), rel=1e-6, abs=1e-12)
        truth = p[largest > t].sum()
        assert ball.largest_tail(t) >= truth * (1 - 1e-9) - 1e-12
        if norm != 2:
            assert ball.largest_tail(t) == pytest.approx(truth, rel=1e-6, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("d", "s", "width"), SMALL)
def test_samples_follow_the_law(norm, d, s, width):
    """Goodness of fit over single cells near the origin and shells of the norm beyond."""
    ball, z = NormBall(norm, s, dimension=d), box(d, width)
    draws = np.array([ball.sample() for _ in range(8000)], dtype=np.int64)

    def cell(v: np.ndarray) -> list[tuple[int, ...]]:
        near = abs(v).max(axis=1) <= 1
        length = np.linalg.norm(v.astype(float), ord=norm, axis=1)
        return [
            tuple(row) if inside else (99, int(2 * r / float(s)))
            for row, inside, r in zip(v, near, length, strict=True)
        ]

    chances: dict[tuple[int, ...], float] = {}
    for key, chance in zip(cell(z), ball.pmf(z), strict=True):
        chances[key] = chances.get(key, 0.0) + float(chance)
    seen = dict.fromkeys(chances, 0)
    for key in cell(draws):
        seen[key] += 1
    assert p_value([seen[k] for k in chances], [chances[k] for k in chances]) > ALPHA


@pytest.mark.slow
@pytest.mark.parametrize("norm", [2, math.inf])
@pytest.mark.parametrize(("d", "s"), [(40, Fraction(3)), (7, Fraction(2**30))])
def test_norms_in_higher_dimension_follow_gamma(norm, d, s):
    """||z|| / s is close to Gamma(d) for large scales; for small ones its mean is that of the lattice law."""
    draws = np.array([NormBall(norm, s, dimension=d).sample() for _ in range(1500)]).astype(float)
    lengths = np.linalg.norm(draws, ord=norm, axis=1) / float(s)
    spread = math.sqrt(d / len(lengths))
    assert abs(lengths.mean() - d) < 7.5 * spread + d / (10 * float(s))  # fails with p < 1e-12
    assert abs(draws.mean()) / draws.std() < 7.5 / math.sqrt(draws.size) * math.sqrt(d), "no side is preferred"


def test_shells_lie_under_their_chords():
    """A draw is kept with e^-gap: the gap to the chord must never be negative, in any shell."""
    h, s = 3, Fraction(2)
    for k in range(5):
        for t in range(math.ceil((k * h * s) ** 2), math.ceil(((k + 1) * h * s) ** 2)):
            chord = Fraction(k * (k + 1) * h, 2 * k + 1) + t / (s * s * h * (2 * k + 1))
            assert math.sqrt(t) / float(s) >= float(chord) - 1e-12


@pytest.mark.slow
def test_about_half_of_the_attempts_succeed_in_any_dimension():
    for d in (1, 9, 100):
        kept = sum(_attempt_round(Fraction(2), d, SYSTEM) is not None for _ in range(200))
        assert kept > 40


def test_weights_enclose_the_truth():
    d, s = 5, Fraction(3, 2)
    x = math.exp(-2 / 3) / (1 - math.exp(-2 / 3))
    truth = np.array([c * x**j for j, c in enumerate(_differences(d))])
    enclosed = np.array(_cube_weights(s, d, 80), dtype=float)
    assert (enclosed[:, 1] / enclosed[:, 1].sum()) == pytest.approx(truth / truth.sum(), rel=1e-12)
    shells = _shell_weights(s, d, 80)
    assert all(lo <= hi for lo, hi in shells)
    assert shells[-1][0] == 0, "what lies beyond the last shell is bounded, never surely there"


def test_newton_coefficients_give_back_the_cube():
    for d in (1, 2, 5):
        c = _differences(d)
        assert all(v > 0 for v in c)
        for m in range(8):
            assert sum(c[j] * math.comb(m, j) for j in range(d + 1)) == (2 * m + 1) ** d


@pytest.mark.parametrize("v", [0.05, 0.4, 0.6, 3])
def test_both_theta_series_agree(v):
    mp = precision(120)
    direct = 1 + 2 * mp.fsum(mp.exp(-mp.mpf(n * n) / (2 * mp.mpf(v))) for n in range(1, 40))
    assert abs(_theta(mp.mpf(v), mp) - direct) < mp.mpf(2) ** -100


def test_fine_lattices_follow_the_continuous_law():
    """Squares of lattice points overflow int64 there; P(|Z_1| > x) of continuous l2 noise by quadrature instead."""
    from scipy.integrate import quad
    from scipy.special import betainc, gammaln

    d, s = 20, 2**40

    def beyond(r: float, x: float) -> float:
        share = 0.0 if r <= x else 1 - betainc(0.5, (d - 1) / 2, (x / r) ** 2)
        return share * math.exp((d - 1) * math.log(r) - r - gammaln(d))

    for x in (1.0, 5.0, 9.0):
        truth = quad(beyond, x, 120, args=(x,), epsabs=1e-13)[0]
        assert NormBall(2, s, dimension=d).tail(int(x * s)) == pytest.approx(truth, rel=1e-6)
