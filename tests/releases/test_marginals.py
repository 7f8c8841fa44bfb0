"""Marginals: variances and estimates against dense linear algebra, sensitivities by enumeration, bars that hold.

Sensitivities are those of all tables of one unit's rows, for all pairs that differ in that unit.
"""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, combinations_with_replacement

import numpy as np
import pytest
from tests.goodness import fewest, most

import noisette as nz
from noisette.errors import InputError
from noisette.mechanisms import Gaussian, Laplace
from noisette.privacy.sensitivity import Sensitivity
from noisette.releases import marginal_cells, residual
from noisette.releases.marginal_cells import Cells
from noisette.releases.marginals import Marginals, up_to
from noisette.releases.residual import Contrasts, Workload, centred, contrasts

ADD_REMOVE, REPLACE = nz.Neighbours.ADD_REMOVE, nz.Neighbours.REPLACE
WAYS = [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]
SHAPES = {
    "2x3x4": up_to((2, 3, 4), 2),
    "binary": up_to((2, 2, 2), 2),
    "all of 3x3": up_to((3, 3), 2),
    "one value": up_to((3, 1, 2), 3),
    "one way": up_to((4, 2), 1),
    "some": Workload((2, 3, 3), (((0, 1), 1.0), ((2,), 5.0))),
}
STRATEGIES = {"contrasts": Contrasts, "cells": Cells}
EVERY = [(kind, name) for kind in STRATEGIES for name in SHAPES]


def strategy(kind, name):
    return STRATEGIES[kind](SHAPES[name])


def tables(workload, x):
    x = np.asarray(x).reshape(workload.sizes)
    places = range(len(workload.sizes))
    return {a: x.sum(axis=tuple(i for i in places if i not in a)) for a in workload.bases}


def matrix(made):
    """The strategy as a matrix, a column for each cell of the whole table."""
    cells = math.prod(made.workload.sizes)
    return np.array([np.asarray(made.measure(tables(made.workload, row)), float) for row in np.eye(cells, dtype=int)]).T


def queries(workload, attributes):
    """A marginal as a matrix."""
    cells = np.array(list(np.ndindex(*workload.sizes)))
    place = np.zeros(len(cells), int)
    for i in attributes:
        place = place * workload.sizes[i] + cells[:, i]
    return (np.arange(workload.cells(attributes))[:, None] == place).astype(float)


def made_of(found, spread=1.0):
    """A release by this strategy with noise of some variance."""
    noise = Gaussian(1) if isinstance(found, Contrasts) else Laplace(Fraction(1, 2))
    return Marginals(found, noise, found.sensitivity(1, ADD_REMOVE))


# Variances


def test_the_least_loss_is_the_bound_of_singular_values():
    workload = Workload((2, 3, 4), tuple((b, 1.0) for b in WAYS))
    w = np.vstack([queries(workload, b) for b in WAYS])
    bound = np.linalg.svd(w, compute_uv=False).sum() ** 2 / 24
    assert workload.least_loss == pytest.approx(bound)
    assert round(workload.least_loss, 4) == 85.8423
    found = Contrasts(workload)
    loss = sum(v * found.spreads[a] for a, v in workload.losses.items())
    assert bound <= loss <= bound * 1.0003  # factors have sixteen bits
    assert found.sensitivity(1, ADD_REMOVE).l2_squared <= 1


@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_estimates_and_variances_are_those_of_least_squares(kind, name):
    found = strategy(kind, name)
    release, a, workload = made_of(found), matrix(strategy(kind, name)), found.workload
    y = np.random.default_rng(1).normal(size=len(a)) * 10
    estimate, inverse = release.infer(y), np.linalg.pinv(a)
    for b, _ in workload.weights:
        w = queries(workload, b)
        assert np.allclose(estimate.marginal(b).ravel(), w @ inverse @ y)
        truth = np.diag(w @ inverse @ inverse.T @ w.T) * release.noise.variance()
        stated = release.variance(release.first_cell(b))
        assert np.all(truth <= stated * (1 + 1e-9))
        assert np.all(truth >= stated * (1 - 2e-4))


