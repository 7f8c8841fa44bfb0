"""Blocks that overlap: the exact law of division and aggregate, for small tables and all their neighbours.

A table is a multiset of units' values; each unit is in two of the blocks, chosen evenly. For every table the chances of
all that the blocks can give are enumerated, so what is released has an exact law. An aggregate that does not know that
a unit is in two blocks fails the same checks.
"""

import itertools
import math
from collections import Counter
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import noisette as nz
from noisette.exact.random import SYSTEM
from noisette.releases.blocks.means import STEPS, mean
from noisette.releases.blocks.numbers import Numbers
from noisette.releases.blocks.terms import Terms
from noisette.releases.blocks.votes import mode, stable
from noisette.sandbox.dividing import _drawn

EACH, LABELS, VALUES = 2, ("a", "b", "c"), (0, 1, 2)
TABLES = [t for n in range(4) for t in itertools.combinations_with_replacement(VALUES, n)]
ADD_REMOVE, REPLACE = nz.Neighbours.ADD_REMOVE, nz.Neighbours.REPLACE
RELATIONS = pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE], ids=str)


def neighbours(relation):
    """All ordered pairs of tables that differ by one unit."""
    for one, other in itertools.product(TABLES, repeat=2):
        apart = sum((Counter(one) - Counter(other)).values()), sum((Counter(other) - Counter(one)).values())
        if apart in ([(1, 0), (0, 1)] if relation is ADD_REMOVE else [(1, 1)]):
            yield one, other


# Functions of a block, given as the values of its units


def holds_one(block):
    return "b" if 1 in block else "a"


def largest(block):
    return LABELS[max(block, default=0)]


def parity(block):
    return LABELS[sum(block) % 2]


def crowd(block):
    return LABELS[min(len(block), 2)]


def often_fails(block):
    return "c" if 2 in block else None


FUNCTIONS = [holds_one, largest, parity, crowd, often_fails]


@cache
def outputs(function, table, blocks, each=EACH):
    """The chance of each multiset of what the blocks give: all choices of all units are as likely."""
    choices = list(itertools.combinations(range(blocks), each))
    seen = Counter()
    for chosen in itertools.product(choices, repeat=len(table)):
        held = [[x for x, own in zip(table, chosen, strict=True) if i in own] for i in range(blocks)]
        seen[tuple(sorted(map(str, map(function, held))))] += 1
    return {given: n / len(choices) ** len(table) for given, n in seen.items()}


def mixed(law, function, table, blocks):
    """What is released for a table: the laws for what the blocks give, by their chances."""
    total = Counter()
    for given, chance in outputs(function, table, blocks).items():
        for outcome, p in law(given).items():
            total[outcome] += chance * p
    return total


def worst(law, relation, blocks, divergence, functions=FUNCTIONS):
    """The largest divergence over functions and neighbours."""
    found = 0.0
    for function in functions:
        laws = {table: mixed(law, function, table, blocks) for table in TABLES}
        found = max(found, *(divergence(laws[one], laws[other]) for one, other in neighbours(relation)))
    return found


def counts_of(given, labels):
    counts = [given.count(label) for label in LABELS]
    return counts if labels else {label: n for label, n in zip(LABELS, counts, strict=True) if n}


def excess(one, other):
    """delta at epsilon = 1."""
    return sum(max(0.0, p - math.e * other[y]) for y, p in one.items())


def loss(one, other):
    return max(abs(math.log(p / other[y])) for y, p in one.items())


# Aggregates


@pytest.mark.slow_after(2)
@RELATIONS
@pytest.mark.parametrize("blocks", [3, 4])
@pytest.mark.parametrize("labels", [LABELS, None], ids=["listed", "open"])
def test_a_stable_mode_of_subsamples_attains_its_delta(labels, blocks, relation):
    promise = nz.Approx(1, "1/20")
    worths = {}
    for each in (EACH, 1):  # the second one does not know that a unit has two votes
        made = stable(labels, None, Terms(blocks, each, promise, relation, 0.95))
        assert made.guarantee <= nz.Approx(1, "1/20", neighbours=relation)
        worths[each] = worst(
            lambda given, m=made.mechanism: m.outcomes(counts_of(given, labels)), relation, blocks, excess
        )
    assert 0.0499 < worths[EACH] <= 0.05 + 1e-9
    assert worths[1] > 0.05 * 1.5


