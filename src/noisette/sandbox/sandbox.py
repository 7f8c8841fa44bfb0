"""Close the world behind a process: after `close_world` it can compute, tell the time and write to what is open.

    capabilities   none, of root either          memory         so much more than it has already
    core dumps     none: they would hold rows    system calls   a few (`syscalls`), for all its threads

Linux on x86_64 and aarch64; elsewhere, or where the kernel refuses, nothing is run.
"""

import ctypes
import os
import platform
import resource
import signal
import sys
from pathlib import Path

from noisette.sandbox.syscalls import MACHINES, Machine, program

__all__ = ["close_world", "die_with_parent", "machine", "open_doors"]

_SET_PDEATHSIG, _SET_DUMPABLE, _SET_NO_NEW_PRIVS = 1, 4, 38
_CAPABILITIES_3 = 0x20080522
_FILTER, _ALL_THREADS = 1, 1


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def machine() -> Machine | None:
    """This machine, if a program for it is known."""
    return MACHINES.get(platform.machine()) if sys.platform == "linux" else None


def close_world(memory: int) -> None:
    """Allow `memory` more bytes and hardly any system call, until this process ends; raise OSError if that fails."""
    here = machine()
    if here is None:
        raise OSError("no program for this machine")
    libc = ctypes.CDLL(None, use_errno=True)
    _first_to_go()
    most = _held() + memory
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _called(libc.prctl(_SET_DUMPABLE, 0, 0, 0, 0))
    nobody = (ctypes.c_uint32 * 2)(_CAPABILITIES_3, 0), (ctypes.c_uint32 * 6)()
    _called(libc.syscall(here.capset, *nobody))
    _start_arrow()
    _called(libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    text = program(here)
    filter_ = _Program(len(text) // 8, text)
    _called(libc.syscall(here.seccomp, _FILTER, _ALL_THREADS, ctypes.byref(filter_)))


def die_with_parent() -> None:
    """Let the kernel kill this process when the one that made it ends."""
    ctypes.CDLL(None).prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def open_doors() -> list[str]:
    """What a process can still do that it should not: nothing, after `close_world`."""
    import socket

    tries = {
        "read a file": lambda: os.open("/", os.O_RDONLY),
        "learn about a file": lambda: os.stat("/"),
        "open a socket": socket.socket,
        "start a process": os.fork,
        "reach another process": lambda: os.kill(os.getppid(), 0),
    }
    return [what for what, act in tries.items() if not _fails(act)]


def _fails(act: object) -> bool:
    try:
        act()  # type: ignore[operator]
    except OSError:
        return True
    return False


def _called(result: int) -> None:
    if result:
        raise OSError(ctypes.get_errno(), "the kernel refused")


def _held() -> int:
    """The bytes of address space that this process has now."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _first_to_go() -> None:
    """If memory runs out all the same, the kernel shall end this process and no other."""
    Path("/proc/self/oom_score_adj").write_text("1000")


def _start_arrow() -> None:
    """Arrow's one worker must be there before threads are refused: `to_pandas` and `group_by` wait for it."""
    import pyarrow

    pyarrow.set_cpu_count(1)
    pyarrow.table({"a": [1]}).group_by("a").aggregate([])
