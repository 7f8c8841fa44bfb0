"""Whatever has a budget, or noise that goes on, is void in the copy that a fork makes: asked there, it refuses.

Two processes that go on would spend a budget twice, or release the same sums with other noise. The classes are found by
walking the package. All of them are made, one process is forked, and all are asked in the child and in the parent. The
twin is a child that takes itself for the parent: there, everything answers.
"""

import ast
import inspect
import json
import os
import re
import signal
import sys
from pathlib import Path

import pyarrow
import pytest
from tests.contracts.states.discovery import changes, modules, text
from tests.contracts.states.discovery import found as stated

import noisette as nz
from noisette import attacks, ledger, local, mechanisms, privacy, process, questions
from noisette.curator import curator as curators
from noisette.curator import kept_line
from noisette.engines.postgres import server
from noisette.engines.spark.source import Spark
from noisette.errors import PrivacyError
from noisette.exact import random, real, vector
from noisette.exact.random import SYSTEM
from noisette.holdout import leaderboard, machine, reusable
from noisette.ledger import accounts, book
from noisette.local import memo, rappor
from noisette.mechanisms.sparse_vector import stream as sparse
from noisette.questions import above, oracle
from noisette.questions import map as maps
from noisette.questions import stream as publishing
from noisette.releases.streams import alarms, buffered, opening, pan_private, square_root, tree_counter, windows
from noisette.releases.synthetic import particles

GOES_ON = re.compile(r"\b(rng|machine|budget|charge|_encrypt|Origin|here)\b")
"""What a class reads that has a budget or draws; if it changes as well, it goes on."""

FINE = privacy.Approx(1, "1e-6")


def filtered(_):
    budget = privacy.Filter(privacy.Pure(1))
    return lambda: budget.charge(privacy.Pure("1/4"))


def metered(_):
    odometer = privacy.Odometer("1e-6")
    return lambda: odometer.charge(privacy.Pure("1/4"))


def in_memory(_):
    made = ledger.Memory(privacy.Pure(1))
    made.charge("q", privacy.Pure("1/4"), [], key="q")
    return lambda: made.charge("r", privacy.Pure("1/4"), [])


def remembered(use):
    def made(_):
        book = ledger.Memory(privacy.Pure(1))
        book.charge("q", privacy.Pure("1/4"), [], key="q")
        return lambda: use(book)

    return made


def queries(kind, *given, **more):
    def made(_):
        stream = kind(*given, **more).begin(threshold=50)
        stream.ask(0)
        return lambda: stream.ask(0)

    return made


def handed_over(_):
    stream = mechanisms.SparseVector("1/4", "1/4").begin(threshold=50)
    return stream.state


def held_out(_):
    held = nz.holdout.ReusableHoldout([0, 1] * 50, None, [0, 1] * 50, budget=2, spend=1)
    return lambda: held.ask(lambda x: x)


def submitted(_):
    board = nz.holdout.Leaderboard([0, 1] * 50, budget=2, spend=1)
    return lambda: board.submit("all ones", [1] * 100)


def sums(kind, *given, came=1, **more):
    """A stream of sums after its first step."""

    def made(_):
        running = kind.calibrated(*given, horizon=4, **more).begin()
        running.step(came)
        return lambda: running.step(came)

    return made


def written(kind, *given, came=1, **more):
    """The state of such a stream, with which another process could go on."""

    def made(_):
        running = kind.calibrated(*given, horizon=4, **more).begin()
        running.step(came)
        return running.state

    return made


def in_windows(_):
    running = windows.SlidingWindow(tree_counter.TreeCounter.calibrated(1, horizon=2), 2).begin()
    for _ in range(2):  # the next step begins another block
        running.step([1])
    return lambda: running.step([1])


def alarmed(_):
    watching = alarms.Alarm.calibrated(1, drift=1, threshold=2).begin()
    return lambda: watching.step(1)


def reported(_):
    device = memo.Memo(local.GRR(1, domain=3), most=2)
    device.client(0)
    return lambda: device.client(1)


# Curators: with a ledger file, which a child may share, so that nothing but the curator refuses


TABLE = pyarrow.table({"who": range(20), "k": [0, 1] * 10, "day": pyarrow.array([0] * 20, pyarrow.date32())})
RULES = {"unit": "who", "rows": 1, "columns": {"k": {"bounds": [0, 1], "nullable": False}, "who": {"nullable": False}}}


def opened(folder):
    return nz.open({"t": TABLE}, budget=100, ledger=folder / "t.ledger", policy={"tables": {"t": RULES}})


