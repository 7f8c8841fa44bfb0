"""Help with examples, completion, and a page whose commands run."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest
from tests.cli.tools import process, run, well

from noisette.curator.demo import tables

DOCS = Path(__file__).resolve().parents[2] / "docs"
STEP = re.compile(
    r"^\$ (?P<command>noisette .+)$|^```(?:toml|sql)\n# (?P<file>\S+)\n(?P<text>(?:.*\n)*?)```$", re.MULTILINE
)
STEPS = {
    page: list(STEP.finditer((DOCS / page).read_text(encoding="utf-8")))
    for page in ("command-line.md", "owners-guide.md")
}
COMMANDS = [step["command"] for step in STEPS["command-line.md"] if step["command"]]


@pytest.mark.parametrize(
    "command",
    [
        "open",
        "ask",
        "explain",
        "questions",
        "left-out",
        "map",
        "stream",
        "synth",
        "buy",
        "collect",
        "budget",
        "check",
        "approve",
        "ledger",
        "generalize",
    ],
)
def test_help_has_examples(command):
    shown = run(command, "--help", terminal_width=200)
    assert shown.exit_code == 0
    assert "Examples:" in shown.stdout
    assert f"noisette {command}" in shown.stdout


def test_every_command_is_listed_and_has_a_page():
    shown = well("--help")
    for command in (
        "open",
        "ask",
        "explain",
        "questions",
        "left-out",
        "map",
        "stream",
        "synth",
        "buy",
        "budget",
        "check",
        "ledger",
        "demo",
        "audit",
        "account",
        "generalize",
        "collect",
    ):
        assert f" {command} " in shown
    acts = [f"ledger {act}" for act in ("show", "verify", "head", "budget", "accept", "rebind", "share")]
    for command in (
        "open",
        "ask",
        "explain",
        "left-out",
        "map",
        "stream",
        "synth",
        "buy bounds",
        "buy keys",
        "buy rows",
        "approve",
        "budget",
        "check",
        "generalize queries",
        "generalize size",
        "generalize accuracy",
        "generalize bound",
        "collect new",
        "collect",
        *acts,
    ):
        assert any(line.startswith(f"noisette {command}") for line in COMMANDS), command


def test_completion_is_there(tmp_path):
    assert "--install-completion" in well("--help")


@pytest.mark.slow
def test_unknown_commands_get_one_sentence(tmp_path):
    found = process("aks", folder=tmp_path)
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr == "There is no command aks: did you mean ask?\n"


@pytest.mark.slow
@pytest.mark.parametrize("page", STEPS)
def test_the_commands_of_the_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pyarrow.parquet.write_table(tables()["visits"], "visits.parquet")
    for step in STEPS[page]:
        if step["file"]:
            Path(step["file"]).write_text(step["text"])
            continue
        before, _, target = step["command"].partition(" > ")
        words = [Path("head.txt").read_text().strip() if w == "$(cat head.txt)" else w for w in shlex.split(before)]
        shown = run(*words[1:])
        assert shown.exit_code == 0, (before, shown.output)
        if target:
            Path(target).write_text(shown.stdout)
    assert Path("answers-2.parquet").exists() == (page == "command-line.md")


@pytest.mark.slow
def test_the_library_does_not_load_the_command_line():
    code = "import sys, noisette, noisette.curator.project; print('typer' in sys.modules, 'rich' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "False False\n"
    )
