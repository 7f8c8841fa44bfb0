"""Histogram and Ranges: cells of every type, odd values, answers from one release, and what is refused."""

import datetime
import math

import numpy as np
import pyarrow
import pytest

import noisette as nz
from noisette.errors import InputError
from noisette.releases.axis import Axis

DAY = datetime.date(2024, 1, 1)
POLICY = {
    "tables": {
        "t": {
            "unit": "u",
            "rows": 3,
            "columns": {
                "age": {"bounds": [0, 99]},
                "cost": {"bounds": [0, "10.5"]},
                "day": {"bounds": [DAY, DAY.replace(month=12)]},
                "seen": {"bounds": [datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 31)]},
                "ward": {"keys": ["a", "b", "c"]},
                "alive": {},
                "free": {},
            },
        }
    }
}
N = 3000


def rows():
    rng = np.random.default_rng(3)
    age = rng.integers(0, 100, N)
    return pyarrow.table(
        {
            "u": np.arange(N),
            "age": pyarrow.array([None if i % 50 == 0 else int(a) for i, a in enumerate(age)]),
            "cost": [
                math.nan if i % 40 == 0 else math.inf if i % 41 == 0 else float(a) / 10 for i, a in enumerate(age)
            ],
            "day": [DAY + datetime.timedelta(days=int(a)) for a in age],
            "seen": [datetime.datetime(2024, 1, 1) + datetime.timedelta(hours=int(a)) for a in age],
            "ward": [("a", "b", "zz", None)[a % 4] for a in age],
            "alive": [bool(a % 2) for a in age],
            "free": age,
        }
    )


TABLE = rows()
HUGE = 10**6  # an epsilon with hardly any noise


def curator(**more):
    return nz.open({"t": TABLE}, policy=POLICY, budget=nz.Approx(10**6, "1e-2"), **more)


def exact(name, keep=lambda v: True):
    return [v for v in TABLE.column(name).to_pylist() if v is not None and keep(v)]


@pytest.mark.parametrize("question", [nz.Histogram, nz.Ranges])
@pytest.mark.parametrize("column", ["age", "day", "seen", "alive", "ward"])
def test_with_hardly_any_noise_counts_are_those_of_the_table(question, column):
    answer = curator().ask(question(column), spend=HUGE / 10)
    found = {row[column]: row["n"] for row in answer.rows()}
    truth = {}
    for value in exact(column, lambda v: v != "zz"):
        value = value.replace(hour=0) if column == "seen" else value
        truth[value] = truth.get(value, 0) + 1
    assert {key: round(n) for key, n in found.items() if round(n)} == truth  # fails with p < e^-1000


def test_odd_reals_have_a_cell_or_none():
    answer = curator().ask(nz.Histogram("cost", bins=21), spend=HUGE / 10)
    cost = [v for v in TABLE.column("cost").to_pylist() if math.isfinite(v)]
    assert round(answer.value.total.value) == len(cost)  # NaN is no value, infinity is beyond the bounds
    assert round(answer.value.count(10.3).value) == sum(v >= 10 for v in cost)
    assert answer.value.count(0, 0.4).value == pytest.approx(sum(v < 0.5 for v in cost), abs=0.5)


def test_ranges_beyond_the_bounds_have_no_rows():
    """In the nearer cell they would have those of other values."""
    value = curator().ask(nz.Histogram("age"), spend=HUGE / 10).value
    assert value.count(-5, 10_000).value == value.count().value
    low, high = value.axis.kind.ends
    for ends in ((high + 1, high + 5), (low - 9, low - 1), (10_000, None), (None, low - 1)):
        with pytest.raises(InputError, match=f"values of age beyond its bounds, {low} to {high}, are in no cell"):
            value.count(*ends)
    assert value.count(high, high).value < value.count().value
    with pytest.raises(InputError, match="in no cell"):
        value.axis.find(high + 1)


def test_one_release_answers_ranges_differences_ratios_and_quantiles():
    value = curator().ask(nz.Histogram("age"), spend=HUGE / 10).value
    age = np.array(exact("age"))
    assert round(value.count(18, 64).value) == ((age >= 18) & (age <= 64)).sum()
    assert round(value.difference((0, 9), (10, 19)).value) == (age < 10).sum() - ((age >= 10) & (age < 20)).sum()
    assert value.ratio((0, 49), (50, 99)).value == pytest.approx((age < 50).sum() / (age >= 50).sum(), rel=1e-3)
    assert value.quantile("1/2") == int(np.quantile(age, 0.5, method="inverted_cdf"))
    table = value.to_arrow()
    assert table.column_names == ["age", "n", "n_low", "n_high"]
    assert value.chart(note="x").title.endswith("x")


def test_bars_of_several_answers_are_wider_and_usual_ones_shorter():
    value = curator().ask(nz.Histogram("age"), spend=1).value
    one, many, usual = value.count(20, 40), value.count(20, 40, among=1000), value.count(20, 40, guaranteed=False)
    assert one.value == many.value == usual.value
    assert one.high - one.low < many.high - many.low
    assert usual.high - usual.low < one.high - one.low
    linear = curator().ask(nz.Ranges("age"), spend=1).value
    plain = linear.count(20, 40)
    assert linear.count(20, 40, guaranteed=False) == plain
    assert linear.count(20, 40, level=0.5).high < plain.high


def test_asking_again_is_free_and_the_same():
    data = curator()
    first = data.ask(nz.Histogram("age"), spend=1)
    left = data.budget.left
    again = data.ask(nz.Histogram("age"), spend=1)
    assert np.array_equal(first.value.x, again.value.x)
    assert data.budget.left == left
    unbiased = data.ask(nz.Histogram("age", unbiased=True), spend=1)
    assert not np.array_equal(first.value.x, unbiased.value.x)
    assert data.budget.left != left


