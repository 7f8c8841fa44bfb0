"""Whatever the owner and the analysts call things, no name is taken for a word of ours."""

import json

import pytest
from tests.attack import words
from tests.attack.trial import Convicted
from tests.attack.words import COLUMNS, PLAIN, QUESTIONS, ROLES, SENTINELS, opened, tried

from noisette.answers import check
from noisette.questions.synthetic import _names

FEW = ("groups", "of each unit", "a join on units")
OWN = ("n", "n_low", "n_high", "group")  # columns of some answers, which refuse others that are called so
TOGETHER = ("table", "alias", "value", "analyst")  # where one word can stand at once


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("column", COLUMNS)
def test_a_column_called_row(column):
    assert not tried("row", [column], FEW)


@pytest.mark.slow_after(6)
@pytest.mark.parametrize("word", [word for word in SENTINELS if word not in ("a.b", *OWN)])
def test_one_word_for_all(word):
    assert not tried(word, [*TOGETHER, "unit"], FEW)


@pytest.mark.slow
@pytest.mark.parametrize(("word", "role"), [(word, ROLES[i % len(ROLES)]) for i, word in enumerate(SENTINELS)])
def test_a_word_in_one_place(word, role):
    """Refused are names that an answer has itself, and where a table is named by a text that is no SQL.

    `make attack` tries the other places.
    """
    refused = tried(word, [role])
    assert all(sentence.endswith(".") for sentence in refused.values())
    assert len(refused) < len(QUESTIONS)
    assert not refused or word in OWN or not word.isidentifier()


@pytest.mark.slow
def test_words_of_the_code():
    """One in twenty of them; `make attack` goes on with others."""
    for word in words.words()[::20]:
        for column in ("unit", "key"):
            refused = tried(word, [*TOGETHER, column], ("groups", "a condition", "unknown keys", "of each unit"))
            assert not refused or word in (*OWN, "a.b"), (word, column)


def test_records_tell_a_column_called_row_from_each_row():
    """Those that say "row" are of earlier versions, too, whose ledgers still count."""
    units = {}
    for unit in (False, True):
        data = opened(PLAIN | {"unit": "row"}, unit=unit)
        record = data.sql("SELECT count(*) AS n FROM visits", spend=1).to_json()
        check(record)
        units[unit] = json.loads(record)["unit"]
    assert units == {False: "row", True: '"row"'}


def test_a_column_called_row_is_synthesised_where_each_row_is_a_unit():
    data = opened(PLAIN | {"key": "row", "unit": "number of the patient"}, unit=False)
    assert "row" in _names("SELECT * FROM visits", data.schema)
    assert "row" not in _names("SELECT * FROM visits", opened(PLAIN | {"unit": "row"}).schema)


@pytest.mark.slow
def test_words_are_found_where_the_code_says_them():
    found = set(words.words())
    assert found >= {"unit", "order", "key0", "row", "rows", "rows_per_group", "left", "per_unit"}


def test_a_curator_that_takes_a_column_called_row_for_each_row_is_convicted():
    def confused(names):
        return opened(names, unit=names["unit"] != "row")

    with pytest.raises(Convicted, match="'row' as unit changes the answer to groups"):
        tried("row", ["unit"], FEW, confused)
