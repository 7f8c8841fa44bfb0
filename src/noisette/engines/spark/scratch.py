"""The folder that a driver and its executors share: what is committed there is read once, and then deleted.

Names in it say which process of which machine wrote, so that a later one deletes what a dead process left behind. They
carry nothing of a question or of the data. What lies there was noised, but nobody has released it: the owner keeps the
folder from analysts.
"""

import hashlib
import os
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow
import pyarrow.fs
import pyarrow.parquet

from noisette.errors import InputError, UnfinishedError
from noisette.exact.random import SYSTEM

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Scratch", "reached", "write"]

_NAME = re.compile(r"noisette-([0-9a-f]{16})-(\d+)-[0-9a-f]{32}")
_COMMIT = {
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "true",
    "mapreduce.fileoutputcommitter.algorithm.version": "1",  # files appear when the job commits, not task by task
}
_MARK = "_SUCCESS"  # written by Spark's commit protocol, after all files are in their place


@dataclass(frozen=True)
class Scratch:
    """A folder by its address for Spark, and as this process reaches it."""

    address: str
    files: Any
    path: str

    @classmethod
    def of(cls, given: str | os.PathLike[str]) -> "Scratch":
        """A folder that exists, by its path or URL; outputs of processes of this machine that ended are deleted.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Scratch.of(folder).address == f"file://{Path(folder).resolve()}"
        True
        """
        text = os.fspath(given)
        if "://" not in text:
            text = f"file://{Path(text).resolve()}"
        try:
            files, path = reached(text)
            there = files.get_file_info(path).type == pyarrow.fs.FileType.Directory
        except (pyarrow.ArrowException, OSError, ValueError):
            there = False
        if not there:
            raise InputError(
                "scratch= must name a folder that exists and that this machine and the executors of Spark can write to."
            )
        found = cls(text.rstrip("/"), files, path)
        found._delete_leftovers()
        return found

    def check(self, session: Any) -> None:
        """Refuse a folder where a server does not commit, or where this machine does not see what it committed."""
        shared = False
        with self.folder() as name, suppress(Exception):
            write(session.range(1), f"{self.address}/{name}")
            shared = sum(table.num_rows for table in self.committed(name)) == 1
        if not shared:
            raise InputError(
                "What this Spark server commits to the scratch folder does not arrive here: name a folder that both "
                "share, or leave scratch out."
            )

    def _delete_leftovers(self) -> None:
        for info in self.files.get_file_info(pyarrow.fs.FileSelector(self.path)):
            named = _NAME.fullmatch(info.base_name)
            if named and named[1] == _machine() and not _lives(int(named[2])):
                self._delete(info.base_name)

    def _delete(self, name: str) -> None:
        with suppress(pyarrow.ArrowException, OSError):  # there is none, or the storage is gone: `of` tries again
            self.files.delete_dir(f"{self.path}/{name}")

    @contextmanager
    def folder(self) -> Iterator[str]:
        """The name of a new folder to write in, which is deleted in the end, whatever happens."""
        name = f"noisette-{_machine()}-{os.getpid()}-{SYSTEM.bits(128):032x}"
        try:
            yield name
        finally:
            self._delete(name)

    def committed(self, name: str) -> list[pyarrow.Table]:
        """The tables of a folder, one for each file; raise UnfinishedError unless all of it was committed."""
        try:
            there = {info.base_name: info.path for info in self._listed(name)}
            if _MARK in there:
                parts = sorted(path for base, path in there.items() if base.endswith(".parquet"))
                return [pyarrow.parquet.read_table(path, filesystem=self.files, partitioning=None) for path in parts]
        except (pyarrow.ArrowException, OSError):
            pass
        raise UnfinishedError

    def _listed(self, name: str) -> list[Any]:
        found = self.files.get_file_info(pyarrow.fs.FileSelector(f"{self.path}/{name}"))
        return [info for info in found if info.type == pyarrow.fs.FileType.File]


def write(frame: "DataFrame", address: str) -> None:
    """Write a frame by Spark's commit protocol."""
    frame.write.mode("error").options(**_COMMIT).parquet(address)


def reached(address: str) -> tuple[Any, str]:
    """The file system of an address and the path there; Spark's name for S3 is s3a."""
    scheme, _, rest = address.partition("://")
    if scheme == "file":
        return pyarrow.fs.LocalFileSystem(), rest.rstrip("/") or "/"
    files, path = pyarrow.fs.FileSystem.from_uri(f"{'s3' if scheme == 's3a' else scheme}://{rest}")
    return files, path.rstrip("/")


def _machine() -> str:
    return hashlib.sha256(platform.node().encode()).hexdigest()[:16]


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True