@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_sums_and_differences_of_boxes_have_their_own_variance(kind, name):
    found = strategy(kind, name)
    release, inverse, workload = made_of(found), np.linalg.pinv(matrix(found)), found.workload
    estimate, rng = release.infer(np.ones(found.numbers)), np.random.default_rng(2)
    cells = np.array(list(np.ndindex(*workload.sizes)))
    for one, other in combinations([b for b, _ in workload.weights], 2):
        boxes = [{i: rng.random(workload.sizes[i]) < 0.6 for i in b} for b in (one, other)]
        terms = [(1.0, boxes[0]), (-0.7, boxes[1])]
        q = sum(f * np.all([box[i][cells[:, i]] for i in box] or [np.ones(len(cells))], axis=0) for f, box in terms)
        truth = float(np.square(q @ inverse).sum() * release.noise.variance())
        assert truth * (1 - 1e-9) <= release.variance(terms) + 1e-9 <= truth + 2e-4 * max(1, truth) + 1e-8
        assert estimate.count(terms) == pytest.approx(float(q @ inverse @ np.ones(found.numbers)))
        if kind == "cells":  # coefficients are those of the same numbers
            sizes, times = found.coefficients(terms)
            assert float((sizes**2 * times).sum()) * release.noise.variance() == pytest.approx(truth, abs=1e-9)
            exact = np.sort(np.abs(q @ inverse))[::-1]
            listed = np.sort(np.repeat(sizes, times.astype(int)))[::-1]
            assert np.allclose(listed[listed > 1e-12], exact[exact > 1e-12], atol=1e-9)


def test_marginals_agree_with_each_other():
    made = Marginals.calibrated(nz.ZCDP(1), up_to((3, 4, 2), 2))
    found = made(tables(made.workload, np.arange(24)))
    for b, axis, less in [((0, 1), 0, (1,)), ((0, 1), 1, (0,)), ((0, 2), 0, (2,)), ((1,), 0, ())]:
        assert np.allclose(found.marginal(b).sum(axis=axis), found.marginal(less))


@pytest.mark.parametrize("kind", STRATEGIES)
def test_without_noise_everything_is_exact(kind):
    found = strategy(kind, "2x3x4")
    x = tables(found.workload, np.random.default_rng(1).integers(0, 1000, 24))
    back = found.infer(np.asarray(found.measure(x), float))
    for a in found.workload.bases:
        assert np.allclose(back[a], centred(x[a].astype(float)))


@pytest.mark.parametrize("kind", STRATEGIES)
def test_large_counts_are_exact_too(kind):
    """Beyond what floats hold exactly, numbers are fractions: one row more is seen among 2^50."""
    found = strategy(kind, "2x3x4")
    x = np.full(24, 2**50)
    one = x + (np.arange(24) == 7)
    before, after = (found.measure(tables(found.workload, each)) for each in (x, one))
    change = [Fraction(b) - Fraction(a) for a, b in zip(before, after, strict=True)]
    alone = [Fraction(v) for v in found.measure(tables(found.workload, one - x))]
    assert change == alone


def test_laplace_shares_are_better_than_equal_ones_and_than_coefficients():
    for sizes in ((2, 3, 4), (6, 10, 2), (2, 2, 3, 5, 10)):
        found = Cells(up_to(sizes, 2))
        pairs = np.array([float(len(c) == 2 and not t) for c, t in found.parts])
        shares = np.array([float(found.shares.get(part, 0)) for part in found.parts])
        assert found.loss(shares) < 0.96 * found.loss(pairs / pairs.sum())
    binary = Cells(up_to((2,) * 6, 2))
    signed = np.array([len(c) == len(t) for c, t in binary.parts])
    walsh = np.cbrt([binary.workload.losses[c] * 0.5 ** len(c) for c, _ in binary.parts]) * signed
    shares = np.array([float(binary.shares.get(part, 0)) for part in binary.parts])
    assert binary.loss(shares) < binary.loss(walsh / walsh.sum())
    improved = binary._improved(np.where(signed, 1.0, 1e-9))  # among coefficients alone, v^(1/3) is best
    assert np.allclose(improved, walsh / walsh.sum(), atol=1e-3)


