import json

import pytest
import typer
from typer.testing import CliRunner

import noisette as nz
from noisette.cli.account import account
from noisette.cli.releases import KNOWN, parsed
from noisette.errors import InputError

app = typer.Typer()
app.command()(account)


def run(*arguments):
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "100"})


def found(*arguments):
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_table_of_terms_and_totals():
    result = run("pure(1/10)*100", "--delta", "1e-6", "--epsilon", "10")
    assert result.exit_code == 0, result.output
    for part in ("100 releases", "pure(1/10)", "ε = 0.1", "zCDP, ρ = 0.5", "5.22154", "tight composition", "4.77457"):
        assert part in result.stdout
    assert "delta at epsilon = 10: 0 by tight composition" in result.stdout


def test_the_three_ways_in_json():
    both = found("laplace(10)*100 + gaussian(sigma=10)*50", "--epsilon", "1")
    [at] = both["epsilon"]
    total = nz.Laplace(10).guarantee() * 100 + nz.Gaussian(10).guarantee() * 50
    assert (both["releases"], at["delta"], at["tight"]) == (150, "1e-6", total.epsilon_at("1e-6"))
    assert both["rho"] == pytest.approx(0.75)
    assert at["tight"] < at["zcdp"] == pytest.approx(nz.ZCDP("0.75").epsilon_at("1e-6"), rel=1e-6)
    share = nz.Gaussian(10).guarantee().epsilon_at("1/50000000")
    assert at["basic"] == {"epsilon": pytest.approx(10 + 50 * share), "delta": pytest.approx(1e-6)}
    assert both["delta"] == [{"epsilon": "1", "zcdp": nz.ZCDP(total.rho).delta_at(1), "tight": total.delta_at(1)}]


def test_what_each_term_costs():
    laplace, gaussian = found("laplace(10)*100 + gaussian(10)*50")["terms"]
    assert (laplace["release"], laplace["count"], gaussian["release"]) == ("laplace(10)", 100, "gaussian(10)")
    assert laplace["one"] == {"epsilon": pytest.approx(0.1)}
    assert gaussian["one"] == {"rho": pytest.approx(0.005)}
    assert laplace["alone"] == (nz.Laplace(10).guarantee() * 100).epsilon_at("1e-6")
    assert 0 < gaussian["saved_without"] < gaussian["alone"] < laplace["alone"]


def test_several_deltas_and_none():
    at = found("approx(0.1, 1e-8)*10", "--delta", "1e-6", "--delta", "1e-9")["epsilon"]
    assert [a["delta"] for a in at] == ["1e-6", "1e-9"]
    assert at[0]["tight"] == pytest.approx(0.9994338329022889)
    assert at[0]["basic"] == {"epsilon": 1.0, "delta": pytest.approx(1e-7)}
    assert at[1]["tight"] is None
    assert at[0]["zcdp"] is None
    assert "no bound" in run("approx(0.1, 1e-8)*10", "--delta", "1e-9").stdout


def test_basic_addition_without_room_for_a_share():
    [at] = found("approx(0.1, 1e-6) + zcdp(0.1)", "--delta", "1e-6")["epsilon"]
    assert at["basic"]["epsilon"] is None


def test_subsampled_gaussians_lie_in_a_peers_bracket():
    sampled = found("subsampled(gaussian(2), 0.1)*100")
    assert sampled["neighbours"] == "add/remove"
    assert 2.6700353708864544 <= sampled["epsilon"][0]["tight"] <= 2.6750357412985606 * (1 + 1e-5)
    assert sampled["terms"][0]["one"] == {}


def test_subsampled_statements():
    """(epsilon, delta) -> (ln(1 + q(e^eps - 1)), q delta)."""
    [pure, approx] = parsed("subsampled(pure(1), 1/10) + subsampled(approx(1, 1e-6), rate=0.1)")
    assert float(pure.one.epsilon) == pytest.approx(0.1585650787404291, rel=1e-15)
    assert (approx.one.epsilon, approx.one.delta) == (pure.one.epsilon, nz.Approx(0, "1e-7").delta)
    assert pure.one.neighbours is approx.one.neighbours is nz.Neighbours.ADD_REMOVE


