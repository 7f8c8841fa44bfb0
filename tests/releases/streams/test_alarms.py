"""Alarms and states that may be seized: exact laws on small streams, twins that must fail, rates known before."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from tests.goodness import most

from noisette.errors import InputError
from noisette.mechanisms import SparseVector
from noisette.privacy import Neighbours, Pure
from noisette.releases.streams.alarms import Alarm
from noisette.releases.streams.pan_private import PanPrivateDensity

# Alarms


def law(alarm, stream, far=60):
    """P(in which steps alarms come) for a short stream: Z and N are summed over, as far as they reach."""
    found = {(): 1.0}
    z = np.arange(far)
    level = alarm.threshold + alarm.mechanism.centre + z
    weights = alarm.mechanism.threshold_noise.pmf(alarm.mechanism.centre + z)
    quiet = {(): (weights, 0)}  # weights over the noise of the present threshold, and the statistic
    for step, x in enumerate(stream):
        after = {}
        for said, (p, statistic) in quiet.items():
            s = max(0, statistic + x - alarm.drift)
            above = 1 - alarm.mechanism.query_noise.cdf(level - s - 1)
            after[said] = (p * (1 - above), s)
            rung = float((p * above).sum())
            after[(*said, step)] = (rung * weights, 0)
        quiet = after
    found = {said: float(p.sum()) for said, (p, _) in quiet.items()}
    assert sum(found.values()) == pytest.approx(1, abs=1e-6)
    return found


def loss(alarm, one, two):
    a, b = law(alarm, one), law(alarm, two)
    return max(abs(math.log(a[said] / b[said])) for said in a if a[said] > 1e-9 and b[said] > 1e-9)


@pytest.mark.parametrize("epsilon", [1, 3])
def test_no_two_neighbours_lose_more_than_promised_however_many_alarms_there_are(epsilon):
    alarm = Alarm.calibrated(epsilon, drift=1, threshold=2)
    worst = 0.0
    for stream in itertools.product([0, 1, 4], repeat=4):
        for step in range(4):
            other = [x + (i == step) for i, x in enumerate(stream)]
            worst = max(worst, loss(alarm, stream, other))
    assert epsilon / 3 < worst <= epsilon


def test_events_of_one_unit_in_two_quiets_cost_no_more_than_both():
    alarm = Alarm.calibrated(2, drift=1, threshold=2, events=2)
    for stream in itertools.product([0, 4], repeat=4):
        for i, j in itertools.combinations(range(4), 2):
            assert loss(alarm, stream, [x + (k in (i, j)) for k, x in enumerate(stream)]) <= 2


def test_under_replace_an_event_may_leave_one_quiet_and_come_in_another():
    alarm = Alarm.calibrated(2, drift=1, threshold=2, neighbours=Neighbours.REPLACE)
    assert alarm.guarantee() == Pure(2, neighbours=Neighbours.REPLACE)
    for stream in itertools.product([1, 4], repeat=4):
        for i, j in itertools.permutations(range(4), 2):
            moved = [x - (k == i) + (k == j) for k, x in enumerate(stream)]
            assert loss(alarm, stream, moved) <= 2


def test_a_threshold_without_noise_is_convicted():
    alarm = Alarm.calibrated(1, drift=1, threshold=2)
    twin = Alarm(SparseVector("1/100", alarm.mechanism.scale / 2), alarm.moved, alarm.neighbours, 1, 2)
    assert loss(twin, [4, 0, 0, 4], [5, 0, 0, 4]) > 1 or loss(twin, [1, 2, 1, 0], [1, 3, 1, 0]) > 1


def test_false_alarms_and_delays_are_known_before():
    """2 000 simulated streams; a rate is off by more than its bound with a chance below 1e-12."""
    alarm = Alarm.calibrated(1, drift=110, threshold=60)
    rate = alarm.false_alarms(100, 30)
    watching = alarm.begin()
    draws = np.random.default_rng(3).poisson(100, 1500).tolist()
    alarms = sum(watching.step(int(x)) is not None for x in draws)
    assert alarms <= most(1500, max(1e-4, 2 * rate / 30))
    assert alarm.false_alarms(100, 30, runs=500) < alarm.false_alarms(115, 30, runs=500)
    assert alarm.delay(150, runs=300) < alarm.delay(120, runs=300)
    assert 1 <= alarm.delay(1000, runs=50) <= 2


def test_an_alarm_goes_on_after_json_with_the_same_noise():
    alarm = Alarm.calibrated(1, drift=1, threshold=5)
    watching = alarm.begin()
    watching.step(3)
    again = alarm.resume(json.loads(json.dumps(watching.state())))
    assert again.state() == watching.state()


@pytest.mark.parametrize("bad", [1.5, "3", None, True])
def test_steps_are_whole_numbers(bad):
    with pytest.raises(InputError, match="whole number"):
        Alarm.calibrated(1, drift=1, threshold=5).begin().step(bad)


# A state that may be seized


def bit_law(epsilon, appearances):
    """P(bit = 1) at each moment for somebody who appears in some steps: the last draw decides."""
    p = 1 / (1 + math.exp(-epsilon))
    return [p if any(appearances[: moment + 1]) else 1 - p for moment in range(len(appearances))]


@pytest.mark.parametrize("epsilon", [0.25, 1.0])
def test_one_look_tells_epsilon_whenever_it_comes(epsilon):
    worst = 0.0
    for appearances in itertools.product([0, 1], repeat=3):
        for one, two in zip(bit_law(epsilon, appearances), bit_law(epsilon, [0, 0, 0]), strict=True):
            worst = max(worst, abs(math.log(one / two)), abs(math.log((1 - one) / (1 - two))))
    assert worst == pytest.approx(epsilon)
    assert PanPrivateDensity(9, epsilon=Fraction(epsilon)).state_guarantee().epsilon == Fraction(epsilon)


def test_bits_have_the_stated_law_however_often_somebody_appears():
    """Binomial bounds that a sound tree exceeds with a chance below 1e-12."""
    density = PanPrivateDensity(40_000, epsilon=1)
    bits = density.begin()
    half = np.arange(20_000)
    for _ in range(3):
        bits = density.see(bits, half)
    p = density.chance
    assert abs(int(bits[:20_000].sum()) - 20_000 * p) <= most(20_000, p) - 20_000 * p + 1
    assert abs(int(bits[20_000:].sum()) - 20_000 * (1 - p)) <= most(20_000, 1 - p) - 20_000 * (1 - p) + 1


def test_a_state_that_only_remembers_is_convicted():
    """A twin that sets the bit of who appears: one look tells whether they did, with certainty."""
    density = PanPrivateDensity(1000, epsilon=1)
    twin = density.begin()
    twin[:500] = True
    assert int(twin[:500].sum()) > most(500, density.chance)


def test_releases_are_unbiased_with_honest_bars():
    """200 releases of the share .3: bars of 95 % miss more than the binomial bound with a chance below 1e-12."""
    density, shares, missed = PanPrivateDensity(2000, epsilon=1, release_epsilon="1/2"), [], 0
    for _ in range(200):
        seen = density.release(density.see(density.begin(), np.arange(600)))
        shares.append(seen.share)
        missed += not seen.low <= 0.3 <= seen.high
    assert missed <= most(200, 0.05)
    assert np.std(shares) == pytest.approx(density.deviation, rel=0.4)
    assert np.mean(shares) == pytest.approx(0.3, abs=8 * density.deviation / math.sqrt(200))


def test_looks_and_releases_add_up():
    density = PanPrivateDensity(10, epsilon=1, release_epsilon="1/4")
    assert density.guarantee(releases=3, intrusions=0).epsilon == Fraction(3, 4)
    assert density.guarantee(releases=0).epsilon == 1
    assert density.guarantee(releases=0, intrusions=0).epsilon == 0
    assert PanPrivateDensity(10, epsilon=1, release_epsilon=9).guarantee(releases=1).epsilon == 10


def test_a_second_intrusion_is_refused():
    with pytest.raises(InputError, match=r"go on with new bits from begin\(\)"):
        PanPrivateDensity(10, epsilon=1).guarantee(intrusions=2)
    for bad in (-1, True, 1.0, None):
        with pytest.raises(InputError, match="whole number"):
            PanPrivateDensity(10, epsilon=1).guarantee(intrusions=bad)


def test_numbers_beyond_the_people_are_left_out():
    density = PanPrivateDensity(10, epsilon=20)
    assert density.see(density.begin(), [-1, 10, 3, 3]).shape == (10,)
    with pytest.raises(InputError, match="whole numbers"):
        density.see(density.begin(), ["anna"])
