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
from noisette.mechanisms import FlippedQuantile, Quantile
from noisette.query.measure import Measure
from noisette.query.rank_tree import RankTree, bars
from noisette.query.ranks import Ranks, ranked, ranks

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
    assert [type(one) for one in found] == [Ranks, Ranks, RankTree]


def test_a_quantile_far_to_one_side_is_read_off_a_tree():
    """Drawn by ranks it needs t rows beyond it, so ten times as many in all where it is the ninth decile."""
    assert [type(one) for one in made([Fraction(9, 10)], nz.Pure(1))] == [RankTree]


@pytest.mark.parametrize("reach", [ONE, nz.sensitivity.histogram(neighbours=REPLACE).scaled(3)], ids=["one", "three"])
@pytest.mark.parametrize("share", [nz.Pure("1/7"), nz.ZCDP("1/50"), nz.Approx("1/7", "1e-6")], ids=str)
@pytest.mark.parametrize("at", [[HALF], QUARTILES, DECILES], ids=len)
def test_the_shares_are_kept_and_used_up(at, share, reach):
    costs = [m.guarantee(one.moved(reach)) for one in made(at, share, reach=reach) for m in one.mechanisms]
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


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("level", [0.5, 0.9])
@pytest.mark.parametrize("q", [HALF, Fraction(1, 5)], ids=str)
@pytest.mark.parametrize("kind", [Quantile, FlippedQuantile])
def test_one_quantile_is_off_by_no_more_than_stated(kind, q, level):
    one = Ranks((kind(2, q=q, cells=4, shift=-1), kind(2, q=q, cells=4, shift=1)))
    for counts in tables(4, 6):
        laws = [law_of(end, counts) for end in one.ends]
        assert off_by_more(counts, q, laws, one.rank_error(level)) <= 1 - level


def law_of(end, counts):
    return end.pmf(range(4), counts) if isinstance(end, Quantile) else [end.outcomes(counts)[cell] for cell in range(4)]


def off_by_more(counts, q, laws, t):
    """P(the cell halfway between two independent draws is off by more than t)."""
    pairs = itertools.product(range(4), range(4))
    return math.fsum(laws[0][a] * laws[1][b] for a, b in pairs if distance(counts, q, round((a + b) / 2)) > t)


def test_low_levels_leave_a_shorter_bar():
    shifts = [ranks(histogram(), HALF, nz.Pure(1), ONE, level).ends[1].shift for level in (0.3, 0.95, 0.999)]
    assert 0 < shifts[0] < shifts[1] < shifts[2]
    assert ranks(histogram(), HALF, nz.Pure(1), ONE, 0.95).ends[0].shift == -shifts[1]


# Bars


def missed(one, counts, level):
    """The exact probability that a bar does not hold the cell of its quantile, the lower one if there are two."""
    q, laws = one.at[0], [law_of(end, counts) for end in one.ends]
    truth = next(cell for cell in range(len(counts)) if counts[: cell + 1].sum() >= q * counts.sum())
    pairs = itertools.product(range(len(counts)), repeat=2)
    return math.fsum(laws[0][a] * laws[1][b] for a, b in pairs if not min(a, b) <= truth <= max(a, b))


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("share", [nz.Pure(12), nz.ZCDP(12)], ids=str)
@pytest.mark.parametrize("q", [HALF, Fraction(1, 4)], ids=str)
@pytest.mark.parametrize("level", [0.9, 0.99])
def test_bars_hold_whatever_the_values_are_if_there_are_rows_enough(share, q, level):
    """All tables of four cells, ties and gaps too; exact. Ends at a third of the distance miss too often."""
    one = ranks(histogram(4), q, share, ONE, level)
    enough = [counts for counts in tables(4, one.rows + 2) if counts.sum() >= one.rows]
    assert 1 < one.rows < 12
    assert max(missed(one, counts, level) for counts in enough) <= 1 - level
    nearer = Ranks(tuple(replace(end, shift=end.shift / 3) for end in one.ends))
    assert max(missed(nearer, counts, level) for counts in enough) > 1 - level


def test_fewer_rows_than_a_bar_rests_on_are_not_enough():
    """Which is why a noisy number of rows vouches for it."""
    one = ranks(histogram(4), HALF, nz.Pure("1/2"), ONE, 0.9)
    assert max(missed(one, counts, 0.9) for counts in tables(4, 4) if counts.sum()) > 0.5


def missed_at_an_end(one, counts):
    """The exact probability that the bar of a least or largest value, from what is drawn to the bound, misses it."""
    held, (end,) = np.flatnonzero(counts), one.ends
    law = law_of(end, counts)
    return math.fsum(law[: held[0]]) if end.q == 0 else math.fsum(law[held[-1] + 1 :])


