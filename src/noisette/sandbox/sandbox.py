"""Close the world behind a process: after `close_world` it can compute, tell the time and write to what is open.

    capabilities   none, of root either          memory         so much more than it has already
    core dumps     none: they would hold rows    system calls   a few, for all its threads

Linux on x86_64 and aarch64; elsewhere, or where the kernel refuses, nothing is run.

The few system calls that a function may make are a program for the kernel's seccomp. All others fail with EPERM, so
there are no files (not even their names, sizes or dates), no sockets, no shared memory, no other processes and no
threads to be had. That is a list of what is allowed: what a new kernel adds is forbidden.

Some calls are allowed for certain arguments only: the clocks of other processes, their limits, the shared pool of huge
pages and pages that are merged would each tell one block what another one does. New threads are refused although they
could share nothing: each takes a number that the kernel counts up, and the next block could read how many there were.

Vocabulary: `number` of a system call · `load`, `jump`, `give`: instructions of classic BPF.
"""

import ctypes
import os
import platform
import resource
import signal
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["MACHINES", "Machine", "close_world", "die_with_parent", "machine", "open_doors", "program"]

_PLAIN = {  # name: number on x86_64, number on aarch64
    "read": (0, 63),
    "write": (1, 64),
    "close": (3, 57),
    "mprotect": (10, 226),
    "munmap": (11, 215),
    "brk": (12, 214),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sched_yield": (24, 124),
    "mremap": (25, 216),
    "nanosleep": (35, 101),
    "getpid": (39, 172),
    "exit": (60, 93),
    "uname": (63, 160),
    "gettimeofday": (96, 169),
    "sigaltstack": (131, 132),
    "gettid": (186, 178),
    "futex": (202, 98),
    "restart_syscall": (219, 128),
    "exit_group": (231, 94),
    "getcpu": (309, 168),
    "getrandom": (318, 278),
}
_MMAP, _MADVISE, _SCHED_GETAFFINITY, _PRLIMIT = (9, 222), (28, 233), (204, 123), (302, 261)
_CLOCKS = ((228, 113), (229, 114), (230, 115))  # gettime, getres, nanosleep
_CLONE3 = (435, 435)

_OWN_CLOCKS = 16  # clocks of other processes have negative numbers, which are large ones without a sign
_SHARED_POOLS = 0x40000 | 0x2000  # MAP_HUGETLB, MAP_LOCKED
_MERGEABLE, _PLAIN_ADVICE = 12, 16  # pages that are alike may be shared; from 16 on advice is about dumps and eviction

_ALLOW, _KILL, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _ENOSYS = 1, 38  # with ENOSYS for clone3, libraries turn to clone, which then fails as they expect
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in what a program sees
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _GIVE = 0x20, 0x15, 0x35, 0x45, 0x06


@dataclass(frozen=True)
class Machine:
    """A processor: which column of numbers is its own, what the kernel calls it, and two calls made before."""

    column: int
    architecture: int
    seccomp: int
    capset: int


MACHINES = {
    "x86_64": Machine(0, 0xC000003E, 317, 126),
    "aarch64": Machine(1, 0xC00000B7, 277, 91),
}


def program(machine: Machine) -> bytes:
    """The instructions, eight bytes each.

    >>> len(program(MACHINES["x86_64"])) // 8 < 100
    True
    """
    return b"".join(_instructions(machine))


def _instructions(machine: Machine) -> Iterator[bytes]:
    at = machine.column
    yield _load(_ARCHITECTURE)
    yield from _unless(_EQUAL, machine.architecture, _KILL)
    yield _load(_NUMBER)
    for numbers in _PLAIN.values():
        yield _jump(_EQUAL, numbers[at], 0, 1)
        yield _give(_ALLOW)
    yield _jump(_EQUAL, _CLONE3[at], 0, 1)
    yield _give(_FAIL | _ENOSYS)
    for numbers in _CLOCKS:
        yield from _checked(numbers[at], [_load_argument(0), _jump(_AT_LEAST, _OWN_CLOCKS, 1, 0)])
    yield from _checked(_MMAP[at], [_load_argument(3), _jump(_ANY_BIT, _SHARED_POOLS, 1, 0)])
    advice = [_load_argument(2), _jump(_EQUAL, _MERGEABLE, 2, 0), _jump(_AT_LEAST, _PLAIN_ADVICE, 1, 0)]
    yield from _checked(_MADVISE[at], advice)
    yield from _checked(_SCHED_GETAFFINITY[at], _zero(0))
    yield from _checked(_PRLIMIT[at], [*_zero(0, 5), *_zero(2, 3), *_zero(2, 1, high=True)])
    yield _give(_FAIL | _EPERM)


def _checked(number: int, checks: list[bytes]) -> Iterator[bytes]:
    """One call, allowed if no check jumps to its end."""
    yield _jump(_EQUAL, number, 0, len(checks) + 2)
    yield from checks
    yield _give(_ALLOW)
    yield _give(_FAIL | _EPERM)


def _zero(argument: int, away: int = 1, *, high: bool = False) -> list[bytes]:
    """Go `away` instructions further unless half of an argument is 0."""
    return [_load_argument(argument, high=high), _jump(_EQUAL, 0, 0, away)]


def _unless(test: int, value: int, otherwise: int) -> list[bytes]:
    return [_jump(test, value, 1, 0), _give(otherwise)]


def _load(offset: int) -> bytes:
    return struct.pack("<HBBI", _LOAD, 0, 0, offset)


def _load_argument(argument: int, *, high: bool = False) -> bytes:
    return _load(_ARGUMENTS + 8 * argument + 4 * high)


def _jump(test: int, value: int, yes: int, no: int) -> bytes:
    return struct.pack("<HBBI", test, yes, no, value)


def _give(action: int) -> bytes:
    return struct.pack("<HBBI", _GIVE, 0, 0, action)


# Closing the world


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
