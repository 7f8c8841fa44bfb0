"""Tables with versions, of Delta Lake and Iceberg: one version is read, and it pins what an answer is about.

Delta names versions by the files of `_delta_log`, one for each commit; Iceberg by the snapshot that the newest file of
`metadata` calls current. Only these small files are read by the driver; Spark reads the rows, as of that version.
Later commits change nothing of what is open; a version that is cleaned away leaves questions unfinished.
"""

import json
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow
import pyarrow.fs

from noisette.engines.spark.scratch import reached

__all__ = ["VERSIONED", "Version", "address_of", "version_at"]

VERSIONED = ("delta", "iceberg")
_COMMIT = re.compile(r"\d{20}\.json")
_METADATA = re.compile(r"v?(\d+)[^/]*\.metadata\.json")


@dataclass(frozen=True)
class Version:
    """A version of a table: its format, the option of a reader that asks for it, and the file that made it."""

    format: str
    option: str
    number: str
    files: Any
    path: str

    def read(self, reader: Any) -> Any:
        """The same reader, as of this version."""
        return reader.option(self.option, self.number)

    def state(self) -> str:
        """What tells it from any other: a table that was made anew may have the same number."""
        [about] = self.files.get_file_info([self.path])
        return f"{self.format} {self.number} {self.path} {about.size} {about.mtime_ns}"


def version_at(location: str) -> Version | None:
    """The newest version of the table in a folder; None if it has none, or this machine cannot read the folder."""
    try:
        files, folder = reached(address_of(location))
        return _delta(files, folder) or _iceberg(files, folder)
    except (pyarrow.ArrowException, OSError, ValueError, KeyError, TypeError):
        return None


def address_of(location: str) -> str:
    """An address with its scheme; Spark writes file:/folder for what is here.

    >>> address_of("file:/data/visits"), address_of("/data/visits"), address_of("s3a://bucket/visits")
    ('file:///data/visits', 'file:///data/visits', 's3a://bucket/visits')
    """
    parts = urlparse(location)
    return f"file://{unquote(parts.path)}" if parts.scheme in ("", "file") else location


def _names(files: Any, folder: str) -> list[str]:
    found = files.get_file_info(pyarrow.fs.FileSelector(folder, allow_not_found=True))
    return [info.base_name for info in found if info.type == pyarrow.fs.FileType.File]


def _delta(files: Any, folder: str) -> Version | None:
    commits = [name for name in _names(files, f"{folder}/_delta_log") if _COMMIT.fullmatch(name)]
    if not commits:
        return None
    last = max(commits)
    return Version("delta", "versionAsOf", str(int(last[:20])), files, f"{folder}/_delta_log/{last}")


def _iceberg(files: Any, folder: str) -> Version | None:
    found = [
        (int(match[1]), name) for name in _names(files, f"{folder}/metadata") if (match := _METADATA.fullmatch(name))
    ]
    if not found:
        return None
    path = f"{folder}/metadata/{max(found)[1]}"
    with files.open_input_stream(path) as stream:
        number = json.loads(stream.read())["current-snapshot-id"]
    return Version("iceberg", "snapshot-id", str(number), files, path) if number and number > 0 else None
