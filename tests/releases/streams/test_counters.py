"""Running sums: known figures, exact sums without noise, the law of their errors, and what one unit can move."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from tests.goodness import ALPHA, fit

from noisette.errors import BudgetError, InputError
from noisette.mechanisms import Gaussian, Geometric
from noisette.privacy import ZCDP, Approx, Neighbours, Pure
from noisette.releases.streams.binary_tree import binary_tree, honaker
from noisette.releases.streams.bins import quantile_bins
from noisette.releases.streams.buffered import BufferedCounter, fine_gaussian
from noisette.releases.streams.buffers import Buffers, best_buffers, square_root_square
from noisette.releases.streams.lanes import Lanes, Numbers, read, texts
from noisette.releases.streams.participation import Participation
from noisette.releases.streams.square_root import SquareRootCounter, _inverse, _weights
from noisette.releases.streams.tree_counter import TreeCounter, digits

SPENDS = {
    BufferedCounter: Approx(1, "1e-9"),
    SquareRootCounter: ZCDP("1/2"),
    TreeCounter: Pure(1),
}
KINDS = pytest.mark.parametrize("kind", SPENDS, ids=lambda kind: kind.__name__)


def calibrated(kind, *, many, **terms):
    return kind.calibrated(SPENDS[kind], **terms, **({"many": many} if kind is BufferedCounter else {}))


def largest(counter, steps):
    return float(counter.deviations(np.arange(1, steps + 1)).max())


# Figures


@pytest.mark.parametrize(("steps", "expected"), [(64, 2.3888), (256, 2.8310), (1024, 3.2726), (4096, 3.7139)])
def test_the_square_root_has_its_known_deviations(steps, expected):
    counter = SquareRootCounter.calibrated(ZCDP("1/2"), horizon=steps)
    assert largest(counter, steps) == pytest.approx(expected, rel=1e-3)
    assert square_root_square(steps) == pytest.approx(expected, abs=6e-5)


FIGURES = {  # largest and mean square deviations of the square root, of a binary tree and of Honaker's refinement
    64: (2.3888, 2.2297, 6.481, 4.594, 5.154, 3.652),
    256: (2.8310, 2.6688, 8.485, 6.003, 6.574, 4.650),
    1024: (3.2726, 3.1098, 10.488, 7.417, 7.989, 5.650),
    4096: (3.7139, 3.5513, 12.490, 8.832, 9.404, 6.650),
    65536: (4.5964, 4.4344, 16.492, 11.662, 12.233, 8.650),
}


@pytest.mark.parametrize("steps", FIGURES)
def test_the_ways_to_add_up_have_their_known_figures(steps):
    every = np.arange(1, steps + 1)
    root = np.sqrt(square_root_square(steps) * np.array([square_root_square(int(t)) for t in every[:: steps // 64]]))
    most, mean, *trees = FIGURES[steps]
    assert root.max() == pytest.approx(most, rel=0.002)
    assert math.sqrt((root**2).mean()) == pytest.approx(mean, rel=0.01)
    for kind, figures in ((binary_tree, trees[:2]), (honaker, trees[2:])):
        found = kind(every, steps)
        assert [found.max(), math.sqrt((found**2).mean())] == pytest.approx(figures, abs=0.0006)
    assert trees[0] / most == pytest.approx({64: 2.71, 256: 3.0, 1024: 3.2, 4096: 3.36, 65536: 3.59}[steps], abs=0.01)


def test_honakers_average_is_the_best_that_a_node_and_its_halves_allow():
    """Least squares on a tree of eight steps: the variance of each node's sum from the noisy nodes below it."""
    for level in range(4):
        nodes = [range(start, start + 2**high) for high in range(level + 1) for start in range(0, 2**level, 2**high)]
        design = np.array([[float(step in node) for step in range(2**level)] for node in nodes])
        best = np.ones(2**level) @ np.linalg.inv(design.T @ design) @ np.ones(2**level)
        assert best == pytest.approx(1 / (2 - 0.5**level))


