"""A sign of life on a terminal, from every command that reads data or a ledger; the same whatever the data are."""

import ast
import io
import os
import pty
import re
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import pytest
from rich.console import Console
from tests.cli.tools import CANARY, NUMBER
from tests.timing import within

from noisette import cli
from noisette.cli import common
from noisette.progress import doing

COUNT = "SELECT count(*) AS n FROM visits"
COMMANDS = {
    "Explaining …": ("explain", COUNT, "--spend", "0.1"),
    "Asking …": ("ask", COUNT, "--spend", "0.1"),
    "Reading the ledger …": ("approve",),
    "Verifying …": ("ledger", "verify"),
}


def on_terminal(*arguments):
    """What a command shows on the error stream of a terminal, which is read while it runs: it holds a few pages."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "noisette", *arguments]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "PYTHONUTF8": "1"}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs, env=environment) as process:
        os.close(theirs)
        try:
            with within(300):
                shown = b"".join(iter(lambda: _read(ours), b""))
        except TimeoutError:
            process.kill()
            raise
    os.close(ours)
    return process.returncode, shown.decode()


def _read(terminal):
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the other end is closed
        return b""


def plain(shown):
    """The lines that a terminal showed, one after the other, without their colours."""
    return re.split(r"[\r\n]", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown))


@pytest.mark.slow
@pytest.mark.parametrize("words", COMMANDS)
def test_a_terminal_shows_what_is_done(opened, words):
    code, shown = on_terminal(*COMMANDS[words])
    assert code == 0
    assert words in shown
    assert CANARY not in shown
    assert str(NUMBER) not in shown


@pytest.mark.slow
def test_a_terminal_shows_the_steps_of_spark_without_numbers(here, sail, connect):
    code, shown = on_terminal(
        "open", f"visits={here / 'visits.parquet'}", "--engine", connect, "--policy", "rules.toml"
    )
    assert code == 0
    assert "Opening … " in shown
    code, shown = on_terminal("ask", COUNT, "--spend", "0.1")
    assert code == 0
    assert "Asking … Spark: bounding and counting on executors" in shown
    lines = [line for line in plain(shown) if "Asking …" in line]
    assert len(lines) > 1
    assert not any(re.search(r"\d", line) for line in lines)


def test_a_step_that_is_over_at_once_is_drawn(monkeypatch):
    """However slowly the spinner turns; a turn draws the step of the moment again."""
    stream = io.StringIO()
    monkeypatch.setattr(common, "console", lambda err: Console(file=stream, force_terminal=True, width=100))
    with common.patience("Asking"), doing("reading"), doing("counting"):
        pass
    steps = [line.partition("Asking …")[2].strip() for line in plain(stream.getvalue()) if "Asking …" in line]
    assert [step for step, _ in groupby(steps)] == ["", "reading", "counting", "reading", ""]


def test_whatever_reads_data_or_a_ledger_shows_it():
    """Each function of the command line that opens one has a spinner around it."""
    opens = {"curator_of", "ledger_of", "project_of"}
    for file in Path(cli.__file__).parent.rglob("*.py"):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name not in opens:
                calls = {getattr(each.func, "id", "") for each in ast.walk(node) if isinstance(each, ast.Call)}
                assert not calls & opens or "patience" in calls, f"{file.name}: {node.name}"
