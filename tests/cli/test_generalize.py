import json

import pytest
from tests.cli.tools import run, well

from noisette.holdout.bounds import chosen_query, hoeffding


def found(*arguments):
    return json.loads(well("generalize", *arguments, "--json"))


def test_queries_in_words_and_as_json():
    shown = well("generalize", "queries", "--n", "100000", "--tau", "0.05")
    assert "A holdout of 100,000 rows answers 392 questions within 0.05, each asked after the answers before" in shown
    for part in (
        "all rows, Gaussian noise",
        "fresh rows for each question",
        "If all were fixed in advance: about 4e+215 questions.",
    ):
        assert part in shown
    routes = found("queries", "--n", "100000", "--tau", "0.05")["routes"]
    assert [(one["route"], one["queries"]) for one in routes] == [("gaussian", 392), ("splitting", 63), ("laplace", 33)]


def test_too_few_rows_are_said():
    assert "answers no question within 0.05" in well("generalize", "queries", "--n", "100", "--tau", "0.05")


def test_size_and_accuracy():
    shown = well("generalize", "size", "--queries", "10", "--tau", "0.05")
    assert "10 questions within 0.05 need 11,990 rows" in shown
    assert "If all were fixed in advance: 1,199 rows." in shown
    [best, *_] = found("accuracy", "--n", "11990", "--queries", "10")["routes"]
    assert (best["route"], best["beta"], best["noise"]) == ("splitting", "1/20", None)
    assert best["tau"] <= 0.05


def test_bounds():
    shown = {
        one["theorem"]: one for one in found("bound", "--epsilon", "0.04", "--n", "10000", "--tau", "0.05")["bounds"]
    }
    assert shown["if it had been fixed in advance"]["chance"] == hoeffding(10_000, "0.05")
    assert shown["differential privacy, by moments"]["chance"] == chosen_query(10_000, "0.05", "0.04")
    assert shown["max-information, rows of every law"]["chance"] == 1.0
    large = well("generalize", "bound", "--epsilon", "0.06", "--n", "10000", "--tau", "0.05")
    assert "does not apply" in large
    assert "0.04965" in large


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("queries", "--n", "0", "--tau", "0.05"), "n must be a whole number, at least 1."),
        (("queries", "--n", "10", "--tau", "2"), "tau must lie strictly between 0 and 1."),
        (("size", "--queries", "10", "--tau", "0.05", "--beta", "0"), "beta must lie strictly between 0 and 1."),
        (("accuracy", "--n", "10", "--queries", "10"), "No route promises anything here: ask fewer questions"),
        (("bound", "--epsilon", "-1", "--n", "10", "--tau", "0.05"), "epsilon"),
    ],
)
def test_bad_input_gets_one_sentence(arguments, sentence):
    result = run("generalize", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1
