import math

import numpy as np
import pytest
from tests.timing import times_as_long

from noisette.accuracy import Comparison, compare, largest_error
from noisette.errors import InputError, PrivacyError
from noisette.mechanisms import Gaussian, Laplace, calibrate
from noisette.privacy import ZCDP, Approx, Neighbours, Pure, sensitivity

PROMISE = Approx(1, "1e-6")


def names(comparison: Comparison) -> list[str]:
    return [row.name for row in comparison.rows]


def test_rows_are_the_calibrated_mechanisms():
    c = compare(sensitivity.counts(20), PROMISE, answers=20)
    row = next(row for row in c.rows if row.name == "Laplace")
    assert row.mechanism == calibrate(Laplace, PROMISE, sensitivity=sensitivity.counts(20))
    assert row.largest == largest_error(row.mechanism, 20)
    assert row.sd == pytest.approx(20 * math.sqrt(2), rel=1e-5)
    assert all(row.mechanism.variance() == pytest.approx(row.sd**2) for row in c.rows)


@pytest.mark.parametrize("by", ["largest", "half_width", "sd"])
def test_ranked_by_a_column(by):
    c = compare(sensitivity.counts(9), PROMISE, answers=9, by=by)
    errors = [getattr(row, by) for row in c.rows]
    assert errors == sorted(errors)
    assert c.best is c.rows[0]


@pytest.mark.slow
def test_every_mechanism_is_listed_once():
    for grid in (None, 1):
        for promise in (Pure(1), PROMISE, ZCDP("0.1")):
            c = compare(sensitivity.counts(5), promise, answers=5, grid=grid)
            listed = names(c) + [name for name, _ in c.refused]
            assert len(listed) == len(set(listed)) == 7
            assert all(why.endswith(".") for _, why in c.refused)


def test_gaussian_without_delta_is_listed_with_the_reason():
    refused = dict(compare(sensitivity.counts(5), 1, answers=5).refused)
    assert "no pure guarantee" in refused["Gaussian"]


@pytest.mark.slow
def test_crossover_of_laplace_and_gaussian():
    """k* = (sigma epsilon)^2 / 2 = 8.9 at (1, 1e-6)."""
    sigma = float(calibrate(Gaussian, PROMISE).sigma)
    assert sigma**2 / 2 == pytest.approx(8.9, abs=0.05)
    for k in range(1, 20):
        order = names(compare(sensitivity.counts(k), PROMISE, answers=k, by="sd"))
        assert (order.index("Laplace") < order.index("Gaussian")) == (k < sigma**2 / 2)


def test_matrix():
    prefix = np.tril(np.ones((8, 8), dtype=int))
    c = compare(prefix, Pure(1, neighbours=Neighbours.REPLACE), grid=1)
    assert c.task.answers == 8
    assert c.task.workload == sensitivity.workload(prefix, neighbours=Neighbours.REPLACE)
    assert compare(prefix.tolist(), 1).task.workload.neighbours is Neighbours.ADD_REMOVE


def test_disjoint_counts_take_independent_noise():
    assert compare(sensitivity.histogram(), 1, answers=100, grid=1).best.name == "Geometric"


def test_whole_steps_of_more_than_one_number_are_not_geometric():
    moves = sensitivity.counts(1).scaled(5)
    assert "Staircase" in names(compare(moves, 4, answers=1, grid=1))


def test_more_can_move_than_there_are_answers():
    assert compare(sensitivity.count().times(3), 1, answers=1).task.workload.l0 == 1


def test_shown_as_text_and_html():
    c = compare(sensitivity.counts(10_000), PROMISE, answers=10_000)
    text = str(c).splitlines()
    assert text[0] == "10,000 answers, (1, 1e-06)-DP, errors at 95 %"
    assert text[2].split() == ["Gaussian", "422.5", "828", "1,926"]
    assert "<td>Gaussian</td>" in c._repr_html_()
    assert "KNorm l1: The same law as Laplace." in text


def test_curve_meets_the_rows_and_falls():
    c = compare(sensitivity.counts(3), PROMISE, answers=3)
    for row in c.rows:
        at = c.curve(row.name, [0.5, 1, 2])
        assert at[1] == row.largest
        assert at[0] > at[1] > at[2]


def test_curve_is_nan_where_a_mechanism_refuses():
    c = compare(sensitivity.counts(1), 1, answers=1, grid="1/4")
    assert math.isnan(c.curve("Laplace", [1000])[0])


@pytest.mark.parametrize(
    ("workload", "promise", "ask", "message"),
    [
        (sensitivity.counts(2), 1, {}, "answers="),
        (np.eye(2), 1, {"answers": 3}, "one answer for each row"),
        (sensitivity.counts(2), 1, {"answers": 2, "level": 0}, "level"),
        (sensitivity.counts(2), 1, {"answers": 2, "by": "beauty"}, "by must be one of"),
        (sensitivity.counts(2), 0, {"answers": 2}, "No mechanism keeps"),
        (sensitivity.size(neighbours=Neighbours.REPLACE), 1, {"answers": 1}, "No mechanism keeps"),
    ],
)
def test_refusals(workload, promise, ask, message):
    with pytest.raises(InputError, match=message):
        compare(workload, promise, **ask)


def test_relations_do_not_mix():
    with pytest.raises(PrivacyError):
        compare(sensitivity.counts(2), Pure(1, neighbours=Neighbours.REPLACE), answers=2)


@pytest.mark.slow
@pytest.mark.parametrize("grid", [None, 1])
def test_ten_thousand_answers_take_no_longer_than_a_hundred(grid):
    few, many = (lambda n=n: compare(sensitivity.counts(n), PROMISE, answers=n, grid=grid) for n in (100, 10_000))
    assert times_as_long(many, few, rounds=3) < 10  # about 1; a step for each answer takes a hundred times as long