def asked(use):
    """What a curator does for an analyst."""
    return lambda folder: (lambda data: lambda: use(data))(opened(folder))


def session(question, use):
    """A stream that a curator began."""

    def made(folder):
        begun = opened(folder).stream(question, spend=1)
        return lambda: use(begun)

    return made


COUNT = "SELECT COUNT(*) AS n FROM t"
DAYS = questions.Stream("day", since="1970-01-01", until="1970-01-04")

ACTS = {
    "a filter": (filtered, privacy.Filter),
    "an odometer": (metered, privacy.Odometer),
    "a ledger in memory": (in_memory, ledger.Memory),
    "a charge that is repeated": (remembered(lambda b: b.charge("q", privacy.Pure("1/4"), [], key="q")), ledger.Memory),
    "an answer that is kept": (remembered(lambda b: b.keep("q", b"answer")), ledger.Memory),
    "an answer that was kept": (remembered(lambda b: b.answer("q")), ledger.Memory),
    "the next state": (remembered(lambda b: b.advance("q", 0, b"state")), ledger.Memory),
    "the last state": (remembered(lambda b: b.latest("q")), ledger.Memory),
    "sparse vector": (queries(mechanisms.SparseVector, "1/4", "1/4"), mechanisms.SparseVector, sparse.Stream),
    "above threshold": (queries(mechanisms.AboveThreshold, "1/8"), mechanisms.AboveThreshold),
    "sparse": (queries(mechanisms.Sparse, "1/8", positives=1), mechanisms.Sparse),
    "numeric sparse": (
        queries(mechanisms.NumericSparse, "1/8", value_scale="1/6", positives=1),
        mechanisms.NumericSparse,
    ),
    "the state of a sparse vector": (handed_over, sparse.Stream),
    "a holdout": (held_out, reusable.ReusableHoldout, machine.OneProcess, machine.Kept),
    "a leaderboard": (submitted, leaderboard.Leaderboard),
    "a tree": (sums(tree_counter.TreeCounter, 1, came=[1]), tree_counter.TreeCounter, tree_counter.Running),
    "a square root": (
        sums(square_root.SquareRootCounter, nz.ZCDP(1), came=[1]),
        square_root.SquareRootCounter,
        square_root.Running,
    ),
    "buffers": (sums(buffered.BufferedCounter, FINE, came=[1]), buffered.BufferedCounter, buffered.Running),
    "keys that open": (sums(opening.OpeningCounter, FINE, came={"a": 1}), opening.OpeningCounter, opening.Opening),
    "windows": (in_windows, windows.SlidingWindow, windows.Windows),
    "the state of a tree": (written(tree_counter.TreeCounter, 1, came=[1]), tree_counter.Running),
    "the state of a square root": (written(square_root.SquareRootCounter, nz.ZCDP(1), came=[1]), square_root.Running),
    "the state of buffers": (written(buffered.BufferedCounter, FINE, came=[1]), buffered.Running),
    "the state of keys": (written(opening.OpeningCounter, FINE, came={"a": 1}), opening.Opening),
    "an alarm": (alarmed, alarms.Alarm, alarms.Watching),
    "a device": (reported, memo.Memo),
    "a curator": (asked(lambda data: data.sql(COUNT, spend=1)), curators.Curator),
    "a stream that a curator begins": (asked(lambda data: data.stream(nz.Above(30), spend=1)), kept_line.KeptLine),
    "questions above a threshold": (session(nz.Above(30), lambda s: s.ask("SELECT COUNT(*) FROM t")), above.Watching),
    "an oracle": (session(nz.Oracle("k", updates=1, total=20), lambda s: s.ask({"k": 1})), oracle.Consulting),
    "a count of every day": (session(DAYS, lambda s: s.step()), publishing.Publishing),
}
"""How something is made, which gives what is then asked of it; and the classes that this is about."""

OTHERS = {
    book.Book: "a ledger file is shared: who charges there is counted by all",
    accounts.Standing: "where a ledger stands; the ledger alone changes it",
    leaderboard.Ladder: "it has no guarantee",
    pan_private.PanPrivateDensity: "it holds nothing: whoever has its bits has its state",
    rappor.Rappor: "it holds nothing: the device keeps the permanent bits",
    attacks.answerer.Answerer: "an attack on made-up data",
    particles.Particles: "rows that are made of what was released",
    maps.Mapped: "what was drawn last, as a map",
    server.Server: "a connection, of which each process has its own",
    Spark: "an engine: the curator is asked",
    real.Uniform: "one number within a draw",
    vector._Law: "tables of a law, which hold no draw",
    random._Keystream: "a child forgets it, see below",
    process.Origin: "it is what refuses",
}
"""Classes that look alike, and why a copy of them does no harm."""