# What one unit can change

PLACED = [(*each, 1) for each in EVERY] + [(*each, 2) for each in EVERY if each[1] in ("binary", "one way")]


def moves(found, rows, neighbours):
    """By which vectors a unit with up to `rows` rows can move the numbers, all placements."""
    a = matrix(found)
    placed = [sum((a[:, j] for j in some), np.zeros(len(a))) for n in range(rows + 1)
              for some in combinations_with_replacement(range(a.shape[1]), n)]  # fmt: skip
    if neighbours is ADD_REMOVE:
        return np.array(placed)
    return np.array([one - other for one, other in combinations(placed, 2)])


def excess(found, rows, neighbours, stated=None):
    """The largest move over the stated one, in the norm that is used."""
    stated = stated or found.sensitivity(rows, neighbours)
    v = moves(found, rows, neighbours)
    if isinstance(found, Contrasts):
        return float(np.square(v).sum(axis=1).max()) / float(stated.l2_squared)
    return float(np.abs(v).sum(axis=1).max()) / float(stated.l1)


@pytest.mark.parametrize("neighbours", [ADD_REMOVE, REPLACE], ids=str)
@pytest.mark.parametrize(("kind", "name", "rows"), PLACED)
def test_one_unit_moves_the_numbers_by_what_is_stated_and_no_less(kind, name, rows, neighbours):
    found = strategy(kind, name)
    assert 1 - 1e-3 <= excess(found, rows, neighbours) <= 1 + 1e-12


@pytest.mark.parametrize("kind", STRATEGIES)
def test_all_norms_hold(kind):
    found = strategy(kind, "all of 3x3")
    for neighbours in (ADD_REMOVE, REPLACE):
        stated, v = found.sensitivity(2, neighbours), np.abs(moves(found, 2, neighbours))
        assert (v > 0).sum(axis=1).max() <= stated.l0
        assert v.sum(axis=1).max() <= float(stated.l1) * (1 + 1e-12)
        assert np.square(v).sum(axis=1).max() <= float(stated.l2_squared) * (1 + 1e-12)
        assert v.max() <= float(stated.linf) * (1 + 1e-12)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("kind", STRATEGIES)
def test_of_many_attributes_each_base_is_bounded_by_itself(kind, name, monkeypatch):
    monkeypatch.setattr(residual, "LISTED", 0)
    monkeypatch.setattr(marginal_cells, "LISTED", 0)
    assert excess(strategy(kind, name), 1, REPLACE) <= 1 + 1e-12


@pytest.mark.parametrize("kind", STRATEGIES)
def test_a_sensitivity_that_is_too_small_is_noticed(kind):
    found = strategy(kind, "2x3x4")
    for neighbours in (ADD_REMOVE, REPLACE):
        s = found.sensitivity(1, neighbours)
        halved = Sensitivity(s.l1 / 2, s.l2_squared / 4, s.linf / 2, s.l0, neighbours=neighbours)
        assert excess(found, 1, neighbours, halved) > 1.5
    assert excess(found, 2, ADD_REMOVE, found.sensitivity(1, ADD_REMOVE)) > 1.5  # two rows where one was stated
    assert excess(found, 1, REPLACE, found.sensitivity(1, ADD_REMOVE)) > 1.5


@pytest.mark.parametrize(
    "spend", [nz.Pure(1), nz.ZCDP("1/8"), nz.Approx(1, "1e-6"), nz.Approx("1/100", "1e-9")], ids=repr
)
@pytest.mark.parametrize("neighbours", [ADD_REMOVE, REPLACE], ids=str)
def test_the_promise_is_kept_and_hardly_anything_of_it_is_left(spend, neighbours):
    made = Marginals.calibrated(spend, up_to((2, 3, 4), 2), rows=3, neighbours=neighbours)
    assert made.guarantee() <= spend
    assert made.guarantee().neighbours is neighbours
    twin = smaller(made.noise)
    assert not replace(made, noise=twin).guarantee() <= spend