@pytest.mark.slow
def test_a_horizon_of_2_to_the_40_costs_what_it_should():
    counter = SquareRootCounter.calibrated(ZCDP("1/2"), horizon=2**40)
    found = counter.deviations([2**6, 2**10, 2**14, 2**18])
    assert found == pytest.approx([4.86, 5.69, 6.41, 7.06], abs=0.006)


@pytest.mark.parametrize(
    ("steps", "many", "ratio"),
    [(1024, 1, 1.181), (1024, 2, 1.0175), (1024, 3, 1.0016), (16384, 3, 1.0117), (16384, 4, 1.0025), (2**20, 6, 1.003)],
)
def test_few_buffers_come_near_the_square_root(steps, many, ratio):
    made = best_buffers(steps, many)
    assert math.sqrt(made.column(steps) * float(made.noise(steps))) <= ratio * square_root_square(steps) * 1.0001


@pytest.mark.slow
def test_as_many_buffers_as_are_worth_it():
    for steps, many in [(1, 1), (7, 1), (365, 3), (1024, 3), (16384, 4), (2**20, 6), (2**40, 10)]:
        made = best_buffers(steps)
        assert len(made.gaps) == many
        ratio = math.sqrt(made.column(steps) * float(made.noise(steps))) / square_root_square(steps)
        assert ratio <= (1.003 if steps <= 2**20 else 1.012)


@pytest.mark.parametrize(
    ("steps", "fan", "mean", "most"), [(1024, 13, 13.1, 18.0), (4096, 20, 16.5, 22.8), (65536, 19, 24.7, 34.4)]
)
def test_the_tree_has_its_known_deviations(steps, fan, mean, most):
    counter = TreeCounter.calibrated(1, horizon=steps, fan=fan)
    found = counter.deviations(np.arange(1, steps + 1))
    assert math.sqrt(float((found**2).mean())) == pytest.approx(mean, rel=0.01)
    assert found.max() == pytest.approx(most, rel=0.01)
    best = TreeCounter.calibrated(1, horizon=steps)
    assert best.deviations(np.arange(1, steps + 1)).mean() <= found.mean() * 1.01


# Buffers


