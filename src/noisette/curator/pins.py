"""In which state the data are, asked before each charge: the files with their sizes and times, or what a server counts.

Frames in memory are as they are while the process lives, so they have a name that never comes again. Data that nothing
pins, such as those of a server that counts no changes, are opened only where the owner says `pinned = false` in the
policy: each question about them is charged, also one that was asked before.
"""

import glob
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from noisette.engines.contract import Source
from noisette.engines.csv_form import Form
from noisette.errors import InputError, NoisetteError, UnfinishedError
from noisette.exact.random import SYSTEM

__all__ = ["Pins", "names_of", "parts_of"]

_UNSAID = (
    "Nothing says which state these data are in, since no files or counted changes name it: write pinned = false into "
    "the policy, and repeated questions are charged again, or switch track_counts on where a server has it off."
)
_CHANGED = "The files changed while they were open, so nothing was charged: open the data again."
_UNREACHED = "The server of the data cannot be reached, so nothing was charged: ask again when it can be."


class Pins:
    """The pin of the data as they are now; None where the owner says that nothing pins them."""

    def __init__(self, source: Source, tables: Any, forms: Mapping[str, Form] | None = None, *, pinned: bool) -> None:
        self._source, self._tables, self._pinned = source, tables, pinned
        self._forms = {name: vars(form) for name, form in sorted((forms or {}).items())}
        self._memory, self._server = f"{SYSTEM.bits(128):032x}", _on_server(source)
        self._opened = None if self._server else self._files()

    def __call__(self) -> str | None:
        """The pin as a text; raise an error, before anything is charged, where there should be one and is none."""
        if not self._pinned:
            return None
        if not self._server:
            return self._unchanged()
        counted = _counted(self._source)
        if counted is None:
            raise InputError(_UNSAID)
        return counted

    def _unchanged(self) -> str:
        found = self._files()
        if found != self._opened:
            raise InputError(_CHANGED)
        return found

    def _files(self) -> str:
        """Each file with its size and the time it was written last, and how CSV is read; a frame is in this process."""
        many = isinstance(self._tables, Mapping)
        sources = [self._tables[name] for name in sorted(self._tables)] if many else [self._tables]
        files = [name for source in sources for part in parts_of(source) for name in names_of(part)]
        frames = any(not names_of(part) for source in sources for part in parts_of(source))
        read = {"read": self._forms} if self._forms else {}  # files that are read otherwise are other data
        memory = {"memory": self._memory} if frames else {}
        return json.dumps({"files": [_file(name) for name in files], **read, **memory})


def _on_server(source: Source) -> bool:
    return any(source.place(table) is not None for table in source.tables)


def _counted(source: Source) -> str | None:
    try:
        return source.state()
    except UnfinishedError:
        pass
    raise NoisetteError(_UNREACHED)


def _file(name: str) -> list[Any]:
    try:
        about = Path(name).stat()
    except OSError:
        return [name, None, None]
    return [name, about.st_size, about.st_mtime_ns]


def parts_of(source: Any) -> Sequence[Any]:
    """What a table is made of: the paths of a list, or itself."""
    return source if isinstance(source, list | tuple) else [source]


def names_of(part: Any) -> list[str]:
    """The files that a path or a pattern names."""
    return sorted(glob.glob(str(part))) or [str(part)] if isinstance(part, str | Path) else []
