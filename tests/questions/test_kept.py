"""What is kept for one question is told for no other: whatever changes an answer changes the text it is kept by."""

import json

import pyarrow
import pytest

import noisette as nz
from noisette.answers import check
from noisette.errors import PrivacyError
from noisette.privacy.charges import charge_of
from noisette.questions.parts.queries import Queries

ADD_REMOVE = nz.Neighbours.ADD_REMOVE


def opened(budget=100, **y):
    rows = {"w": ["a", "b", "c", "b"], "x": [1, 2, 3, 4], "y": [4, 3, 2, 1]}
    columns = {"w": {"keys": ["a", "b", "c"]}, "x": {"bounds": [0, 9]}, "y": {"bounds": [0, 9]} | y}
    return nz.open({"t": pyarrow.table(rows)}, budget=budget, policy={"tables": {"t": {"columns": columns}}})


def text(question, curator=None, spend=None, level=0.95):
    schema = (curator or opened()).schema
    return question.offer(schema, spend or nz.Pure(1), ADD_REMOVE, level).text


@pytest.mark.parametrize("question", [nz.Mode("w"), nz.Top("w", 2)], ids=["mode", "top"])
def test_another_level_is_the_same_mechanism(question):
    """What is told again was drawn by one of two mechanisms, and must not claim to be of the other."""
    schema = opened().schema
    for spend in (nz.ZCDP("1/2"), nz.Pure(1)):
        offers = [question.offer(schema, spend, ADD_REMOVE, level) for level in (0.2, 0.95, 0.9999)]
        assert len({offer.text for offer in offers}) == 1
        assert len({repr(offer.procedure.mechanism) for offer in offers}) == 1


def test_votes_do_not_depend_on_the_level():
    question = nz.Apply(lambda rows: "a", blocks=20, aggregate="mode", labels=["a", "b", "c"], columns=["x"])
    schema = opened().schema
    found = {repr(question.offer(schema, nz.ZCDP("1/2"), ADD_REMOVE, level).parts) for level in (0.2, 0.95)}
    assert len(found) == 1


MORE, FEWER = (f"SELECT {sign} COUNT(*) AS score FROM t WHERE x >= 2" for sign in ("", "0 -"))


def test_what_is_made_of_the_numbers_decides_which_is_best():
    other = "SELECT COUNT(*) AS score FROM t WHERE x >= 3"
    assert text(nz.Best({"a": MORE, "b": other}, by="score")) != text(nz.Best({"a": FEWER, "b": other}, by="score"))


def test_the_order_of_candidates_does_not_matter():
    other = "SELECT COUNT(*) AS score FROM t WHERE x >= 3"
    one, two = ({"a": MORE, "b": other}, {"b": other, "a": MORE})
    offers = [nz.Best(named, by="score").offer(opened().schema, nz.Pure(1), ADD_REMOVE, 0.95) for named in (one, two)]
    assert offers[0].text == offers[1].text
    assert [label for label, _ in offers[0].procedure.offers] == [label for label, _ in offers[1].procedure.offers]


@pytest.mark.slow
def test_a_function_tells_columns_apart():
    table = opened().table("t")
    asked = [
        nz.Apply(lambda rows: rows["a"].to_numpy().mean(), blocks=2, bounds=(0, 9), of=table.select(a=a, b=b))
        for a, b in (("x", "y"), ("y", "x"))
    ]
    assert text(asked[0]) != text(asked[1])


@pytest.mark.parametrize("aggregate", ["mean", "winsorized", "median"])
def test_bars_that_are_kept_have_their_level_in_the_text(aggregate):
    question = nz.Apply(lambda rows: 1.0, blocks=20, bounds=(0, 9), aggregate=aggregate, columns=["x"])
    assert text(question, level=0.5) != text(question, level=0.999)


def test_axes_are_told_apart():
    assert text(nz.Nearest("x", "y", place=(1, 8), k=2)) != text(nz.Nearest("y", "x", place=(1, 8), k=2))


@pytest.mark.parametrize(
    "question",
    ["SELECT COUNT(*) AS n FROM t WHERE y > 3", nz.Mode("w"), nz.Spread("x"), "apply"],
    ids=["count", "mode", "spread", "apply"],
)
def test_what_was_declared_of_a_condition_matters(question):
    """Bounds cut values before they are compared."""
    texts = set()
    for curator in (opened(), opened(bounds=[0, 2])):
        rows, spend = curator.table("t").where("y > 3"), nz.Approx(1, "1e-6")
        match question:
            case "apply":
                asked = nz.Apply(lambda rows: 1.0, blocks=2, bounds=(0, 9), of=rows, columns=["x"])
            case nz.Mode():
                asked = nz.Mode("w", of=rows)
            case nz.Spread():
                asked = nz.Spread("x", of=rows)
            case _:
                asked = Queries((nz.query.sql.parse(question, curator.schema),))
        texts.add(text(asked, curator, spend))
    assert len(texts) == 2


def test_what_was_declared_of_a_joined_column_matters():
    places = pyarrow.table({"y": [1, 2, 3], "area": ["a", "b", "c"]})
    texts = set()
    for bounds in ([0, 9], [0, 2]):
        known = {"y": {"bounds": bounds, "nullable": False}}
        tables = {"t": {"columns": known}, "p": {"public": True, "columns": {"y": {}, "area": {}}}}
        data = {"t": pyarrow.table({"y": [4, 3, 2, 1]}), "p": places}
        curator = nz.open(data, budget=1, policy={"tables": tables})
        query = nz.query.sql.parse("SELECT COUNT(*) AS n FROM t JOIN p ON t.y = p.y", curator.schema)
        texts.add(text(Queries((query,)), curator))
    assert len(texts) == 2


def test_a_column_that_is_not_read_does_not_matter():
    assert text(nz.Mode("w"), opened()) == text(nz.Mode("w"), opened(bounds=[0, 2]))


@pytest.mark.parametrize(
    "question",
    [nz.Mode("w"), nz.Top("w", 2), nz.Nearest("x", "y", place=(1, 2), k=2), nz.OrderStatistic("x")],
    ids=["mode", "top", "nearest", "order statistic"],
)
def test_losses_of_a_bounded_range_are_charged_by_their_own_rho(question):
    offer = question.offer(opened().schema, nz.ZCDP("1/10"), ADD_REMOVE, 0.95)
    assert charge_of(offer.guarantee).rho <= nz.ZCDP("1/10").rho


def test_a_record_whose_candidates_cost_more_is_refused():
    answer = opened().ask(nz.Best({"a": MORE, "b": FEWER}, by="score", runs=2), spend=1)
    record = json.loads(answer.to_json())
    assert check(answer.to_json()) <= nz.Pure(1, neighbours=ADD_REMOVE)
    for parts in record["mechanisms"][0]["candidates"].values():
        parts[0]["parameters"]["scale"] = "1/1000"
    with pytest.raises(PrivacyError, match="costs more than a run"):
        check(json.dumps(record))