@pytest.mark.parametrize("steps", [1, 5, 300])
def test_norms_of_buffers_are_those_of_their_series(steps):
    made = best_buffers(steps)
    gaps, flows = (np.array(v, float) / 2.0**64 for v in (made.gaps, made.inflows))
    inverse = np.concatenate([[1.0], -(flows @ (1 - gaps)[:, None] ** np.arange(steps - 1))])[:steps]
    c, b = made.weights(steps), np.cumsum(inverse)
    assert np.convolve(c, inverse)[:steps] == pytest.approx(np.eye(1, steps)[0], abs=1e-12)
    assert float(c @ c) <= made.column(steps) <= float(c @ c) * (1 + 1e-9)
    assert float(made.noise(steps)) == pytest.approx(float(b @ b))
    assert (c >= 0).all()
    assert (np.diff(c) <= 0).all()
    for start in (1, steps // 2, steps - 1):
        assert made.column(steps, start) >= float(c[start:] @ c[start:]) * (1 - 1e-12)


def test_the_square_root_is_the_integral_that_buffers_are_a_quadrature_of():
    angle = (np.arange(100_000) + 0.5) / 100_000 * math.pi / 2
    at, density = np.sin(angle) ** 2, 2 * np.cos(angle) ** 2 / math.pi  # of the angle
    for power, expected in enumerate([1 / 2, 1 / 8, 1 / 16]):  # (1 - z)^(1/2) = 1 - z/2 - z^2/8 - z^3/16 - …
        assert (at**power * density).mean() * math.pi / 2 == pytest.approx(expected)


@pytest.mark.parametrize("bad", [((0,), (1,)), ((1 << 64,), (1 << 64,)), ((5,), ()), ((1 << 60,), (0,))])
def test_buffers_that_do_not_hold_are_refused(bad):
    with pytest.raises(InputError):
        Buffers(*bad)


# Sums


@KINDS
def test_without_noise_sums_are_exact(kind):
    made = kind.calibrated(SPENDS[kind], horizon=40)
    if kind is BufferedCounter:
        made = BufferedCounter(Fraction(1, 10**9), made.moved, made.buffers, 40, 2)
    elif kind is SquareRootCounter:
        made = SquareRootCounter(Gaussian("1e-9"), made.moved, 40)
    else:
        made = TreeCounter(Geometric("1/1000"), made.moved, 3, 40)
    running, total = made.begin(2), np.zeros(2, np.int64)
    for step in range(40):
        x = np.array([step, (step * 7919) % 5 - 2])
        total += x
        off = np.abs(np.asarray(running.step(x), float) - total).max()
        assert off <= (1 if kind is BufferedCounter else 1e-6)  # rounded by 1 with a chance of 1e-7
    assert running.steps == 40
    with pytest.raises(BudgetError, match="over"):
        running.step([0, 0])


@KINDS
@pytest.mark.slow
def test_errors_of_sums_and_of_their_differences_are_as_stated(kind):
    """Each figure is off by more than 8 % with a chance below 1e-9: 12 000 draws have a relative error of .0065."""
    steps, many = 23, 12_000
    made = calibrated(kind, horizon=steps, many=many)
    running = made.begin(many)
    released = np.array([np.asarray(running.step(np.full(many, 3)), float) for _ in range(steps)])
    errors = released - 3 * np.arange(1, steps + 1)[:, None]
    assert np.abs(errors.std(axis=1) / made.deviations(np.arange(1, steps + 1)) - 1).max() < 0.08
    for first, last in [(1, 2), (3, 20), (10, 23), (22, 23)]:
        found = (errors[last - 1] - errors[first - 1]).std()
        assert found == pytest.approx(float(made.between([first], [last])[0]), rel=0.08)


@KINDS
def test_a_state_goes_on_after_json(kind):
    made = calibrated(kind, horizon=9, many=3)
    running = made.begin(3)
    for _ in range(4):
        running.step([1, 2, 3])
    state = json.loads(json.dumps(running.state()))
    again = made.resume(state)
    assert again.steps == 4
    assert again.state() == running.state()
    assert again.step([0, 0, 1]).shape == (3,)
    assert again.steps == 5


def test_a_counter_with_buffers_keeps_five_numbers_for_a_year():
    made = BufferedCounter.calibrated(Approx(1, "1e-9"), horizon=366, many=7)
    state = made.begin(7).state()
    assert len(state["buffers"]) + 1 <= 5
    assert made.bits <= 80


@KINDS
@pytest.mark.parametrize("bad", [[1], [1, 2, 3], [0.5, 1.5], ["a", "b"], [None, 1.0]])
def test_a_step_has_a_whole_number_for_each_key(kind, bad):
    running = calibrated(kind, horizon=9, many=2).begin(2)
    with pytest.raises(InputError, match="whole number for each of the 2 keys"):
        running.step(bad)
    assert running.steps == 0


def test_promises_that_cannot_be_kept_are_refused():
    with pytest.raises(InputError, match="need Gaussian noise"):
        BufferedCounter.calibrated(1, horizon=9)
    assert BufferedCounter.calibrated(ZCDP("1/100"), horizon=9).guarantee() <= ZCDP("1/100")
    with pytest.raises(InputError, match=r"2\^40"):
        TreeCounter.calibrated(1, horizon=2**41)
    with pytest.raises(InputError, match="events"):
        Participation(0)


# What one unit moves


@pytest.mark.parametrize("apart", [0, 1, 2, 3])
@pytest.mark.parametrize("events", [1, 2, 3])
def test_no_pattern_of_events_moves_weighted_sums_further(events, apart):
    """All patterns of seven steps: the stated square is reached, up to its rounding."""
    steps, made = 7, best_buffers(7, 2)
    matrix = np.array([np.pad(made.weights(steps), (j, 0))[:steps] for j in range(steps)]).T
    worst = 0.0
    for pattern in itertools.combinations_with_replacement(range(steps), events):
        if apart and any(b - a < apart for a, b in itertools.pairwise(pattern)):
            continue
        worst = max(worst, float((matrix[:, list(pattern)].sum(axis=1) ** 2).sum()))
    stated = made.square(steps, Participation(events, apart))
    assert worst <= stated <= worst * (1 + 1e-6)


@pytest.mark.parametrize("neighbours", list(Neighbours), ids=str)
@pytest.mark.parametrize(("plus", "minus"), [(1, 1), (2, 1), (1, 2)])
def test_events_that_take_away_move_weighted_sums_by_no_more_than_stated(plus, minus, neighbours):
    """All places of all events in four steps, under replace of two units; half of the square would be too little."""
    steps, made = 4, best_buffers(4, 2)
    matrix = np.array([np.pad(made.weights(steps), (j, 0))[:steps] for j in range(steps)]).T
    places = [np.array(p) for p in itertools.product(range(plus + 1), repeat=steps) if sum(p) <= plus]
    gone = [np.array(q) for q in itertools.product(range(minus + 1), repeat=steps) if sum(q) <= minus]
    units = np.array([matrix @ (p - q) for p in places for q in gone])
    if neighbours is Neighbours.REPLACE:
        units = np.unique((units[:, None] - units[None]).reshape(-1, steps).round(9), axis=0)
    worst, who = float((units**2).sum(axis=1).max()), Participation(plus, taken=minus)
    stated = made.square(steps, who) * float(who.replaced(neighbours))
    assert worst <= stated
    assert worst > 0.5 * stated
    tree = TreeCounter.calibrated(1, horizon=4, fan=2, who=who, neighbours=neighbours)
    assert tree.moved.l1 == 2 * (plus + minus) * (1 if neighbours is Neighbours.ADD_REMOVE else 2)


def test_k_times_one_is_more_than_what_events_in_different_steps_move():
    made = best_buffers(365)
    assert made.square(365, Participation(5, apart=7)) < 0.7 * made.square(365, Participation(5))
    assert made.square(2**40, Participation(5, apart=7)) > made.square(365, Participation(5, apart=7))


@KINDS
@pytest.mark.parametrize("neighbours", list(Neighbours), ids=str)
@pytest.mark.parametrize("who", [Participation(), Participation(3), Participation(3, 2)], ids=["one", "three", "apart"])
def test_the_promise_is_kept_and_not_far_from_used_up(kind, neighbours, who):
    spend = SPENDS[kind]
    made = kind.calibrated(spend, horizon=30, who=who, neighbours=neighbours)
    assert made.guarantee() <= spend.restated(neighbours)
    noise, moved = made.parts[0]
    thinner = type(noise)((noise.scale if kind is TreeCounter else noise.sigma) * Fraction(4, 5))
    assert not thinner.guarantee(moved) <= spend.restated(neighbours)


@pytest.mark.slow
@pytest.mark.parametrize("event", [1, 2, 3])
def test_the_law_of_a_tree_of_four_steps_keeps_its_promise(event):
    """All releases of four steps (fan 2, two levels): no ratio exceeds e^epsilon; no sum ends below step 2."""
    made = TreeCounter.calibrated(2, horizon=4, fan=2)
    assert made.levels == 2
    one, two = law_of_tree(made, np.zeros(4, int)), law_of_tree(made, np.eye(4, dtype=int)[event - 1])
    inner = [key for key in one if key in two and one[key] > 1e-5]
    ratios = [abs(math.log(one[key] / two[key])) for key in inner]
    assert max(ratios) <= 2 * (1 + 1e-6)
    assert max(ratios) > (0.9 if event == 2 else 1.9)
    twin = TreeCounter(Geometric(made.noise.scale * Fraction(4, 5)), made.moved, 2, 4)
    one, two = law_of_tree(twin, np.zeros(4, int)), law_of_tree(twin, np.eye(4, dtype=int)[event - 1])
    assert max(abs(math.log(one[key] / two[key])) for key in one if key in two and one[key] > 1e-5) > (
        1.1 if event == 2 else 2.2
    )


def law_of_tree(made, x, far=5):
    """P(releases) for four steps: z are the noises of four steps and of two halves, in the nodes that `digits` uses."""
    chance = {v: float(made.noise.law.pmf(v)) for v in range(-far, far + 1)}
    rows, sums = digits(np.arange(1, 5), 2, 2).tolist(), np.cumsum(x)
    used = set()
    for step, (low, high) in enumerate(rows, 1):
        used |= {("low", step - 1)} if low else set()
        used |= {("high", i) for i in range(high)}
    names, found = sorted(used), {}
    for values in itertools.product(chance, repeat=len(names)):
        z = dict(zip(names, values, strict=True))
        released = tuple(
            int(sums[step]) + (z["low", step] if low else 0) + sum(z["high", i] for i in range(high))
            for step, (low, high) in enumerate(rows)
        )
        found[released] = found.get(released, 0.0) + math.prod(chance[v] for v in values)
    return found


# Noise finer than 64 bits


LANES = Lanes(64, 288)


def unpacked(some, lanes):
    """Numbers of any size, one by one."""
    return [(some.packed >> lane * lanes.width) % (1 << lanes.width) - some.bias for lane in range(lanes.many)]


@pytest.mark.slow
def test_fine_noise_is_gaussian():
    """A goodness-of-fit test of 40 000 draws, at the level of tests.goodness; noise that is 5 % off fails it."""
    lanes = Lanes(40_000, 288)
    draws = lanes.numbers(lanes.dropped(fine_gaussian(Fraction(20), 100, lanes), 100))

    def below(sigma):
        return lambda edges: np.array([0.5 * math.erfc(-e / sigma / math.sqrt(2)) for e in np.atleast_1d(edges)])

    edges = np.arange(-60, 61)
    assert fit(draws, below(20.0), edges) > ALPHA
    assert fit(draws, below(21.0), edges) < ALPHA


def test_fine_noise_fills_all_bits():
    draws = unpacked(fine_gaussian(Fraction(3), 136, LANES), LANES)
    for shift in (0, 8, 60, 100, 130):
        assert len({(z >> shift) & 255 for z in draws}) > 30


@pytest.mark.slow
def test_the_bits_cover_rounding():
    for steps, many in [(1, 1), (365, 100), (2**40, 1)]:
        made = BufferedCounter.calibrated(Approx(1, "1e-9"), horizon=steps, many=many)
        n = len(made.buffers.gaps)
        assert Fraction(steps * (2 * n + 2), 2**made.bits) < Fraction(1, 2**62)


def test_moving_a_sum_by_less_than_a_step_of_its_noise_moves_no_chance_by_more_than_is_charged():
    """P(released = k) is a sum over a window of the noise r, and the window moves by one multiple of 2^-58 at most."""
    law = Geometric(1 << 53).law
    steps = np.array([-(1 << 57), -(1 << 57) + 1, (1 << 57) - 1, 1 << 57, 3 << 57])
    for edge in steps.tolist():
        one, two = law.pmf(edge), law.pmf(edge + 1)
        assert abs(math.log(float(one) / float(two))) <= 2.0**-52


@pytest.mark.parametrize(("steps", "many"), [(1, 1), (60, 1), (60, 7)])
def test_every_number_that_is_rounded_is_charged(steps, many):
    """For m T numbers the chances of neighbours differ by a factor e^(2 m T 2^-53) at most, by the proof; see above."""
    made = BufferedCounter.calibrated(Approx(1, "1e-9"), horizon=steps, many=many)
    _, (noise, moved) = made.parts
    assert noise.guarantee(moved).epsilon >= Fraction(2 * many * steps, 2**53)


def test_rounding_stays_within_its_bound():
    """The same noise through exact fractions: sums in whole units are off by less than T (2 n + 2) of them."""
    made = BufferedCounter.calibrated(Approx(1, "1e-9"), horizon=60)
    tape = unpacked(fine_gaussian(made.sigma, made.bits, LANES), LANES)[:60]
    whole_u, exact_u = [0] * len(made.buffers.gaps), [Fraction(0)] * len(made.buffers.gaps)
    whole_sum, exact_sum, one = 0, Fraction(0), 1 << 64
    for z in tape:
        whole_sum += z - sum((flow * u) >> 64 for flow, u in zip(made.buffers.inflows, whole_u, strict=True))
        exact_sum += z - sum(Fraction(flow, one) * u for flow, u in zip(made.buffers.inflows, exact_u, strict=True))
        whole_u = [u - (gap * u >> 64) + z for gap, u in zip(made.buffers.gaps, whole_u, strict=True)]
        exact_u = [u - Fraction(gap, one) * u + z for gap, u in zip(made.buffers.gaps, exact_u, strict=True)]
    assert 0 < abs(whole_sum - exact_sum) < 60 * (2 * len(whole_u) + 2)


def test_weights_are_rounded_down_and_never_grow():
    c, b = _weights(5000), _inverse(5000)
    k = np.arange(1, 5000)
    real = np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))]) * 2**20
    assert (c <= real).all()
    assert (c > real - 1.01).all()
    assert (np.diff(c) <= 0).all()
    assert np.convolve(c, np.diff(b, prepend=0.0))[:5000] == pytest.approx(np.eye(1, 5000)[0], abs=1e-9)


