"""Optimised strategies: the gradient, exact norms, and what they gain."""

import numpy as np
import pytest
from tests.strategies import RELATIONS, assert_least_squares, largest, worst_loss

from noisette.errors import InputError
from noisette.privacy import Neighbours
from noisette.releases.chains import best_chain, energies
from noisette.releases.linear import ONE_ROW, Linear
from noisette.releases.strategies import p_identity
from noisette.releases.strategies.p_identity import optimised, ranges_gram


@pytest.mark.parametrize("gaussian", [False, True])
def test_the_gradient_is_that_of_the_error(gaussian):
    t, v = np.random.default_rng(1).uniform(0, 1, (2, 6)), ranges_gram(6)
    value, slope = p_identity._error(t, v, gaussian)
    a = np.vstack([np.eye(6), t])
    a = a / np.linalg.norm(a, ord=2 if gaussian else 1, axis=0)
    assert value == pytest.approx(np.trace(np.linalg.inv(a.T @ a) @ v))
    for i in np.ndindex(t.shape):
        step = np.zeros_like(t)
        step[i] = 1e-6
        rise = p_identity._error(t + step, v, gaussian)[0] - p_identity._error(t - step, v, gaussian)[0]
        assert rise / 2e-6 == pytest.approx(slope[i], rel=1e-5)


def test_the_gram_matrix_of_ranges():
    low, high = np.triu_indices(9)
    queries = ((np.arange(9) >= low[:, None]) & (np.arange(9) <= high[:, None])).astype(float)
    assert np.array_equal(ranges_gram(9), queries.T @ queries)


@pytest.mark.parametrize("gaussian", [False, True])
def test_it_is_least_squares_with_exact_norms(gaussian):
    made = optimised(gram=ranges_gram(6), gaussian=gaussian, sums=2)
    assert_least_squares(made)
    for neighbours in RELATIONS:
        (stated,) = made.sensitivities(ONE_ROW, neighbours)
        assert (stated.l1, stated.l2_squared) == largest(made, ONE_ROW, neighbours)[0][:2]
        assert worst_loss(Linear.calibrated(1, made, neighbours=neighbours), ONE_ROW, neighbours) == 1
    (stated,) = made.sensitivities(ONE_ROW, Neighbours.ADD_REMOVE)
    assert float(stated.l2 if gaussian else stated.l1) / 2**20 == pytest.approx(1, abs=1e-5)
    twin = np.linalg.norm(made.rows / 2**20, ord=2 if gaussian else 1, axis=0)
    assert np.allclose(twin, 1, atol=1e-5), "every column is as long as the others: nothing is wasted"


@pytest.mark.parametrize(("gaussian", "gain"), [(False, 0.93), (True, 1.0)])
def test_it_beats_the_best_chain_for_all_ranges(gaussian, gain):
    low, high = np.triu_indices(64)
    made = optimised(gram=ranges_gram(64), gaussian=gaussian)
    (moved,) = made.sensitivities(ONE_ROW, Neighbours.ADD_REMOVE)
    noise = float(moved.l2_squared) if gaussian else 2 * float(moved.l1) ** 2
    error = np.sqrt(made.variances(low, high, [noise]).mean())
    assert error < gain * best_chain(energies(low, high, 64), gaussian=gaussian).error
    singular = np.sqrt(np.linalg.eigvalsh(ranges_gram(64))).sum() / 8 / np.sqrt(len(low))
    assert not gaussian or error > singular, "no strategy beats the bound of singular values"


def test_any_workload_is_served():
    queries = np.kron(np.eye(4), np.ones((5, 6)))  # four sums of six cells, each of them asked five times
    made = optimised(queries, sums=4)
    (moved,) = made.sensitivities(ONE_ROW, Neighbours.ADD_REMOVE)
    assert made.query_variances(queries, [2 * float(moved.l1) ** 2]).mean() < 2.1, (
        "of 12, and 2 for the four sums alone"
    )


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"workload": np.ones(3)},
        {"workload": [[np.nan]]},
        {"gram": np.ones((2, 3))},
        {"workload": np.ones((1, 1025))},
    ],
)
def test_what_is_no_workload_is_refused(given):
    with pytest.raises(InputError, match=r"workload|cells"):
        optimised(**given)
