"""A minimum frequency where a question chooses its limits: private together, and the failure holds at every limit.

All tables of few units are enumerated: the joint law of the limit, of the units above it, of the answer and of the
number of units that decides; and the chance that too small a group is shown. Broken twins must exceed either.
"""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from tests.questions.chosen import ADD_REMOVE, BOTH, COUNT, SUM, offer, opened, table
from tests.questions.test_chosen_limits import neighbours_of, sizes

import noisette as nz
from noisette.answers.check import check
from noisette.query.measure import Measure
from noisette.questions.parts.chosen_limits import Drawn
from noisette.questions.parts.limit_choice import Chosen, scores

UNITS, FAILURE = 3, Fraction(1, 20)
HOUSE = {"minimum_frequency": UNITS, "failure": str(FAILURE)}
GROUPED = "SELECT g, COUNT(DISTINCT who) AS u, COUNT(*) AS n FROM visits GROUP BY g"


def made(sql=COUNT, neighbours=ADD_REMOVE, data=None, **rules):
    return offer(sql, neighbours=neighbours, curator=opened(data, house=HOUSE, most_rows=4, **rules))


def plans(found):
    """The design and the only task of each plan."""
    designs = [plan.procedure.design for plan in found.procedure.plans.values()]
    return [(one, one.tasks[0]) for one in designs]


# The promise


def losses(found, neighbours, units=1.0, numbers=1.0):
    """The largest loss of any outcome (limit, units above, rows, units), with noise of some parts times a number."""
    [choice] = found.procedure.choices
    law = {}
    for f in sizes():
        above = np.array([sum(n > limit for n in f) for limit in choice.limits])
        parts = [np.log(choice.chooser.pmf(np.arange(3), scores(above))), above / float(choice.counter.scale)]
        exact = {"rows": [sum(min(n, limit) for n in f) for limit in choice.limits], "units": [len(f)] * 3}
        for what, times in (("rows", numbers), ("units", units)):
            scale = [design.noise.get((0, Measure(what))) for design, _ in plans(found)]
            rate = [0 if one is None else 1 / float(one.scale) / times for one in scale]  # one row each: rows are units
            parts.append(np.array(exact[what]) * rate)
        law[f] = parts
    pairs = [(law[f], law[g]) for f in law for g in neighbours_of(f, neighbours)]
    return max(sum(np.abs(a - b) for a, b in zip(*pair, strict=True)).max() for pair in pairs)


@BOTH
def test_limit_answer_and_deciding_number_together_keep_the_promise(neighbours):
    found = made(neighbours=neighbours)
    used = losses(found, neighbours)
    assert found.guarantee == nz.Pure(1, neighbours=neighbours)
    assert (0.9 if neighbours is ADD_REMOVE else 0.5) < used <= 1 + 1e-9


def test_noise_that_forgets_the_deciding_number_exceeds_the_promise():
    """The twins: the answer takes all of the third share, or the deciding number does."""
    found = made()
    assert losses(found, ADD_REMOVE, numbers=0.5) > 1.2
    assert losses(found, ADD_REMOVE, units=0.5) > 1.2
    assert [design.noise[0, Measure("units")].scale for design, task in plans(found) if task.part.rows > 1] == [
        Fraction(40, 13)
    ] * 2  # half of 13/20, and one unit counts once


# Few declared groups: a, b and NULL

LIMITS, CELLS = (1, 2, 4, 8, 16), 3
PER_GROUP = "SELECT g, COUNT(DISTINCT who) AS u FROM visits GROUP BY g"


def by_group(neighbours):
    """The choice, and the noise of the number of units at each limit: rows and units are the same at a limit of one."""
    found = offer(PER_GROUP, neighbours=neighbours, curator=opened(house=HOUSE, most_rows=LIMITS[-1]))
    [choice] = found.procedure.choices
    assert choice.limits == LIMITS
    return found, choice, [design.noise[0, task.deciding] for design, task in plans(found)]


