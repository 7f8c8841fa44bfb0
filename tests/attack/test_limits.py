"""Policies that leave the limit on rows to each question: no plan moves by more than it states.

`trial` carries out every plan of such a question, for both neighbours, so that different choices hide nothing.
"""

import random
from dataclasses import replace

import pytest
from tests.attack import twins
from tests.attack.attacks import NUMBER, marked
from tests.attack.questions import PYTHON, SPENDS, Question, _sql
from tests.attack.tables import random_world
from tests.attack.trial import Convicted, attacked
from tests.nightly import each_night

import noisette as nz
from noisette.query.measure import Measure

EACH = {"rows": "each question", "most_rows": 4}
SUM = Question(aggregates=("SUM(v.k)",))
EVERY = [
    Question(aggregates=("COUNT(*)",)),
    SUM,
    Question(keys=("v.g",), aggregates=("COUNT(*)", "AVG(v.x)")),
    Question(source="v JOIN v AS w ON v.u = w.u", aggregates=("COUNT(*)",)),
    Question(keys=("v.k", "v.b"), aggregates=("COUNT(*)",), spend=nz.ZCDP("1/4")),
]


RULES = {"minimum_frequency": 2, "least_difference": 3}
HOUSES = pytest.mark.parametrize("house", [{}, RULES], ids=["plain", "minimum frequency"])


def chosen(world, house=None):
    """The same world with such a policy, perhaps under rules of the house."""
    tables = world.policy["tables"]
    rules = {
        name: {part: rule for part, rule in given.items() if part not in ("rows", "groups", "rows_per_group")} | EACH
        if given.get("unit")
        else given
        for name, given in tables.items()
    }
    return replace(world, policy={"tables": rules, "rules": house or {}})


@pytest.mark.slow
@HOUSES
@pytest.mark.parametrize("seed", range(2))
def test_random_tables_and_questions(shelf, seed, house):
    rng = random.Random(f"limits {seed}")
    world = chosen(random_world(rng), house)
    sums = [replace(_sql(rng), keys=(), aggregates=(f"SUM(LEAST(GREATEST(v.{c}, -1), 2))",)) for c in "kx"]
    attacked(shelf, world, [*(_sql(rng) for _ in range(3)), *sums, Question(python=PYTHON["frame"](rng))])


STREAMS = ("Above", "Oracle", "Stream", "json oracle")
CHOOSING = sorted(name for name in PYTHON if name not in STREAMS)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("form", each_night(range(2), first=1, why="a second random form of each question"))
@pytest.mark.parametrize("name", CHOOSING)
def test_every_question_chooses(shelf, name, form):
    """Random forms of each question about random tables: no plan moves by more than it states."""
    rng = random.Random(f"limits of {name} {form}")
    attacked(shelf, chosen(random_world(rng)), [Question(python=PYTHON[name](rng), spend=s) for s in SPENDS[:2]])


@pytest.mark.slow
@HOUSES
def test_the_marked_world_is_innocent(shelf, house):
    assert attacked(shelf, chosen(marked(), house), EVERY)["answered"] == 2 * len(EVERY)


@pytest.mark.slow_after(2)
@HOUSES
@pytest.mark.parametrize(
    ("question", "twin"),
    [(EVERY[0], twins.Twice), (EVERY[0], twins.Unbounded), (SUM, twins.Twice)],
    ids=lambda given: getattr(given, "__name__", str(given)),
)
def test_twins_are_convicted(shelf, twin, question, house):
    """A clipped total drops no rows, so there are no limits to leave out."""
    shelf.shrinks = False
    with pytest.raises(Convicted, match=r"sensitivity: .* moved by"):
        attacked(shelf, chosen(marked(), house), [question], twin)


VALUES = [
    'nz.Histogram("k", bins=3, of="v")',
    'nz.Mode("b", of="v")',
    'nz.Cube(["LEAST(GREATEST(k, 0), 2)", "b"], ways=1, of="v")',
    'nz.OrderStatistic("k", of="v")',
]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("twin", [twins.Twice, twins.Unbounded])
@pytest.mark.parametrize("python", VALUES)
def test_twins_of_other_questions_are_convicted(shelf, twin, python):
    shelf.shrinks = False
    question = Question(python=python)
    world = chosen(marked(most=NUMBER))
    assert attacked(shelf, world, [question])["answered"] == 2
    with pytest.raises(Convicted, match=r"sensitivity: .* moved by"):
        attacked(shelf, world, [question], twin)


@pytest.mark.slow
def test_a_number_of_units_that_counts_rows_is_convicted(shelf):
    """The twin counts all rows where a minimum frequency asks for units: one unit moves that by as many as it has."""
    question = Question(keys=("v.b",), aggregates=("AVG(v.x)",))
    shelf.shrinks = False
    with pytest.raises(Convicted, match=r"sensitivity: units moved by"):
        attacked(shelf, chosen(marked(), RULES), [question], RowsForUnits)
    attacked(shelf, chosen(marked()), [question], RowsForUnits)


class RowsForUnits(twins.Twin):
    """Counts rows in place of units."""

    def aggregate(self, request, schema, secret):
        counted = tuple(Measure("rows") if one == Measure("units") else one for one in request.measures)
        return self.source.aggregate(replace(request, measures=counted), schema, secret)
