"""Limits that a question chooses: what is counted for them, what is said of them, and what is refused."""

import json
import re
from dataclasses import replace

import numpy as np
import pyarrow
import pytest
from tests.questions.chosen import ADD_REMOVE, COLUMNS, COUNT, SUM, offer, opened, table

import noisette as nz
from noisette.errors import InputError
from noisette.query.schema import Limits
from noisette.questions.parts.chosen_limits import Adaptive

# What is chosen, and said


def test_the_rows_of_the_question_are_counted():
    """After its conditions, and for the units of this question alone."""
    data = opened(table([3, 1, 9], [1, 1, 2, 3, *[1] * 8, 2]), most_rows=8)
    made = offer("SELECT COUNT(*) AS n FROM visits WHERE x > 1", curator=data)
    [choice] = made.procedure.choices
    units = data._source.aggregate(choice.prepared.request, data.schema, bytes(16)).measures[0]
    assert units.tolist() == [3, 0, 0, 0, 0]


class Asked:
    """Answers the last place or number, and remembers what it was asked."""

    def __call__(self, values, rng):
        self.values = np.asarray(values).tolist()
        return 1 if len(self.values) > 1 else np.array([7])


def test_the_mechanisms_get_what_is_stated():
    """Scores that one unit moves by one, and the number of units above the limit that was chosen."""
    data = opened(table([1, 2, 3, 9, 30]), most_rows=8)
    [choice] = offer(COUNT, curator=data).procedure.choices
    chooser, counter = Asked(), Asked()
    found = replace(choice, chooser=chooser, counter=counter).draw(data._source, data.schema, bytes(16), None)
    assert chooser.values == [-4, -3, -2, 0]
    assert counter.values == [3]
    assert found == (1, 7)


@pytest.mark.parametrize("f", [8, 64])
def test_a_clear_case_is_chosen(f):
    """With e = 30 for the choice, 400 units above a limit make it less than e^-12,000 times as likely."""
    sentences = opened(table([f] * 400), most_rows=8).sql(COUNT, spend=100).caveats
    assert sentences[0].startswith("At most 8 rows of each who are used, as this question chose; about ")
    assert sentences[0].endswith("whos have more, which is left out.")
    assert sentences[-1] == "± covers the noise only, not what this leaves out."


def test_an_explanation_has_a_line_for_each_limit_and_says_the_shares():
    data = opened(most_rows=8)
    text = repr(data.explain(COUNT, spend=1))
    for rows in ("1 row", "2 rows", "4 rows", "8 rows"):
        assert f"at a limit of {rows}\n" in text
    words = " ".join(text.split())
    assert "The question chooses its limit with 30% of the spend, counts with 5% whom it cuts" in words
    assert "chooses how many rows of each who are used, from 1 to 8; further rows are left out." in words
    [[column]] = json.loads(data.explain(COUNT, spend=1).to_json())["questions"]
    assert list(column["by_limit"]) == ["1 row", "2 rows", "4 rows", "8 rows"]
    assert "It clips the total of each unit" in repr(data.explain(SUM, spend=1)).replace("\n  ", " ")


def test_no_limit_is_chosen_where_none_is_needed():
    for sql in (
        "SELECT COUNT(DISTINCT who) AS n FROM visits",
        "SELECT AVG(k) AS a FROM (SELECT who, LEAST(COUNT(*), 5) AS k FROM visits GROUP BY who) AS t",
    ):
        made = offer(sql, spend=nz.Pure(1))
        assert not isinstance(made.procedure, Adaptive)
        assert made.guarantee == nz.Pure(1, neighbours=ADD_REMOVE)
        assert not any("row" in sentence for sentence in made.caveats[0])


def test_joins_choose_a_limit_for_each_table():
    data = nz.open(
        {"visits": table([2, 3]), "bills": table([1, 40])},
        budget=10,
        policy={"tables": {name: {"unit": "who", "rows": "each question"} for name in ("visits", "bills")}},
    )
    sql = "SELECT COUNT(*) AS n FROM visits JOIN bills ON visits.who = bills.who"
    made = offer(sql, curator=data)
    assert [choice.words.table for choice in made.procedure.choices] == ["bills", "visits"]
    assert len(made.procedure.plans) == 36
    assert made.guarantee == nz.Pure(1, neighbours=ADD_REMOVE)
    answer = data.sql(sql, spend=1)
    assert [s for s in answer.caveats if "in bills" in s and "as this question chose" in s]


