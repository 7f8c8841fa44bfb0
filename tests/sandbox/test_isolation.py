"""Functions that try to see another block, to remember one, to reach the world, or to be noticed."""

import contextlib
import ctypes
import json
import os
import subprocess
import sys
import time
from fractions import Fraction

import numpy as np
import pyarrow
import pytest

from noisette.errors import InputError
from noisette.releases.blocks.numbers import Numbers
from noisette.sandbox import running
from noisette.sandbox.dividing import as_bytes
from noisette.sandbox.payload import payload_of

pytest.importorskip("cloudpickle")
pytestmark = pytest.mark.skipif(running.machine() is None, reason="functions are run on Linux only")

LIMITS = running.BlockLimits(1.0, 2**28)
ANSWER = ("one",), ((Fraction(0), Fraction(10)),), (Fraction(7),)


@pytest.fixture(autouse=True)
def two_at_a_time(monkeypatch):
    monkeypatch.setenv("NOISETTE_PARALLEL", str(min(2, len(os.sched_getaffinity(0)))))


def blocks(count):
    return [lambda i=i: as_bytes(pyarrow.table({"i": [i]})) for i in range(count)]


def gave(function, count, numbers=1, limits=LIMITS):
    """What the function gave for each of some blocks: numbers, or None."""
    found = running.outputs(payload_of(function, numbers), blocks(count), limits, lambda _: None)
    return [np.frombuffer(one, "<f8").tolist() if len(one) == 8 * numbers else None for one in found]


# Reaching the world


def attempts(path):
    """A function that tries many things and says for each whether it worked."""

    def attempt(rows):
        import gc
        import mmap
        import resource
        import socket
        import subprocess
        import threading
        from pathlib import Path

        libc = ctypes.CDLL(None, use_errno=True)
        mine = rows["i"].to_pylist()

        def called(result):
            if result is None or result < 0:
                raise OSError

        def removed(made):
            called(made)
            libc.shmctl(made, 0, None)

        def forked():
            if not os.fork():
                os._exit(0)

        def read_inherited():
            found = [file for file in range(3, 64) if readable(file)]
            if not found:
                raise OSError

        def readable(file):
            try:
                os.set_blocking(file, False)
                return bool(os.read(file, 1))
            except OSError:
                return False

        def others():
            tables = [x for x in gc.get_objects() if isinstance(x, pyarrow.Table) and "i" in x.column_names]
            if all(table["i"].to_pylist() == mine for table in tables):
                raise OSError

        def started():
            thread = threading.Thread(target=int)
            thread.start()
            thread.join()

        def secret():
            if os.environ.get("NOISETTE_SECRET") is None:
                raise OSError

        shared = f"/dev/shm/noisette-{os.getpid()}"
        hidden = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x2000
        tries = [
            lambda: Path(path).read_text(),
            lambda: os.stat(path),
            lambda: os.access(path, os.R_OK) or called(-1),
            lambda: os.listdir("/tmp"),
            lambda: os.readlink("/proc/self"),
            lambda: Path(f"{path}.new").write_text("seen"),
            lambda: os.rename(path, path),
            lambda: os.utime(path),
            lambda: os.mkdir(f"{path}.folder"),
            lambda: os.symlink("a", f"{path}.link"),
            lambda: os.unlink(os.open(shared, os.O_CREAT | os.O_RDWR) and shared),
            lambda: Path(f"/proc/{os.getpid()}/environ").read_bytes(),
            lambda: os.memfd_create("x"),
            os.pipe,
            lambda: socket.socket(socket.AF_INET),
            lambda: socket.socket(socket.AF_UNIX),
            socket.socketpair,
            lambda: removed(libc.shmget(0, 4096, 0o1600)),
            lambda: called(libc.msgctl(libc.msgget(0, 0o1600), 0, None)),
            lambda: called(libc.semctl(libc.semget(0, 1, 0o1600), 0, 0)),
            forked,
            lambda: subprocess.run(["true"], check=True),
            started,
            lambda: os.kill(os.getpid(), 0),
            lambda: called(os.getppid() - 1),
            lambda: time.clock_gettime(~1 << 3 | 2),  # the processor time of process 1
            lambda: resource.setrlimit(resource.RLIMIT_CORE, resource.getrlimit(resource.RLIMIT_CORE)),
            lambda: os.sched_setaffinity(0, os.sched_getaffinity(0)),
            lambda: mmap.mmap(-1, 4096, flags=hidden),
            lambda: os.getloadavg(),
            secret,
            read_inherited,
            others,
        ]

        def works(act):
            try:
                act()
            except (OSError, RuntimeError, ImportError, ValueError):
                return 0.0
            return 1.0

        return [works(act) for act in tries]

    return attempt


ATTEMPTS = 33
NEED_A_HOME = (30, 31, 32)  # what is only there if another process left it


def test_a_function_finds_no_way_out_and_no_other_block(tmp_path, monkeypatch):
    monkeypatch.setenv("NOISETTE_SECRET", "of the curator")
    path = tmp_path / "rows.csv"
    path.write_text("private")
    assert gave(attempts(str(path)), 3, ATTEMPTS) == [[0.0] * ATTEMPTS] * 3
    assert [one.name for one in tmp_path.iterdir()] == ["rows.csv"]


@pytest.mark.slow
def test_the_same_attempts_work_where_nothing_is_closed(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("private")
    code = "import pickle, sys, pyarrow; print(pickle.load(sys.stdin.buffer)[0](pyarrow.table({'i': [1]})))"
    sent = payload_of(attempts(str(path)), ATTEMPTS).bytes
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], input=sent, capture_output=True, check=True)
    worked = json.loads(done.stdout)
    assert len(worked) == ATTEMPTS
    assert all(worked[i] for i in range(ATTEMPTS) if i not in NEED_A_HOME)


