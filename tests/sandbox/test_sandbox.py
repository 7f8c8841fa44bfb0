"""The program for seccomp, run by an interpreter of its own on every call there is and on the arguments that matter."""

import struct

import pytest

from noisette.sandbox.sandbox import MACHINES, program

ALLOW, KILL, EPERM, ENOSYS = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
NOTHING = (0,) * 6
HARMLESS = {  # read, write, close, mprotect, munmap, brk, signals, sleep, names, exits, locks, randomness
    "x86_64": {0, 1, 3, 10, 11, 12, 13, 14, 15, 24, 25, 35, 39, 60, 63, 96, 131, 186, 202, 219, 231, 309, 318},
    "aarch64": {57, 63, 64, 93, 94, 98, 101, 124, 128, 132, 134, 135, 139, 160, 168, 169, 172, 178, 214, 215, 216, 226,
                278},
}  # fmt: skip
WITH_CONDITIONS = {  # clocks, mmap, madvise, sched_getaffinity, prlimit64
    "x86_64": {228, 229, 230, 9, 28, 204, 302},
    "aarch64": {113, 114, 115, 222, 233, 123, 261},
}
NAMES = {
    "x86_64": {"clock_gettime": 228, "mmap": 9, "madvise": 28, "sched_getaffinity": 204, "prlimit64": 302},
    "aarch64": {"clock_gettime": 113, "mmap": 222, "madvise": 233, "sched_getaffinity": 123, "prlimit64": 261},
}


def verdict(name, number, arguments=NOTHING, architecture=None):
    """Run the program as the kernel would."""
    machine = MACHINES[name]
    text = program(machine)
    seen = struct.pack("<IIQ6Q", number, architecture or machine.architecture, 0, *arguments)
    code = [struct.unpack_from("<HBBI", text, i) for i in range(0, len(text), 8)]
    at, value = 0, 0
    while True:
        what, yes, no, k = code[at]
        at += 1
        if what == 0x06:
            return k
        if what == 0x20:
            value = struct.unpack_from("<I", seen, k)[0]
        else:
            test = {0x15: value == k, 0x35: value >= k, 0x45: bool(value & k)}[what]
            at += yes if test else no


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", MACHINES)
def test_nothing_is_allowed_that_is_not_on_the_list(name):
    allowed = {number for number in range(1024) if verdict(name, number) == ALLOW}
    assert allowed == HARMLESS[name] | WITH_CONDITIONS[name]
    assert verdict(name, 435) == ENOSYS
    assert all(verdict(name, number) == EPERM for number in set(range(1024)) - allowed - {435})
    assert all(verdict(name, 0x40000000 + number) == EPERM for number in range(1024))  # the x32 way of calling


@pytest.mark.parametrize("name", MACHINES)
def test_other_ways_to_call_the_kernel_end_the_process(name):
    others = [machine.architecture for other, machine in MACHINES.items() if other != name]
    assert {verdict(name, 0, architecture=one) for one in (*others, 0x40000003)} == {KILL}


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize(
    ("call", "arguments", "expected"),
    [
        ("clock_gettime", (1,), ALLOW),
        ("clock_gettime", (11,), ALLOW),
        ("clock_gettime", (2**32 - 6,), EPERM),  # the clock of another process
        ("clock_gettime", (2**64 - 6,), EPERM),
        ("mmap", (0, 4096, 3, 0x22), ALLOW),
        ("mmap", (0, 4096, 3, 0x22 | 0x40000), EPERM),
        ("mmap", (0, 4096, 3, 0x22 | 0x2000), EPERM),
        ("madvise", (0, 4096, 4), ALLOW),
        ("madvise", (0, 4096, 14), ALLOW),
        ("madvise", (0, 4096, 12), EPERM),
        ("madvise", (0, 4096, 21), EPERM),
        ("madvise", (0, 4096, 100), EPERM),
        ("sched_getaffinity", (0, 128, 1), ALLOW),
        ("sched_getaffinity", (77, 128, 1), EPERM),
        ("prlimit64", (0, 9, 0, 1234), ALLOW),
        ("prlimit64", (77, 9, 0, 1234), EPERM),
        ("prlimit64", (0, 9, 1234, 0), EPERM),
        ("prlimit64", (0, 9, 2**40, 0), EPERM),
    ],
)
def test_some_calls_depend_on_their_arguments(name, call, arguments, expected):
    assert verdict(name, NAMES[name][call], (*arguments, *NOTHING)[:6]) == expected