def smaller(noise):
    """Four fifths of it."""
    size = noise.sigma if isinstance(noise, Gaussian) else noise.scale
    return type(noise)(Fraction(4, 5) * size, grid=noise.grid)


def test_the_noise_is_the_one_that_errs_less():
    few, many = up_to((2, 3), 1), up_to((4,) * 8, 2)
    spend = nz.Approx(1, "1e-6")
    for workload, kind in ((few, Cells), (many, Contrasts)):
        made = Marginals.calibrated(spend, workload)
        assert type(made.strategy) is kind
        other = Marginals.calibrated(spend, workload, gaussian=kind is Cells)
        assert made.loss < other.loss


# Draws


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.95, 0.8])
@pytest.mark.parametrize("spend", [nz.Pure(1), nz.ZCDP("1/8")], ids=repr)
def test_bars_hold_as_often_as_they_say(spend, level):
    """Each of 24 counts of 3,000 draws fails with p < 1e-12."""
    made, draws = Marginals.calibrated(spend, up_to((2, 3, 4), 2), rows=2), 3_000
    exact = np.asarray(made.strategy.measure(tables(made.workload, np.arange(24))), float)
    noisy = np.asarray(made.noise(np.tile(exact, draws))).reshape(draws, -1)
    drawn = [made.infer(y) for y in noisy]
    for b, _ in made.workload.weights:
        errors = np.array([e.marginal(b) for e in drawn]) - tables(made.workload, np.arange(24))[b]
        missed = (np.abs(errors.reshape(draws, -1)) > made.cell_width(b, level)).sum(axis=0)
        assert missed.max() <= most(draws, 1 - level), b
        assert missed.min() >= fewest(draws, (1 - level) * 0.8), b  # and they are not much too wide


# Size


@pytest.mark.slow
def test_a_hundred_attributes_have_small_marginals():
    made = Marginals.calibrated(nz.ZCDP(1), up_to((2,) * 100, 2))
    assert made.strategy.numbers == 1 + 100 + 4950
    zeros = {a: np.zeros(made.workload.shape(a), np.int64) for a in made.workload.bases}
    assert made(zeros).marginal((3, 99)).shape == (2, 2)


ADULT = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)


@pytest.mark.parametrize("spend", [nz.Pure(1), nz.ZCDP("1/8")], ids=repr)
def test_many_large_marginals_are_planned_in_closed_form(spend):
    made = Marginals.calibrated(spend, up_to(ADULT, 3))
    assert made.strategy.numbers > 19_000_000
    assert made.guarantee() <= spend


def test_contrasts_are_orthogonal_and_whole():
    h = np.array([contrasts(row) for row in np.eye(5, dtype=int)]).T
    assert h.dtype.kind == "i"
    assert np.array_equal(h @ h.T, np.diag([k * (k + 1) for k in range(1, 5)]))


@pytest.mark.parametrize(("make", "why"), [
    (lambda: Workload((2, 3), (((1, 0), 1.0),)), "in order and once each"),
    (lambda: Workload((2, 3), (((2,), 1.0),)), "in order and once each"),
    (lambda: Workload((2, 3), ()), "Each marginal"),
    (lambda: Workload((2, 3), (((0,), 0.0),)), "above 0"),
    (lambda: Workload((0, 3), (((0,), 1.0),)), "at least one value"),
    (lambda: Marginals.calibrated(1, up_to((1000, 1000, 100), 3)), "more than"),
    (lambda: made_of(Contrasts(up_to((2, 3), 1))).infer(np.zeros(4)).marginal((0, 1)), "measured"),
    (lambda: made_of(Cells(up_to((2,), 1)))({(): np.int64(3), (0,): np.ones(2)}), "whole number"),
])  # fmt: skip
def test_what_cannot_be_is_refused(make, why):
    with pytest.raises(InputError, match=why) as found:
        make()
    assert str(found.value).count(".") <= 2
