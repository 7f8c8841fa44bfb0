"""What the tables look like with what was bought: all of it, or without one purchase."""

from fractions import Fraction

import pytest

from noisette.curator.purchases import Purchase, Shop
from noisette.curator.purchases.purchase import Place
from noisette.ledger import Memory
from noisette.privacy import Pure
from noisette.query.kind import Kind
from noisette.query.schema import Column, Table

BOUNDS, KEYS, ROWS = Place("v", "x", "bounds"), Place("v", "k", "keys"), Place("v", None, "rows")
BOUGHT = {BOUNDS: (Fraction(16), Fraction(128)), KEYS: ("a", "b"), ROWS: (3,)}


@pytest.fixture(params=["files", "ledger"])
def sold(request):
    """A shop that has sold everything, and its ledger: bought in an earlier version, or by entries."""
    columns = (Column("x", Kind("integer"), private_bounds=True), Column("k", Kind("text"), private_keys=True))
    table = Table("v", (Column("u", Kind("integer")), *columns), unit="u", private_rows=True)
    ledger, bought = Memory(Pure(3)), [Purchase(place, values, Pure(1)) for place, values in BOUGHT.items()]
    if request.param == "ledger":
        for i, one in enumerate(bought):
            ledger.charge(str(one.place), one.spend, [], key=f"key {i}")
            ledger.record_purchase(f"key {i}", one.body)
    return Shop({"v": table}, bought if request.param == "files" else ()), ledger


def described(schema):
    """What is bought of the table, by what it is about."""
    table = schema["v"]
    x, k = table.column("x").kind, table.column("k").kind
    found = {BOUNDS: (x.low, x.high), KEYS: k.keys, ROWS: (table.limits.rows,)}
    return {place: values for place, values in found.items() if values not in (None, (None,), (None, None))}


def test_all_that_was_bought_is_described(sold):
    shop, ledger = sold
    assert described(shop.declared) == {}
    assert described(shop.schema(ledger)) == BOUGHT


@pytest.mark.parametrize("place", BOUGHT, ids=lambda place: place.what)
def test_one_purchase_is_left_out_and_no_other(sold, place):
    shop, ledger = sold
    others = {where: values for where, values in BOUGHT.items() if where != place}
    assert described(shop.schema(ledger, without=place)) == others
