"""What a reusable holdout promises, exactly, and how far off its answers are."""

import json
import math
from functools import cache

import numpy as np
import pytest
from tests.holdout.exact_law import gaps_of, published

from noisette.errors import PrivacyError
from noisette.holdout import Thresholdout
from noisette.holdout.machine import Machine, Steps
from noisette.holdout.records import on_grid
from noisette.mechanisms import Gaussian, NumericSparse, Sparse, SparseVector
from noisette.privacy import ZCDP, Approx, Neighbours, Pure, as_promise


def hundred():
    return Thresholdout.published("0.01", budget=100, records=10_000, threshold="0.04")


def test_the_published_algorithm_is_worth_less_than_its_paper_says():
    guarantee = hundred().guarantee
    assert guarantee.epsilon == 2
    assert guarantee.neighbours is Neighbours.REPLACE
    assert guarantee.epsilon_at("1e-6") == pytest.approx(0.57155, abs=5e-6)


def test_the_published_noise_is_the_papers():
    m, s = hundred().comparing, 100 * hundred().grid  # sigma n, in steps
    assert (m.scale, m.threshold_noise.scale, m.query_noise.scale, m.value_scale) == (2 * s, 2 * s, 4 * s, s)
    assert m.refreshed


@pytest.mark.slow_after(8)
@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize("budget", [1, 9, 10, 100])
@pytest.mark.parametrize("spend", [1, "0.5,1e-6", "rho=0.01", "8,1e-9"])
def test_what_is_calibrated_keeps_its_promise(spend, budget, published):
    promise = as_promise(spend)
    m = Thresholdout.calibrated(spend, budget=budget, records=50_000, published=published)
    assert m.guarantee <= promise.restated(Neighbours.REPLACE)
    less = Thresholdout.calibrated(
        promise.share("9/10", delta="9/10"), budget=budget, records=50_000, published=published
    )
    assert less.comparing.scale > m.comparing.scale
    assert Thresholdout.from_parts(json.loads(json.dumps(m.parts))) == m


def test_promises_are_nearly_used_up():
    m = Thresholdout.calibrated("1,1e-6", budget=100, records=10_000)
    assert 0.98 < m.guarantee.epsilon_at("1e-6") <= 1 + 1e-12
    twin = Thresholdout(m.comparing, answering=Gaussian(m.answering.sigma * 4 / 5, grid=1), records=1, threshold="0.1")
    assert not twin.guarantee <= Approx(1, "1e-6", neighbours=Neighbours.REPLACE)


def test_few_answers_come_from_gaps_and_many_from_gaussian_noise():
    few = Thresholdout.calibrated("1,1e-6", budget=9, records=10_000)
    assert (type(few.comparing), few.answering, few.gaps) == (SparseVector, None, True)
    ten = Thresholdout.calibrated("1,1e-6", budget=10, records=10_000)
    assert (type(ten.comparing), type(ten.answering), ten.gaps) == (SparseVector, Gaussian, False)
    many = Thresholdout.calibrated("1,1e-6", budget=100, records=10_000)
    assert (type(many.comparing), type(many.answering)) == (Sparse, Gaussian)
    assert Thresholdout.calibrated(1, budget=100, records=10_000).gaps
    old = Thresholdout.calibrated("1,1e-6", budget=100, records=10_000, published=True)
    assert isinstance(old.comparing, NumericSparse)
    assert many.comparing.interval(0.95) < old.comparing.interval(0.95)


def test_the_default_compares_with_less_noise():
    """The numbers of docs/holdout.md, and others."""
    for budget, ours, papers in ((3, 0.007, 0.023), (10, 0.027, 0.067), (100, 0.212, 0.228)):
        for old, stated in ((False, ours), (True, papers)):
            m = Thresholdout.calibrated("1,1e-6", budget=budget, records=10_000, published=old)
            wrong = m.comparing.interval(0.95, queries=1000) / (m.records * m.grid)
            assert wrong == pytest.approx(stated, abs=6e-4)


def test_another_relation_is_refused():
    for promise in (Pure(1, neighbours=Neighbours.ADD_REMOVE), ZCDP(1, neighbours=Neighbours.ADD_REMOVE)):
        with pytest.raises(PrivacyError, match="replace"):
            Thresholdout.calibrated(promise, budget=3, records=100)


# Error bars

BARS = {
    "gaps": lambda: gaps_of(6, 14, 1),
    "published": lambda: published(3, 1),
    "Gaussian": lambda: Thresholdout(
        Sparse(20, positives=1), answering=Gaussian(9, grid=1), records=3, threshold="1/2"
    ),
}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("off", [0, 12, 60])
@pytest.mark.parametrize("name", BARS)
def test_error_bars_miss_as_seldom_as_they_say(name, off):
    """Of 1,000 streams at 80 %, 200 misses are expected at most; more than 300 with p < 1e-13, for other coins."""
    m, level, missed = BARS[name](), 0.8, 0
    machine, ends, silent = Machine(m), cache(m.released_ends), 10 + m.silent_end(level)
    for _ in range(1000):
        released, state = machine.step(machine.begin(), Steps(off, 0, 10))
        if released is None:
            missed += off > silent
        else:
            low, high = ends(released.sign, released.gap, state.asked, level)
            missed += not released.steps + low <= off <= released.steps + high
    assert missed <= 300


def test_silent_ends_are_not_much_too_wide():
    for m in (gaps_of(6, 14, 3), published(3, 3)):
        assert m.silent_end(0.5) < m.silent_end(0.999) < 40 * float(m.comparing.scale)


def test_the_default_threshold_leaves_room_for_noise_and_chance():
    for records in (100, 10_000, 10**6):
        m = Thresholdout.calibrated(20, budget=2, records=records)
        assert 2 / math.sqrt(records) < float(m.threshold) < 2 / math.sqrt(records) + 200 / records + 0.001


def test_silence_costs_nothing_however_long_and_the_budget_ends_it():
    m = Thresholdout.calibrated(5, budget=3, records=2000, threshold="0.1")
    machine, state, n = Machine(m), Machine(m).begin(), 2000 * m.grid
    t = math.ceil(m.threshold * n)
    for _ in range(300):
        released, state = machine.step(state, Steps(n // 2, n // 2, t))
        assert released is None  # 200 from a threshold with noise of scale 1.6: fails with p < 1e-50 each
    for given in (1, 2, 3):
        released, state = machine.step(state, Steps(n, n // 2, t))
        assert state.given == given
        assert abs(released.steps - n) < 0.05 * n
    with pytest.raises(PrivacyError, match="all 3 answers"):
        machine.check(state)


def test_rounding_is_to_the_nearest_step():
    assert on_grid(np.array([0, 1, 0.5, 0.49, 0.26]), 2) == 0 + 2 + 1 + 1 + 1
