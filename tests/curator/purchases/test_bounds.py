"""Bounds and keys that are bought: they fit the data, cost what was said, and serve later questions."""

import datetime
import json
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from tests.goodness import most

import noisette as nz
from noisette.curator.purchases import for_sale
from noisette.curator.purchases.bounds import Bounds, edges_of
from noisette.errors import BudgetError, InputError, NoisetteError

ROWS = 5_000
RNG = np.random.default_rng(7)
DATA = pyarrow.table(
    {
        "who": np.arange(ROWS) // 2,
        "pay": RNG.normal(300, 40, ROWS),
        "loss": -RNG.integers(1, 1000, ROWS),
        "dust": RNG.normal(3e-9, 1e-9, ROWS),
        "debt": RNG.normal(0, 1e12, ROWS),
        "same": np.full(ROWS, 7),
        "tenth": RNG.integers(0, 50, ROWS) / 10,
        "day": [datetime.date(1990, 1, 1) + datetime.timedelta(i % 9000) for i in range(ROWS)],
        "time": pyarrow.array(np.arange(ROWS) * 10**11, pyarrow.timestamp("us")),
        "ward": np.where(np.arange(ROWS) == 7, "only one", RNG.choice(["north", "south"], ROWS)),
        "note": ["x"] * ROWS,
    }
)
NUMBERS = ("pay", "loss", "dust", "debt", "same", "tenth")
FOR_SALE = {name: {"bounds": "private"} for name in (*NUMBERS, "day", "time")} | {
    "tenth": {"bounds": "private", "grid": "1/10"},
    "ward": {"keys": "private"},
}


def opened(columns=FOR_SALE, budget=None, data=DATA, **more):
    rules = {"unit": "who", "rows": 2, "groups": 2, "rows_per_group": 2, "columns": columns}
    return nz.open(
        {"staff": data}, budget=budget or nz.Approx(100, "1e-6"), policy={"tables": {"staff": rules}}, **more
    )


TEN = nz.Pure(10)


def sold(staff, name):
    """The table and the column whose bounds are for sale."""
    table, column, _ = for_sale(staff.schema, "bounds", name)
    return staff.schema[table], staff.schema[table].column(column)


def offer(staff, name, spend=TEN, neighbours=nz.Neighbours.ADD_REMOVE):
    return Bounds(*sold(staff, name)).offer(staff.schema, spend, neighbours, 0.95)


@pytest.mark.slow
@pytest.mark.parametrize("name", NUMBERS)
def test_bounds_fit_the_data_and_serve_later_questions(name):
    staff = opened()
    with pytest.raises(InputError, match=r"buy them with bounds.* or `noisette buy bounds`"):
        staff.sql(f"SELECT AVG({name}) FROM staff", spend=1)
    low, high = staff.bounds(name, spend=10)
    values = DATA[name].to_numpy()
    assert low <= np.quantile(values, 0.01)
    assert high >= np.quantile(values, 0.99)
    staff.sql(f"SELECT AVG({name}) AS a FROM staff", spend=10)
    assert staff.budget.spent.epsilon == 20


@pytest.mark.slow
@pytest.mark.parametrize("name", NUMBERS)
def test_bounds_are_seldom_much_wider_than_the_data(name):
    """An end is far off less than once in a hundred purchases, and too often in twenty with p < 1e-12."""
    staff = opened()
    made, edges, values = offer(staff, name), ends(staff, name), DATA[name].to_numpy()
    [counts] = staff._source.aggregate(made.procedure.prepared.request, staff.schema, bytes(16)).measures[0]
    found = [made.procedure.mechanism(counts) for _ in range(20)]
    size = max(np.ptp(values), abs(values).max())
    assert sum(edges[min(high, len(edges) - 1)] - edges[low - 1] > 4 * size for low, high in found) <= most(20, 0.01)


def ends(staff, name):
    return [float(edge) for edge in edges_of(sold(staff, name)[1])]


@pytest.mark.slow
def test_dates_are_bounded_by_years():
    staff = opened()
    low, high = staff.bounds("day", spend=10)
    assert low <= datetime.date(1991, 1, 1)
    assert high >= datetime.date(2003, 1, 1)
    answer = staff.sql("SELECT day, COUNT(*) AS n FROM staff GROUP BY day", spend=10)
    assert len(answer) >= 4_000
    low, high = staff.bounds("time", spend=10)
    assert low <= datetime.datetime(1971, 1, 1)
    assert high >= datetime.datetime(1985, 1, 1)


