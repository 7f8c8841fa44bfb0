"""Minimum frequency: the threshold follows from the noise that is drawn, to the last whole number."""

from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from tests.goodness import fewest, most
from tests.query.worlds import table

from noisette.errors import InputError
from noisette.mechanisms import Gaussian, Geometric, Threshold
from noisette.privacy import ZCDP, Approx, Neighbours, Pure
from noisette.query.draw import draw
from noisette.query.frequency import MinimumFrequency
from noisette.query.kind import Kind
from noisette.query.measure import Exact, Measure
from noisette.query.schema import Limits
from noisette.query.sql import parse
from noisette.questions.parts.queries import Queries

pytestmark = pytest.mark.slow_after(2)
F = Fraction
RULES = [
    MinimumFrequency(10),
    MinimumFrequency(1, F(1, 20)),
    MinimumFrequency(5, F(1, 10**12)),
    MinimumFrequency(3, F(1, 7)),
]
GEOMETRIC = [Geometric(1), Geometric("1/3"), Geometric("27/2"), Geometric(400)]
GAUSSIAN = [Gaussian(2, grid=1), Gaussian("5/3", grid="1/4"), Gaussian(3, grid="1/16")]


def geometric_tail(scale, least):
    """P(Z >= least) = a^least/(1 + a), least >= 1, a = e^(-1/scale); by symmetry otherwise."""
    with mpmath.workdps(60):
        a = mpmath.exp(-1 / mpmath.mpf(scale.numerator) * scale.denominator)
        return a**least / (1 + a) if least > 0 else 1 - a ** (1 - least) / (1 + a)


