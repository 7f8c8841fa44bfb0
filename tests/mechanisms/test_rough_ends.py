"""Awkward parameters: worst pairs exist and have the right size, and refusals speak of what the caller gave."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import noisette as nz
from noisette.errors import InputError
from noisette.mechanisms import FlippedQuantile, Keep, Quantile, Quantiles
from noisette.mechanisms.contract import Output

QS = [Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(9, 10), Fraction(1)]
ADD_REMOVE, REPLACE = nz.Neighbours.ADD_REMOVE, nz.Neighbours.REPLACE


def check(m, cells, moved):
    """Tables of whole counts, one for each cell, as far apart as stated; what they lose is within the guarantee."""
    for x, y, d in m.pairs():
        assert len(x) == len(y) == cells
        assert min(*x, *y) >= 0
        assert np.abs(np.subtract(x, y)).sum() == moved * d
        if m.kind is Output.OUTCOME:
            P, Q = m.outcomes(x), m.outcomes(y)
            P, Q = ({k: law.get(k, 0.0) for k in {*P, *Q}} for law in (P, Q))
        else:
            P, Q = (dict(enumerate(m.pmf(range(cells), table))) for table in (x, y))
        likely = [k for k in P if min(P[k], Q[k]) > 1e-12]
        assert max(abs(np.log(P[k] / Q[k])) for k in likely) <= float(m.guarantee(d).epsilon) * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize("kind", [Quantile, FlippedQuantile])
@pytest.mark.parametrize("cells", [2, 3, 4, 5, 7, 8, 16])
def test_quantiles_of_few_cells_have_pairs(kind, cells):
    for q, epsilon, (neighbours, groups) in itertools.product(
        QS, ("1/5", 2), [(ADD_REMOVE, None), (ADD_REMOVE, 1), (REPLACE, 1)]
    ):
        m = kind(epsilon, q=q, cells=cells, neighbours=neighbours, groups=groups)
        check(m, cells, 1 if neighbours is ADD_REMOVE else 2)
        assert 0 <= getattr(m, "tightness", 0) <= 1


@pytest.mark.parametrize("at", [("1/2",), ("1/2", "3/4"), (0, "1/2", 1), ("1/4", "1/2", "3/4")])
@pytest.mark.parametrize("cells", [2, 3, 4, 5, 6, 9])
def test_many_quantiles_of_few_cells_have_pairs(at, cells):
    for epsilon, ties in itertools.product(("1/2", 3), (1, 4)):
        m = Quantiles(epsilon, at=at, cells=cells, ties=ties)
        check(m, cells, 1)
        assert 0 <= m.tightness <= 1


def test_long_answers_with_little_epsilon_are_released():
    m = nz.calibrate(nz.Laplace, nz.Pure("0.0005"))
    assert m(np.zeros(10**6)).shape == (10**6,)
    assert 2000 <= m.scale <= 2000 * (1 + Fraction(1, 2**20))
    assert m.guarantee(1) <= nz.Pure("0.0005")


@pytest.mark.parametrize("epsilon", ["1e-9", "1e-6", "1e-3", "1/64", "1/2", 1, 100])
@pytest.mark.parametrize("size", ["1/1000", 1, 10**6])
def test_a_coarser_grid_costs_next_to_nothing(epsilon, size):
    m = nz.calibrate(nz.Laplace, nz.Pure(epsilon), sensitivity=size)
    exact = Fraction(size) / nz.Pure(epsilon).epsilon
    assert exact <= m.scale <= exact * (1 + Fraction(1, 2**20))
    assert m.scale / m.grid <= 2**37 or Fraction(epsilon) < Fraction(1, 2**16)


@pytest.mark.parametrize("m", [nz.Laplace(1, grid=Fraction(1, 2**59)), nz.Gaussian(1, grid=Fraction(1, 2**59))])
def test_a_grid_that_is_too_fine_is_named(m):
    assert m(np.zeros(2)).shape == (2,)
    with pytest.raises(InputError, match=r"too fine for an answer of 100 numbers .* coarser grid than 1/"):
        m(np.zeros((10, 10)))


def test_units_that_are_always_seen_are_named():
    with pytest.raises(InputError, match="group of 3 units is always seen") as refusal:
        Keep("1/2", "1/3").guarantee(3)
    assert "delta" not in str(refusal.value)
    assert Keep("1/2", "1/3").guarantee(1) == nz.Approx("1/2", "1/3", neighbours=ADD_REMOVE)
    for m, most in ((Keep(1, "1e-6"), 14), (Keep("1/100", "1/10"), 9), (Keep(3, "1e-9", groups=4), 7)):
        assert all(0 < m.guarantee(d).delta < 1 for d in range(1, most + 1))
        with pytest.raises(InputError, match=f"group of {most + 1} units"):
            m.guarantee(most + 1)
