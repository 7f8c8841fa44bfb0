"""Bars of every question hold what they say, on awkward rows, at a small and a large spend: each number by itself.

The contract, as in `test_coverage.py`: of many releases, in at least as many as the level says there is no number, or
its bar holds the number without noise; and a number lies within its bar. Numbers are told apart by the values beside
them. Questions are discovered: one without a truth in `coverage_truths.py`, or a reason, fails.
"""

from collections import Counter
from functools import lru_cache

import numpy as np
import pytest
from tests.contracts.coverage_rows import World
from tests.contracts.coverage_truths import ELSEWHERE, LEVEL, TRUTHS, WITHOUT_BARS
from tests.goodness import fewest

from noisette import questions
from noisette.mechanisms import Geometric
from noisette.privacy import Neighbours, Pure

DATA = ("clusters", "empty", "ties", "few", "spike")
SPENDS = ("1/5", "20")
QUICK = {"choose", "distinct"}
WHY = "every question on all rows at every spend: by day each is asked about one kind of rows at one spend"


@lru_cache(maxsize=len(DATA))
def world(data):
    return World(data)


def missed(asked, data, spend, times):
    """How often the bar of each number missed the truth."""
    there, found, truths = world(data), Counter(), {}
    for shown in asked.releases(there, spend, times):
        for keys, name, value, low, high in shown:
            for key in keys:
                if (name, key) not in truths:
                    truths[name, key] = asked.truth(there.t, name, *key)
            truth = np.array([truths[name, key] for key in keys], float)
            for i in np.flatnonzero(~held(value, low, high, truth)):
                found[name, keys[i]] += 1
    return found


def held(value, low, high, truth):
    """Whether there is no number, or its bar holds the truth; a number lies within its bar."""
    there, near = ~np.isnan(value), 1e-6 * np.maximum(1, np.abs(np.nan_to_num(truth)))
    assert (~there | ((low <= value + near) & (value - near <= high))).all()
    return ~there | ((low <= truth + near) & (truth - near <= high))


def unheld(asked, data, spend, times):
    """The numbers whose bars hold less often than the level says, with how often they miss."""
    most = times - fewest(times, LEVEL)
    return {number: n for number, n in missed(asked, data, spend, times).items() if n > most}


def cases():
    """Each question about one kind of rows at one spend, not all about the same; the others at night."""
    every = [(data, spend) for data in DATA for spend in SPENDS]
    for i, (name, asked) in enumerate(TRUTHS.items()):
        for j, (data, spend) in enumerate(every):
            by_day = [] if name in QUICK else [pytest.mark.slow]
            marks = by_day if j == 3 * i % len(every) else [pytest.mark.nightly(WHY)]
            yield pytest.param(asked, data, spend, id=f"{name}-{data}-{spend}", marks=marks)


@pytest.mark.parametrize(("asked", "data", "spend"), list(cases()))
def test_bars_hold_or_there_is_no_number(asked, data, spend):
    assert unheld(asked, data, spend, asked.times) == {}


def test_every_question_has_a_truth_or_a_reason():
    judged = [{name.partition(" ")[0] for name in TRUTHS}, set(ELSEWHERE), set(WITHOUT_BARS)]
    assert set.union(*judged) == set(questions.FILES)
    assert sum(map(len, judged)) == len(questions.FILES)


@pytest.mark.slow
@pytest.mark.parametrize("name", WITHOUT_BARS)
def test_questions_without_bars_have_none(name):
    there = world("clusters")
    offer = WITHOUT_BARS[name].offer(there.curator.schema, Pure(1), Neighbours.ADD_REMOVE, LEVEL)
    [columns] = offer.answers(offer.draw(there, there.curator.schema, bytes(16)))
    assert not any(column.measured for column in columns)


@pytest.mark.slow
def test_bars_half_as_wide_are_convicted(monkeypatch):
    """Half of a Laplace bar holds .78 of the time: of 1,000 releases, as many as are needed with p < 1e-12."""
    interval = Geometric.interval
    monkeypatch.setattr(Geometric, "interval", lambda self, *level: interval(self, *level) / 2)
    assert unheld(TRUTHS["frequency_sketch"], "clusters", "1/5", 1000)
