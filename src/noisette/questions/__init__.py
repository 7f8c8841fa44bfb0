"""Questions that are values: the curator asks and explains them like SQL, and each goes to JSON and back.

Every file of this package except `contract` and `data` is one question; it is loaded when it is used, so that the first
answer to SQL does not wait for it. A new file is found here by itself.

>>> from noisette.questions import Mode, from_json
>>> from_json(Mode("ward").to_json())
Mode(column='ward', of=None, lead=False)
"""

import importlib as _importlib
import pkgutil as _pkgutil
from typing import Any

from noisette.names import absent

_SHARED = {"contract", "data"}
_FUNCTIONS = ["from_json"]

FILES = {
    file.name: file.name.title().replace("_", "")
    for file in _pkgutil.iter_modules(__path__)
    if not file.ispkg and file.name not in _SHARED
}
"""The questions: the name of each in JSON, which is its file's, and in Python."""

__all__ = [*sorted(FILES.values()), *_FUNCTIONS]


def __getattr__(name: str) -> Any:
    """Load a question's file when it is used."""
    for file, question in FILES.items():
        if name == question:
            return getattr(_importlib.import_module(f"noisette.questions.{file}"), name)
    if name in _FUNCTIONS:
        return getattr(_importlib.import_module("noisette.questions.data"), name)
    raise absent(__name__, name, __all__)