@pytest.mark.parametrize(
    ("text", "one"),
    [
        ("pure(0.1)", nz.Pure("0.1")),
        ("pure(eps=1/3)", nz.Pure("1/3")),
        ("pure(0.1000000000000000055511151231257827)", nz.Pure("0.1000000000000000055511151231257827")),
        ("approx(1, delta=1e-300)", nz.Approx(1, "1e-300")),
        ("zcdp(rho=1e-3)", nz.ZCDP("0.001")),
        ("laplace(5/2)", nz.Laplace("5/2").guarantee()),
        ("laplace(1, distance=2)", nz.Laplace(1).guarantee(2)),
        ("geometric(scale=2, distance=3)", nz.Pure("3/2")),
        ("gaussian(sigma=10)", nz.Gaussian(10).guarantee()),
        ("response(1, categories=5)", nz.Pure(1, neighbours=nz.Neighbours.REPLACE)),
        ("response(1, distance=3)", nz.Pure(3, neighbours=nz.Neighbours.REPLACE)),
        ("staircase(2)", nz.Pure(2)),
        ("staircase(2, sensitivity=3)", nz.Pure(2)),
    ],
)
def test_releases_are_read_exactly(text, one):
    [term] = parsed(text)
    assert (term.text, term.count, term.one) == (text, 1, one)


def test_multiples_on_either_side_and_of_sums():
    terms = parsed("2 * (pure(1)*3 +\n zcdp(1)) + pure(2)")
    assert [(term.text, term.count) for term in terms] == [("pure(1)", 6), ("zcdp(1)", 2), ("pure(2)", 1)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "pure",
        "foo(1)",
        "laplace()",
        "laplace(1, 2, 3)",
        "laplace(1, scale=2)",
        "laplace(scale=1, scale=2)",
        "laplace(*[1])",
        "laplace(**{})",
        "laplace(True)",
        "laplace('1')",
        "laplace(1j)",
        "laplace(0x10)",
        "laplace(-1)",
        "laplace(1/0)",
        "laplace(1+1)",
        "laplace(2**9)",
        "laplace(1e999999999)",
        "laplace(pure(1))",
        "laplace(1)*0",
        "laplace(1)*-1",
        "laplace(1)*2.5",
        "laplace(1)*True",
        "laplace(1)*laplace(1)",
        "laplace(1)*1000001",
        "laplace(1)**2",
        "pure(1) - pure(1)",
        "pure(1) if 1 else pure(2)",
        "(x := pure(1))",
        "[pure(1)][0]",
        "pure.__class__(1)",
        "__import__('os').system('true')",
        "(lambda: pure(1))()",
        "response(1, categories=2.5)",
        "subsampled(2, 0.1)",
        "subsampled(pure(1), 0)",
        "subsampled(pure(1), 2)",
        "subsampled(pure(1)*2, 0.1)",
        "subsampled(pure(1) + pure(2), 0.1)",
        "subsampled(zcdp(1), 0.1)",
        "subsampled(pure(2000), 0.1)",
        "subsampled(response(1), 0.1)",
        "subsampled(subsampled(pure(1), 0.5), 0.5)",
        "response(1) + subsampled(pure(1), 0.1)",
        "pure(1)\0",
        "+".join(["1"] * 900),
        "(" * 900,
        "pure(" + "-" * 1900 + "1)",
        "pure(1)+" * 400 + "pure(1)",
    ],
)
def test_all_else_is_refused_in_one_sentence(text):
    result = run(text)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert result.stderr.endswith((".\n", '50".\n'))


@pytest.mark.parametrize("options", [["--delta", "2"], ["--delta", "x"], ["--epsilon", "-1"]])
def test_numbers_that_cannot_be(options):
    result = run("pure(1)", *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "must" in result.stderr


def test_a_mistaken_call_says_how_it_is_written():
    with pytest.raises(InputError, match=r"laplace is written laplace\(scale, distance\)"):
        parsed("laplace(skale=1)")


def test_every_release_is_named_in_the_help():
    text = "".join(run("--help").stdout.split())
    assert all(f"{name}(" in text for name in KNOWN)
