"""Sixty-four processes on a budget for ten thousand charges: exactly ten thousand are accepted."""

import contextlib
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.ledger import twins
from tests.ledger.crowd import faults

from noisette.errors import BudgetError
from noisette.ledger import open_ledger
from noisette.privacy import Pure

ROOT = Path(__file__).resolve().parents[2]


def crowd(where, folder, processes, charges, twin=""):
    open_ledger(where, budget=Pure(1)).close()
    command = [sys.executable, "-m", "tests.ledger.crowd", where, str(folder), str(processes), f"1/{charges}"]
    done = subprocess.run([*command, twin], capture_output=True, text=True, timeout=900, cwd=ROOT)
    return [done.stderr] if done.returncode else faults(where, folder, processes, charges)


@pytest.mark.slow
def test_a_few_processes(where, tmp_path):
    assert crowd(where, tmp_path, 4, 60) == []


@pytest.mark.slow
def test_one_ledger_is_begun_however_many_begin_it(where):
    code = """
import os, sys
from noisette.ledger import open_ledger
from noisette.privacy import Pure
children = []
for i in range(12):
    child = os.fork()
    if not child:
        book = open_ledger(sys.argv[1], budget=Pure(1))
        book.charge(str(i), Pure("1/20"), [])
        os._exit(0)
    children.append(child)
sys.exit(max(os.waitpid(child, 0)[1] for child in children) > 0)
"""
    done = subprocess.run([sys.executable, "-c", code, where], timeout=120, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    book = open_ledger(where)
    assert [body["kind"] for body in book.history] == ["open"] + ["charge"] * 12
    book.close()


@pytest.mark.slow
def test_many_processes(where, tmp_path):
    assert crowd(where, tmp_path, 64, 10_000) == []


@pytest.mark.slow
def test_a_twin_that_decides_outside_the_transaction_is_caught(where, tmp_path):
    assert crowd(where, tmp_path, 8, 60, "outside") != []


def two_at_once(where, twin):
    """How many of two charges go through that both want the whole budget at the same time."""
    open_ledger(where, budget=Pure(1)).close()
    both, accepted = threading.Barrier(2), []

    def one():
        book = twins.opened(where, twin)
        both.wait()
        with contextlib.suppress(BudgetError):
            accepted.append(book.charge("q", Pure(1), []).number)
        book.close()

    threads = [threading.Thread(target=one) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(accepted)


def test_one_of_two(where):
    assert two_at_once(where, "") == 1


def test_a_twin_lets_both_through(tmp_path):
    """Within a few tries: both look before either has written."""
    assert any(two_at_once(str(tmp_path / f"{i}.ledger"), "outside") == 2 for i in range(20))
