"""Cancelling: real processes and real signals. Before the charge it costs nothing; after it the answer is kept."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pyarrow
import pytest
from tests.cli.tools import CANARY, well

import noisette as nz
from noisette.errors import CancelledError

COUNT = "SELECT count(*) AS n FROM visits WHERE age > 30"
MARK = "reached"
# A process whose question waits at one point until it was interrupted as often as said; it says how often it was.
SLOW = """
import pathlib, signal, sys, time
from noisette.cli import app
from noisette.curator.curator import Curator

seen = 0

def counting(then):
    def count(number, frame):
        global seen
        seen += 1
        pathlib.Path("reached").write_text(str(seen))
        then(number, frame)
    return count

def waiting(then):
    def wait(*given, **named):
        signal.signal(signal.SIGINT, counting(signal.getsignal(signal.SIGINT)))
        pathlib.Path("reached").write_text("0")
        while seen < int(sys.argv[2]):
            time.sleep(0.01)
        return then(*given, **named)
    return wait

signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
setattr(Curator, sys.argv[1], waiting(getattr(Curator, sys.argv[1])))
app(sys.argv[3:])
"""


def interrupted(folder, point, *, times=1):
    """The end of `noisette ask` that is interrupted at a point: its code, its outputs."""
    command = [sys.executable, "-c", SLOW, point, str(times), "ask", COUNT, "--spend", "0.1"]
    environment = {**os.environ, "PYTHONUTF8": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=folder, env=environment, text=True, start_new_session=True, **pipes) as process:
        for seen in range(times):
            await_mark(folder / MARK, str(seen), process)
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
    (folder / MARK).unlink()
    return process.returncode, out, err


def await_mark(mark, text, process):
    """Wait until the process says so; one that hangs ends."""
    end = time.monotonic() + 300
    while not (mark.exists() and mark.read_text() == text):
        assert process.poll() is None, process.communicate()
        if time.monotonic() > end:
            process.kill()
            raise AssertionError("the process hangs")
        time.sleep(0.02)


def kinds():
    return [entry["kind"] for entry in json.loads(well("ledger", "show", "--json"))["entries"]]


pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")]
SAID = "Cancelled: what was charged is free when asked again, and nothing else was spent."


def test_before_the_charge_it_costs_nothing(opened):
    code, out, err = interrupted(opened, "_answered")
    assert (code, out, err.strip()) == (130, "", SAID)
    assert "charge" not in kinds()


def test_after_the_charge_the_answer_is_finished_kept_and_free(opened):
    code, out, err = interrupted(opened, "_draw")
    assert (code, out, err.strip()) == (130, "", SAID)
    assert CANARY not in err
    assert kinds()[-2:] == ["charge", "answer"]
    before = kept(opened)
    assert "±" in well("ask", COUNT, "--spend", "0.1")
    assert kinds().count("charge") == 1
    assert kept(opened) == before


def kept(folder):
    """What the ledger says of the answer: the digest of what was drawn."""
    entries = json.loads(well("ledger", "show", "--json"))["entries"]
    return [entry["sha256"] for entry in entries if entry["kind"] == "answer"]


def test_a_second_interrupt_stops_at_once_and_asking_again_is_free(opened):
    code, out, err = interrupted(opened, "_draw", times=2)
    assert (code, out, err.strip()) == (130, "", SAID)
    assert kinds()[-1] == "charge"
    assert "±" in well("ask", COUNT, "--spend", "0.1")
    assert kinds().count("charge") == 1


# From Python


@pytest.fixture
def data(tmp_path):
    table = pyarrow.table({"age": list(range(100))})
    return nz.open({"visits": table}, budget=5, ledger=tmp_path / "ledger.sqlite")


def test_an_event_cancels_before_the_charge(data):
    event = threading.Event()
    event.set()
    with pytest.raises(CancelledError, match="before its charge: it cost nothing"):
        data.sql("SELECT count(*) AS n FROM visits", spend=1, cancel=event)
    assert data.ledger.entries == ()


def test_an_event_after_the_charge_keeps_the_answer(data, monkeypatch):
    event, draw = threading.Event(), data._draw

    def slow(*given):
        event.set()
        return draw(*given)

    monkeypatch.setattr(data, "_draw", slow)
    with pytest.raises(CancelledError, match="its answer is kept, ask again to see it for free"):
        data.sql("SELECT count(*) AS n FROM visits", spend=1, cancel=event)
    monkeypatch.setattr(data, "_draw", lambda *given: 1 / 0)  # nothing is drawn again
    assert len(data.sql("SELECT count(*) AS n FROM visits", spend=1)) == 1
    assert len(data.ledger.entries) == 1


@pytest.fixture
def interrupts():
    """Python's own handler: jobs in the background ignore SIGINT, and Spark brings another one."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before or signal.SIG_DFL)


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_in_the_main_thread_waits_for_the_answer(data, monkeypatch):
    draw = data._draw

    def interrupted_draw(*given):
        signal.raise_signal(signal.SIGINT)
        return draw(*given)

    monkeypatch.setattr(data, "_draw", interrupted_draw)
    with pytest.raises(KeyboardInterrupt):
        data.sql("SELECT count(*) AS n FROM visits", spend=1)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    monkeypatch.setattr(data, "_draw", lambda *given: 1 / 0)
    assert len(data.sql("SELECT count(*) AS n FROM visits", spend=1)) == 1