@RELATIONS
def test_a_mode_of_subsamples_loses_epsilon_at_most(relation):
    worths = {}
    for each in (EACH, 1):
        made = mode(LABELS, None, Terms(3, each, nz.Pure(1), relation, 0.95))
        assert made.guarantee == nz.Pure(1, neighbours=relation)

        def law(given, m=made.mechanism):
            return dict(enumerate(m.pmf(range(3), counts_of(given, True)).tolist()))

        worths[each] = worst(law, relation, 3, loss)
    assert 0.5 < worths[EACH] <= 1 + 1e-9
    assert worths[1] > 1.2


@RELATIONS
def test_a_mean_of_subsamples_loses_epsilon_and_no_more(relation):
    known = Numbers(("v",), ((Fraction(0), Fraction(2)),), (Fraction(1),))
    places = np.arange(-8, 13) * STEPS // 2
    worths = {}
    for each in (EACH, 1):
        scale = float(mean(known, Terms(3, each, nz.Pure(1), relation, 0.95)).noise.mechanism.scale)

        def law(given, scale=scale):
            total = sum(LABELS.index(label) for label in given) * STEPS // 2
            return dict(enumerate(np.exp(-np.abs(places - total) / scale).tolist()))

        worths[each] = worst(law, relation, 3, loss, [holds_one, largest, parity, crowd])
    assert worths[EACH] == pytest.approx(1)
    assert worths[1] == pytest.approx(2)


@pytest.mark.parametrize("spend", [nz.Pure(1), nz.Approx(1, "1e-6"), nz.ZCDP("1/10")], ids=repr)
@pytest.mark.parametrize("count", [1, 30])
def test_noise_is_in_proportion_to_the_blocks_of_a_unit(spend, count):
    known = Numbers(*(tuple([x] * count) for x in ("v", (Fraction(0), Fraction(2)), Fraction(1))))
    one, five = (mean(known, Terms(100, each, spend, REPLACE, 0.95)).noise for each in (1, 5))
    assert one.name == five.name
    assert five.mechanism.variance() == pytest.approx(25 * one.mechanism.variance(), rel=1e-3)
    assert float(five.parts[0]["sensitivity"]["linf"]) == 5 * STEPS


def test_as_many_times_fewer_blocks_of_the_same_size_need_the_same_lead():
    promise = nz.Approx(1, "1e-6")
    apart = stable(None, None, Terms(100, 1, promise, REPLACE, 0.95))
    overlapping = stable(None, None, Terms(400, 4, promise, REPLACE, 0.95))
    assert overlapping.lead / 400 == pytest.approx(apart.lead / 100, rel=0.08)


@pytest.mark.slow
def test_the_luck_of_dividing_averages_out_and_nothing_else_does():
    """Blocks of 25 units, of which 55 % are for one label, vote as they do; sixteen times as many of them vary less."""
    units, apart, times = 1_000, 40, 300
    chosen = np.arange(units) < 550
    leads = {each: [] for each in (1, 16)}
    for each, _ in itertools.product(leads, range(times)):
        drawn = _drawn(units, apart * each, each, SYSTEM)
        yes, no = (np.bincount(drawn[:, part].ravel(), minlength=apart * each) for part in (chosen, ~chosen))
        leads[each].append(np.sign(yes - no).mean())
    spread = np.std(leads[1]) / math.sqrt(times)
    assert np.mean(leads[16]) == pytest.approx(np.mean(leads[1]), abs=7 * spread)
    assert np.std(leads[1]) / np.std(leads[16]) == pytest.approx(4, rel=0.5)


def test_units_that_choose_by_coins_until_none_has_too_many_choose_independently():
    """As published: each unit in each block with probability q, all over again if one is in more than 2 m q.

    Given that, the choices of one unit are what they are without the other, so nothing is lost by the condition.
    """
    blocks, most = 3, 2
    alone = [c for c in itertools.product((0, 1), repeat=blocks) if sum(c) <= most]
    both = Counter(
        one for one, other in itertools.product(itertools.product((0, 1), repeat=blocks), repeat=2)
        if max(sum(one), sum(other)) <= most
    )  # fmt: skip
    assert set(both) == set(alone)
    assert set(both.values()) == {len(alone)}
