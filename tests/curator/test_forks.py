"""A fork copies all that stands in for a charge: the copy answers nothing, only a ledger file serves many processes."""

import gc
import json
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest
from tests.curator.clinic import opened
from tests.curator.test_hostile import sentence
from tests.curator.test_stream import in_child

import noisette as nz
from noisette import process
from noisette.errors import PrivacyError
from noisette.ledger import Memory
from noisette.mechanisms import SparseVector
from noisette.privacy import Filter, Odometer, Pure
from noisette.questions import Above

ROOT = Path(__file__).resolve().parents[2]
COUNT = "SELECT COUNT(*) AS n FROM visits"
CHILDREN = 4

FOUR = """
import json, os, signal, sys
import pyarrow, pyarrow.parquet
import noisette as nz
from noisette.errors import NoisetteError
where = sys.argv[1]
pyarrow.parquet.write_table(pyarrow.table({"age": list(range(90))}), f"{where}/data.parquet")
options = {} if sys.argv[2] == "memory" else {"ledger": f"{where}/data.ledger"}

def opened():
    return nz.open(f"{where}/data.parquet", budget=1, **options)

data = opened()
old = data.sql("SELECT COUNT(*) AS n FROM data", spend="1/1000")["n"].values.to_pylist()
children = []
for i in range(int(sys.argv[3])):
    child = os.fork()
    if not child:
        signal.alarm(120)  # who hangs ends
        said = []
        for use in (lambda: data, opened)[: 1 if sys.argv[2] == "memory" else 2]:
            try:
                use().sql(f"SELECT COUNT(*) AS n FROM data WHERE age > {i}", spend="999/1000")
                said.append("answered")
            except NoisetteError as fault:
                said.append(f"{type(fault).__name__}: {fault}")
        with open(f"{where}/{i}", "w") as file:
            json.dump(said, file)
        os._exit(0)
    children.append(child)
ended = [os.waitpid(child, 0)[1] for child in children]
again = data.sql("SELECT COUNT(*) AS n FROM data", spend="1/1000")["n"].values.to_pylist()
entries, left = len(data.ledger.entries), str(data.ledger.left.epsilon)
print(json.dumps({"ended": ended, "same": old == again, "entries": entries, "left": left}))
"""


def forked(folder, ledger):
    command = [sys.executable, "-W", "ignore", "-c", FOUR, str(folder), ledger, str(CHILDREN)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    said = [json.loads((folder / str(i)).read_text()) for i in range(CHILDREN)]
    return json.loads(done.stdout), said


@pytest.mark.slow
def test_four_children_get_no_answer_from_a_ledger_in_memory(tmp_path):
    parent, said = forked(tmp_path, "memory")
    assert parent == {"ended": [0] * CHILDREN, "same": True, "entries": 1, "left": "999/1000"}
    assert all(len(one) == 1 and one[0].startswith("PrivacyError: ") and "ledger file" in one[0] for one in said)


@pytest.mark.slow
def test_four_children_with_a_ledger_file_spend_the_budget_once(tmp_path):
    parent, said = forked(tmp_path, "file")
    assert parent == {"ended": [0] * CHILDREN, "same": True, "entries": 2, "left": "0"}
    assert all(copy.startswith("PrivacyError: ") and "open the data again" in copy for copy, _ in said)
    anew = sorted(own.partition(":")[0] for _, own in said)
    assert anew == ["BudgetError"] * (CHILDREN - 1) + ["answered"]


def refused(act):
    """Whether all that comes of it is a sentence."""
    try:
        act()
    except PrivacyError as fault:
        return sentence(str(fault))


@pytest.mark.slow
def test_budgets_that_are_counted_in_memory(monkeypatch):
    ledger, budget, odometer = Memory(Pure(1)), Filter(Pure(1)), Odometer("1e-6")
    ledger.charge("q", Pure("1/4"), [], key="q")
    ledger.keep("q", b"answer")
    uses = [
        lambda: ledger.charge("r", Pure("1/4"), []),
        lambda: ledger.charge("q", Pure("1/4"), [], key="q"),
        lambda: ledger.answer("q"),
        lambda: ledger.keep("q", b"answer"),
        lambda: ledger.advance("q", 0, b"state"),
        lambda: ledger.latest("q"),
        lambda: budget.charge(Pure("1/4")),
        lambda: odometer.charge(Pure("1/4")),
    ]
    stream = SparseVector("1/100", "1/100", positives=1).begin(threshold=50)
    for use in [*uses, lambda: stream.ask(20)]:
        assert in_child(lambda use=use: refused(use))
        use()


def test_a_process_number_that_comes_again_is_no_key(monkeypatch):
    """A grandchild may get the number of a process that has ended, here that of the test."""
    curator, number = opened(nz.Pure(10)), os.getpid()

    def as_somebody_else():
        monkeypatch.setattr(process.os, "getpid", lambda: number)
        return refused(lambda: curator.sql(COUNT, spend=1))

    assert in_child(as_somebody_else)


def test_a_fork_that_nobody_sees_is_refused_by_its_number(monkeypatch):
    curator = opened(nz.Pure(10))
    monkeypatch.setattr(process.os, "getpid", lambda: -1)
    assert refused(lambda: curator.sql(COUNT, spend=1))
    monkeypatch.undo()
    assert curator.budget.spent.epsilon == 0


@pytest.mark.slow
@pytest.mark.parametrize("ledger", [False, True])
def test_a_lock_that_is_held_while_a_process_forks_hangs_nobody(tmp_path, ledger):
    curator = opened(nz.Pure(1000), **({"ledger": tmp_path / "x.ledger"} if ledger else {}))
    stream = curator.stream(Above(30), spend=1)
    answer, held, done = curator.sql(COUNT, spend=1), threading.Event(), threading.Event()

    def hold():
        with curator._answers._guard:
            held.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)
    uses = [
        lambda: curator.sql(COUNT, spend=1),  # what is known already, too: its lock is held
        lambda: curator.stream(Above(30), spend=1),
        lambda: stream.ask("SELECT COUNT(DISTINCT patient_id) FROM visits"),
    ]
    assert all(in_child(lambda use=use: refused(use)) for use in uses)
    if ledger:
        assert in_child(lambda: len(curator.ledger.entries) == 2)  # the ledger itself goes on
    done.set()
    thread.join()
    assert curator.sql(COUNT, spend=1).to_arrow() == answer.to_arrow()
    assert len(curator.ledger.entries) == 2


@pytest.mark.slow
def test_what_is_free_stays_free_in_a_copy():
    curator = opened(nz.Pure(10))
    assert in_child(lambda: curator.explain(COUNT, spend=1).allowed)
    assert in_child(lambda: curator.budget.left.epsilon == 10)


@pytest.mark.slow
def test_a_copy_may_let_go_of_what_the_parent_opened():
    """An engine that was closed in the copy would wait for threads that only the parent has."""
    held = [opened(nz.Pure(10))]
    held[0].sql(COUNT, spend=1)

    def lets_go():
        held.clear()
        return gc.collect() >= 0

    assert in_child(lets_go)


@pytest.mark.slow
def test_what_is_remembered_of_a_plan_keeps_no_data_open():
    curator = opened(nz.Pure(10))
    curator.sql(COUNT, spend=1)
    source = weakref.ref(curator._source)
    del curator
    gc.collect()
    assert source() is None