@pytest.mark.parametrize("share", [nz.Pure(6), nz.ZCDP(6)], ids=str)
@pytest.mark.parametrize("q", [0, 1])
def test_bars_of_the_least_and_the_largest_value_hold_if_there_are_rows_enough(share, q):
    """All tables of four cells; exact. A draw that aims at half of the rank misses too often."""
    one = ranks(histogram(4), Fraction(q), share, ONE, 0.9)
    enough = [counts for counts in tables(4, one.rows + 2) if counts.sum() >= one.rows]
    assert 1 <= one.rows < 12
    assert max(missed_at_an_end(one, counts) for counts in enough) <= 0.1
    nearer = Ranks(tuple(replace(end, shift=end.shift / 2) for end in one.ends))
    assert max(missed_at_an_end(nearer, counts) for counts in enough) > 0.1


def test_a_cell_stands_for_all_values_that_are_rounded_to_it():
    """Its bar spans them, as far as there are any; whole numbers are themselves."""
    at = np.array([0.0, 3.0, 8.0])
    value, low, high = bars(at, at, at, Measure("histogram", grid=Fraction(1, 4), low=0, high=8))
    assert [value.tolist(), low.tolist(), high.tolist()] == [[0, 0.75, 2], [0, 0.625, 1.875], [0.125, 0.875, 2]]
    assert all(end.tolist() == at.tolist() for end in bars(at, at, at, histogram(9)))


CELLS, TIMES = 4096, 1500


@pytest.mark.slow
def test_how_wide_bars_are():
    """Two values in each cell, G = epsilon = 1/16: each end aims as far away as its rank error at the level."""
    one, counts = ranks(histogram(CELLS), HALF, nz.Pure("1/16"), ONE, 0.95), np.full((TIMES, CELLS), 2)
    t = float(one.ends[1].shift)
    assert t == pytest.approx(replace(one.ends[1], cells=CELLS // 2 + 1).rank_error(0.975), rel=1e-3)
    _, low, high = one.draw(counts, histogram(CELLS), SYSTEM)
    assert np.mean(high - low) / 2 == pytest.approx(t / 2, rel=0.07)


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
    noise = "Gaussian" if isinstance(spend, nz.ZCDP) else "Geometric"
    assert {part["mechanism"] for part in record if part["measure"] == "histogram"} == {"Quantile", noise}
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
    part["scale"] = str(Fraction(part["scale"]) * Fraction(9, 10))
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


def test_explaining_says_how_many_ranks_and_from_how_many_rows_on_there_is_an_answer():
    asked = curator()
    few = asked.explain("SELECT median(age) AS m FROM t", spend=1).answers[0][0]
    many = asked.explain(f"SELECT {', '.join(LISTED)} FROM t", spend=1).answers[0]
    assert "permute and flip" in few.mechanism
    assert "groups of fewer than about 85 rows have no answer" in few.assumes
    assert {column.mechanism for column in many} == {"Geometric noise on a tree of counts, 9 quantiles together"}
    assert not any(column.assumes for column in many)
    apart = [ranks(histogram(101), q, nz.Pure("1/9"), ONE, 0.95).rank_error(0.95) for q in DECILES]
    assert few.ranks < min(column.ranks for column in many)
    assert many[4].ranks < 0.7 * apart[4]


@pytest.mark.parametrize(("rows", "most"), [(3, 0.01), (400, 1.0)])
def test_a_median_of_too_few_rows_has_no_answer(rows, most):
    """Of 400 groups alike: more than 1 % of them has a chance below 1e-12 where one in 400 is told by mistake."""
    keys = [f"k{i:03}" for i in range(400)]
    column = {"keys": keys, "nullable": False}
    policy = {"tables": {"t": {"columns": {"k": column, "x": {"bounds": [0, 100], "nullable": False}}}}}
    table = pyarrow.table({"k": np.repeat(keys, rows), "x": np.tile(np.arange(rows) % 50, 400)})
    release = nz.open({"t": table}, budget=9, policy=policy).sql("SELECT k, median(x) AS m FROM t GROUP BY k", spend=1)
    answered = [row for row in release.rows() if row["m"] is not None]
    assert len(answered) <= most * 400
    assert all(row["m_low"] <= row["m"] <= row["m_high"] for row in answered)
    assert bool(release.warnings) == (len(answered) < 400)


@pytest.mark.slow
def test_a_frame_asks_for_the_same():
    asked = curator()
    texts = dict(reversed(text.split(" AS ")) for text in LISTED)
    release = asked.sql(f"SELECT {', '.join(LISTED)} FROM t", spend=2)
    left = repr(asked.budget)
    again = asked.table("t").agg(**texts).release(spend=2)
    assert repr(asked.budget) == left
    assert [again[name].values for name in texts] == [release[name].values for name in texts]
