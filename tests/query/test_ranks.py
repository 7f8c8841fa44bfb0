"""Quantiles with error bars: which mechanism draws them, how far they are off, and what their bars hold."""

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow
import pytest

import noisette as nz
from noisette.answers import check
from noisette.errors import PrivacyError
from noisette.exact.random import SYSTEM
from noisette.mechanisms import FlippedQuantile, Quantile, Quantiles
from noisette.query import ranks as module
from noisette.query.measure import Measure
from noisette.query.ranks import Ranks, RanksTogether, ranked, ranks

ADD_REMOVE, REPLACE = nz.Neighbours
ONE = nz.sensitivity.histogram(neighbours=ADD_REMOVE)
HALF = Fraction(1, 2)
DECILES = [Fraction(i, 10) for i in range(1, 10)]
QUARTILES = [Fraction(i, 4) for i in (1, 2, 3)]


def histogram(cells=100):
    return Measure("histogram", low=0, high=cells - 1)


def made(at, share, *, cells=100, reach=ONE, level=0.95):
    return ranked(histogram(cells), at, share, reach, level)


# Which mechanisms


@pytest.mark.parametrize("share", [nz.Pure(1), nz.Approx(1, "1e-6")], ids=str)
def test_one_or_two_quantiles_are_drawn_by_permute_and_flip_where_an_epsilon_is_kept(share):
    for at in ([HALF], QUARTILES[:2]):
        found = made(at, share)
        assert [one.at for one in found] == [(q,) for q in at]
        assert {type(m) for one in found for m in one.mechanisms} == {FlippedQuantile}
        assert all("permute and flip" in one.description for one in found)


def test_a_rho_has_the_exponential_mechanism():
    (one,) = made([HALF], nz.ZCDP("0.1"))
    assert {type(m) for m in one.mechanisms} == {Quantile}
    assert "exponential" in one.description


@pytest.mark.parametrize("cells", [2, 3, 5, 20, 300, 4000])
def test_the_one_that_is_off_less_is_taken(cells):
    (one,) = made([HALF], nz.Pure(1), cells=cells)
    half, t = nz.Pure(HALF), one.ends[1].shift
    others = [kind.calibrated(half, ONE, q=HALF, cells=cells, shift=t) for kind in (Quantile, FlippedQuantile)]
    assert one.ends[1].rank_error(0.95) <= min(other.rank_error(0.95) for other in others) * (1 + 1e-6)


def test_the_least_and_the_largest_have_draws_of_their_own():
    found = made([Fraction(1), *QUARTILES, Fraction(0)], nz.Pure(1))
    assert [one.at for one in found] == [(0,), (1,), tuple(QUARTILES)]
    assert [len(one.mechanisms) for one in found] == [1, 1, 2]


@pytest.mark.parametrize("share", [nz.Pure("1/9"), nz.ZCDP("1/90")], ids=str)
@pytest.mark.parametrize("at", [QUARTILES, DECILES, [Fraction(i, 21) for i in range(1, 21)]], ids=len)
def test_many_quantiles_are_drawn_together_and_err_less(share, at):
    (one,) = made(at, share)
    assert isinstance(one, RanksTogether)
    deviations = np.sqrt(2 * (one.high.scales() ** 2).sum(axis=1))
    alone = [math.sqrt(2) / ranks(histogram(), q, share, ONE, 0.95).ends[0].rate for q in at]
    assert np.log(deviations).sum() < np.log(alone).sum()


def test_nine_deciles_err_by_less_than_half():
    """Four levels instead of nine parts; in standard deviations, each inherits some of those before."""
    (one,) = made(DECILES, nz.Pure("1/9"))
    deviations = np.sqrt(2 * (one.high.scales() ** 2).sum(axis=1))
    alone = [math.sqrt(2) / ranks(histogram(), q, nz.Pure("1/9"), ONE, 0.95).ends[0].rate for q in DECILES]
    assert np.exp(np.log(alone).mean() - np.log(deviations).mean()) == pytest.approx(9 / 4, rel=0.1)


