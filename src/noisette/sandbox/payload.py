"""A function as bytes that another process can run, and the modules that it needs there.

The bytes are made once, when the question is put: what becomes of the function's variables later is of no effect. What
its own file defines comes along in the bytes; every other module must be installed, and is imported by name. Which
ones these are is read off the function: those it holds, and those that its code imports. Inside there are no files to
be read, so what is not imported before cannot be imported at all.
"""

import dis
import importlib
import io
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from noisette.errors import InputError

__all__ = ["Payload", "payload_of"]

_ALWAYS = ("cloudpickle", "numpy", "pyarrow", "pyarrow.acero", "pyarrow.compute")
_FOR_PANDAS = ("pandas", "pyarrow.pandas_compat")
_NO_MODULES = ("", "builtins", "__main__", "__mp_main__")
_MOST = 64 * 2**20


@dataclass(frozen=True)
class Payload:
    """Bytes of (function, how many numbers it gives or None for a label), `modules` to import, `names` in its code."""

    bytes: bytes
    modules: tuple[str, ...]
    names: tuple[str, ...]


def payload_of(function: Callable[[Any], Any], numbers: int | None, modules: tuple[str, ...] = ()) -> Payload:
    """The bytes of a function, with the modules that it needs and others that are named."""
    cloudpickle = _cloudpickle()
    found, names = set(modules), set[str]()

    class Noting(cloudpickle.Pickler):  # type: ignore[name-defined, misc]
        def persistent_id(self, part: Any) -> None:
            found.update(_modules(part))
            if isinstance(part, CodeType):
                names.update(part.co_names)

    buffer, own = io.BytesIO(), _own_module(function)
    if own is not None:
        cloudpickle.register_pickle_by_value(own)
    try:
        Noting(buffer).dump((function, numbers))
    except Exception:  # whatever the parts of a function raise when they are to become bytes
        buffer = io.BytesIO()
    finally:
        if own is not None:
            cloudpickle.unregister_pickle_by_value(own)
    if not 0 < buffer.tell() <= _MOST:
        raise InputError("The function cannot be sent: let it hold only plain values, functions and installed modules.")
    found -= {*_NO_MODULES, *([own.__name__] if own is not None else [])}
    wanted = {*found, *_ALWAYS, *(_FOR_PANDAS if "to_pandas" in names else ())}
    return Payload(buffer.getvalue(), tuple(sorted(wanted)), tuple(sorted(names)))


def _cloudpickle() -> Any:
    try:
        cloudpickle = importlib.import_module("cloudpickle")
    except ImportError:
        raise InputError("Apply sends functions with cloudpickle: pip install 'noisette[apply]'.") from None
    return cloudpickle


def _own_module(function: Any) -> ModuleType | None:
    """The module of the function, unless it is installed."""
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    if module is None or module.__name__ in _NO_MODULES:
        return None
    file = Path(getattr(module, "__file__", None) or "/").resolve()
    installed = any(file.is_relative_to(Path(prefix).resolve()) for prefix in (sys.prefix, sys.base_prefix))
    return None if installed else module


def _modules(part: Any) -> Iterator[str]:
    """The modules that a part of a function needs."""
    if isinstance(part, ModuleType):
        yield part.__name__
    elif isinstance(part, CodeType):
        yield from (i.argval for i in dis.get_instructions(part) if i.opname == "IMPORT_NAME")
    elif isinstance(part, type) or callable(part):
        name = getattr(part, "__module__", None)
        if isinstance(name, str) and name in sys.modules:  # what is in no module comes along by value
            yield name