@pytest.mark.slow
def test_every_value_is_counted_in_its_own_cell():
    """Values at the edges, just below them, beyond all of them, NaN and NULL."""
    staff = opened(data=DATA.slice(0, 8))
    edges = ends(staff, "pay")
    odd = [*edges[::50], *np.nextafter(edges[::50], -np.inf), 1e300, -1e300, np.inf, -np.inf, np.nan, None, 0.0, -0.0]
    data = pyarrow.table({"who": np.arange(len(odd)), "pay": pyarrow.array(odd, pyarrow.float64())})
    staff = opened({"pay": {"bounds": "private"}}, data=data)
    request = offer(staff, "pay").procedure.prepared.request
    [counts] = staff._source.aggregate(request, staff.schema, bytes(16)).measures[0]
    known = [value for value in odd if value is not None and np.isfinite(value)]
    true = np.bincount(np.searchsorted(edges, known, side="right"), minlength=len(edges) + 1)
    assert counts[1:-1].tolist() == true[1:-1].tolist()
    assert abs(int(counts.sum()) - len(known)) <= 2  # infinities count as the largest numbers or as none


@pytest.mark.slow
def test_a_unit_counts_as_often_as_it_may_and_no_more():
    """The first unit has a thousand of the largest values; two of them count."""
    who = [0] * 1000 + list(range(1, 501))
    data = pyarrow.table({"who": who, "pay": [1e9] * 1000 + [1.0] * 500})
    staff = opened({"pay": {"bounds": "private"}}, data=data)
    made = offer(staff, "pay")
    [counts] = staff._source.aggregate(made.procedure.prepared.request, staff.schema, bytes(16)).measures[0]
    assert (int(counts.sum()), int(counts.max())) == (502, 500)
    assert made.procedure.mechanism.epsilon == 5  # ten for two rows
    assert made.guarantee == nz.Pure(10, neighbours=nz.Neighbours.ADD_REMOVE)
    replaced = offer(staff, "pay", neighbours=nz.Neighbours.REPLACE)
    assert replaced.guarantee == nz.Pure(10, neighbours=nz.Neighbours.REPLACE)
    assert replaced.procedure.mechanism.guarantee(1) == nz.Pure(5, neighbours=nz.Neighbours.REPLACE)


@pytest.mark.slow
@pytest.mark.parametrize("spend", [nz.Pure(1), nz.Approx(1, "1e-6"), nz.ZCDP("1/8")], ids=repr)
def test_a_purchase_is_paid_before_anything_is_read_and_its_record_can_be_checked(spend):
    staff = opened()
    made = offer(staff, "pay", spend)
    assert made.guarantee <= spend
    charges = []
    read = staff._source.aggregate
    staff._source.aggregate = lambda *asked: (charges.append(len(staff.budget.entries)), read(*asked))[1]
    answer = staff.ask(Bounds(*sold(staff, "pay")), spend=spend)
    assert charges == [1]
    assert nz.answers.check(answer.to_json()) <= spend
    assert "pay" in answer.to_json()
    assert len(answer.to_json()) < 2_000  # its seven hundred cells are named by a digest


@pytest.mark.slow
def test_an_offer_says_how_many_rows_may_lie_beyond():
    staff = opened()
    [(low, high)] = offer(staff, "pay", nz.Pure(1)).expected()
    assert (low.name, high.name) == ("low", "high")
    assert 2 * 15 < low.ranks < 2 * 40  # two rows of a unit
    assert high.ranks < low.ranks
    assert json.loads(offer(staff, "pay").text)["asked"] == "staff.pay"


@pytest.mark.slow
def test_the_same_purchase_is_free_in_every_process(tmp_path):
    pyarrow.parquet.write_table(DATA, tmp_path / "staff.parquet")
    found = []
    for name, spend in (("pay", 10), ("staff.pay", nz.Pure(Fraction(20, 2)))):
        staff = opened(data=str(tmp_path / "staff.parquet"), ledger=tmp_path / "ledger.db")
        found.append(staff.bounds(name, spend=spend))
        assert len(staff.budget.entries) == 1
    assert found[0] == found[1]


@pytest.mark.slow
def test_too_few_rows_are_an_answer_that_is_paid():
    staff = opened(data=DATA.slice(0, 4))
    with pytest.raises(NoisetteError, match=r"too few rows .* was charged"):
        buy_all(staff)  # noise finds one in spite of that once in ten thousand times, but not all of them
    assert staff.budget.spent.epsilon > 0


def buy_all(staff):
    for name in NUMBERS:
        staff.bounds(name, spend="1/10")


