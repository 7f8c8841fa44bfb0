"""Nothing about one unit moves what is measured beyond the sensitivity that the system itself states.

A few seeds of what `make attack` goes on with for an hour, all that ever convicted, and twins that must be convicted.
"""

import random
import re
from collections import Counter
from dataclasses import replace

import pytest
from tests.attack import attacks, twins
from tests.attack.attacks import BY_TEXT, COUNT, NUMBER, marked
from tests.attack.files import ODD, PLAIN, Lines, random_lines
from tests.attack.holes import HOLES
from tests.attack.questions import PYTHON, SPENDS, Question
from tests.attack.trial import Convicted, _consulted, attacked, drawn, excess, innocent, opened, planned

from noisette.engines import csv_records
from noisette.privacy import Neighbours
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.measure import Contribution
from noisette.questions import FILES
from noisette.releases.adaptive import one_node

SEEDS = [2, 0, 1, *range(3, 12)]  # the second one is over soonest
slow = pytest.mark.slow


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", HOLES)
def test_what_convicted_once(shelf, name):
    world, question = HOLES[name]
    attacked(shelf, world, [question])


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_tables_and_questions(shelf, seed):
    assert attacks.tables(seed, shelf)["worlds"] == 1


@slow
@pytest.mark.parametrize("line", ODD, ids=lambda line: repr(line[:30]))
def test_a_line_of_csv_is_a_row(shelf, line):
    policy = random_lines(random.Random(0)).policy
    policy = {"tables": {**policy["tables"], "v": {"columns": policy["tables"]["v"]["columns"]}}}
    attacked(shelf, Lines(tuple(PLAIN), (line,), tuple(PLAIN), (PLAIN[0],), (b"\n",), policy), [COUNT, BY_TEXT])


RECORDS = [
    b'p9,"a\nb",1,0.5,2020-01-01,true',
    b'"p\n9","a\r\n""",1,0.5,"2020-01-01\n",true',
    b'p9,"a,""\n\n"", b",1,0.5,2020-01-01,true',
]


def records(victim):
    """A file among whose rows are some with line breaks, which its owner declares."""
    tables = random_lines(random.Random(0)).policy["tables"]
    policy = {"tables": {**tables, "v": {"columns": tables["v"]["columns"], "line_breaks": True}}}
    around = (*PLAIN, RECORDS[0].replace(b"9", b"1"), *PLAIN, RECORDS[2].replace(b"9", b"2"))
    return Lines(around, (victim,), around, (PLAIN[0],), (b"\n",), policy)


@slow
@pytest.mark.parametrize("record", [*RECORDS, *ODD], ids=lambda line: repr(line[:30]))
def test_a_record_of_csv_is_a_row(shelf, record):
    """And so is a line that is none."""
    attacked(shelf, records(record), [COUNT, BY_TEXT])


@slow
def test_a_reader_that_joins_lines_that_are_no_record_is_convicted(shelf, monkeypatch):
    monkeypatch.setattr(csv_records, "_record_of", lambda delimiter, count: re.compile(rb"[\s\S]*"))
    with pytest.raises(Convicted):
        attacked(shelf, records(b'p9,"a'), [COUNT, BY_TEXT])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_random_lines_of_csv(shelf, seed):
    attacks.lines(seed, shelf)


def test_every_question_there_is_is_asked():
    assert {file for file, name in FILES.items() if name not in PYTHON and f"json {file}" not in PYTHON} == set()


# Twins

EVERY = [
    COUNT,
    BY_TEXT,
    Question(python='nz.Mode("g")'),
    Question(python='nz.Choose([0, 1], score=lambda c: f"SELECT COUNT(*) FROM v WHERE k = {c}")'),
]
CUBE = Question(python="nz.Cube({'k': 'LEAST(GREATEST(k, 0), 2)', 'b': 'b'})")
SYNTHETIC = Question(python="nz.Synthetic(['LEAST(GREATEST(k, 0), 2)', 'b', 'x > 1'])")


SKETCHES = [Question(python='nz.FrequencySketch("g", width=8)'), Question(python='nz.HeavyHitters("g", memory=3)')]

SIDES = '"LEAST(GREATEST(k, 0), 2)", "LEAST(GREATEST(x, 0), 2)"'
MAPS = [
    Question(python=f"nz.Map({SIDES}, cells=2)"),
    Question(python=f'nz.Flows(({SIDES}), ("LEAST(GREATEST(k, -1), 2)", "LEAST(GREATEST(x, -1), 2)"), cells=2)'),
]


@pytest.mark.slow
@pytest.mark.parametrize("most", [2, NUMBER], ids=["beyond", "within"])
def test_the_marked_world_is_innocent(shelf, most):
    every = [*EVERY, *SKETCHES, *MAPS, SYNTHETIC]
    assert attacked(shelf, marked(most=most), every)["answered"] == 2 * len(every)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("twin", [twins.Twice, twins.Unbounded])