def groups_moved(f, g, limit):
    """In how many of the cells a unit of f rows and one of g rows in its place differ, at most."""
    one, other = (min(n, limit, CELLS) for n in (f, g))
    return min(one + other, 2 * CELLS - one - other)


def worst_of_groups(choice, scales, neighbours):
    """The largest loss of any outcome (limit, units above, units of each group)."""
    found = 0.0
    for f, g in itertools.product(range(7), repeat=2):  # rows of a unit, and of the one in its place; 0 is nobody
        if neighbours is ADD_REMOVE and f * g:
            continue
        for rest in sizes(units=2):
            above = [np.array([sum(n > limit for n in (*rest, own)) for limit in LIMITS]) for own in (f, g)]
            chances = [np.log(choice.chooser.pmf(np.arange(len(LIMITS)), scores(one))) for one in above]
            counted = np.abs(above[0] - above[1]) / float(choice.counter.scale)
            moved = np.array([groups_moved(f, g, limit) for limit in LIMITS]) / np.array(scales, float)
            found = max(found, (np.abs(chances[0] - chances[1]) + counted + moved).max())
    return found


@BOTH
def test_a_unit_counts_in_no_more_groups_than_are_declared_at_any_limit(neighbours):
    found, choice, noise = by_group(neighbours)
    units = 1 if neighbours is ADD_REMOVE else 2
    assert [one.scale for one in noise] == [Fraction(20, 13) * units * min(limit, CELLS) for limit in LIMITS]
    assert [design.shown[0] for design, _ in plans(found)][2:] == [plans(found)[2][0].shown[0]] * 3
    used = worst_of_groups(choice, [one.scale for one in noise], neighbours)
    assert (0.9 if neighbours is ADD_REMOVE else 0.6) < used <= 1 + 1e-9
    if neighbours is ADD_REMOVE:  # the twin counts one declared group too few
        twin = [Fraction(20, 13) * min(limit, CELLS - 1) for limit in LIMITS]
        assert worst_of_groups(choice, twin, neighbours) > 1.2


# The failure


def shown(noise, units, threshold):
    """P(units + Z >= threshold) of geometric noise, by its closed form."""
    a, m = math.exp(-1 / float(noise.scale)), threshold - units
    return a**m / (1 + a) if m > 0 else 1 - a ** (1 - m) / (1 + a)


def chances(found, units, thresholds=None):
    """The chance that a group of some units is shown, at each limit."""
    least = [design.shown[0] for design, _ in plans(found)] if thresholds is None else thresholds
    noise = [design.noise[0, task.deciding] for design, task in plans(found)]
    return np.array([shown(one, units, t) for one, t in zip(noise, least, strict=True)])


@BOTH
@pytest.mark.parametrize("sql", [COUNT, SUM, GROUPED])
def test_fewer_units_are_shown_with_at_most_the_failure_at_every_limit(sql, neighbours):
    found = made(sql, neighbours)
    for units in range(UNITS):
        assert (chances(found, units) <= float(FAILURE)).all()
    least = np.array([design.shown[0] for design, _ in plans(found)])
    assert (chances(found, UNITS - 1, least - 1) > float(FAILURE)).all()  # each threshold is the least


def test_the_failure_holds_over_all_choices_and_the_threshold_of_another_limit_breaks_it():
    """The mixture over limits of every table of fewer units; the twin decides by the least limit's threshold."""
    found = made(GROUPED)
    [choice] = found.procedure.choices
    worst, twin = 0.0, 0.0
    for f in (f for f in sizes() if len(f) < UNITS):
        above = np.array([sum(n > limit for n in f) for limit in choice.limits])
        chosen = choice.chooser.pmf(np.arange(3), scores(above))
        worst = max(worst, chosen @ chances(found, len(f)))
        twin = max(twin, chosen @ chances(found, len(f), [plans(found)[0][0].shown[0]] * 3))
    assert float(FAILURE) / 2 < worst <= float(FAILURE) < twin


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("place", range(3))
def test_only_noisy_numbers_decide(place):
    """A group of as many units as the threshold is shown just if its noise is not below 0: fails with p < 1e-12."""
    design, task = plans(made(GROUPED))[place]
    data = opened(table([2] * design.shown[0]), house=HOUSE, most_rows=4)
    found, seen = offer(GROUPED, curator=data).procedure, Counter()
    for _ in range(100):
        [noised] = found.plans[place,].draw(data._source, found.settled(data.schema, (place,)), bytes(16))
        numbers = noised.measures[task.deciding]
        assert not (numbers < design.shown[0]).any()
        seen[bool(np.isfinite(numbers[0]))] += 1
    assert set(seen) == {True, False}