def test_quantiles_that_would_err_more_together_are_drawn_apart():
    """Under replace a rho knows more about one quantile than about a set; and these lie far to one side."""
    at = [Fraction(i, 1000) for i in (900, 950, 999)]
    found = made(at, nz.ZCDP("0.1"), reach=nz.sensitivity.histogram(neighbours=REPLACE))
    assert [type(one) for one in found] == [Ranks] * 3


@pytest.mark.parametrize("reach", [ONE, nz.sensitivity.histogram(neighbours=REPLACE).scaled(3)], ids=["one", "three"])
@pytest.mark.parametrize("share", [nz.Pure("1/7"), nz.ZCDP("1/50"), nz.Approx("1/7", "1e-6")], ids=str)
@pytest.mark.parametrize("at", [[HALF], QUARTILES, DECILES], ids=len)
def test_the_shares_are_kept_and_used_up(at, share, reach):
    costs = [m.guarantee(reach) for one in made(at, share, reach=reach) for m in one.mechanisms]
    total = sum(costs[1:], costs[0])

    def all_shares(part):
        size = part * len(at)
        return nz.ZCDP(share.rho * size) if isinstance(share, nz.ZCDP) else nz.Pure(share.epsilon * size)

    assert total <= all_shares(1)
    assert not total <= all_shares(Fraction(49, 50))


# How far they are off


def tables(cells, most):
    for n in range(most + 1):
        for values in itertools.combinations_with_replacement(range(cells), n):
            yield np.bincount(np.array(values, int), minlength=cells)


def distance(counts, q, cell):
    upto, target = [0, *np.cumsum(counts).tolist()], q * int(counts.sum())
    return max(upto[cell] - target, target - upto[cell + 1], 0)


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.5, 0.9])
@pytest.mark.parametrize("at", [("1/4", "1/2", "3/4"), ("1/10", "1/5", "9/10")])
def test_quantiles_together_are_off_by_no_more_than_stated(at, level):
    low, high = (Quantiles(12, at=at, cells=4, ties=6, shift=shift) for shift in (-HALF, HALF))
    one = RanksTogether(low, high)
    for counts in tables(4, 6):
        for j, q in enumerate(low.at):
            t, laws = one.rank_error(level, q), [marginal(m.outcomes(counts), j) for m in (low, high)]
            if counts.max() <= t:
                assert off_by_more(counts, q, laws, t) <= 1 - level


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("level", [0.5, 0.9])
@pytest.mark.parametrize("q", [HALF, Fraction(1, 5)], ids=str)
@pytest.mark.parametrize("kind", [Quantile, FlippedQuantile])
def test_one_quantile_is_off_by_no_more_than_stated(kind, q, level):
    one = Ranks((kind(2, q=q, cells=4, shift=-1), kind(2, q=q, cells=4, shift=1)))
    for counts in tables(4, 6):
        laws = [law_of(end, counts) for end in one.ends]
        assert off_by_more(counts, q, laws, one.rank_error(level)) <= 1 - level


def marginal(law, j):
    return [math.fsum(p for y, p in law.items() if y[j] == cell) for cell in range(4)]


def law_of(end, counts):
    return end.pmf(range(4), counts) if isinstance(end, Quantile) else [end.outcomes(counts)[cell] for cell in range(4)]


def off_by_more(counts, q, laws, t):
    """P(the cell halfway between two independent draws is off by more than t)."""
    pairs = itertools.product(range(4), range(4))
    return math.fsum(laws[0][a] * laws[1][b] for a, b in pairs if distance(counts, q, round((a + b) / 2)) > t)


@pytest.mark.slow
def test_what_is_stated_of_quantiles_together_holds_where_most_cells_are_empty():
    """The values of 400 rows are in 20 of 2,000 cells, the others compete with these: no bar for even values holds."""
    counts = np.zeros(2000, np.int64)
    counts[1000:1020] = 20
    (one,) = made(DECILES, nz.Pure("1/9"), cells=2000)
    cells, _, _ = one.draw(np.repeat(counts[None], 150, axis=0), histogram(2000), SYSTEM)
    off = [[distance(counts, q, int(y)) for y in cells[j]] for j, q in enumerate(DECILES)]
    for j, q in enumerate(DECILES):
        assert np.mean(np.array(off[j]) > one.rank_error(0.5, q)) < 0.5


