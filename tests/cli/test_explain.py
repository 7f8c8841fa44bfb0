"""`noisette explain`: free, before anything is settled, and as JSON."""

import json

import pytest
from tests.cli.tools import COUNT, refused, well

TOTAL = "SELECT count(*) AS n FROM visits"


def test_it_tells_the_error_and_costs_nothing(settled):
    assert "± 24" in well("explain", TOTAL, "--spend", "0.5")
    told = json.loads(well("budget", "--json"))
    assert (told["charges"], told["spent"]["epsilon"]) == (0, "0")


def test_it_finds_the_epsilon_for_an_error(settled):
    told = json.loads(well("explain", TOTAL, "--error", "24", "--json"))
    epsilon = eval(told["spend"]["epsilon"])
    assert 0.4 < epsilon <= 0.51
    assert told["questions"][0][0]["half_width"] <= 24


@pytest.mark.slow
def test_errors_that_depend_on_rows(settled):
    mean = "SELECT avg(age) AS age FROM visits"
    assert "rows" in refused(2, "explain", mean, "--error", "1")
    told = json.loads(well("explain", mean, "--error", "1", "--rows", "10000", "--delta", "1e-8", "--json"))
    assert told["spend"]["delta"] == "1/100000000"
    assert told["questions"][0][0]["half_width"] <= 1


def test_json_has_the_same_keys_always(settled):
    told = json.loads(well("explain", f"{COUNT}; {TOTAL}", "--spend", "0.5", "--json"))
    said = ["spend", "guarantee", "allowed", "prices", "level", "unit", "why", "rules", "caveats", "questions"]
    assert list(told) == said
    assert [[column["column"] for column in columns] for columns in told["questions"]] == [["n", "age"], ["n"]]
    assert told["allowed"] is True
    assert told["caveats"][1][0] == "At most 4 rows of each patient_id are used; further rows are left out."
    assert [set(column) >= {"assumes", "warning"} for column in told["questions"][0]] == [True, True]
    assert json.loads(well("explain", TOTAL, "--spend", "9", "--json"))["allowed"] is False


@pytest.mark.slow
def test_a_chart(settled):
    pytest.importorskip("vl_convert", reason="pictures need the extra plot")
    well("explain", TOTAL, "--spend", "0.5", "--plot", "error.png")
    assert (settled / "error.png").stat().st_size > 1000
    assert "cannot be drawn" in refused(2, "explain", TOTAL, "--spend", "0.5", "--plot", "none/error.png")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([TOTAL], "--spend 0.1 or --error 50"),
        ([TOTAL, "--spend", "1", "--error", "1"], "--spend 0.1 or --error 50"),
        ([TOTAL, "--spend", "1", "--delta", "1e-8"], "--delta goes with --error"),
        ([TOTAL, "--spend", "1", "--rows", "0"], "--rows"),
        ([TOTAL, "--error", "-1"], "error must be"),
        ([TOTAL, "--error", "nan"], "error must be"),
        ([TOTAL, "--error", "5", "--delta", "x"], "delta"),
        (["SELECT sum(price) FROM visits", "--spend", "1"], "price"),
        ([TOTAL, "--spend", "abc"], "--spend must be"),
    ],
)
def test_bad_input(settled, arguments, words):
    assert words in refused(2, "explain", *arguments)