def test_declared_limits_of_other_tables_are_still_said():
    rules = {"visits": {"unit": "who", "rows": "each question"}, "bills": {"unit": "who", "rows": 5}}
    data = nz.open({"visits": table([2, 3]), "bills": table([1, 40])}, budget=10, policy={"tables": rules})
    joined = data.sql("SELECT COUNT(*) AS n FROM visits JOIN bills ON visits.who = bills.who", spend=1).caveats
    assert "as this question chose" in joined[0]
    assert "of each who in visits" in joined[0]
    assert re.fullmatch(
        r"At most 5 rows of each who (in bills are joined|are used); further rows are left out\.", joined[1]
    )
    assert len(joined) == 3
    alone = data.sql("SELECT COUNT(*) AS n FROM bills", spend=1).caveats
    assert alone[0] == "At most 5 rows of each who are used; further rows are left out."


def test_a_larger_limit_of_a_parent_leaves_out_candidates():
    """A LEFT JOIN from the table that a foreign key leads to uses as many rows of it as its owner declares."""
    orders, items = pyarrow.table({"k": [1, 2, 3], "who": [1, 1, 2]}), pyarrow.table({"order": [1, 1, 3, 3, 3]})
    through = {"through": "orders", "on": {"order": "k"}}
    rules = {"orders": {"unit": "who", "rows": 5}, "items": {"unit": through, "rows": "each question", "most_rows": 16}}
    data = nz.open({"orders": orders, "items": items}, budget=10, policy={"tables": rules})
    sql = 'SELECT COUNT(*) AS n FROM orders LEFT JOIN items ON k = "order"'
    [choice] = offer(sql, curator=data).procedure.choices
    assert choice.limits == (8, 16)
    [choice] = offer("SELECT COUNT(*) AS n FROM items", curator=data).procedure.choices
    assert choice.limits == (1, 2, 4, 8, 16)


class Noting:
    """A source that notes the limits it is asked for."""

    def __init__(self, source):
        self.source, self.asked = source, []

    def aggregate(self, request, schema, secret):
        self.asked.append({name: given.limits.rows for name, given in schema.items()})
        return self.source.aggregate(request, schema, secret)

    def release(self, request, draw, schema, secret, rng):
        return draw(self.aggregate(request, schema, secret), rng)


def test_a_join_retains_what_was_chosen():
    """Of each side, by the limits in the schema: the last thing that is asked for."""
    data = opened(table([2, 3, 3]), most_rows=4)
    made = offer("SELECT COUNT(*) AS n FROM visits AS a JOIN visits AS b ON a.who = b.who", curator=data)
    for _ in range(5):
        source = Noting(data._source)
        drawn = made.draw(source, data.schema, bytes(16))
        [choice] = made.procedure.choices
        assert source.asked == [{"visits": None}, {"visits": choice.limits[drawn.chosen[0].place]}]


def test_a_declared_limit_on_groups_stays():
    made = offer("SELECT g, COUNT(*) AS n FROM visits GROUP BY g", groups=1, most_rows=4)
    limits = [plan.procedure.prepared[0].request.limits for plan in made.procedure.plans.values()]
    assert limits == [Limits(rows=t, groups=1) for t in (1, 2, 4)]
    assert "At most 1 group of each who are used; further rows are left out." in made.caveats[0]


TWO = {**COLUMNS, "h": {"bounds": [1, 20], "nullable": False}}


def test_groups_have_two_limits_where_noise_may_be_gaussian():
    data = table([1]).append_column("h", pyarrow.array([1]))
    sql = "SELECT h, COUNT(*) AS n FROM visits GROUP BY h"
    curator = opened(data, columns=TWO, most_rows=64)
    assert len(offer(sql, nz.Pure(1), curator=curator).procedure.choices) == 1
    assert len(offer(sql, nz.Approx(1, "1e-6"), curator=curator).procedure.choices) == 1
    assert len(offer(sql, nz.ZCDP("1/8"), curator=opened(data, columns=TWO, groups=2)).procedure.choices) == 1
    made = offer(sql, nz.ZCDP("1/8"), curator=curator)
    assert [choice.about for choice in made.procedure.choices] == ["groups", "rows per group"]
    assert [choice.limits for choice in made.procedure.choices] == [(1, 4, 16, 20), (1, 4, 16, 64)]
    limits = {plan.procedure.prepared[0].request.limits for plan in made.procedure.plans.values()}
    assert limits == {Limits(groups=g, rows_per_group=r) for g in (1, 4, 16, 20) for r in (1, 4, 16, 64)}
    assert "the groups of each unit, and the rows in each" in made.why
    assert made.guarantee <= nz.ZCDP("1/8")


