import json
from dataclasses import replace

import pytest
import typer
from typer.testing import CliRunner

from noisette.audit import contract
from noisette.audit.contract import names
from noisette.audit.finding import Finding
from noisette.cli.audit import audit

app = typer.Typer()
app.command()(audit)


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def broken(monkeypatch):
    def fails(m, effort):
        return Finding("tight", False, 2.0, 1.0, "It is broken.", witness="[0] gives 2.")

    checks = [replace(check, look=fails) if check.name == "tight" else check for check in contract.CHECKS]
    monkeypatch.setattr(contract, "CHECKS", checks)


def test_one_mechanism_as_a_table():
    result = run("geometric", "--quick")
    assert result.exit_code == 0
    assert "Geometric keeps its contract: 16 checks on 4 examples." in result.stdout
    assert "✓" in result.stdout
    assert "✗" not in result.stdout


@pytest.mark.slow
def test_json():
    result = run("GEOMETRIC", "--quick", "--json")
    found = json.loads(result.stdout)
    assert found["passed"] is True
    assert [m["name"] for m in found["mechanisms"]] == ["Geometric"]
    assert all(f["passed"] for e in found["mechanisms"][0]["examples"] for f in e["findings"])


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_failure_exits_with_one_and_says_what(broken, options):
    result = run("geometric", "--quick", *options)
    assert result.exit_code == 1
    assert "Geometric breaks its contract (tight)." in result.stdout
    assert "[0] gives 2." in result.stdout


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gauss", "did you mean Gaussian?"),
        ("zzz", f"choose one of {', '.join(names()[:30])}, {len(names()) - 30} more."),
    ],
    ids=["near", "far"],
)
def test_unknown_names_get_one_sentence_with_the_nearest_or_the_known(name, said):
    result = run(name)
    assert result.exit_code == 2
    assert result.stderr == f"No mechanism has this name: {said}\n"


def test_without_a_name_all_mechanisms_are_audited(monkeypatch):
    found = [(name, m) for name, m in contract.discovered() if name in ("Geometric", "Staircase")]
    monkeypatch.setattr(contract, "discovered", lambda: iter(found))
    monkeypatch.setattr(contract, "CHECKS", [check for check in contract.CHECKS if check.name == "tight"])
    result = run("--quick")
    assert "Geometric keeps its contract" in result.stdout
    assert "Staircase keeps its contract" in result.stdout
    assert "All mechanisms keep their contracts." in result.stdout


@pytest.mark.nightly(
    "the contract of each mechanism, once more by the command: the contract suite checks each by itself"
)
def test_all_mechanisms():
    result = run("--quick")
    assert all(f"{name} keeps its contract" in result.stdout for name in names())
    assert "All mechanisms keep their contracts." in result.stdout
    assert result.exit_code == 0