# What is found


def goes_on(cls):
    """Whether a class changes and draws or charges, or asks which process it is in."""
    if any(isinstance(node, ast.Call) and _named(node.func) in ("Origin", "here") for node in ast.walk(text(cls))):
        return True
    return changes(cls) and any(GOES_ON.fullmatch(_named(node)) for node in ast.walk(text(cls)))


def _named(node):
    """The name that a node reads or takes."""
    return getattr(node, "id", None) or getattr(node, "attr", None) or getattr(node, "arg", None) or ""


def classes():
    """All classes of the package that go on, private ones too, and those that keep a state and state a guarantee."""
    own = {
        cls
        for module in modules()
        if GOES_ON.search(Path(module.__file__).read_text(encoding="utf-8"))
        for cls in vars(module).values()
        if inspect.isclass(cls) and cls.__module__ == module.__name__ and _written(cls) and goes_on(cls)
    }
    return own | set(stated())


def _written(cls):
    try:
        return bool(text(cls))
    except KeyError:  # made by a function
        return False


def missing(found):
    known = {cls for _, *about in ACTS.values() for cls in about} | set(OTHERS)
    return [
        f"{cls.__module__}.{cls.__name__} goes on from one question to the next: add an act to "
        "tests/contracts/test_forks.py that a forked process must refuse (`noisette.process.Origin` does)."
        for cls in found
        if cls not in known
    ]


def test_everything_that_goes_on_has_an_act():
    assert missing(classes()) == []
    assert {cls for _, *about in ACTS.values() for cls in about} | set(OTHERS) <= classes()


# What forked processes do


def outcome(act):
    """What comes of an act: a sentence, or the name of another error."""
    try:
        act()
    except PrivacyError as fault:
        return f"refused: {fault}"
    except Exception as fault:
        return f"{type(fault).__name__}: {fault}"
    return "answered"


def in_child(acts, before=lambda: None):
    """What comes of all acts in a process that is forked now."""
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(100)  # who waits for a lock for ever ends
        before()
        with os.fdopen(writes, "w") as file:
            for name, act in acts.items():
                file.write(json.dumps([name, outcome(act)]) + "\n")
                file.flush()
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as file:
        said = dict(map(json.loads, file))
    os.waitpid(child, 0)
    return {name: said.get(name, "the child has ended") for name in acts}


def like_the_parent():
    """A function that makes a child of this process take itself for it."""
    parent = process.here()

    def before():
        for module in [module for name, module in sys.modules.items() if name.startswith("noisette")]:
            if hasattr(module, "here"):
                module.here = lambda: parent

    return before


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What comes of every act in a child, in a child that is a twin of the parent, and in the parent."""
    acts = {name: made(Path(tmp_path_factory.mktemp("fork"))) for name, (made, *_) in ACTS.items()}
    child, twin = in_child(acts), in_child(acts, like_the_parent())
    return {"child": child, "twin": twin, "parent": {name: outcome(act) for name, act in acts.items()}}


@pytest.mark.parametrize("name", ACTS)
def test_a_forked_process_refuses_in_one_sentence(said, name):
    refused, _, sentence = said["child"][name].partition(": ")
    assert refused == "refused"
    assert re.fullmatch(r"[A-Z][^\n]*parent[^\n]*\.", sentence)


@pytest.mark.parametrize("name", ACTS)
def test_the_parent_goes_on(said, name):
    assert said["parent"][name] == "answered"


@pytest.mark.parametrize("name", ACTS)
def test_a_child_that_takes_itself_for_the_parent_is_convicted(said, name):
    """So what refuses is the process, and nothing that happens to fail in a child."""
    assert not said["twin"][name].startswith("refused")


def test_a_ledger_file_counts_what_a_forked_process_charges(tmp_path):
    made = ledger.open_ledger(tmp_path / "x.ledger", budget=privacy.Pure(1))
    made.charge("q", privacy.Pure("1/2"), [])
    assert in_child({"charge": lambda: made.charge("r", privacy.Pure("1/4"), [])}) == {"charge": "answered"}
    assert made.left == privacy.Pure("1/4")


def test_a_child_forgets_the_keystream_of_its_parent():
    """Equal draws have a chance of 2^-128 each."""
    SYSTEM.bits(8)  # there is one
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        os.write(writes, SYSTEM.bits(128).to_bytes(16, "big"))
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads, "rb") as file:
        drawn = file.read()
    assert os.waitpid(child, 0)[1] == 0
    assert int.from_bytes(drawn, "big") != SYSTEM.bits(128)
