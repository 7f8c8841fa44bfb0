"""Shares of a total: OVER () adds up released groups, and its bars know that a group is part of its total."""

import numpy as np
import pytest
from tests.query.simulated import SCHEMA

from noisette.curator.demo import hospital
from noisette.errors import InputError
from noisette.query.canonical import canonical_text
from noisette.query.estimate import Estimate, Noise, Others
from noisette.query.sql import parse
from noisette.query.sql.writer import query_sql

TIMES = 4000
SIZES = np.array([10.0, 30.0, 60.0, 100.0, 300.0])


def shares(scale, *, apart=False):
    """Shares of noisy counts, groups x times, with both ends of their bars; `apart` forgets what both share."""
    chance = np.random.default_rng(5)
    counts = np.repeat(SIZES, TIMES) + np.rint(chance.laplace(0, scale, len(SIZES) * TIMES))
    places = np.tile(np.arange(TIMES), len(SIZES))
    n = Estimate.measured("n", counts)
    total = n.total(places, np.ones(len(counts), bool))
    if apart:
        total = Estimate(total.value, {Others("n"): total.slopes[Others("n")], Others("own"): total.slopes["n"]})
    noise = Noise(scale * np.sqrt(2), scale * np.log(20), 1.959964, whole=True)
    share = n.over(total)
    ends = share.interval(dict.fromkeys(("n", Others("n"), Others("own")), noise))
    return [part.reshape(len(SIZES), TIMES) for part in (share.value, *ends)]


@pytest.mark.parametrize("scale", [1, 5, 20])
def test_bars_of_shares_are_honest(scale):
    """The share of right bars that hold has a deviation of 0.35 %: 92.5 % is seven of them below."""
    value, low, high = shares(scale)
    truth = (SIZES / SIZES.sum())[:, None]
    found = ((low <= truth) & (truth <= high)).mean(axis=1)
    assert (found > 0.925).all(), found
    assert np.allclose(value.sum(axis=0), 1)
    if scale == 5:
        assert (found < 0.985).all(), found


def test_a_share_of_a_total_that_forgets_its_part_is_noticed():
    """The largest group moves its total along, so its share errs by less than a quotient of independent numbers."""
    right, wrong = (shares(5, apart=apart) for apart in (False, True))
    assert np.median(wrong[2][-1] - wrong[1][-1]) > 1.2 * np.median(right[2][-1] - right[1][-1])


NAMES = {"ward": "ward", "old": "age"}
ASKED = "SELECT ward, age > 50 AS old, count(*) AS n, {} AS y FROM visits GROUP BY ward, old"


def asked(output, having=""):
    return hospital().sql(ASKED.format(output) + having, spend=2)


@pytest.mark.parametrize("key", ["", "ward", "age > 50", "age > 50, ward"])
def test_totals_are_of_the_groups_with_the_same_keys(key):
    release = asked(f"sum(count(*)) OVER ({f'PARTITION BY {key}' if key else ''})")
    rows = release.rows()
    for row in rows:
        mine = [other["n"] for other in rows if all(other[name] == row[name] for name in NAMES if NAMES[name] in key)]
        assert row["y"] == sum(mine)


def test_having_decides_what_is_added_up():
    release = asked("count(*) / sum(count(*)) OVER ()", " HAVING count(*) > 2000")
    assert 1 < len(release) < 12
    assert sum(release["y"].values.to_pylist()) == pytest.approx(1)


def test_a_share_costs_nothing_more_and_lies_between_0_and_1():
    data = hospital()
    plain, shared = (
        data.sql(f"SELECT ward, {output} AS y FROM visits GROUP BY ward", spend="0.01")
        for output in ("count(*)", "100.0 * count(*) / sum(count(*)) OVER ()")
    )
    assert len(data.budget.entries) == 1  # it is made of what was released before
    numbers = np.array(plain["y"].values.to_pylist(), dtype=float)
    shares = np.clip(100 * numbers / numbers.sum(), 0, 100)  # a share has ends of its own, a number of rows has none
    assert shared["y"].values.to_numpy() == pytest.approx(shares)
    assert (shared["y"].low >= 0).all()
    assert (shared["y"].high <= 100).all()


def test_signed_sums_have_no_such_bounds():
    release = hospital().sql(
        "SELECT ward, sum(age - 50) / sum(sum(age - 50)) OVER () AS y FROM visits GROUP BY ward", spend="0.0001"
    )
    assert not np.isfinite(release["y"].high).all()


def test_texts_are_read_back():
    text = "SELECT g, COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY g) AS y, SUM(SUM(k)) OVER () AS t FROM t GROUP BY g"
    query = parse(text, SCHEMA)
    again = parse(query_sql(query), SCHEMA)
    assert again.outputs == query.outputs
    assert canonical_text(query) == canonical_text(parse("SELECT g, COUNT(*), SUM(k) FROM t GROUP BY g", SCHEMA))


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("sum(k) OVER ()", "A window looks at rows"),
        ("count(*) OVER ()", "A window looks at rows"),
        ("sum(avg(k)) OVER ()", "Only counts and sums"),
        ("sum(median(k)) OVER ()", "Only counts and sums"),
        ("sum(count(*)) OVER (PARTITION BY k)", "GROUP BY"),
        ("sum(count(*)) OVER (ORDER BY g)", "without ORDER BY"),
        ("sum(count(*)) OVER (ROWS 1 PRECEDING)", "A window looks at rows"),
        ("rank() OVER (PARTITION BY g)", "in place of a rank"),
    ],
)
def test_other_windows_are_refused(output, words):
    with pytest.raises(InputError, match=words):
        parse(f"SELECT g, {output} AS y FROM t GROUP BY g", SCHEMA)


def test_having_with_a_window_is_refused():
    text = "SELECT g, COUNT(*) / SUM(COUNT(*)) OVER () AS y FROM t GROUP BY g HAVING {} > 0.1"
    for condition in ("y", "COUNT(*) / SUM(COUNT(*)) OVER ()"):
        with pytest.raises(InputError, match="cannot use OVER"):
            parse(text.format(condition), SCHEMA)
