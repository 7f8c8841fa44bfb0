"""Array samplers against their laws: all sizes of scale, all digits, both signs, and what they refuse."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from tests import goodness
from tests.goodness import ALPHA
from tests.timing import within

from noisette.errors import InputError
from noisette.exact import vector

F = Fraction
MILLION = 1_000_000
LAPLACE_SCALES = ["1/3", "1", "10", "24", "25", "1000", str(2**20), str(2**40), str(2**60)]
VARIANCES = ["1/10", "1", "100", "1000000", str(1025**2), str(4097**2), str(2**40), str(2**80), str(2**118)]


def edges(width):
    """Edges that also part the far tail of a million draws, as far as int64 goes."""
    return goodness.integers(min(width, 2.0**62))


@pytest.mark.slow
@pytest.mark.parametrize("scale", LAPLACE_SCALES)
def test_discrete_laplace(scale):
    z = vector.discrete_laplace(scale, MILLION)
    at = edges(11 * float(F(scale)) + 3)
    assert goodness.fit(z, goodness.laplace(F(scale)), at) > ALPHA
    assert goodness.fit(z[z >= 0], goodness.geometric(F(scale)), at[at > 0]) > ALPHA


@pytest.mark.slow
@pytest.mark.parametrize("scale", LAPLACE_SCALES)
def test_geometric(scale):
    z = vector.geometric(scale, MILLION)
    assert z.min() >= 0
    assert goodness.fit(z, goodness.geometric(F(scale)), edges(11 * float(F(scale)) + 3)) > ALPHA


@pytest.mark.slow
@pytest.mark.parametrize("sigma2", VARIANCES)
def test_discrete_gaussian(sigma2):
    z = vector.discrete_gaussian(sigma2, MILLION)
    assert goodness.fit(z, goodness.gaussian(F(sigma2)), edges(5 * float(F(sigma2)) ** 0.5 + 3)) > ALPHA


def cut(z):
    return z[abs(z) < 70]


@pytest.mark.parametrize(
    "twin",
    [
        lambda n: vector.discrete_laplace(8, n),
        lambda n: vector.discrete_laplace("12.5", n),
        lambda n: vector.discrete_laplace(10, n) + 1,
        lambda n: vector.geometric(10, n) * (2 * vector.uniform(2, n) - 1),  # zero twice
        lambda n: cut(vector.discrete_laplace(10, n)),
        lambda n: vector.discrete_gaussian(200, n),
    ],
)
def test_broken_twins_do_not_fit(twin):
    assert goodness.fit(twin(MILLION), goodness.laplace(F(10)), edges(113)) < ALPHA


@pytest.mark.parametrize("sigma2", ["64", "156.25"])
def test_broken_gaussians_do_not_fit(sigma2):
    assert goodness.fit(vector.discrete_gaussian(sigma2, MILLION), goodness.gaussian(F(100)), edges(60)) < ALPHA


# Digits, one by one and in pairs


def digit_chances(scale, place, cells=256):
    """P(d) of a base-256 digit (or of its upper bits) of a geometric variable."""
    weights = np.exp(-np.arange(256) * 256.0**place / float(scale))
    return (weights / weights.sum()).reshape(cells, -1).sum(axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("scale", ["1000", str(2**20), str(2**40), str(2**60)])
def test_digits_of_the_laplace_law_are_independent(scale):
    z = vector.discrete_laplace(scale, MILLION)
    sign, g = z < 0, z ^ (z >> 63)
    digits = [(place, g >> (8 * place) & 255) for place in range(7) if 256**place < F(scale)]
    for place, digit in digits:
        chances = digit_chances(F(scale), place)
        assert goodness.p_value(np.bincount(digit, minlength=256), chances) > ALPHA
        joint = np.bincount(digit // 16 + 16 * sign, minlength=32)
        upper = digit_chances(F(scale), place, 16)
        positive = 1 / (1 + np.exp(-1 / float(F(scale))))
        assert goodness.p_value(joint, [*(upper * positive), *(upper * (1 - positive))]) > ALPHA
    for (i, low), (j, high) in pairwise(digits):
        joint = np.bincount(high // 16 * 16 + low // 16, minlength=256)
        chances = np.outer(digit_chances(F(scale), j, 16), digit_chances(F(scale), i, 16)).ravel()
        assert goodness.p_value(joint, chances) > ALPHA


@pytest.mark.slow
@pytest.mark.parametrize(("sigma2", "places"), [(4097**2, 1), (2**40, 2), (2**80, 4), (2**118, 7)])
def test_low_digits_of_the_gaussian_law_are_uniform_and_independent(sigma2, places):
    z = vector.discrete_gaussian(sigma2, MILLION)
    digits = [z >> (8 * place) & 255 for place in range(places)]
    for digit in digits:
        assert goodness.p_value(np.bincount(digit, minlength=256), np.full(256, 1 / 256)) > ALPHA
    for low, high in pairwise(digits):
        joint = np.bincount(high // 16 * 16 + low // 16, minlength=256)
        assert goodness.p_value(joint, np.full(256, 1 / 256)) > ALPHA


def test_digit_checks_see_a_grid():
    z = vector.discrete_laplace(2**40, 100_000) // 2 * 2
    assert goodness.p_value(np.bincount(z & 255, minlength=256), np.full(256, 1 / 256)) < ALPHA


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "parameter"),
    [(vector.discrete_laplace, 10), (vector.discrete_laplace, 2**60), (vector.discrete_gaussian, 2**80)],
)
def test_neighbours_are_independent_and_signs_balance(draw, parameter):
    z = draw(parameter, MILLION)
    assert goodness.p_value([(z > 0).sum(), (z < 0).sum()], [0.5, 0.5]) > ALPHA
    half = np.bincount((abs(z) > np.median(abs(z))).astype(int), minlength=2) / MILLION
    pair = (abs(z) > np.median(abs(z))).astype(int).reshape(-1, 2) @ [2, 1]
    assert goodness.p_value(np.bincount(pair, minlength=4), np.outer(half, half).ravel()) > ALPHA


# Saturation


@pytest.mark.slow
def test_saturation_is_as_rare_as_documented_and_noise_does_not_saturate():
    z = vector.discrete_laplace(2**60, MILLION)
    ends = (abs(z.astype(object)) == 2**63 - 1).sum()
    assert goodness.p_value([ends, MILLION - ends], [np.exp(-8), 1 - np.exp(-8)]) > ALPHA
    wide = vector.laplace_noise(2**60, MILLION)
    assert wide.dtype == object
    assert max(abs(wide)) > 2**63
    beyond = (abs(wide) >= 2**63).sum()
    assert goodness.p_value([beyond, MILLION - beyond], [np.exp(-8), 1 - np.exp(-8)]) > ALPHA


# Shapes and types

DRAWS = [vector.discrete_laplace, vector.discrete_gaussian, vector.geometric]


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("size", [0, 1, 7, 500, (), (3, 4), (0, 5), (20, 30), np.int64(4)])
def test_shape_and_dtype(draw, size):
    z = draw(3, size)
    assert z.dtype == np.int64
    assert z.shape == (size if isinstance(size, tuple) else (size,))


@pytest.mark.parametrize("draw", DRAWS)
def test_without_a_size_one_python_integer_is_drawn_with_and_without_a_table(draw):
    assert {type(draw("13/3")) for _ in range(500)} == {int}


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("shape", [(0,), (5,), (2, 3)])
def test_one_parameter_per_entry_gives_its_shape(draw, shape):
    z = draw(np.full(shape, 2.5), shape)
    assert (z.dtype, z.shape) == (np.int64, shape)
    assert draw(np.full(shape, 2.5)).shape == shape


def test_lists_may_mix_how_numbers_are_written():
    assert vector.discrete_laplace([1, "1/3", 0.1, F(5)]).shape == (4,)
    assert vector.discrete_gaussian([[1, 2], ["1e10", 2**120]], (2, 2)).shape == (2, 2)


@pytest.mark.slow
@pytest.mark.parametrize("draw", DRAWS)
def test_the_law_is_the_same_before_and_after_the_table_is_built(draw):
    below = {vector.discrete_laplace: goodness.laplace, vector.geometric: goodness.geometric}.get(
        draw, goodness.gaussian
    )
    vector._laplace.cache_clear(), vector._gaussian.cache_clear(), vector._geometric.cache_clear()
    parameters = [F(40 + i, 9) for i in range(100)]
    for first in (True, False):  # each parameter is drawn 150 times without a table, then 150 times with one
        z = [int(x) for parameter in parameters for x in draw(parameter, 150)]
        chances = np.mean([below(p)(np.arange(-60, 61)) for p in parameters], axis=0)
        assert goodness.fit(z, lambda at, c=chances: c, np.arange(-60, 61)) > ALPHA, first


# Refusals


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize(
    "parameter",
    [0, -1, float("nan"), float("inf"), True, "1e400", 2**121, None, "x", (1, 2), [1, 0], [[1, 2], [3]], [True]],
)
def test_parameters_that_are_no_positive_numbers_are_refused(draw, parameter):
    with pytest.raises(InputError, match=r"^(scale|sigma2) must be"):
        draw(parameter, 3 if not isinstance(parameter, list) else None)


@pytest.mark.parametrize("draw", [vector.discrete_laplace, vector.geometric])
def test_scales_have_an_end(draw):
    assert draw(2**60, 1).shape == (1,)
    with pytest.raises(InputError, match="at most"):
        draw(2**61, 1)


@pytest.mark.parametrize("size", [-1, 1.5, "3", True, [2, 3], (2, -1), (2.0, 3)])
def test_sizes_that_are_no_shapes_are_refused(size):
    for draw in (lambda: vector.discrete_laplace(1, size), lambda: vector.uniform(3, size)):
        with pytest.raises(InputError, match=r"^size must be"):
            draw()


@pytest.mark.parametrize("size", [3, (2, 1), (4,), np.int64(3)])
def test_a_size_that_contradicts_the_parameters_is_refused(size):
    with pytest.raises(InputError, match="size must be their shape"):
        vector.discrete_laplace([1, 2], size)
    with pytest.raises(InputError, match="size must be their shape"):
        vector.discrete_laplace([[1, 2], [3, 4]], size)


# Uniform and logistic


@pytest.mark.parametrize("n", [1, 2, 3, 100, 2**62, 2**62 - 1, 3 * 2**60])
def test_uniform(n):
    z = vector.uniform(n, 100_000)
    assert (z.dtype, z.min() >= 0, z.max() < n) == (np.int64, True, True)
    cells = min(n, 100)
    counts = np.bincount([int(x) * cells // n for x in z], minlength=cells)
    assert goodness.p_value(counts, [(-(-(i + 1) * n // cells) - -(-i * n // cells)) / n for i in range(cells)]) > ALPHA


@pytest.mark.parametrize("n", [0, -1, 2**62 + 1, 2.0, True])
def test_uniform_refuses(n):
    with pytest.raises(InputError, match=r"^n must be"):
        vector.uniform(n, 3)


@pytest.mark.parametrize(("g", "weight"), [("1/1000", 1), (1, 1), (3, 1), (2, 9), (1, "2/5"), (1, 10**6)])
def test_logistic(g, weight):
    heads = vector.logistic(g, (1000, 200), weight=weight)
    assert (heads.dtype, heads.shape) == (np.bool_, (1000, 200))
    chance = 1 / (1 + float(F(weight)) * np.exp(-float(F(g))))
    counts = [heads.sum(), (~heads).sum()]
    assert goodness.p_value(counts, [chance, 1 - chance]) > ALPHA
    wrong = chance * 0.9
    assert goodness.p_value(counts, [wrong, 1 - wrong]) < ALPHA or chance < 0.01


def test_logistic_of_a_large_exponent_is_sure():
    with within(120):
        assert vector.logistic(40_000, 100).all()


@pytest.mark.parametrize("g", [0, -1, True, "nan"])
def test_logistic_refuses(g):
    with pytest.raises(InputError, match=r"^g must be"):
        vector.logistic(g, 3)