def gaussian_tail(noise, least):
    """The sum of the pmf over lattice points at or above `least`, in natural units."""
    s2, first = (noise.sigma / noise.grid) ** 2, -(-F(least) // noise.grid)
    reach = int(20 * noise.sigma / noise.grid)
    with mpmath.workdps(60):
        weights = {
            z: mpmath.exp(-mpmath.mpf(z * z) * s2.denominator / (2 * s2.numerator)) for z in range(-reach, reach)
        }
        return sum(w for z, w in weights.items() if z >= first) / sum(weights.values())


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("noise", GEOMETRIC, ids=str)
def test_the_threshold_is_the_least_that_keeps_the_failure_with_geometric_noise(noise, rule):
    t, below = rule.threshold(noise), rule.units - 1
    failure = mpmath.mpf(rule.failure.numerator) / rule.failure.denominator
    assert geometric_tail(noise.scale, t - below) <= failure
    assert geometric_tail(noise.scale, t - 1 - below) > failure  # a twin that is off by one shows more


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("noise", GAUSSIAN, ids=str)
def test_the_threshold_is_the_least_that_keeps_the_failure_with_gaussian_noise(noise, rule):
    t, below = rule.threshold(noise), rule.units - 1
    failure = mpmath.mpf(rule.failure.numerator) / rule.failure.denominator
    assert gaussian_tail(noise, t - below - F(1, 2)) <= failure  # noisy numbers are rounded, perhaps upwards
    assert gaussian_tail(noise, t - 1 - below - F(1, 2)) > failure


@pytest.mark.parametrize("noise", ["geometric", "truncated", "gaussian"])
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_unknown_keys_have_the_higher_of_two_thresholds(noise, rule):
    plain = Threshold.calibrated(Approx(1, "1e-6"), groups=2, noise=noise)
    raised = rule.raised(plain)
    assert raised.threshold >= plain.threshold
    for n in range(rule.units):
        assert raised.chance(n) <= rule.failure * (1 + F(1, 10**9))
    if raised.threshold > plain.threshold:
        assert replace(raised, threshold=raised.threshold - 1).chance(rule.units - 1) > rule.failure
    for relation in Neighbours:
        assert raised.guarantee(neighbours=relation) <= plain.guarantee(neighbours=relation)


@pytest.mark.parametrize("failure", [0, 1, -1, F(1, 10**31)])
def test_a_failure_is_a_probability(failure):
    with pytest.raises(InputError, match="failure must lie between"):
        MinimumFrequency(10, F(failure))


# What is drawn

KEYS = tuple("abcdefgh")


LIMITS, ONE = Limits(groups=1, rows_per_group=2), Pure(1)


def schema(rule, limits=LIMITS, keys=KEYS):
    columns = {
        "u": Kind("integer", nullable=False),
        "g": Kind("text", keys=keys, nullable=False),
        "x": Kind("integer", F(0), F(50), F(1), nullable=False),
    }
    return {"v": replace(table("v", columns, unit="u", limits=limits), frequency=rule)}


def offered(text, rule, spend=ONE, relation=Neighbours.ADD_REMOVE, **options):
    known = schema(rule, **options)
    return Queries((parse(text, known),)).offer(known, spend, relation, 0.95)


def noised(offer, units, times, shown=None):
    """What is drawn where each group has that number of units with two rows each, with x = 1."""
    design = offer.procedure.design
    if shown is not None:
        design = replace(design, shown={0: shown})
    each = {"rows": 2 * units, "units": units, "sum": 2 * units, "count": 2 * units}
    made = [np.full(times, each[measure.what]) for measure in design.tasks[0].request.measures]
    return draw(design, 0, Exact(None, tuple(made)))


ODD = MinimumFrequency(10, F(1, 20))
QUESTIONS = ["SELECT g, SUM(x) AS y FROM v GROUP BY g", "SELECT COUNT(*) AS n FROM v WHERE u = 7"]
TIMES = 40_000


@pytest.mark.parametrize("spend", [Pure(1), ZCDP("0.1")], ids=repr)
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_small_group_is_shown_as_often_as_stated_and_a_twin_more_often(question, spend):
    """Each of three assertions fails by chance with probability at most 1e-12."""
    offer = offered(question, ODD, spend)
    task, t = offer.procedure.design.tasks[0], offer.procedure.design.shown[0]
    noise = offer.procedure.design.noise[0, task.deciding]
    allowed = most(TIMES, float(ODD.failure))
    drawn = noised(offer, ODD.units - 1, TIMES)
    assert int((~np.isnan(drawn.measures[task.deciding])).sum()) <= allowed
    for twin in (t - 1, t - 2):
        more = float(ODD.chance(noise, ODD.units - 1, twin))
        shown = int((~np.isnan(noised(offer, ODD.units - 1, TIMES, twin).measures[task.deciding])).sum())
        assert fewest(TIMES, more * (1 - 1e-6)) <= shown <= most(TIMES, more)
        assert more > ODD.failure


def test_all_numbers_of_a_suppressed_group_are_gone():
    offer = offered("SELECT g, SUM(x) AS y, MEDIAN(x) AS m, COUNT(*) AS n FROM v GROUP BY g", MinimumFrequency(10))
    design = offer.procedure.design
    made = {
        m: np.zeros((8, m.cells) if m.what == "histogram" else 8, np.int64) for m in design.tasks[0].request.measures
    }
    drawn = draw(design, 0, Exact(None, tuple(made.values())))
    assert all(np.isnan(numbers).all() for numbers in drawn.measures.values())
    assert all(np.isnan(end).all() for ends in drawn.quantiles.values() for end in ends)
    columns = offer.procedure.answers(offer.unpack(offer.pack((drawn,))))[0]
    assert [column.values.null_count for column in columns] == [0, 8, 8, 8]
    assert all(np.isnan(end).all() for c in columns[1:] for end in (c.low, c.high, *c.unmoved))


@pytest.mark.parametrize("text", ["g, COUNT(DISTINCT u) AS y", "g, SUM(x) AS y"])
@pytest.mark.parametrize("relation", Neighbours, ids=str)
@pytest.mark.parametrize("spend", [Pure(1), Approx("0.3", "1e-7"), ZCDP("0.02")], ids=repr)
def test_the_number_of_units_is_paid_for_with_what_was_to_be_spent(text, relation, spend):
    bare = {relation: replace(spend, neighbours=relation)}[relation]
    offer = offered(f"SELECT {text} FROM v GROUP BY g", MinimumFrequency(10), spend, relation)
    assert offer.guarantee <= bare
    assert len(offer.parts) == (1 if "DISTINCT" in text else 2)
    assert {"minimum_frequency": 10, "failure": "1/1000000"}.items() <= offer.rules.items()


def test_the_rule_is_part_of_the_text_and_nothing_is_without_it():
    question = "SELECT g, COUNT(*) AS n FROM v GROUP BY g"
    texts = {offered(question, rule).text for rule in (None, MinimumFrequency(10), MinimumFrequency(11), ODD)}
    assert len(texts) == 4
    assert offered(question, None).rules == {}


def test_unknown_keys_are_decided_by_noise_and_never_by_a_single_bit():
    offer = offered("SELECT g FROM v GROUP BY g", MinimumFrequency(10), Approx(1, "1e-6"), keys=None)
    rule = offer.procedure.design.keys[0]
    assert isinstance(rule, Threshold)
    assert rule.chance(9) <= 1e-6 < replace(rule, threshold=rule.threshold - 1).chance(9)
    assert offer.rules["shown_from"] == [rule.threshold]


def test_groups_that_are_not_shown_are_no_part_of_having_and_come_last():
    text = "SELECT g, COUNT(DISTINCT u) AS n FROM v GROUP BY g {} ORDER BY n"
    found = {}
    for having in ("", "HAVING n < 1000"):
        offer = offered(text.format(having), MinimumFrequency(10))
        counts = np.array([500, 0, 300, 0, 0, 0, 0, 400])
        drawn = draw(offer.procedure.design, 0, Exact(None, (counts,)))
        found[having] = [c.values.to_pylist() for c in offer.procedure.answers((drawn,))[0]]
    assert found["HAVING n < 1000"][0] == ["c", "h", "a"]
    assert found[""][0] == [*"cha", *"bdefg"]
    assert found[""][1][3:] == [None] * 5


def test_what_is_said_of_a_suppressed_group_is_unknown():
    text = "SELECT g, COUNT(DISTINCT u) > 5 AS many, NOT COUNT(DISTINCT u) > 5 AS few, 7 AS seven FROM v GROUP BY g"
    offer = offered(text, MinimumFrequency(10))
    drawn = draw(offer.procedure.design, 0, Exact(None, (np.array([500, *[0] * 7]),)))
    _, many, few, seven = (c.values.to_pylist() for c in offer.procedure.answers((drawn,))[0])
    assert (many, few) == ([True, *[None] * 7], [False, *[None] * 7])
    assert seven[0] == seven[1]


def test_several_questions_share_the_number_of_units():
    known = schema(MinimumFrequency(10))
    texts = ("SELECT g, SUM(x) AS y FROM v GROUP BY g", "SELECT g, AVG(x) AS y FROM v GROUP BY g")
    offer = Queries(tuple(parse(text, known) for text in texts)).offer(known, Pure(1), Neighbours.ADD_REMOVE, 0.95)
    [task] = offer.procedure.design.tasks
    assert [m for m in task.request.measures if m.what == "units"] == [Measure("units")]
    assert len(offer.procedure.design.noise) == len(task.request.measures)
