"""A few draws of every sampler, and its rare steps by force: quick, where a million draws are slow."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from tests import goodness
from tests.goodness import ALPHA

from noisette.exact import gaussian_arrays, lookup_table, samplers, vector
from noisette.exact.gaussian_arrays import GaussianTable
from noisette.exact.geometric_arrays import GeometricTable, _geometric_tail
from noisette.exact.random import SYSTEM

F = Fraction
LAPLACE, GEOMETRIC = (lambda scale: goodness.laplace(F(scale))), (lambda scale: goodness.geometric(F(scale)))
GAUSSIAN = lambda sigma: goodness.gaussian(F(sigma**2))  # noqa: E731
ARRAYS = {
    "laplace": (lambda n: vector.discrete_laplace(10, n), LAPLACE, 10),
    "laplace with digits": (lambda n: vector.discrete_laplace(10**6, n), LAPLACE, 10**6),
    "laplace of many scales": (lambda n: vector.discrete_laplace([10] * n), LAPLACE, 10),
    "geometric": (lambda n: vector.geometric(1000, n), GEOMETRIC, 1000),
    "geometric of many scales": (lambda n: vector.geometric([10] * n), GEOMETRIC, 10),
    "gaussian": (lambda n: vector.discrete_gaussian(400, n), GAUSSIAN, 20),
    "gaussian in blocks": (lambda n: vector.discrete_gaussian(9000**2, n), GAUSSIAN, 9000),
    "gaussian of many scales": (lambda n: vector.discrete_gaussian([400] * n), GAUSSIAN, 20),
}
DIGITS = GeometricTable(F(1000), two_sided=False)
SINGLE = {
    "laplace": (lambda: samplers.discrete_laplace(F(10)), LAPLACE, 10),
    "geometric": (lambda: samplers.geometric(F(10)), GEOMETRIC, 10),
    "geometric by digits": (lambda: DIGITS.one(SYSTEM), GEOMETRIC, 1000),
    "gaussian": (lambda: samplers.discrete_gaussian(F(400)), GAUSSIAN, 20),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_follows_its_law(name):
    draw, law, size = ARRAYS[name]
    assert goodness.fit(draw(20_000), law(size), goodness.integers(11 * size)) > ALPHA  # fails with p < 1e-12


@pytest.mark.parametrize("name", SINGLE)
def test_single_draws_follow_their_law(name):
    draw, law, size = SINGLE[name]
    drawn = [draw() for _ in range(1500)]
    assert goodness.fit(drawn, law(size), goodness.integers(11 * size)) > ALPHA  # fails with p < 1e-12


@pytest.mark.parametrize(("n", "p"), [(9, "1/3"), (2, "4/5")])
def test_a_binomial_follows_its_law(n, p):
    drawn = [samplers.binomial(n, F(p)) for _ in range(1500)]
    chances = [float(comb(n, k) * F(p) ** k * (1 - F(p)) ** (n - k)) for k in range(n + 1)]
    assert goodness.p_value(np.bincount(drawn, minlength=n + 1), chances) > ALPHA  # fails with p < 1e-12


# Rare steps


class Ones:
    """Coins that are all ones."""

    def bits(self, count):
        return (1 << count) - 1

    def words(self, count, dtype):
        return np.full(count, np.iinfo(dtype).max, dtype)


def test_half_of_an_odd_number_has_a_coin_of_its_own(monkeypatch):
    monkeypatch.setattr(samplers, "_attempt_central", lambda half, rng: 0)
    n = samplers._FEW + 1 | 1
    assert {samplers._binomial_half(n, SYSTEM) for _ in range(64)} == {n // 2, n // 2 + 1}  # fails with p < 1e-12


def test_a_central_count_is_taken_with_its_chance(monkeypatch):
    monkeypatch.setattr(samplers, "discrete_gaussian", lambda s2, rng: 20)
    assert samplers._attempt_central(50, Ones()) is None


def test_a_block_of_gaussian_noise_is_left_with_its_chance(monkeypatch):
    monkeypatch.setattr(samplers, "bernoulli_exp", lambda g, rng: False)
    monkeypatch.setattr(samplers, "discrete_gaussian", lambda s2, rng: "drawn again")
    table = GaussianTable(F(9000**2))
    assert table.shift
    assert table._place(0, Ones()) == table._place(-3, SYSTEM) == "drawn again"


class Again(Ones):
    """Coins that are all ones until more are drawn one by one."""

    def bits(self, count):
        raise RuntimeError("drawn again")


def test_low_digits_are_taken_with_their_chance(monkeypatch):
    table = GeometricTable(F(2**60), two_sided=False)
    assert table.low_bits
    with pytest.raises(RuntimeError, match="drawn again"):
        table._fill_low(np.empty(8, np.int64), Again())
    monkeypatch.setattr(samplers, "bernoulli_exp", lambda g, rng: False)
    assert table._attempt_low(Ones()) is None


@pytest.mark.parametrize("upper", [True, False])
def test_the_ends_of_a_table_are_no_ends_of_the_law(upper):
    tail = _geometric_tail(F(10), -7, 7)
    drawn = np.array([tail(upper, SYSTEM) for _ in range(200)]) * (1 if upper else -1)
    assert drawn.min() >= 7
    assert len(set(drawn.tolist())) > 3  # fails with p < 1e-12


def test_far_gaussian_noise_is_drawn_again(monkeypatch):
    monkeypatch.setattr(gaussian_arrays, "coins_exp", lambda coin, *_: np.zeros(len(coin), bool))
    monkeypatch.setattr(gaussian_arrays, "redrawn", lambda z, at, *_: at)
    assert gaussian_arrays.gaussian_each([F(9)] * 5, SYSTEM).tolist() == [0, 1, 2, 3, 4]


def test_what_is_left_of_a_block_is_drawn_again(monkeypatch):
    far = 1 << 40

    def places(self, out, rng):
        out[:] = far if len(out) == 8 else 7
        return np.array([0, 3] if len(out) == 8 else [], np.intp)

    monkeypatch.setattr(GaussianTable, "_fill_places", places)
    drawn = np.empty(8, np.int64)
    assert GaussianTable(F(9000**2)).fill(drawn, SYSTEM) == {}
    assert drawn.tolist() == [7, far, far, 7, far, far, far, far]


class Within(Ones):
    """Words at the upper end of the cells of a table."""

    def __init__(self, cells):
        self.cells = cells

    def words(self, count, dtype):
        return self.cells if dtype is np.uint16 else super().words(count, dtype)


def test_values_beyond_the_point_within_a_cell_are_those_after_it():
    table = GeometricTable(F(24), two_sided=True).top
    crowded = np.flatnonzero(table._cells[1] == table._cells[2])
    cells = np.resize(crowded[1:-1], lookup_table._FEW + 1).astype(np.uint16)
    drawn = np.empty(len(cells), np.int64)
    assert table.fill(drawn, Within(cells)) == {}
    words = (cells.astype(np.uint64) << np.uint64(48)) | np.uint64(2**48 - 1)
    assert drawn.tolist() == (np.searchsorted(table._cut, words) + table.first).tolist()
