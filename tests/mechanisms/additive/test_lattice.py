"""Reading answers, and the lattice that real ones are put on."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import noisette as nz
from noisette.errors import InputError
from noisette.mechanisms.additive.lattice import from_lattice, lattice_step, real_answer, to_lattice

finite = st.floats(-1e12, 1e12)
vectors = npst.arrays(float, st.integers(1, 9), elements=finite)


@pytest.mark.slow
@given(vectors, st.sampled_from([1, 2, math.inf]), st.sampled_from([Fraction(1, 8), Fraction(1, 10), Fraction(2**-30)]))
def test_rounding_costs_at_most_one_grid(x, norm, grid):
    """||r(x) - r(x')|| * step <= ||x - x'|| + grid, exactly, for neighbours made to straddle cells."""
    step = lattice_step(grid, x.size, norm)
    moved = x + np.where(np.arange(x.size) % 2, float(step), -float(step) / 3)
    before = [Fraction(a) - Fraction(b) for a, b in zip(x, moved, strict=True)]
    after = [(int(a) - int(b)) * step for a, b in zip(to_lattice(x, step), to_lattice(moved, step), strict=True)]
    if norm == 2:
        assert math.sqrt(sum(v * v for v in after)) <= math.sqrt(sum(v * v for v in before)) + float(grid) * (1 + 1e-12)
    else:
        fold = sum if norm == 1 else max
        assert fold(map(abs, after)) <= fold(map(abs, before)) + grid


@given(finite, st.sampled_from([Fraction(1, 8), Fraction(1, 10), Fraction(2) ** -60]))
def test_floats_and_fractions_round_alike(x, step):
    as_float, as_fraction = to_lattice(np.array([x]), step), to_lattice(np.array([Fraction(x)], dtype=object), step)
    assert int(as_float[0]) == int(as_fraction[0]) == round(Fraction(x) / step)


def test_lattice_points_come_back():
    step = Fraction(1, 8)
    assert from_lattice(np.array([3, -8]), step).tolist() == [0.375, -1.0]
    assert from_lattice(np.array([10**30], dtype=object), step).tolist() == [1.25e29]


@pytest.mark.parametrize("x", [3, 3.5, Fraction(1, 3), Decimal("0.1"), np.float32(2.5), np.int8(3)])
@pytest.mark.parametrize("m", [nz.Laplace(1), nz.Gaussian(1), nz.Staircase(1)])
def test_single_numbers_give_a_float(m, x):
    assert isinstance(m(x), float)


@pytest.mark.parametrize("shape", [(3,), (2, 2), (1,)])
@pytest.mark.parametrize("m", [nz.Laplace(1), nz.Gaussian(1), nz.Staircase(1), nz.Geometric(1), nz.Gaussian(1, grid=1)])
def test_arrays_keep_their_shape(m, shape):
    y = m(np.zeros(shape, dtype=int))
    assert y.shape == shape
    assert y.dtype == (np.int64 if getattr(m, "grid", 1) == 1 else np.float64)


def test_numbers_beyond_int64_are_exact():
    huge = 10**40
    assert abs(nz.Geometric(2)(huge) - huge) < 1000
    near = nz.Geometric(2)(np.array([2**63 - 1] * 200))
    assert all(abs(int(v) - (2**63 - 1)) < 1000 for v in near), "an overflow would wrap to the other end"
    assert abs(nz.Laplace(2)(float(2**100)) - 2.0**100) < 2.0**60


def test_a_large_scale_never_wraps():
    """At scale 2^60 three draws in ten thousand lie beyond int64; they must not come back from the other side."""
    m = nz.Geometric(2**60)
    y = np.concatenate([np.asarray(m(np.full(20_000, 2**62)), dtype=object) for _ in range(3)])
    beyond = [v for v in y if v > 2**63]
    assert 20 < len(beyond) < 2000  # expected: 60 000 e^-4 / 2 = 549


@pytest.mark.parametrize(
    "bad",
    [
        [],
        [[1], [2, 3]],
        True,
        np.True_,
        [True, 5],
        [[1], (False,)],
        np.ma.array([1, 2], mask=[0, 1]),
        "1",
        None,
        1j,
        ["a"],
    ],
)
def test_what_is_no_number_is_refused(bad):
    for m in (nz.Laplace(1), nz.Geometric(1)):
        with pytest.raises(InputError):
            m(bad)


@pytest.mark.parametrize(
    "bad",
    [
        math.nan,
        math.inf,
        [1.0, -math.inf],
        np.float64("nan"),
        [Fraction(1), math.nan],
        [Decimal("snan"), 1],
        np.array([np.float32("nan")], dtype=object),
        10**400,
        1e301,
    ],
)
def test_what_is_not_finite_is_refused_without_quoting_it(bad):
    with pytest.raises(InputError, match="must be finite") as error:
        real_answer(bad)
    assert "nan" not in str(error.value).replace("NaN", "")


def test_real_numbers_are_refused_where_whole_ones_are_needed():
    with pytest.raises(InputError, match="Laplace or Gaussian"):
        nz.Geometric(1)(1.5)
    with pytest.raises(InputError, match="whole numbers"):
        nz.Gaussian(1, grid=1)([1.0, 2.0])