def test_a_promise_with_a_delta_takes_the_noise_that_errs_less():
    data = curator()
    few, many = (data.explain(nz.Ranges("cost", bins=bins), spend="1,1e-6") for bins in (4, 4096))
    assert "Laplace" in str(few)
    assert "Gaussian" in str(many)
    pure = data.explain(nz.Ranges("cost", bins=4096), spend=1)
    assert many.error <= pure.error


def test_explanations_name_the_other_strategies_and_the_benchmark():
    data = curator()
    assert "single cells with Laplace noise ±" in str(data.explain(nz.Ranges("age"), spend=1))
    assert "make bench-error" in str(data.explain(nz.Histogram("age"), spend=1))


@pytest.mark.parametrize(
    ("question", "match"),
    [
        (lambda: nz.Histogram("free"), "needs a declared domain"),
        (lambda: nz.Histogram("nothing"), "nothing"),
        (lambda: nz.Histogram("ward", bins=4), "leave bins out"),
        (lambda: nz.Histogram("age", bins=0), "bins"),
        (lambda: nz.Histogram("cost", bins=2**40), "at most"),
        (lambda: nz.Ranges("age", bins="many"), "bins"),
    ],
)
def test_bad_questions_are_refused_and_cost_nothing(question, match):
    data = curator()
    before = data.budget.left
    with pytest.raises(InputError, match=match):
        data.ask(question(), spend=1)
    assert data.budget.left == before


@pytest.mark.parametrize(
    ("ask", "match"),
    [
        (lambda v: v.count(50, 20), "lower end"),
        (lambda v: v.counts([0], [100]), "between 0 and 99"),
        (lambda v: v.count(level=2), "level"),
        (lambda v: v.quantile(2), "between 0 and 1"),
        (lambda v: v.count("x"), "age"),
    ],
)
def test_bad_ranges_are_refused(ask, match):
    value = curator().ask(nz.Histogram("age"), spend=1).value
    with pytest.raises(InputError, match=match):
        ask(value)


def test_cells_of_a_kind():
    kind = nz.query.kind.Kind("date", nz.query.kind.Fraction(0), nz.query.kind.Fraction(99))
    weeks = Axis.of("day", kind, bins=15)
    assert (weeks.cells, weeks.width, weeks.find("1970-01-08"), weeks.label(1)) == (15, 7, 1, datetime.date(1970, 1, 8))
    with pytest.raises(InputError, match="holds dates"):
        weeks.find("yesterday")


# Smooth series and groups of keys


def test_a_smooth_series_needs_few_coefficients():
    truth = np.rint(100 + 60 * np.cos(np.arange(365) * 2 * np.pi / 365)).astype(int)
    days = pyarrow.table({"u": np.arange(truth.sum()), "day": np.repeat(np.arange(365), truth)})
    policy = {"tables": {"t": {"unit": "u", "rows": 1, "columns": {"day": {"bounds": [0, 364], "nullable": False}}}}}
    data = nz.open({"t": days}, policy=policy, budget=100)
    smooth = data.ask(nz.Fourier("day", most=9), spend="1/20").value
    plain = data.ask(nz.Histogram("day", unbiased=True), spend="1/20").value
    errors = [np.abs(value.x - truth).mean() for value in (smooth, plain)]
    assert errors[0] < errors[1] / 3  # measured a tenth
    assert smooth.count(0, 180).value == pytest.approx(truth[:181].sum(), rel=0.05)
    assert np.array_equal(data.ask(nz.Fourier("day", most=9), spend="1/20").value.x, smooth.x)


GROUPS = {"first": ["b"], "others": ["c", "a"]}


@pytest.mark.parametrize("spend", [HUGE / 10, "100000,1e-6"])
def test_keys_add_up_to_their_groups(spend):
    answer = curator().ask(nz.Hierarchy("ward", GROUPS), spend=spend)
    truth = {key: sum(value == key for value in exact("ward")) for key in "abc"}
    rows = {(row["group"], row["ward"]): row["n"] for row in answer.rows()}
    assert {pair: round(n) for pair, n in rows.items()} == {
        ("first", None): truth["b"],
        ("others", None): truth["a"] + truth["c"],
        ("first", "b"): truth["b"],
        ("others", "c"): truth["c"],
        ("others", "a"): truth["a"],
    }
    assert round(answer.value.group("others").value) == truth["a"] + truth["c"]
    assert round(answer.value.count("a", "a").value) == truth["a"]
    assert answer.value.to_arrow().num_rows == 5
    assert answer.value.chart().values


@pytest.mark.parametrize(
    ("question", "match"),
    [
        (lambda: nz.Hierarchy("ward", {"first": ["b"]}), "must stand in one of the groups"),
        (lambda: nz.Hierarchy("ward", {"first": ["a", "b", "c", "a"]}), "only once"),
        (lambda: nz.Hierarchy("ward", {"first": "abc"}), "groups must map"),
        (lambda: nz.Hierarchy("age", {"first": [1, 2]}), "must stand in one of the groups"),
        (lambda: nz.Fourier("age", most=1), "most"),
        (lambda: nz.Fourier("free"), "declared domain"),
    ],
)
def test_bad_groups_and_series_are_refused(question, match):
    data = curator()
    before = data.budget.left
    with pytest.raises(InputError, match=match):
        data.ask(question(), spend=1)
    assert data.budget.left == before
    value = data.ask(nz.Hierarchy("ward", GROUPS), spend=1).value
    with pytest.raises(InputError, match="no group of that name"):
        value.group("second")
