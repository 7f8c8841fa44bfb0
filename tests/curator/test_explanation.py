"""What a question would cost, before it is asked."""

import json
import math
import re
from fractions import Fraction

import pyarrow
import pytest

import noisette as nz
from noisette.curator.explanation import width
from noisette.curator.pricing import least_spends
from noisette.errors import InputError
from noisette.privacy import Approx, Pure
from noisette.query.expected import Expected

VISITS = pyarrow.table({"p": [1, 1, 2], "age": [10, 20, 30], "ward": ["a", "b", "a"]})
POLICY = {
    "tables": {
        "visits": {
            "unit": "p",
            "rows": 4,
            "columns": {
                "age": {"bounds": [0, 100], "nullable": False},
                "ward": {"keys": ["a", "b"], "nullable": False},
            },
        }
    }
}
MEANS = "SELECT ward, count(*) AS n, avg(age) AS mean, sum(age) AS s FROM visits GROUP BY ward"


@pytest.fixture
def visits():
    return nz.open({"visits": VISITS}, budget=Approx(2, "1e-6"), policy=POLICY)


def test_it_says_the_cost_first_and_stays_narrow(visits):
    lines = repr(visits.explain(MEANS, spend=1)).splitlines()
    assert lines[0] == "ε = 1 · 95% error bars"
    assert lines[1] == "alone ε = 1 at δ = 1e-6 · about 2 like it fit into what is left"
    assert max(map(len, lines)) <= 100
    assert lines[3].startswith("n     ± ")
    assert any(line.startswith("mean  about ± ") and " / rows (± " in line for line in lines)
    assert lines[-6:] == [
        "At most 4 rows of each p are used; further rows are left out.",
        "Values of age beyond [0, 100] count as the nearer bound.",
        "Rows whose ward is a value other than its 2 declared keys are left out.",
        "± covers the noise only, not what this leaves out; the owner can raise the limits, widen the bounds",
        "  and declare more keys in the policy.",
        "Laplace noise: a pure epsilon allows no Gaussian.",
    ]


@pytest.mark.parametrize("rule", [nz.Pure, nz.ZCDP])
def test_a_bar_that_says_nothing_is_warned_about_and_the_cure_works(visits, rule):
    """The spend that the sentence names brings the bar to what the sentence names, or nearly so."""
    question = "SELECT count(DISTINCT ward) AS k FROM visits"
    found = visits.explain(question, spend=rule("0.1"))
    said = re.search(
        r"no narrower than all that is possible, 0 to 2; for ± ([\d.]+) spend about ([\d,]+) times",
        str(found.columns[0].warning),
    )
    assert f"warning: {found.columns[0].warning}"[:60] in repr(found)
    assert found.columns[0].warning in found._repr_html_()
    better = visits.explain(question, spend=rule(Fraction(said[2].replace(",", "")) / 10))
    assert better.error == pytest.approx(float(said[1]), rel=0.5, abs=1)
    assert better.columns[0].warning == ""


def test_a_mean_of_which_nothing_can_be_known(visits):
    found = visits.explain("SELECT avg(age) AS a, count(*) AS n FROM visits", spend="0.0001")
    mean, count = found.columns
    assert mean.warning.startswith(
        "with 100,000 rows the error bar is no narrower than all that is possible, 0 to 100;"
    )
    assert count.warning == ""  # nobody declared how many rows there can be
    assert visits.explain("SELECT 5 AS five, count(*) AS n FROM visits", spend=1).columns[0].warning == ""


def test_it_reads_and_spends_nothing(visits):
    visits.explain(MEANS, spend=1)
    assert visits.budget.entries == ()


def test_an_error_is_turned_into_an_epsilon(visits):
    found = visits.explain("SELECT count(*) AS n FROM visits", error=20)
    assert found.error <= 20
    assert repr(found).startswith(f"ε = {float(found.spend.epsilon):g} · 95% error bars")
    nearly = nz.Pure(found.spend.epsilon * 98 / 100)
    assert found.again(nearly).error >= 20


@pytest.mark.slow
def test_an_error_that_depends_on_the_group_needs_its_size(visits):
    with pytest.raises(InputError, match="depends on how many rows a group has: name a number, such as rows=1000"):
        visits.explain("SELECT avg(age) AS mean FROM visits", error=1)
    found = visits.explain("SELECT avg(age) AS mean FROM visits", error=1, rows=1000)
    assert found.error <= 1


def least(law, error):
    """The least epsilon by a law of the error."""
    return least_spends(lambda spend: law(float(spend.size)), error, budget=Pure(1), delta=None, keys_delta=Fraction(0))


@pytest.mark.parametrize("error", [0, -1, math.nan, math.inf, "50"])
def test_errors_that_nobody_can_have(error):
    with pytest.raises(InputError, match="error must be a number above 0"):
        least(lambda size: 1 / size, error)


def test_the_least_epsilon_is_found():
    """Whatever the law of the error is: a power, one with steps, one that hardly falls."""
    for law, error in ((lambda e: 3 / e, 10), (lambda e: math.ceil(40 / e**2), 1000), (lambda e: 9 - math.log(e), 8.5)):
        [found] = least(law, error)
        assert law(float(found.epsilon)) <= error < law(float(found.epsilon) / 1.003)
    for law in (lambda e: 1.0, lambda e: 1e-9 + 1e9 / math.log(e + 2)):
        with pytest.raises(InputError, match="No epsilon makes the error that small"):
            least(law, 0.5)


def test_the_least_epsilon_is_found_in_few_steps():
    tried = []
    least(lambda size: tried.append(size) or 1960 / size, 30)
    assert len(tried) <= 8


def test_a_cost_beyond_the_budget_is_said(visits):
    assert "the budget does not hold this cost" in repr(visits.explain(MEANS, spend=50)).splitlines()[0]


def test_several_questions(visits):
    shown = repr(visits.explain([MEANS, "SELECT count(*) AS n FROM visits"], spend=1))
    assert "question 1" in shown
    assert "question 2" in shown


def test_in_a_notebook(visits):
    assert "one p can change" in visits.explain(MEANS, spend=1)._repr_html_()


def test_widths_in_words():
    def column(half=None, by_size=None, ranks=None):
        return Expected("x", "", "", half, by_size or {}, ranks, "")

    assert width(column(9.0)) == "± 9"
    assert width(column(0.05391)) == "± 0.0539"
    assert width(column(ranks=12.5)) == "± 12.5 ranks"
    assert width(column()) == "cannot be known before"
    assert width(column(by_size={100: 5.0, 1000: 2.0})) == "± 5 at 100 rows, ± 2 at 1,000"


@pytest.mark.slow
def test_the_chart_draws_every_column(visits):
    assert {"n", "s", "mean of 1,000 rows", "ε = 10"} <= set(visits.explain(MEANS, spend=10).plot().texts)


def test_spending_by_number_and_by_promise_is_the_same(visits):
    assert repr(visits.explain(MEANS, spend="1/2")) == repr(visits.explain(MEANS, spend=Pure("0.5")))


def test_it_is_json_outside_the_command_line(visits):
    told = json.loads(visits.explain(MEANS, spend="1/2").to_json())
    assert (told["spend"], told["allowed"], told["unit"]) == ({"kind": "Pure", "epsilon": "1/2"}, True, "p")
    [columns] = told["questions"]
    assert [column["column"] for column in columns] == ["n", "mean", "s"]
    assert columns[0]["half_width"] > 0
    assert columns[1]["half_width_by_rows"]