def by_quadrature(scales, t):
    """P(|sum of Laplace noises| > t), from the characteristic function."""
    u = (np.arange(2_000_000) + 0.5) * 0.002
    density = np.prod([1 / (1 + (b * u) ** 2) for b in scales], axis=0)
    return 1 - 2 / math.pi * math.fsum(np.sin(u * t) / u * density * 0.002)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("scales", [(1.0,), (1.0, 0.5), (0.3, 0.7, 1.0), (0.2, 0.5, 0.8, 1.0)], ids=str)
@pytest.mark.parametrize("chance", [0.5, 0.1, 0.01])
def test_tails_of_sums_of_laplace_noise(scales, chance):
    t = module._beyond(np.array(scales), chance)
    assert by_quadrature(scales, t) == pytest.approx(chance, rel=1e-3)


@pytest.mark.slow
def test_tails_of_equal_scales_are_a_little_larger():
    t = module._beyond(np.array([1.0, 1.0, 1.0, 0.0]), 0.1)
    assert 0.09 < by_quadrature((1, 1, 1), t) <= 0.1


def test_tails_of_sums_of_exponential_noise():
    t = module._beyond(np.array([0.5, 1.0]), 0.05, one_sided=True)  # P(> t) = 2 e^-t - e^-2t
    assert 2 * math.exp(-t) - math.exp(-2 * t) == pytest.approx(0.05, rel=1e-6)


def test_low_levels_leave_a_narrow_bar():
    (one,) = made(DECILES, nz.Pure(1), level=0.3)
    assert all(0 < shift < 1 for shift in one.high.shift)
    assert one.low.shift == tuple(-shift for shift in one.high.shift)


# Bars

CELLS, TIMES = 4096, 1500
EDGE = 0.905
"""A bar that holds the quantile with 95 % does so in fewer of 1,500 with a chance below 1e-11 (binomial law).

The thirty quantiles below are below it with a chance below 1e-9 together.
"""


def rows(name, size=8000):
    chance = np.random.default_rng(5)
    values = {
        "even": chance.uniform(0, 1, size),
        "normal": chance.normal(0.5, 0.15, size),
        "skewed": chance.lognormal(-1.5, 0.5, size),
        "clusters": chance.choice([0.1, 0.3, 0.5, 0.7], size, p=[0.2, 0.1, 0.4, 0.3]) + chance.uniform(0, 0.1, size),
        "atoms": np.round(chance.normal(0.5, 0.15, size), 1),
        "some atoms": np.where(chance.random(size) < 0.3, 0.4, chance.uniform(0, 1, size)),
    }[name]
    return np.clip(values * CELLS, 0, CELLS - 1).astype(int)


def drawn(one, name, times=TIMES):
    """The true quantiles, and values and bars; groups are releases of the same values."""
    cells = rows(name)
    truth = np.quantile(cells, [float(q) for q in one.at], method="inverted_cdf")[:, None]
    counts = np.repeat(np.bincount(cells, minlength=CELLS)[None], times, axis=0)
    return truth, *map(np.atleast_2d, one.draw(counts, histogram(CELLS), SYSTEM))


def coverage(one, name):
    """The share of error bars that hold the true quantile, for each of them."""
    truth, _, low, high = drawn(one, name)
    return ((low <= truth) & (truth <= high)).mean(axis=1)


def halved(one):
    """The broken twin: ends at half the distance."""
    ends = [
        replace(end, shift=[t / 2 for t in end.shift] if isinstance(end, Quantiles) else end.shift / 2)
        for end in one.mechanisms
    ]
    return RanksTogether(*ends) if isinstance(one, RanksTogether) else Ranks(tuple(ends))


def median(share):
    return ranks(histogram(CELLS), HALF, share, ONE, 0.95)


def test_the_edge_is_what_is_said_of_it():
    least = math.ceil(EDGE * TIMES)
    logs = [math.lgamma(TIMES + 1) - math.lgamma(k + 1) - math.lgamma(TIMES - k + 1) for k in range(least)]
    below = [math.exp(c + k * math.log(0.95) + (TIMES - k) * math.log(0.05)) for k, c in enumerate(logs)]
    assert math.fsum(below) < 1e-9 / 30