# What is said


def test_where_no_group_is_shown_neither_is_the_limit():
    """Whichever limit was chosen and however many have more: answer and sentences are the same."""
    data = opened(table([1]), house={**HOUSE, "failure": "1e-30"}, most_rows=4)
    found, said = offer(COUNT, curator=data), set()
    for (place,), above in itertools.product(found.procedure.plans, (0, 90)):
        plan, settled = found.procedure.plans[place,], found.procedure.settled(data.schema, (place,))
        within = plan.draw(data._source, settled, bytes(16))
        drawn = found.unpack(found.pack(Drawn((Chosen(place, above),), within)))
        [columns] = found.answers(drawn)
        said.add(repr((found.found(drawn), [(c.name, c.values.to_pylist(), c.low, c.high, c.span) for c in columns])))
    assert len(said) == 1
    assert "as this question chose" not in said.pop()
    assert found.found(drawn) == found.caveats


def test_those_who_have_more_are_said_only_if_they_are_many_enough():
    found = made()
    [choice] = found.procedure.choices
    least = found.procedure.rule.threshold(choice.counter)
    assert shown(choice.counter, UNITS - 1, least) <= FAILURE < shown(choice.counter, UNITS - 1, least - 1)
    few, many = (choice.outcome(Chosen(1, n), found.procedure.rule) for n in (least - 1, least))
    assert f"fewer than about {least} whos have more" in few
    assert f"about {least} (± " in many
    assert f"about {least - 1} (± " in choice.outcome(Chosen(1, least - 1))


def test_price_failure_and_every_threshold_are_explained_and_recorded():
    data = opened(table([2] * 400), house=HOUSE, most_rows=4)
    explained, answer = data.explain(COUNT, spend=1), data.sql(COUNT, spend=30)
    words = " ".join(str(explained).split())
    assert "failure ≤ 0.05" in words
    assert "At a limit of 4 rows: That number is bought for the rule: ε = 0.325" in words
    assert "The limit is shown only beside a group that is shown" in words
    rules = answer.record["rules"]
    thresholds = rules["shown_from"]
    assert rules == {"minimum_frequency": UNITS, "failure": str(FAILURE), "shown_from": thresholds}
    assert list(thresholds) == ["1 row", "2 rows", "4 rows"]
    assert any(f"is below {thresholds['2 rows'][0]} are suppressed" in one for one in answer.caveats)
    assert any("as this question chose" in one for one in answer.caveats)
    assert check(answer.to_json()) <= answer.guarantee
    assert data.sql(COUNT, spend=30).to_json() == answer.to_json()


UNKNOWN = "SELECT y, COUNT(*) AS n FROM visits GROUP BY y"


def test_unknown_keys_have_a_threshold_at_every_limit():
    data = opened(table([2] * 400), house={"minimum_frequency": 40}, most_rows=4, columns={})
    answer = data.sql(UNKNOWN, spend=(30, "1e-6"))
    assert answer["y"].values.to_pylist() == [1]
    assert all(least >= 40 for [least] in answer.record["rules"]["shown_from"].values())
    few = opened(table([2] * 9), house={"minimum_frequency": 40}, most_rows=4, columns={}).sql(
        UNKNOWN, spend=(30, "1e-6")
    )
    assert len(few) == 0
    assert not any("as this question chose" in one for one in few.caveats)
