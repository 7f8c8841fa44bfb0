"""What happens in the process of one block: read, close the world, call the function, write, end.

Whatever goes wrong, nothing is written and the process ends like any other. Until the world is closed no line of the
analyst's code has run: even the bytes of the function are opened behind it.
"""

import json
import os
import pickle
import traceback
from typing import Any

from noisette.sandbox.sandbox import close_world, die_with_parent

__all__ = ["serve"]

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
