"""By how much the best leads: told with it, for the price of the index, within its error bar."""

import numpy as np
import pyarrow
import pytest
from tests.goodness import fewest

import noisette as nz
from noisette.engines.contract import Source
from noisette.errors import InputError
from noisette.mechanisms import NoisyMaxGap, PermuteAndFlip

WARDS = ["east", "north", "south"]
N = 900
VISITS = pyarrow.table(
    {
        "patient": np.arange(N) // 3,
        "age": np.arange(N) % 90,
        "ward": [WARDS[0 if i % 10 < 6 else 1 if i % 10 < 9 else 2] for i in range(N)],
        "lead_low": [WARDS[i % 3] for i in range(N)],
        "illness": ["flu" if i % 4 else f"illness {i}" for i in range(N)],
    }
)
LEAD = N * 6 // 10 - N * 3 // 10
KEYS = {"keys": WARDS, "nullable": False}
COLUMNS = {"age": {"bounds": [0, 100], "nullable": False}, "ward": KEYS, "lead_low": KEYS}
SUMS = nz.Choose(WARDS, score=lambda ward: f"SELECT SUM(age - 40) FROM visits WHERE ward = '{ward}'", lead=True)


@pytest.fixture
def curator():
    rules = {"unit": "patient", "rows": 3, "groups": 3, "rows_per_group": 3, "columns": COLUMNS}
    return nz.open({"visits": VISITS}, budget=nz.Approx(10**6, "1e-4"), policy={"tables": {"visits": rules}})


ONE = nz.Pure(1)


def offer(curator, question, spend=ONE, neighbours=nz.Neighbours.ADD_REMOVE, level=0.95):
    return question.offer(curator.schema, spend, neighbours, level)


@pytest.mark.parametrize("neighbours", nz.Neighbours)
@pytest.mark.parametrize("spend", [nz.Pure(1), nz.Approx(1, "1e-6"), nz.ZCDP("1/8")], ids=repr)
def test_it_costs_what_the_choice_alone_does_and_chooses_alike(curator, spend, neighbours):
    told, alone = (offer(curator, nz.Mode("ward", lead=lead), spend, neighbours) for lead in (True, False))
    flipping = PermuteAndFlip.calibrated(spend, told.procedure.sensitivity, candidates=3, monotone=True)
    assert told.guarantee == flipping.guarantee(told.procedure.sensitivity) <= spend
    assert isinstance(told.procedure.mechanism, NoisyMaxGap)
    assert told.procedure.mechanism.scale == flipping.scale
    scores = [5, 3, 4]
    index = np.zeros(3)
    for (winner, _), chance in replaced(told.procedure.mechanism).outcomes(scores).items():
        index[winner] += chance
    assert index == pytest.approx(replaced(flipping).pmf(range(3), scores), rel=1e-9)
    assert told.text != alone.text


def replaced(mechanism):
    """The same with a smaller scale, whose law is enumerated at once."""
    options = {"noise": "geometric"} if isinstance(mechanism, NoisyMaxGap) else {}
    return type(mechanism)(2, candidates=3, monotone=mechanism.monotone, **options)


def test_counts_that_move_one_way_are_paid_once_and_else_twice(curator):
    for neighbours, scale in ((nz.Neighbours.ADD_REMOVE, 3), (nz.Neighbours.REPLACE, 6)):
        assert offer(curator, nz.Mode("ward", lead=True), neighbours=neighbours).procedure.mechanism.scale == scale
    assert offer(curator, SUMS).procedure.mechanism.scale == 2 * 3 * 60  # sums of both signs


def test_with_much_epsilon_the_lead_is_told(curator):
    [row] = curator.ask(nz.Mode("ward", lead=True), spend=1000).rows()
    assert row["ward"] == "east"
    assert row["lead_low"] <= LEAD <= row["lead_high"]
    assert abs(row["lead"] - LEAD) <= 1
    assert type(row["lead"]) is int


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_bars_hold_the_true_lead(curator, level):
    made = offer(curator, nz.Mode("ward", lead=True), nz.Pure("1/20"), level=level)
    counts = {ward: VISITS["ward"].to_pylist().count(ward) for ward in WARDS}
    held = 0
    for _ in range(400):
        [(chosen, lead)] = made.answers(made.draw(Fixed(list(counts.values())), curator.schema, b""))
        ward = chosen.values[0].as_py()
        true = counts[ward] - max(n for other, n in counts.items() if other != ward)
        held += lead.low[0] <= true <= lead.high[0]
    assert held >= fewest(400, level)  # fails with p < 1e-12 if the level is kept


class Fixed:
    """A source with these counts."""

    def __init__(self, counts):
        self.counts = counts

    release = Source.release

    def aggregate(self, *_):
        return type("Exact", (), {"measures": (np.array(self.counts),), "keys": None})


def test_the_unit_of_scores_is_that_of_the_lead():
    data = pyarrow.table({"pay": np.arange(40) / 10, "ward": ["a"] * 30 + ["b"] * 10})
    columns = {"pay": {"type": "real", "bounds": [0, 5], "grid": "1/10", "nullable": False}}
    curator = nz.open({"visits": data}, budget=10**6, policy={"tables": {"visits": {"columns": columns}}})
    paid = nz.Choose(["a", "b"], score=lambda w: f"SELECT SUM(pay) FROM visits WHERE ward = '{w}'", lead=True)
    [row] = curator.ask(paid, spend=10**5).rows()
    assert row["chosen"] == "a"
    assert row["lead"] == pytest.approx(43.5 - 34.5, abs=0.11)
    assert row["lead_low"] - 1e-9 <= 9 <= row["lead_high"] + 1e-9


def test_another_level_is_the_same_question_and_free(curator):
    wide = curator.ask(nz.Mode("ward", lead=True), spend=1, level=0.99).rows()[0]
    narrow = curator.ask(nz.Mode("ward", lead=True), spend=1, level=0.5).rows()[0]
    assert (wide["ward"], wide["lead"]) == (narrow["ward"], narrow["lead"])
    assert wide["lead_low"] < narrow["lead_low"] <= narrow["lead_high"] < wide["lead_high"]
    assert len(curator.budget.entries) == 1


def test_a_column_that_is_called_so_keeps_its_name(curator):
    [row] = curator.ask(nz.Mode("lead_low", lead=True), spend=1).rows()
    assert list(row) == ["lead_low", "gap", "gap_low", "gap_high"]
    assert row["lead_low"] in WARDS


def test_what_to_expect_of_the_choice_is_the_same_with_its_lead(curator):
    [(chosen, lead)] = offer(curator, nz.Mode("ward", lead=True)).expected()
    [(alone,)] = offer(curator, nz.Mode("ward")).expected()
    assert (chosen.half_width, lead.name) == (alone.half_width, "lead")
    assert lead.half_width > chosen.half_width


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (lambda: nz.Mode("illness", lead=True), "declared keys"),
        (lambda: nz.Mode("ward", lead="yes"), "lead must"),
        (
            lambda: nz.Choose([1, 2], score=lambda age: f"SELECT COUNT(*) FROM visits WHERE age > {age}", lead=1),
            "lead must",
        ),
    ],
    ids=["unknown keys", "a word", "a number"],
)
def test_bad_questions_are_refused_and_cost_nothing(curator, question, said):
    with pytest.raises(InputError, match=said):
        curator.ask(question(), spend=nz.Approx(1, "1e-6"))
    assert curator.budget.entries == ()