def test_groups_and_rows_in_each_are_counted():
    keys = {"who": [1] * 6 + [2] * 2, "h": [1] * 5 + [2] + [2, 3], "x": [1] * 8, "y": [1] * 8, "g": ["a"] * 8}
    data = opened(pyarrow.table(keys), columns=TWO, most_rows=8)
    sql = "SELECT h, COUNT(*) AS n FROM visits GROUP BY h"
    made = offer(sql, nz.ZCDP("1/8"), curator=data)
    groups, rows = (
        data._source.aggregate(choice.prepared.request, data.schema, bytes(16)).measures[0].tolist()
        for choice in made.procedure.choices
    )
    assert groups == [0, 2, 0, 0]  # cells up to 1, 4, 8, and beyond
    assert rows == [1, 0, 1, 0]
    answer = data.sql(sql, spend=nz.ZCDP("1/8"))
    assert "of each who" in answer.caveats[0]
    assert "per group of each who" in answer.caveats[1]


# Refusals


def test_without_a_limit_both_ways_are_named():
    with pytest.raises(InputError, match=r'rows = "each question".*rows = "private", buy'):
        nz.open({"visits": table([1])}, budget=1, unit="who").sql(COUNT, spend=1)
    with pytest.raises(InputError, match='rows = "each question"'):
        nz.open({"visits": table([1])}, budget=1, unit="who").ask(nz.Histogram("y"), spend=1)


@pytest.mark.parametrize(
    ("rules", "fault"),
    [
        ({"most_rows": 1}, "most_rows in the policy must be"),
        ({"most_rows": 2**41}, "most_rows in the policy must be at most 2"),
        ({"rows": 8, "most_rows": 16}, 'most_rows in the policy is for rows = "each question" alone'),
        ({"rows": "every question"}, 'rows in the policy must be a whole number, "private" or "each question"'),
        ({"rows_per_group": 2}, 'rows_per_group in the policy cannot stand beside rows = "each question"'),
    ],
)
def test_what_a_policy_cannot_say(rules, fault):
    with pytest.raises(InputError, match=fault):
        opened(**rules)


def test_three_tables_are_too_many():
    names = ["a", "b", "c"]
    rules = {name: {"unit": "who", "rows": "each question"} for name in names}
    data = nz.open(dict.fromkeys(names, table([1])), budget=10, policy={"tables": rules})
    with pytest.raises(InputError, match="at most two tables"):
        data.sql("SELECT COUNT(*) FROM a JOIN b ON a.who = b.who JOIN c ON a.who = c.who", spend=1)


def test_the_policy_is_written_as_it_was_read():
    from noisette.policy.policy import read_policy
    from noisette.policy.toml import as_toml

    rules = {"tables": {"visits": {"unit": "who", "rows": "each question", "most_rows": 64}}}
    policy = read_policy(rules, nz.Pure(1))
    text = as_toml(policy.budget, policy.neighbours, policy.tables)
    assert 'rows = "each question"' in text
    assert "most_rows = 64" in text


def test_limits_whose_noise_could_not_be_drawn_name_the_setting():
    rows = pyarrow.table({"u": [1, 2], "k": [1, 2]})
    rules = {"unit": "u", "rows": "each question", "columns": {"k": {"bounds": [0, 2**50]}}}
    asked = "SELECT sum(k) AS s, count(*) AS n FROM t"
    with pytest.raises(InputError, match="declare a smaller most_rows"):
        nz.open({"t": rows}, budget=9, policy={"tables": {"t": rules}}).explain(asked, spend=1)
    assert nz.open({"t": rows}, budget=9, policy={"tables": {"t": {**rules, "most_rows": 8}}}).explain(asked, spend=1)