def test_errors_and_costs_are_the_same_without_the_victim():
    """A row with a value far beyond all others, or none of that unit: what is refused, how, and what it costs."""
    said = []
    for data in (DATA, DATA.slice(1)):
        staff = opened(data=data)
        words = []
        for name, spend in (("note", 1), ("nothing", 1), ("pay", 0), ("pay", 1000)):
            with pytest.raises(NoisetteError) as fault:
                staff.bounds(name, spend=spend)
            words.append(str(fault.value))
        made = offer(staff, "pay")
        said.append((words, made.text, repr(made.guarantee), made.parts, made.expected(), staff.budget.spent.epsilon))
    assert said[0] == said[1]


def test_keys_are_those_that_many_share():
    staff = opened()
    assert staff.keys("staff.ward", spend=nz.Approx(4, "1e-7")) == ["north", "south"]
    answer = staff.sql("SELECT ward, COUNT(*) AS n FROM staff GROUP BY ward", spend=4)
    assert answer["ward"].values.to_pylist()[:2] == ["north", "south"]


@pytest.mark.slow
def test_what_is_bought_once_is_free_and_another_price_is_another_purchase():
    staff = opened()
    first = staff.bounds("pay", spend=10)
    assert staff.bounds("pay", spend=10) == first
    with pytest.raises(InputError, match=r"bought already, for ε = 10: .* again=True"):
        staff.bounds("pay", spend=20)
    assert len(staff.budget.entries) == 1
    second = staff.bounds("pay", spend=20, again=True)
    assert staff.bounds("pay", spend=20) == second
    assert staff.bounds("pay", spend=10, again=True) == first  # the first answer again, for free
    assert len(staff.budget.entries) == 2
    assert (staff.schema["staff"].column("pay").kind.low, staff.schema["staff"].column("pay").kind.high) == first


@pytest.mark.slow
def test_whoever_shares_a_ledger_sees_a_purchase(tmp_path):
    """Purchases are entries of the ledger: two curators see those of each other, and no schema changes in place."""
    pyarrow.parquet.write_table(DATA, tmp_path / "staff.parquet")
    one, two = (
        opened(data=str(tmp_path / "staff.parquet"), ledger=tmp_path / "ledger.db", budget=nz.Approx(100, "1e-6"))
        for _ in range(2)
    )
    before = two.schema
    one.bounds("pay", spend=10)
    two.keys("ward", spend=nz.Approx(4, "1e-7"))
    assert before["staff"].column("pay").private_bounds
    assert one.schema == two.schema
    assert two.sql("SELECT AVG(pay) AS a FROM staff", spend=10).rows()[0]["a"] is not None
    assert one.schema["staff"].column("ward").kind.keys == ("north", "south")
    with pytest.raises(TypeError):
        one.schema["staff"] = None
    one.ledger.verify()
    kinds = [body["kind"] for body in one.ledger.history]
    assert kinds.count("purchase") == 2
    assert "pay" not in str([body for body in one.ledger.purchases if body["what"] == "keys"])


@pytest.mark.slow
def test_threads_that_buy_the_same_pay_once():
    staff = opened()
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: staff.bounds("pay", spend=10), range(8)))
    assert len(found) == len(staff.budget.entries) == len(staff.ledger.purchases) == 1


@pytest.mark.parametrize(
    ("buy", "why"),
    [
        (lambda staff: staff.bounds("note", spend=1), "not for sale"),
        (lambda staff: staff.bounds("nothing", spend=1), "no column nothing"),
        (lambda staff: staff.bounds("other.pay", spend=1), "Name the column with its table"),
        (lambda staff: staff.keys("ward", spend=1), "needs a delta"),
        (lambda staff: staff.bounds("pay", spend=0), "more than 0"),
    ],
)
def test_refusals_cost_nothing(buy, why):
    staff = opened()
    with pytest.raises(InputError, match=why):
        buy(staff)
    assert staff.budget.spent.epsilon == 0


def test_texts_have_no_bounds_to_buy():
    staff = opened({"note": {"bounds": "private"}})
    with pytest.raises(InputError, match="no number and no date"):
        staff.bounds("note", spend=1)


def test_a_budget_that_does_not_hold_the_price_is_left_alone():
    staff = opened(budget=1)
    with pytest.raises(BudgetError):
        staff.bounds("pay", spend=2)
    assert staff.budget.left == nz.Pure(1)


def test_keys_that_nobody_shares():
    staff = opened({"who": {"keys": "private"}})
    with pytest.raises(NoisetteError, match=r"No key is shared .* was charged"):
        staff.keys(
            "who", spend=nz.Approx(1, "1e-18")
        )  # fails with p < 1e-13, as each key is released with at most that
    assert staff.budget.spent.epsilon > 0