# Remembering


@pytest.mark.slow
def test_no_block_leaves_a_trace_for_the_next():
    kept = [0]

    def remember(rows, calls=[]):  # noqa: B006
        import collections

        calls.append(1)
        kept[0] += 1
        collections.left = getattr(collections, "left", 0) + 1
        remember.times = getattr(remember, "times", 0) + 1
        np.left = getattr(np, "left", 0) + 1
        pyarrow.left = getattr(pyarrow, "left", 0) + 1
        return [len(calls), kept[0], collections.left, remember.times, np.left, pyarrow.left]

    assert gave(remember, 5, 6) == [[1.0] * 6] * 5
    assert kept == [0]


@pytest.mark.slow
def test_changing_the_helpers_changes_nothing_for_others():
    def sabotage(rows):
        import pickle

        import __main__ as runner

        before = runner._numbers is not None and pickle.loads is not None
        runner._numbers = pickle.loads = None
        return 1.0 if before else 0.0

    assert gave(sabotage, 4) == [None] * 4  # it cannot even answer itself


@pytest.mark.slow
def test_what_a_function_holds_is_taken_when_the_question_is_put():
    held = {"factor": 1}

    def times(rows):
        return held["factor"] * 3.0

    payload = payload_of(times, 1)
    held["factor"] = 2
    found = running.outputs(payload, blocks(1), LIMITS, lambda _: None)
    assert np.frombuffer(found[0], "<f8").tolist() == [3.0]


# Being noticed


def misbehave(rows):
    def deeper():
        return deeper() + 1

    match rows["i"][0].as_py():
        case 0:
            return 1.0
        case 1:
            raise ValueError(f"the rows are {rows.to_pylist()}")
        case 2:
            print("the rows are", rows.to_pylist(), flush=True)
            print("the rows are", rows.to_pylist(), file=sys.stderr, flush=True)
            return 2.0
        case 3:
            time.sleep(60)
        case 4:
            return [1.0] * 1000
        case 5:
            return "a text"
        case 6:
            return float("nan")
        case 7:
            return float(len([bytearray(2**26) for _ in range(100)]))
        case 8:
            os._exit(3)
        case 9:
            ctypes.string_at(0)
        case 10:
            while True:
                pass
        case 11:
            for file in range(3, 64):
                with contextlib.suppress(OSError):
                    os.write(file, b"much" * 2**18)
        case 12:
            sys.setrecursionlimit(2**30)
            return deeper()
        case 13:
            raise KeyboardInterrupt
        case 14:
            return 10.0**9
    return None


@pytest.mark.slow
def test_whatever_goes_wrong_counts_as_the_default_without_a_word(capfd):
    found = running.outputs(payload_of(misbehave, 1), blocks(16), running.BlockLimits(0.8, 2**28), lambda _: None)
    [values] = Numbers(*ANSWER).read(found)
    assert values == [1, 7, 2, *[7] * 11, 10, 7]
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_a_wave_takes_its_time_whatever_happens_in_it():
    def quick(rows):
        return 1.0

    def slow_on_some_rows(rows):
        time.sleep(60 * (rows["i"][0].as_py() % 2))
        return 1.0

    limits, waves = running.BlockLimits(0.4, 2**28), 3
    for function in (quick, slow_on_some_rows):
        times = []
        count = waves * len(running.cores())
        running.outputs(payload_of(function, 1), blocks(count), limits, lambda _, t=times: t.append(time.monotonic()))
        assert len(times) == waves
        late = times[-1] - times[0] - (waves - 1) * limits.slot
        assert -0.05 < late < 10  # a busy machine may be late by seconds, a block that decides would be by a minute


def test_blocks_run_one_at_a_time_unless_the_owner_allows_more(monkeypatch):
    assert all(len(own) == 1 for own in running.cores()) or len(running.cores()) == 1
    monkeypatch.delenv("NOISETTE_PARALLEL")
    assert running.cores() == [sorted(os.sched_getaffinity(0))]
    for wrong in ("0", "-1", "many", "100000"):
        monkeypatch.setenv("NOISETTE_PARALLEL", wrong)
        with pytest.raises(InputError, match="NOISETTE_PARALLEL"):
            running.cores()


# Before it is paid


@pytest.mark.slow
def test_missing_modules_are_named_before():
    def needs(rows):
        import no_such_module

        return no_such_module.x

    with pytest.raises(InputError, match="no_such_module"):
        running.check(payload_of(needs, 1), LIMITS)


def test_more_memory_than_there_is_is_refused():
    with pytest.raises(InputError, match="memory"):
        running.check(payload_of(lambda rows: 1.0, 1), running.BlockLimits(1.0, 2**50))


@pytest.mark.slow
def test_parts_of_packages_are_there_when_code_names_them():
    def uses(rows):
        import scipy

        return [float(scipy.stats.norm.cdf(0)), float(np.random.default_rng().random() < 2)]

    assert gave(uses, 1, 2, running.BlockLimits(3.0, 2**29)) == [[0.5, 1.0]]


def test_a_function_that_cannot_be_sent_is_refused():
    import threading

    lock = threading.Lock()
    with pytest.raises(InputError, match="cannot be sent"):
        payload_of(lambda rows: lock.locked(), 1)


@pytest.mark.slow
def test_rehearsals_say_what_went_wrong():
    said = running.tried(payload_of(lambda rows: rows["nothing"], 1), blocks(1)[0](), LIMITS)
    assert "KeyError" in said["failed"]
    said = running.tried(payload_of(lambda rows: time.sleep(60), 1), blocks(1)[0](), running.BlockLimits(0.3, 2**28))
    assert "too long" in said["failed"]
