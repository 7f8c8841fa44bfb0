"""Work in forked processes: each begins with all that this one has imported, and leaves nothing behind."""

import os
import pickle
import shutil
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

Task = TypeVar("Task")
_LOOK = 0.01  # seconds


def each(
    tasks: Iterable[Task], work: Callable[[Task], Any], *, workers: int, patience: float
) -> Iterator[tuple[Task, Any]]:
    """Each task with what `work` returns of it in a process of its own; None if that dies or hangs."""
    waiting, running = list(tasks), dict[int, tuple[Task, Path, float]]()
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                task, scratch = waiting.pop(0), _scratch()
                running[_start(task, work, scratch)] = task, scratch, time.monotonic() + patience
            for pid, (task, scratch, end) in list(running.items()):
                if os.waitpid(pid, os.WNOHANG)[0] or (time.monotonic() > end and _killed(pid)):
                    del running[pid]
                    yield task, _result(scratch)
            time.sleep(_LOOK)
    finally:
        for pid, (_, scratch, _) in running.items():
            _killed(pid)
            shutil.rmtree(scratch, ignore_errors=True)


def alone(work: Callable[[], Any], patience: float) -> Any:
    """What `work` returns in a process of its own; None if that dies or hangs."""
    return next(each([None], lambda _: work(), workers=1, patience=patience))[1]


def _start(task: Task, work: Callable[[Task], Any], scratch: Path) -> int:
    if pid := os.fork():
        return pid
    try:
        os.setsid()  # so that whatever it starts can be ended with it
        _apart(scratch)
        (scratch / "result").write_bytes(pickle.dumps(work(task)))
    except BaseException:
        (scratch / "error").write_text(traceback.format_exc())
    finally:
        os._exit(0)


def _apart(scratch: Path) -> None:
    """Temporary files go to the scratch folder, and nothing is printed."""
    tempfile.tempdir = os.environ["TMPDIR"] = str(scratch)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in range(3):  # what the parent has not printed yet is its own to print
        os.dup2(nowhere, number)


def _scratch() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="m-"))  # short: sockets lie below it
    folder.chmod(0o755)  # a database server may run as another user
    return folder


def _killed(pid: int) -> bool:
    for kill, number in ((os.killpg, signal.SIGKILL), (os.kill, signal.SIGKILL)):
        try:
            kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue
    os.waitpid(pid, 0)
    return True


def _result(scratch: Path) -> Any:
    try:
        if (scratch / "error").exists():
            raise RuntimeError((scratch / "error").read_text())
        path = scratch / "result"
        return pickle.loads(path.read_bytes()) if path.exists() else None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
