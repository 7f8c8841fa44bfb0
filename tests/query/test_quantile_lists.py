"""Lists of quantiles: one column each, in order, in one release that costs no more than its parts."""

from fractions import Fraction

import numpy as np
import pytest
from tests.query.simulated import SCHEMA

import noisette as nz
from noisette.curator.demo import hospital
from noisette.errors import InputError
from noisette.privacy import Neighbours, Pure
from noisette.query.canonical import canonical_text
from noisette.query.draw import _ascending
from noisette.query.measure import Measure
from noisette.query.plan import Aggregate
from noisette.query.sql import parse
from noisette.questions.parts.queries import Queries
from noisette.questions.quantiles import Quantiles

AT = [Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)]
FORMS = [
    "QUANTILE(x, [0.25, 0.5, 0.75])",
    "QUANTILE_CONT(x, [0.25, 0.5, 0.75])",
    "APPROX_QUANTILE(x, [0.25, 0.5, 0.75])",
    "PERCENTILE_CONT([0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY x)",
    "PERCENTILE_DISC(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY x)",
    "PERCENTILE_CONT([0.75, 0.5, 0.25]) WITHIN GROUP (ORDER BY x DESC)",
]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_asks_for_the_same_quantiles(form):
    query = parse(f"SELECT g, {form} FROM t GROUP BY g", SCHEMA)
    listed = [value for _, value in query.outputs[1:]]
    assert all(isinstance(each, Aggregate) for each in listed)
    assert [each.at for each in listed] == AT
    apart = parse("SELECT g, QUANTILE(x, 0.25), MEDIAN(x), QUANTILE(x, 0.75) FROM t GROUP BY g", SCHEMA)
    assert canonical_text(query) == canonical_text(apart)


def test_columns_are_called_by_the_percentage():
    names = dict(parse("SELECT QUANTILE(x, [0, 0.5, 0.995]), QUANTILE(k, [0.25, 1]) AS q FROM t", SCHEMA).outputs)
    assert list(names) == ["quantile_x_0", "quantile_x_50", "quantile_x_99_5", "q_25", "q_100"]


@pytest.mark.parametrize("inside", ["[]", "['a']", "[2]", "[x]", f"[{', '.join(['0.5'] * 101)}]"])
def test_what_is_no_list_of_quantiles_is_refused(inside):
    with pytest.raises(InputError, match=r"QUANTILE\(x, "):
        parse(f"SELECT QUANTILE(x, {inside}) FROM t", SCHEMA)


@pytest.mark.parametrize("at", ["0.5", [], [2], [-1], [0.5, 0.5], 0.5, [0.5] * 101])
def test_the_question_refuses_the_same(at):
    with pytest.raises(InputError, match="at must be"):
        Quantiles("age", at)


def test_the_question_is_the_query():
    schema = hospital().schema
    offers = [
        one.offer(schema, Pure(1), Neighbours.ADD_REMOVE, 0.95)
        for one in (
            nz.Quantiles("age", AT),
            Queries((parse("SELECT QUANTILE(age, [0.25, 0.5, 0.75]) FROM visits", schema),)),
        )
    ]
    assert offers[0].text == offers[1].text
    assert [one.name for one in offers[0].expected()[0]] == ["age_25", "age_50", "age_75"]


def test_the_price_is_paid_once():
    """Nine quantiles together err by fewer ranks than nine that are asked one by one for a ninth each."""
    deciles = [Fraction(i, 10) for i in range(1, 10)]
    schema = hospital().schema

    def ranks(at, spend):
        found = Quantiles("age", at).offer(schema, spend, Neighbours.ADD_REMOVE, 0.95)
        assert found.guarantee <= spend
        return max(one.ranks for one in found.expected()[0])

    together = ranks(deciles, Pure(1))
    assert together < 0.9 * max(ranks([q], Pure(Fraction(1, 9))) for q in deciles)


def test_quantiles_are_in_order():
    """Sorted numbers, and bars that hold what they held."""
    measure, other = Measure("histogram"), Measure("histogram", high=5)
    numbers = np.array([[3.0, 1.0], [2.0, 4.0], [1.0, 9.0]])
    drawn = {(measure, q): (row, row - 0.5, row + 0.5) for q, row in zip(AT[::-1], numbers[::-1], strict=True)}
    drawn[other, AT[0]] = (np.array([7.0, 7.0]),) * 3
    made = _ascending(drawn)
    assert np.array([made[measure, q][0] for q in AT]).tolist() == [[1, 1], [2, 4], [3, 9]]
    assert made[other, AT[0]] is not None
    for place, (value, low_end, high_end) in made.items():
        assert (low_end <= np.minimum(value, drawn[place][1])).all()
        assert (high_end >= np.maximum(value, drawn[place][2])).all()