@pytest.mark.parametrize("question", [*EVERY[:3], *SKETCHES, CUBE, *MAPS, SYNTHETIC], ids=str)
def test_twins_are_convicted(shelf, twin, question):
    shelf.shrinks = False
    with pytest.raises(Convicted, match=r"sensitivity: .* moved by"):
        attacked(shelf, marked(most=NUMBER), [question], twin)


@pytest.mark.parametrize("spend", SPENDS[1:3], ids=repr)
def test_a_cube_that_states_too_little_is_convicted(shelf, spend):
    for relation, pair in opened(shelf, marked(most=NUMBER)).items():
        offer, _ = planned(pair[0], replace(CUBE, spend=spend), relation)
        before, after = (drawn(curator, offer, innocent)[0] for curator in pair)
        assert list(excess(offer, before, after, relation)) == []
        made = offer.procedure.made
        halved = replace(made, moved=made.strategy.sensitivity(1, relation))  # where two rows are used
        twin = replace(offer, procedure=replace(offer.procedure, made=halved))
        assert any("numbers moved" in found for found in excess(twin, before, after, relation))


LEFT_OUT = Question(python='nz.LeftOut(groups=[1, 2], by="g")')


def test_left_out_is_held_to_the_numbers_that_get_noise(shelf):
    """A unit in three groups moves a sum by 3; of what gets noise it moves one number, by one step."""
    relation = Neighbours.ADD_REMOVE
    pair = opened(shelf, marked(most=NUMBER))[relation]
    offer, _ = planned(pair[0], LEFT_OUT, relation)
    before, after = (drawn(curator, offer, innocent)[0] for curator in pair)
    assert list(excess(offer, before, after, relation)) == []
    nothing = Sensitivity(0, 0, 0, 0, neighbours=relation)
    twin = replace(offer, procedure=replace(offer.procedure, sensitivity=nothing))
    assert any("numbers moved" in found for found in excess(twin, before, after, relation))


TOTALS = Question(
    keys=("v.b", "LEAST(GREATEST(v.k, 0), 2)"), aggregates=("COUNT(*)", "SUM(LEAST(GREATEST(v.x, 0), 2))"), sets="CUBE"
)


@pytest.mark.slow
def test_totals_that_state_what_their_parts_do_are_convicted(shelf):
    """In a total one unit has the rows of all its groups."""
    for relation, pair in opened(shelf, marked(most=NUMBER)).items():
        offer, _ = planned(pair[0], TOTALS, relation)
        before, after = (drawn(curator, offer, innocent)[0] for curator in pair)
        assert offer.procedure.finest is not None
        assert list(excess(offer, before, after, relation)) == []
        design = offer.procedure.design
        wrong = tuple(replace(task, part=Contribution(1, 1, 1)) for task in design.tasks)
        twin = replace(offer, procedure=replace(offer.procedure, design=replace(design, tasks=wrong)))
        assert any("a total moved" in found for found in excess(twin, before, after, relation))


FEW = Question(keys=("v.b",), aggregates=("COUNT(DISTINCT v.u)", "COUNT(*)"))


def test_groups_of_which_one_is_forgotten_are_convicted(shelf):
    """True, false and NULL: the victim has a row in each, and its limit allows more."""
    world = marked(most=NUMBER)
    (*plain, first, second, third), policy = world.tables["v"].rows, {"tables": {"v": {"unit": "u", "rows": 8}}}
    rows = (*plain, first, (*second[:-1], "TRUE"), (*third[:-1], "NULL"))
    tables = {"v": replace(world.tables["v"], rows=rows)}
    for relation, pair in opened(shelf, replace(world, tables=tables, policy=policy, other={"v": ()})).items():
        offer, _ = planned(pair[0], FEW, relation)
        before, after = (drawn(curator, offer, innocent)[0] for curator in pair)
        assert list(excess(offer, before, after, relation)) == []
        [task] = offer.procedure.design.tasks
        assert task.part == Contribution(3, 8, 8)
        for cells in (3, 2, 1):
            fewer = replace(offer.procedure.design, tasks=(replace(task, part=task.part.within(cells)),))
            found = list(
                excess(replace(offer, procedure=replace(offer.procedure, design=fewer)), before, after, relation)
            )
            enough = cells if relation is Neighbours.ADD_REMOVE else 2 * cells  # the rows of two units
            assert any("units moved by 3 in l1" in one for one in found) == (enough < 3)


LINES = [
    'nz.Histogram("LEAST(GREATEST(k, 0), 2)", of=t("v"))',
    'nz.Ranges("LEAST(GREATEST(k, 0), 2)", of=t("v"))',
    "nz.Workload([{'LEAST(GREATEST(k, 0), 2)': [0, 1]}], of=t('v'))",
]


