"""Questions, records and texts of strangers, at random: a few seeds of each, and guilty twins."""

import json
from collections import Counter
from fractions import Fraction

import pytest
from tests.attack.strangers import groups, records, texts
from tests.attack.trial import Convicted

from noisette.charts import chart
from noisette.query import grouping


def groups_of_eight_seeds():
    return sum((groups(seed) for seed in range(8)), Counter())


@pytest.mark.slow
def test_no_random_question_makes_groups():
    found = groups_of_eight_seeds()
    assert found["answered"] >= 4
    assert found["refused"] >= 4


@pytest.mark.slow
def test_a_check_that_follows_values_alone_is_convicted(monkeypatch):
    monkeypatch.setattr(grouping, "_linked", lambda found, links: found)
    with pytest.raises(Convicted, match="groups of dx"):
        groups_of_eight_seeds()


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("seed", range(4))
def test_records_of_strangers_are_checked_or_refused(seed):
    assert records(seed)["refused"]


def test_a_check_that_fails_in_other_words_is_convicted():
    with pytest.raises(Convicted, match="in place of a sentence"):
        records(0, checked=lambda text: Fraction(json.loads(text)["guarantee"]["epsilon"][:9]))


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("seed", range(4))
def test_texts_of_strangers_are_drawn(seed):
    assert texts(seed)["worlds"] == 20


def test_a_chart_that_draws_texts_as_they_are_is_convicted(monkeypatch):
    monkeypatch.setattr(chart, "legible", lambda spec, **_: spec)
    with pytest.raises(Convicted, match="cannot be drawn"):
        texts(0)