def test_lanes_compute_as_whole_numbers_do():
    """All of +, -, * and floor on numbers of both signs, against Python's own."""
    lanes = Lanes(40, 224)
    x, y = (np.random.default_rng(seed).integers(-(2**61), 2**61, 40) for seed in (1, 2))
    factor, a, b = 0x9E3779B97F4A7C15, lanes.of(x), lanes.of(y)
    for found, expected in [
        (lanes.plus(a, b), [int(p) + int(q) for p, q in zip(x, y, strict=True)]),
        (lanes.biased(lanes.minus(a, b), 1 << 70), [int(p) - int(q) for p, q in zip(x, y, strict=True)]),
        (lanes.times(a, factor), [int(p) * factor for p in x]),
        (lanes.times(a, 1 << 50), [int(p) << 50 for p in x]),
        (lanes.dropped(lanes.times(a, factor), 64), [int(p) * factor >> 64 for p in x]),
        (lanes.biased(a, 1 << 80), [int(p) for p in x]),
        (read(texts(a)), [int(p) for p in x]),
    ]:
        assert unpacked(found, lanes) == expected
    assert lanes.numbers(a).tolist() == x.tolist()
    assert isinstance(a, Numbers)


def test_a_state_runs_as_exact_fractions_do():
    """Every released number is the exact sum without noise, whatever came: no lane runs over into its neighbour."""
    made = BufferedCounter.calibrated(Approx(1, "1e-9"), horizon=30, many=3)
    quiet = BufferedCounter(Fraction(1, 10**9), made.moved, made.buffers, 30, 3)
    running, total = quiet.begin(3), np.zeros(3, np.int64)
    for step in range(30):
        x = np.array([2**40 * (-1) ** step, -(2**45), 2**30 - step])
        total += x
        assert np.abs(running.step(x) - total).max() <= 1


# Quantiles of bins


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("q", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_intervals_of_quantiles_hold_the_true_bin_as_often_as_they_say(q):
    """Of 4 000 trials at 90 %, fewer than 3 390 hold with a chance below 1e-9, by Hoeffding's inequality."""
    draw, true = np.random.default_rng(11), np.array([5, 0, 30, 40, 0, 25, 60, 3])
    bin_of = int(np.argmax(np.cumsum(true) >= q * true.sum()))
    noisy = true + draw.normal(0, 4.0, (4000, 8))
    found = [quantile_bins(row, 4.0, q, 0.9) for row in noisy]
    held = sum(low <= bin_of <= high for _, low, high in found)
    assert held > 3390
    assert all(low <= at <= high for at, low, high in found)
    narrow = sum(low <= bin_of <= high for _, low, high in (quantile_bins(row, 0.4, q, 0.9) for row in noisy))
    assert narrow < held  # bars of a tenth of the noise hold less often
