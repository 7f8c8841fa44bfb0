"""The options of a question about a function, read and checked."""

from typing import Any

from noisette.errors import InputError
from noisette.exact.number import fraction, whole
from noisette.releases.blocks.numbers import Numbers, Range
from noisette.releases.blocks.votes import LONGEST

__all__ = ["blocks", "labels", "memory", "numbers", "seconds", "texts"]

_MOST_BLOCKS, _MOST_OUTPUTS, _MOST_SECONDS = 10_000, 1_000, 3_600
_SIZES = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_LEAST_MEMORY = 2**24


def blocks(blocks: Any, each: Any) -> tuple[int, int]:
    """Read how many blocks there are, and in how many of them a unit is."""
    m, r = whole(blocks, "blocks", least=2), whole(each, "each")
    if m > _MOST_BLOCKS:
        raise InputError(f"blocks must be at most {_MOST_BLOCKS:,}: Apply(...).advise says how many are useful.")
    if r > m:
        raise InputError("each must be at most the number of blocks: a unit is in that many different ones.")
    return m, r


def numbers(bounds: Any, outputs: Any, default: Any) -> Numbers:
    """Read what is known of the outputs."""
    names = _output_names(outputs)
    pairs = _bounds(bounds, len(names))
    given = default if isinstance(default, list | tuple) else [default] * len(names)
    if len(given) != len(names):
        raise InputError("default must be one number, or one for each output.")
    middle = [
        (low + high) / 2 if d is None else fraction(d, "default") for d, (low, high) in zip(given, pairs, strict=True)
    ]
    if any(not low <= d <= high for d, (low, high) in zip(middle, pairs, strict=True)):
        raise InputError("default must lie within the bounds.")
    return Numbers(names, pairs, tuple(middle))


def _output_names(outputs: Any) -> tuple[str, ...]:
    if outputs is None:
        return ("value",)
    if isinstance(outputs, int) and not isinstance(outputs, bool):
        names = tuple(f"value_{i}" for i in range(1, whole(outputs, "outputs") + 1))
    else:
        names = texts(outputs, "outputs")
    if not 1 <= len(names) <= _MOST_OUTPUTS or len(set(names)) < len(names):
        raise InputError(f"outputs must be a number up to {_MOST_OUTPUTS:,}, or different names.")
    if any(name.endswith(("_low", "_high")) for name in names):
        raise InputError("The name of an output must not end in _low or _high: those are the ends of error bars.")
    return names


def _bounds(bounds: Any, count: int) -> tuple[Range, ...]:
    each = bounds if isinstance(bounds, list | tuple) and bounds and isinstance(bounds[0], list | tuple) else None
    pairs = [bounds] * count if each is None else each
    if len(pairs) != count or any(not isinstance(pair, list | tuple) or len(pair) != 2 for pair in pairs):
        raise InputError("bounds must be a pair (low, high) such as (0, 1), or one for each output.")
    read = tuple((fraction(low, "low"), fraction(high, "high")) for low, high in pairs)
    if any(low >= high for low, high in read):
        raise InputError("bounds must be a pair (low, high) with low below high: check their order.")
    return read


def labels(labels: Any, default: Any, aggregate: str) -> tuple[tuple[str, ...] | None, str | None]:
    """Read the labels, if there is a list, and the one of blocks that fail."""
    listed = None if labels is None else texts(labels, "labels")
    if listed is None and aggregate == "mode":
        raise InputError("The aggregate mode chooses among labels: list them, or take the aggregate stable.")
    if listed is not None and (len(listed) < 2 or len(set(listed)) < len(listed)):
        raise InputError("List at least two labels, each once.")
    long = [
        one
        for one in (*(listed or ()), "x" if default is None else default)
        if not 0 < len(str(one).encode()) <= LONGEST
    ]
    if long or (default is not None and (not isinstance(default, str) or (listed and default not in listed))):
        raise InputError(f"A label is a text of at most {LONGEST} bytes, and the default one of the labels.")
    return listed, default


def texts(given: Any, name: str) -> tuple[str, ...]:
    """Read a list of texts."""
    found = tuple(given) if isinstance(given, list | tuple) else ()
    if not isinstance(given, list | tuple) or any(not isinstance(one, str) for one in found):
        raise InputError(f"{name} must be a list of texts.")
    return found


def seconds(seconds: Any) -> float:
    """Read a time."""
    number = float(fraction(seconds, "seconds"))
    if not 0.01 <= number <= _MOST_SECONDS:
        raise InputError(f"seconds must lie between 0.01 and {_MOST_SECONDS:,}.")
    return number


def memory(memory: Any) -> int:
    """Bytes, given as a number or as a text such as "512 MiB"."""
    if isinstance(memory, str):
        number, _, unit = memory.partition(" ")
        size = int(number) * _SIZES[unit] if number.isdigit() and unit in _SIZES else 0
    else:
        size = whole(memory, "memory", least=0)
    if size < _LEAST_MEMORY:
        raise InputError('memory must be at least "16 MiB": write "512 MiB" or "1 GiB".')
    return size
