"""Blocks in waves of one block or as many as the owner allows, each in a slot of one length, whatever happens in it.

A slot has the `seconds` that a function may take and a pause in which the memory of its processes is given back. What a
wave gave is looked at when its slot is over. So the whole takes waves x slot, and neither that nor what is shown on the
way depends on the rows. The rows of the next wave are made ready in the pause, when no function can feel how many they
are. If that takes longer the slot is longer, and the next function has all of its seconds.
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Self

from noisette.errors import InputError, NoisetteError
from noisette.sandbox.payload import Payload
from noisette.sandbox.sandbox import machine

__all__ = ["BlockLimits", "bar", "check", "cores", "machine", "outputs", "tried"]

_PARALLEL = "NOISETTE_PARALLEL"  # the owner's choice: how many blocks run at a time
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_PAUSE, _PAUSE_PER_GIB = 0.05, 0.15  # seconds of a slot in which processes end
_PATIENCE = 120.0  # seconds until the runner must be there
_MOST = 1 << 16  # bytes that a pipe holds: what is more than these is no answer
_GIB = 2**30
_WIDTH = 30  # of a progress bar


@dataclass(frozen=True)
class BlockLimits:
    """What one block may use: seconds of time, and bytes of memory."""

    seconds: float
    memory: int

    def __repr__(self) -> str:
        """As texts in ledgers have it."""
        return f"Limits(seconds={self.seconds!r}, memory={self.memory!r})"

    @property
    def slot(self) -> float:
        """How long a wave takes, in seconds."""
        return self.seconds + _PAUSE + _PAUSE_PER_GIB * self.memory / _GIB


def cores() -> list[list[int]]:
    """The cores of each block of a wave: all for one block at a time, or one each for NOISETTE_PARALLEL of them.

    One at a time, unless the owner says otherwise: blocks that run at once can feel how busy their neighbours are.
    """
    there = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
    wanted = os.environ.get(_PARALLEL, "1")
    if not wanted.isdigit() or not 1 <= int(wanted) <= len(there):
        raise InputError(f"{_PARALLEL} must be a number from 1 to {len(there)}, the cores that may be used.")
    return [there] if wanted == "1" else [[core] for core in there[: int(wanted)]]


def check(payload: Payload, limits: BlockLimits) -> None:
    """Refuse what cannot be run here, before anything is paid."""
    _ready(payload.modules, payload.names)
    free = _free_memory()
    if free is not None and limits.memory * len(cores()) > free:
        raise InputError(
            f"Blocks with {limits.memory / _GIB:.3g} GiB, {len(cores())} at a time, need more memory than is free: "
            "ask for less."
        )


@lru_cache(maxsize=64)
def _ready(modules: tuple[str, ...], names: tuple[str, ...]) -> None:
    Runner(modules, names).close()


def _free_memory() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")), None)


def outputs(
    payload: Payload, blocks: Sequence[Callable[[], bytes]], limits: BlockLimits, progress: Callable[[int], None]
) -> list[bytes]:
    """What the function wrote for each block, nothing where it failed; `progress` is called with how many are done."""
    found: list[bytes] = []
    with Runner(payload.modules, payload.names) as runner:
        waves = _waves(blocks, len(cores()))
        ready, function = next(waves), _held(payload.bytes)
        while ready:
            start = time.monotonic()
            pipes = [runner.run(function, rows, own, limits) for rows, own in zip(ready, cores(), strict=False)]
            _sleep_until(start + limits.seconds)
            runner.end()
            ready = next(waves, [])
            _sleep_until(start + limits.slot)
            found += [_read(pipe) for pipe in pipes]
            progress(len(found))
        os.close(function)
    return found


def tried(payload: Payload, rows: bytes, limits: BlockLimits) -> dict[str, Any]:
    """What the function gives for made-up rows, or what went wrong."""
    with Runner(payload.modules, payload.names) as runner:
        function = _held(payload.bytes)
        pipe = runner.run(function, _held(rows), cores()[0], limits, loud=True)
        os.close(function)
        time.sleep(limits.seconds)
        runner.end()
        text = _read(pipe)
    return dict(json.loads(text)) if text else {"failed": "It took too long or too much memory, or it crashed."}


def _waves(blocks: Sequence[Callable[[], bytes]], size: int) -> Iterator[list[int]]:
    """The rows of as many blocks as run at a time, as open files."""
    rest = iter(blocks)
    while wave := list(islice(rest, size)):
        yield [_held(rows()) for rows in wave]


def _held(content: bytes) -> int:
    """A file in memory, to be read from its beginning."""
    file = os.memfd_create("noisette")
    with os.fdopen(os.dup(file), "wb") as opened:
        opened.write(content)
    return file


def _read(pipe: int) -> bytes:
    """What is there by now; as nobody writes any more, it is all."""
    os.set_blocking(pipe, False)
    with os.fdopen(pipe, "rb", buffering=0) as opened:
        return opened.read(_MOST) or b""


def _sleep_until(then: float) -> None:
    time.sleep(max(0.0, then - time.monotonic()))


class Runner:
    """The helper process, as long as it is needed."""

    def __init__(self, modules: tuple[str, ...], names: tuple[str, ...]) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "noisette.sandbox.runner", str(theirs.fileno())],
            env=dict.fromkeys(_ONE_THREAD, "1") | {"PYTHONPATH": str(Path(__file__).parents[2])},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        theirs.close()
        self._control.settimeout(_PATIENCE)
        try:
            self._begin(modules, names)
        except BaseException:
            self.close()
            raise

    def _begin(self, modules: tuple[str, ...], names: tuple[str, ...]) -> None:
        said = json.loads(self._asked(json.dumps({"modules": modules, "names": names}).encode()))
        if said["trouble"]:
            raise InputError(said["trouble"])
        if said["missing"]:
            raise InputError(f"The function needs modules that are not installed: {', '.join(said['missing'])}.")

    def run(self, function: int, rows: int, cores: list[int], limits: BlockLimits, *, loud: bool = False) -> int:
        """Start a block; return where its answer will be."""
        answer, theirs = os.pipe()
        rows_file = os.open(f"/proc/self/fd/{rows}", os.O_RDONLY)
        function_file = os.open(f"/proc/self/fd/{function}", os.O_RDONLY)
        files = [function_file, rows_file, theirs]
        how = json.dumps({"memory": limits.memory, "cores": cores, "loud": loud}).encode()
        socket.send_fds(self._control, [how], files)
        for file in (*files, rows):
            os.close(file)
        return answer

    def end(self) -> None:
        """End all blocks that are running."""
        self._asked(b"end")

    def _asked(self, message: bytes) -> bytes:
        try:
            self._control.send(message)
            said = self._control.recv(_MOST)
        except OSError:
            said = b""
        if not said:
            raise NoisetteError("The process that runs functions ended: there may be too little memory.")
        return said

    def close(self) -> None:
        """End the process, and with it all others."""
        self._control.close()
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def bar(count: int, slot: float | None = None, at_once: int = 1, what: str = "blocks") -> Callable[[int], None]:
    """What to call with the number of blocks, or of runs, that are over; it draws a bar on a terminal only.

    Their number is public, so the bar says nothing about the rows. With a `slot`, the seconds that each takes, it says
    how long the rest will take.
    """
    if not sys.stderr.isatty():
        return lambda _: None

    def shown(done: int) -> None:
        full = _WIDTH * done // count
        left = "" if slot is None else f", {-(-(count - done) // at_once) * slot:,.0f} s left"
        end = "\n" if done >= count else ""
        sys.stderr.write(f"\r{'█' * full}{'░' * (_WIDTH - full)} {done:,}/{count:,} {what}{left} {end}")
        sys.stderr.flush()

    shown(0)
    return shown
