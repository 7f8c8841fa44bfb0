"""The process that forks a child for each block: `python -m noisette.sandbox.runner <socket>`; and what the child does.

The process is started afresh, so its memory holds no row, and it imports what functions need before there is a block.
Then it hands open files on, which it never reads, to a child for each block, and ends all children when it is asked to.
No line of the analyst's code runs in it: a function that changes what it finds changes its own copy.

A child reads its block, closes the world behind itself, calls the function and writes a few bytes. Whatever goes wrong,
nothing is written and the process ends like any other. Until the world is closed no line of the analyst's code has run:
even the bytes of the function are opened behind it.
"""

import importlib
import importlib.util
import json
import os
import pickle
import signal
import socket
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from noisette.sandbox.sandbox import close_world, die_with_parent, machine, open_doors

__all__ = ["main", "serve"]

_MESSAGE = 1 << 20


def main(file: int) -> None:
    """Prepare, say whether that worked, and then serve requests until the socket closes."""
    die_with_parent()
    control = socket.socket(fileno=file)
    asked = json.loads(control.recv(_MESSAGE))
    missing = _missing(asked["modules"])
    _maybe(asked["modules"], asked["names"])
    control.send(json.dumps({"missing": missing, "trouble": _trouble()}).encode())
    children: list[int] = []
    while True:
        message, files, _, _ = socket.recv_fds(control, _MESSAGE, 3)
        if message and files:
            children.append(_forked(files, json.loads(message)))
            continue
        _end(children)
        if not message:
            return
        control.send(b"ended")


def _forked(files: list[int], how: dict[str, Any]) -> int:
    child = os.fork()
    if not child:
        serve(*files, **how)
    for file in files:
        os.close(file)
    return child


def _end(children: list[int]) -> None:
    for child in children:
        os.kill(child, signal.SIGKILL)
    for child in children:
        os.waitpid(child, 0)
    children.clear()


# Modules


def _missing(modules: Iterable[str]) -> list[str]:
    """Import modules; return those that cannot be."""
    return [name for name in modules if not _imported(name)]


def _maybe(modules: Iterable[str], names: Iterable[str]) -> None:
    """Import the parts of packages that code names: it may write `scipy.stats` after `import scipy`."""
    for module in modules:
        package = sys.modules.get(module)
        for name in names if hasattr(package, "__path__") else ():
            if not hasattr(package, "__dict__") or name not in vars(package):
                _imported(f"{module}.{name}")


def _imported(name: str) -> bool:
    try:
        importlib.import_module(name)
    except BaseException:  # a module may do anything when it is imported
        return False
    return True


# Whether it can be done here


def _trouble() -> str:
    """Why functions cannot be run here, or nothing."""
    if machine() is None:
        return "Functions are run on Linux on x86_64 or aarch64 only, where they can be cut off from the world."
    if _shared_memory():
        return "A module that the function needs shares memory between processes: do without it."
    child = os.fork()
    if not child:
        os._exit(_tried())
    if os.waitpid(child, 0)[1]:
        return "This system does not let a process give up its rights (seccomp), so no function is run on private rows."
    return ""


def _shared_memory() -> bool:
    """Whether there is memory that a child could change for others."""
    rights = (line.split()[1] for line in Path("/proc/self/maps").read_text().splitlines())
    return any("w" in right and right.endswith("s") for right in rights)


def _tried() -> int:
    """Close the world and try the doors: 0 if all are shut."""
    try:
        close_world(2**28)
        return len(open_doors())
    except BaseException:
        return 1


# The child of one block: read, close the world, call the function, write, end


_MOST_TEXT = 4_000  # of an error, where made-up rows are tried


def serve(function: int, rows: int, result: int, *, memory: int, cores: list[int], loud: bool) -> None:
    """Run a function on a block, all given as open files, and end; `loud` writes what went wrong, for made-up rows."""
    try:
        die_with_parent()
        _only(function, rows, result)
        os.sched_setaffinity(0, cores)
        sent, block = _all(function), _all(rows)
        close_world(memory)
        os.write(result, _loud(sent, block) if loud else _answer(sent, block))
    except BaseException:  # a KeyboardInterrupt too: nobody else may see it
        pass
    finally:
        os._exit(0)


def _only(*kept: int) -> None:
    """Close every file but these, and let standard input and output be nowhere."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    last = 2
    for file in sorted(kept):
        os.closerange(last + 1, file)
        last = file
    os.closerange(last + 1, os.sysconf("SC_OPEN_MAX"))


def _all(file: int) -> bytes:
    """What a file holds; it is closed then."""
    with os.fdopen(file, "rb") as opened:
        return opened.read()


def _answer(sent: bytes, block: bytes) -> bytes:
    """What the function gives, in bytes."""
    import pyarrow

    function, numbers = pickle.loads(sent)
    value = function(pyarrow.ipc.open_stream(block).read_all())
    return _label(value) if numbers is None else _numbers(value, numbers)


def _label(value: Any) -> bytes:
    if not isinstance(value, str):
        raise TypeError("A label must be a text.")
    return value.encode()


def _numbers(value: Any, count: int) -> bytes:
    import numpy as np

    found = np.atleast_1d(np.asarray(value))
    if found.dtype.kind not in "biuf" or found.shape != (count,):
        raise TypeError(f"The function must give {count} numbers.")
    return found.astype("<f8").tobytes()


def _loud(sent: bytes, block: bytes) -> bytes:
    """The same, or what went wrong."""
    try:
        return json.dumps({"gave": _answer(sent, block).hex()}).encode()
    except BaseException:
        return json.dumps({"failed": traceback.format_exc()[-_MOST_TEXT:]}).encode()


if __name__ == "__main__":
    main(int(sys.argv[1]))