@pytest.mark.slow
@pytest.mark.parametrize("share", [nz.Pure("1/4"), nz.ZCDP("1/200")], ids=str)
@pytest.mark.parametrize("name", ["even", "normal", "skewed", "clusters", "atoms", "some atoms"])
def test_error_bars_of_medians_hold_them(name, share):
    assert coverage(median(share), name).min() >= EDGE


@pytest.mark.slow
@pytest.mark.parametrize(("name", "at"), [("skewed", DECILES), ("even", QUARTILES), ("normal", QUARTILES)])
def test_error_bars_of_quantiles_together_hold_them(name, at):
    (one,) = made(at, nz.Pure(Fraction(1, 4 * len(at))), cells=CELLS)
    assert isinstance(one, RanksTogether)
    assert coverage(one, name).min() >= EDGE


@pytest.mark.slow
@pytest.mark.parametrize("together", [False, True])
def test_bars_at_half_the_distance_do_not(together):
    one = made(QUARTILES, nz.Pure("1/12"), cells=CELLS)[0] if together else median(nz.Pure("1/4"))
    assert coverage(halved(one), "even").max() < EDGE


@pytest.mark.slow
def test_how_wide_bars_are():
    """Two values in each cell, G = epsilon = 1/16: t = 2 ln(20)/G, and 95 % of errors are below t/1.45.

    Half a sum of two Laplace noises of scale 2/G is above s with e^(-s G) (1 + s G/2), which is 5 % at s G = 4.11. Its
    quantile among 4,000 has a standard deviation of 2 %, and 6.1 of these have a chance of 1e-9.
    """
    t, counts = 2 * math.log(20) * 16 / 2, np.full((4000, CELLS), 2)
    value, low, high = median(nz.Pure("1/16")).draw(counts, histogram(CELLS), SYSTEM)
    half, error = np.mean(high - low) / 2, np.quantile(np.abs(value - (CELLS - 1) / 2), 0.95)
    assert half == pytest.approx(t, rel=0.07)
    assert half / error == pytest.approx(1.45, rel=0.13)


@pytest.mark.slow
@pytest.mark.parametrize("beside", ["a gap", "few rows"])
def test_what_bars_take_for_granted_matters_and_ranks_do_not_need_it(beside):
    """A quantile beside a wide gap, or with fewer rows above than its bar needs, is missed by more than 20 % of bars.

    The standard deviation is at most 1.6 % among 1,000; more than half are missed. The ranks hold with 95 %.
    """
    counts, q = np.zeros(CELLS, np.int64), HALF if beside == "a gap" else Fraction(9, 10)
    counts[1000:1100], counts[3000:3100] = (40, 40) if beside == "a gap" else (3, 0)
    counts[1000] += 20 * (beside == "a gap")  # the target is 10 ranks below it
    one = ranks(histogram(CELLS), q, nz.Pure("1/4"), ONE, 0.95)
    value, low, high = one.draw(np.repeat(counts[None], 1000, axis=0), histogram(CELLS), SYSTEM)
    truth = np.searchsorted(np.cumsum(counts), float(q * int(counts.sum())))
    missed = np.mean((truth < low) | (high < truth))
    assert missed > 0.2
    assert np.mean([distance(counts, q, int(y)) > one.rank_error(0.95) for y in value]) < 0.1


def test_no_groups_have_no_quantiles():
    for at in ([HALF], DECILES):
        (one,) = made(at, nz.Pure(1))
        assert [np.atleast_2d(end).shape for end in one.draw(np.zeros((0, 100), int), histogram(), SYSTEM)] == [
            (len(at), 0)
        ] * 3


# Through the curator

SIZE = 3000
TABLE = pyarrow.table(
    {"p": np.arange(SIZE), "g": np.arange(SIZE) % 2, "age": np.arange(SIZE) % 90, "cost": np.arange(SIZE) % 251 / 4}
)
RULES = {
    "unit": "p",
    "rows": 1,
    "columns": {
        "age": {"bounds": [0, 100], "nullable": False},
        "cost": {"bounds": [0, 64], "nullable": False},
        "g": {"bounds": [0, 1], "nullable": False},
    },
}
LISTED = [f"QUANTILE(age, 0.{i}) AS d{i}" for i in range(1, 10)]
SPENDS = [nz.Pure(2), nz.Approx(2, "1e-6"), nz.ZCDP("1/2")]


