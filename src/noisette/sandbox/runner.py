"""The process that forks a child for each block: `python -m noisette.sandbox.runner <socket>`.

It is started afresh, so its memory holds no row, and it imports what functions need before there is a block. Then it
hands open files on, which it never reads, to a child for each block, and ends all children when it is asked to. No line
of the analyst's code runs in it: a function that changes what it finds changes its own copy.
"""

import importlib
import importlib.util
import json
import os
import signal
import socket
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from noisette.sandbox.child import serve
from noisette.sandbox.sandbox import close_world, die_with_parent, machine, open_doors

__all__ = ["main"]

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


if __name__ == "__main__":
    main(int(sys.argv[1]))
