"""The planner: known errors, where strategies take over, and a choice that is exact."""

import numpy as np
import pytest
from tests.strategies import all_ranges

from noisette.errors import InputError
from noisette.privacy import Neighbours
from noisette.query.measure import Contribution
from noisette.releases.linear import Linear
from noisette.releases.planner import best, best_for, least_error
from noisette.releases.strategies.haar import Haar
from noisette.releases.strategies.p_identity import ranges_gram
from noisette.releases.tree import Tree

FINE = "0.001"  # an epsilon at which whole noise is as wide as real noise


def ratios(plan):
    """The error of each candidate as a share of that of single cells with the same noise."""
    plain = {one.gaussian: one.error for one in plan.candidates if one.name == "single cells"}
    return {(one.name, one.gaussian): one.error / plain[one.gaussian] for one in plan.candidates}


def test_prefixes_of_4096_cells():
    found = ratios(best(FINE, 4096, prefixes=True))
    assert found["blocks of 1024, 128, 16, 1", False] == pytest.approx(0.2172, abs=1e-4)


def test_ranges_of_4096_cells():
    rng = np.random.default_rng(0)
    length = rng.integers(1, 4097, 20_000)
    low = (rng.random(20_000) * (4097 - length)).astype(np.int64)
    plan = best(FINE, 4096, ranges=(low, low + length - 1))
    assert min(ratios(plan).values()) == pytest.approx(0.2725, abs=3e-3)
    assert plan.candidates[0].shares == pytest.approx((0.104, 0.245, 0.315, 0.336), abs=0.003)


def test_gaussian_prefixes_take_the_square_root():
    plan = best("rho=1/2", 4096, prefixes=True)
    assert plan.candidates[0].name == "square root of prefix sums"
    assert plan.candidates[0].error == pytest.approx(3.5513, abs=1e-4)
    assert 1.05 < plan.candidates[0].error / least_error(4096, prefixes=True) < 1.065


@pytest.mark.parametrize(("cells", "tree"), [(32, False), (48, True), (64, True)])
def test_from_forty_cells_on_blocks_beat_single_cells(cells, tree):
    plan = best(FINE, cells)
    assert (plan.candidates[0].name != "single cells") == tree


def test_with_gaussian_noise_from_two_cells_on():
    for cells, equal_levels in ((2, 1.0), (8, 1.767 / 1.826), (64, 0.6)):
        found = ratios(best("rho=1/2", cells))
        assert min(share for (_, gaussian), share in found.items() if gaussian) < equal_levels
    assert ratios(best("rho=1/2", 1))["Haar wavelet", True] == 1


def test_with_a_delta_laplace_noise_competes():
    plan = best("1, 1e-6", 64)
    assert {one.gaussian for one in plan.candidates} == {False, True}
    assert not plan.candidates[0].gaussian, "few numbers need less Laplace noise"


@pytest.mark.parametrize("spend", [1, "1, 1e-6", "rho=0.1"])
@pytest.mark.parametrize("part", [Contribution(1, 1, 1), Contribution(10, 1, 10)])
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_the_release_keeps_the_promise_and_has_the_stated_error(spend, part, neighbours):
    plan = best(spend, 100, part=part, neighbours=neighbours)
    low, high, _ = all_ranges(100)
    assert plan.release.guarantee().neighbours is neighbours
    errors = [one.error for one in plan.candidates]
    assert errors == sorted(errors)
    for one in plan.candidates:
        made = Linear.calibrated(
            spend, one.strategy, part=part, neighbours=neighbours, shares=one.shares, gaussian=one.gaussian
        )
        assert made.error(low, high) == pytest.approx(one.error, rel=0.02), "4 096 ranges stand for all"
    assert plan.release.error(low, high) == pytest.approx(plan.candidates[0].error, rel=0.02)


def test_shares_of_a_wavelet_take_into_account_how_far_levels_move():
    plan = best("rho=0.1", 256, neighbours=Neighbours.REPLACE)
    (haar,) = (one for one in plan.candidates if one.name == "Haar wavelet" and one.gaussian)
    low, high, _ = all_ranges(256)
    plain = Linear.calibrated("rho=0.1", Haar(256), neighbours=Neighbours.REPLACE, gaussian=True)
    assert haar.error < plain.error(low, high)


def test_blocks_smaller_than_a_unit_spreads_over_are_left_out():
    part, low_high = Contribution(16, 1, 16), all_ranges(256)[:2]
    plan = best("rho=0.1", 256, ranges=low_high, part=part)
    smooth = [one for one in plan.candidates if one.gaussian]
    (blocks,) = (one for one in smooth if one.name.startswith("blocks"))
    assert blocks.name == "blocks of 256, 128, 64, 32, 1"
    for shares in np.random.default_rng(1).uniform(0.8, 1.25, (8, 5)):
        made = Linear.calibrated("rho=0.1", blocks.strategy, part=part, shares=shares * blocks.shares, gaussian=True)
        assert made.error(*low_high) > blocks.error * (1 - 1e-9)
    every = tuple(2**j for j in range(8, -1, -1))
    plain = Linear.calibrated("rho=0.1", Tree(256, every), part=part, gaussian=True)
    assert blocks.error < 0.96 * plain.error(*low_high)


def test_any_workload_up_to_1024_cells():
    queries = np.kron(np.eye(4), np.ones((5, 6)))
    plan = best_for(1, queries)
    names = [one.name for one in plan.candidates]
    assert names == ["single cells and 4 weighted sums", "the queries themselves", "single cells"]
    assert plan.candidates[2].error == pytest.approx(np.sqrt(6 * 1.8413), rel=1e-4)
    assert plan.candidates[1].error > plan.candidates[0].error  # each query is asked five times
    better = best(FINE, 64, optimise=True)
    assert better.candidates[0].error < 0.93 * best(FINE, 64).candidates[0].error


def test_no_strategy_is_better_than_the_bound():
    for cells in (16, 100):
        low, _, _ = all_ranges(cells)
        singular = np.sqrt(np.linalg.eigvalsh(ranges_gram(cells))).sum() / np.sqrt(cells * len(low))
        assert least_error(cells) == pytest.approx(singular)
        prefixes = np.linalg.svd(np.tri(cells), compute_uv=False).sum() / cells
        assert least_error(cells, prefixes=True) == pytest.approx(prefixes)
    plan = best("rho=1/2", 100)
    assert all(one.error > least_error(100) for one in plan.candidates if one.gaussian)


@pytest.mark.parametrize(
    "wrong",
    [
        {"ranges": ([0], [4])},
        {"ranges": ([2], [1])},
        {"ranges": ([-1], [1])},
        {"ranges": ([0.5], [1])},
        {"ranges": ([], [])},
        {"ranges": ([0], [1]), "prefixes": True},
    ],
)
def test_impossible_ranges_are_refused(wrong):
    with pytest.raises(InputError, match="range"):
        best(1, 4, **wrong)


def test_a_line_without_choices_has_single_cells():
    plan = best(1, 1)
    assert isinstance(plan.release.strategy, Tree | Haar)
    assert plan.release.error([0], [0]) == pytest.approx(np.sqrt(1.8413), rel=1e-4)