def curator():
    return nz.open({"t": TABLE}, budget=nz.Approx(100, "1e-3"), policy={"tables": {"t": RULES}})


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("spend", SPENDS, ids=str)
def test_deciles_are_told_recorded_and_free_again_in_any_order(spend):
    asked = curator()
    release = asked.sql(f"SELECT {', '.join(LISTED)}, min(age) AS least, count(*) AS n FROM t", spend=spend)
    assert release.guarantee <= spend
    record = json.loads(release.to_json())["mechanisms"]
    assert sorted(part["mechanism"] for part in record if part["measure"] == "histogram") == [
        *["Quantile"],
        *["Quantiles"] * 2,
    ]
    assert repr(check(release.to_json())) == repr(release.guarantee)
    left = repr(asked.budget)
    again = asked.sql(f"SELECT count(*) AS n, min(age) AS least, {', '.join(LISTED[::-1])} FROM t", spend=spend)
    assert repr(asked.budget) == left
    for name in (f"d{i}" for i in range(1, 10)):
        assert again[name].values.to_pylist() == release[name].values.to_pylist()
        assert again[name].low.tolist() == release[name].low.tolist()
        assert again[name].low <= again[name].values.to_numpy() <= again[name].high
    values = [release[f"d{i}"].values[0].as_py() for i in range(1, 10)]
    assert values == sorted(values)
    assert max(abs(v - 9 * i) for i, v in enumerate(values, 1)) < 12


def test_a_record_with_less_noise_than_claimed_is_found_out():
    release = curator().sql(f"SELECT {', '.join(LISTED)} FROM t", spend=1)
    record = json.loads(release.to_json())
    assert check(json.dumps(record)) <= nz.Pure(1, neighbours=ADD_REMOVE)
    part = record["mechanisms"][0]["parameters"]
    part["epsilon"] = str(Fraction(part["epsilon"]) * Fraction(11, 10))
    with pytest.raises(PrivacyError, match="claims more"):
        check(json.dumps(record))


def test_groups_and_several_columns():
    release = curator().sql(
        f"SELECT g, {', '.join(LISTED[1::3])}, median(cost) AS m, max(cost) AS most FROM t GROUP BY g ORDER BY g",
        spend=20,
    )
    assert release["d5"].values.to_pylist() == pytest.approx([45, 45], abs=4)
    assert release["d8"].values.to_pylist() == pytest.approx([72, 72], abs=4)
    assert release["m"].values.to_pylist() == pytest.approx([31.25, 31.25], abs=3)
    assert release["most"].values.to_pylist() == pytest.approx([62.5, 62.5], abs=6)


def test_explaining_says_how_many_ranks_and_what_that_takes_for_granted():
    asked = curator()
    few = asked.explain("SELECT median(age) AS m FROM t", spend=1).answers[0][0]
    many = asked.explain(f"SELECT {', '.join(LISTED)} FROM t", spend=1).answers[0]
    assert "permute and flip" in few.mechanism
    assert "share a value" not in few.assumes
    assert "needs 6 rows on each side of the quantile, without wide gaps" in few.assumes  # 2 ln(20) = 5.99
    assert {column.mechanism for column in many} == {"exponential mechanism on ranks, 9 quantiles together"}
    assert all("no more rows than these ranks share a value" in column.assumes for column in many)
    apart = [ranks(histogram(101), q, nz.Pure("1/9"), ONE, 0.95).rank_error(0.95) for q in DECILES]
    assert few.ranks < min(column.ranks for column in many)
    assert many[4].ranks < 0.7 * apart[4]


@pytest.mark.slow
def test_a_frame_asks_for_the_same():
    asked = curator()
    texts = dict(reversed(text.split(" AS ")) for text in LISTED)
    release = asked.sql(f"SELECT {', '.join(LISTED)} FROM t", spend=2)
    left = repr(asked.budget)
    again = asked.table("t").agg(**texts).release(spend=2)
    assert repr(asked.budget) == left
    assert [again[name].values for name in texts] == [release[name].values for name in texts]