@pytest.mark.parametrize("question", LINES)
def test_a_line_that_states_too_little_is_convicted(shelf, question):
    for relation, pair in opened(shelf, marked(most=NUMBER)).items():
        offer, _ = planned(pair[0], Question(python=question, spend=SPENDS[1]), relation)
        before, after = (drawn(curator, offer, innocent)[0] for curator in pair)
        assert list(excess(offer, before, after, relation)) == []
        if relation is Neighbours.REPLACE:  # there the victim's cell loses no more than a row
            continue
        procedure, row = offer.procedure, one_node(1, relation)  # where two rows are used
        if hasattr(procedure, "tree"):
            twin = replace(procedure, tree=replace(procedure.tree, moved=row))
        else:
            twin = replace(procedure, made=replace(procedure.made, moved=(row,) * len(procedure.made.moved)))
        found = list(excess(replace(offer, procedure=twin), before, after, relation))
        assert any("a level of counts moved" in one for one in found)


def test_a_map_that_states_too_little_is_convicted(shelf):
    for relation, pair in opened(shelf, marked(most=NUMBER)).items():
        offer, _ = planned(pair[0], replace(MAPS[0], spend=SPENDS[1]), relation)
        before, after = (drawn(curator, offer, innocent)[0] for curator in pair)
        assert list(excess(offer, before, after, relation)) == []
        if relation is Neighbours.REPLACE:  # there the victim's cell loses no more than a row
            continue
        procedure = offer.procedure
        twin = replace(procedure, made=replace(procedure.made, moved=one_node(1, relation)))  # where two rows are used
        assert any("moved by" in found for found in excess(replace(offer, procedure=twin), before, after, relation))


WEIGHTS = [
    "nz.MultiplicativeWeights(['LEAST(GREATEST(k, 0), 2)', 'b'], ways=1, of=t('v'))",
    "nz.MultiplicativeWeights(['LEAST(GREATEST(k, 0), 2)'], [{}, {'LEAST(GREATEST(k, 0), 2)': [0, 1]}], of=t('v'))",
]


@slow
@pytest.mark.parametrize("question", WEIGHTS)
def test_weights_that_state_too_little_are_convicted(shelf, question):
    for relation, pair in opened(shelf, marked(most=NUMBER)).items():
        offer, _ = planned(pair[0], Question(python=question, spend=SPENDS[1]), relation)
        before, after = (drawn(curator, offer, innocent)[0] for curator in pair)
        assert list(excess(offer, before, after, relation)) == []
        if relation is Neighbours.ADD_REMOVE:
            procedure = replace(offer.procedure, made=replace(offer.procedure.made, unit_rows=1))  # where two are used
            found = list(excess(replace(offer, procedure=procedure), before, after, relation))
            assert any("a candidate moved" in one for one in found)


@slow
def test_an_oracle_that_states_too_little_is_convicted(shelf):
    asked = Question(python="nz.Oracle('LEAST(GREATEST(k, 0), 2)', of=t('v'))", spend=SPENDS[1])
    pair = opened(shelf, marked(most=NUMBER))[Neighbours.ADD_REMOVE]
    offer, _ = planned(pair[0], asked, Neighbours.ADD_REMOVE)
    before, after = (drawn(curator, offer, innocent)[0] for curator in pair)
    _consulted(offer, before, after)
    with pytest.raises(Convicted, match="an answer of an oracle moved by 2, stated 1"):
        _consulted(replace(offer, sensitivity=one_node(1, Neighbours.ADD_REMOVE)), before, after)


def test_a_twin_of_scores_is_convicted(shelf):
    shelf.shrinks = False
    with pytest.raises(Convicted, match="moved by"):
        attacked(shelf, marked(most=NUMBER), EVERY[3:], twins.Scattering)


OF_ROWS = ['nz.Apply(lambda rows: 0.5, blocks=2, bounds=(0, 1), of=t("v"))', 'nz.Distinct("g", of=t("v"))']


@pytest.mark.slow
@pytest.mark.parametrize("question", OF_ROWS)
def test_a_twin_that_leaves_out_rows_of_somebody_else_is_convicted(shelf, question):
    shelf.shrinks = False
    of = Question(python=question)
    attacked(shelf, marked(most=NUMBER), [of])
    with pytest.raises(Convicted, match="the rows of 1 units went"):
        attacked(shelf, marked(most=NUMBER), [of], twins.Leaving)


@slow
@pytest.mark.parametrize("twin", [twins.Twice, twins.Unbounded])
def test_random_questions_convict_a_twin(shelf, twin):
    """By themselves, without a marker to look for; what is fixed here is the seeds, so this never changes by chance."""
    shelf.shrinks = False
    with pytest.raises(Convicted, match="sensitivity"):
        sum((attacks.tables(seed, shelf, twin) for seed in range(20)), Counter())


@slow
def test_a_conviction_is_made_small(shelf):
    with pytest.raises(Convicted) as found:
        attacked(shelf, marked(most=NUMBER), [Question(keys=("v.b",), aggregates=("COUNT(*)",))], twins.Twice)
    assert "'p1'" not in str(found.value)
    assert "GROUP BY" not in str(found.value)
