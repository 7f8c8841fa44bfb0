"""Workload: any counting queries about declared columns, answered together by the best strategy for them."""

import itertools
import math
import re

import numpy as np
import pytest
from tests.questions.test_histogram import HUGE, TABLE, curator

import noisette as nz
from noisette.errors import InputError
from noisette.questions.parts.line_cells import GridCells
from noisette.questions.workload import QueryCells

ROWS = TABLE.to_pylist()
QUERIES = [
    {"age": [0, 17]},
    {"age": [18, 64], "ward": "a"},
    {"age": [18, None], "ward": ["a", "b"], "alive": True},
    {"ward": "c"},
    {"day": ["2024-01-10", "2024-02-10"]},
    {},
]


def met(row, query):
    for column, asked in query.items():
        value = row[column]
        if value is None:
            return False
        if isinstance(asked, list) and column in ("age", "day"):
            low, high = (
                None if end is None else type(value).fromisoformat(end) if isinstance(end, str) else end
                for end in asked
            )
            if (low is not None and value < low) or (high is not None and value > high):
                return False
        elif value not in (asked if isinstance(asked, list) else [asked]):
            return False
    return True


def test_with_hardly_any_noise_answers_are_those_of_the_table():
    answer = curator().ask(nz.Workload(QUERIES), spend=HUGE / 10)
    declared = [row for row in ROWS if row["age"] is not None and row["ward"] in ("a", "b", "c")]
    truth = [sum(met(row, query) for row in declared) for query in QUERIES]
    assert [round(row["n"]) for row in answer.rows()] == truth  # fails with p < e^-1000
    assert round(answer.value.difference(0, 3).value) == truth[0] - truth[3]
    assert answer.value.ratio(0, 5).value == pytest.approx(truth[0] / truth[5], rel=1e-3)


def test_values_that_no_query_tells_apart_are_one_cell():
    schema = curator().schema
    grid = GridCells.of(["age"], None, None, schema)
    cells = QueryCells.of(grid, [{"age": (0, 17)}, {"age": (10, 40)}])
    assert (cells.many, cells.queries.tolist()) == (4, [[True, True, False, False], [False, True, True, False]])
    two = QueryCells.of(GridCells.of(["age", "ward"], None, None, schema), [{"age": (0, 17)}, {"ward": "a"}])
    assert two.many == 4


@pytest.mark.parametrize("spend", ["1", "1,1e-6", "rho=0.1"])
def test_the_best_strategy_is_at_least_as_good_as_each_of_the_plain_ones(spend):
    data = curator()
    halves = [{"age": [0, i]} for i in range(0, 99, 3)]
    found = data.explain(nz.Workload(halves), spend=spend).offer.procedure.candidates
    assert found[0].error <= min(one.error for one in found if one.name in ("single cells", "the queries themselves"))
    assert len({one.name for one in found}) >= 3


def test_weights_move_error_between_queries():
    data, queries = curator(), [{"age": [0, i]} for i in (20, 40, 60, 80)]

    def widths(weights):
        offer = data.explain(nz.Workload(queries, weights=weights), spend="rho=1/2").offer
        zero = offer.procedure.made.infer(
            [np.zeros(len(level)) for level in offer.procedure.made.strategy.measure(np.zeros(5, int))]
        )
        made = offer.procedure
        return nz.releases.answers.QueryAnswers(zero, made.cells.queries, None, (), 0.95).half_widths(0.95)

    even, first = widths(None), widths([100, 1, 1, 1])
    assert first[0] < even[0]
    assert first[1:].max() > even[1:].max()


def test_explanations_say_how_many_rows_shares_need():
    found = curator().explain(nz.Workload(QUERIES), spend=1)
    needed = re.search(r"within ± 1 % from ([\d,]+) rows on", found.columns[0].assumes)[1]
    assert int(needed.replace(",", "")) == round(100 * found.columns[0].half_width)


def test_bars_hold_for_all_answers_at_once():
    value = curator().ask(nz.Workload(QUERIES), spend=1).value
    alone, together = value.bars(), value.bars(simultaneous=True)
    for one, other in zip(alone, together, strict=True):
        assert other.low <= one.low
        assert one.high < other.high
    chart = value.chart(note="x")
    assert chart.values
    assert value.to_arrow().num_rows == len(QUERIES)


def test_many_ranges_of_one_column_take_a_strategy_of_the_line():
    ranges = [{"cost": [a / 40, b / 40]} for a, b in itertools.combinations(range(0, 400, 2), 2)][:9000:7]
    data = curator()
    offer = data.explain(nz.Workload(ranges), spend=1).offer
    assert offer.procedure.cells.ranges is not None
    assert offer.procedure.cells.many > 128
    answer = data.ask(nz.Workload(ranges), spend=1)
    assert len(answer) == len(ranges)
    assert all(math.isfinite(row["n_high"]) for row in answer.rows())


@pytest.mark.parametrize(
    ("queries", "more", "match"),
    [
        ([], {}, "list of 1 to"),
        ([{}], {}, "must name a column"),
        (["age < 3"], {}, "which values of which columns"),
        ([{"age": [5, 3]}], {}, "lower end of age"),
        ([{"age": [1, 2, 3]}], {}, "have an order"),
        ([{"ward": "zz"}], {}, "no declared key"),
        ([{"free": 3}], {}, "declared domain"),
        ([{"nothing": 3}], {}, "nothing"),
        ([{"age": [0, 3]}], {"weights": [-1]}, "above 0"),
        ([{"age": [0, 3]}], {"weights": [1, 2]}, "number for each query"),
        ([{"age": i, "day": f"2024-0{1 + i % 3}-{1 + i // 4:02}", "cost": i / 10} for i in range(90)], {}, "apart"),
    ],
)
def test_bad_workloads_are_refused_and_cost_nothing(queries, more, match):
    data = curator()
    before = data.budget.left
    with pytest.raises(InputError, match=match):
        data.ask(nz.Workload(queries, **more), spend=1)
    assert data.budget.left == before
