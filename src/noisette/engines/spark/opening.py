"""Sessions and tables of Spark: what `nz.open` takes, where a table is, and in which state its files are.

A table is a frame, a table of the session's catalogue by its name, or a path to Parquet or ORC files or to a table with
versions (`versions`). A view is
computed as it is read, and a computation can fail on one row: it is refused by name. Whoever gives a frame vouches that
it only reads, since what a frame computes cannot be seen.
"""

import atexit
import os
import shutil
import socket
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urlparse

from noisette.engines.files import is_spark
from noisette.engines.spark.scratch import Scratch
from noisette.engines.spark.silence import unlogged
from noisette.engines.spark.trial import try_executors
from noisette.engines.spark.versions import VERSIONED, Version, version_at
from noisette.errors import InputError
from noisette.progress import doing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["SparkTable", "opened", "place_of", "spark_tables", "state_of"]

T = TypeVar("T")

_OLDEST = 4  # toArrow is as old as that
_PATIENCE = 5  # seconds that a server may take to be there
_READERS = {".parquet": "parquet", ".pq": "parquet", ".orc": "orc"}
_FILES = ("parquet", "orc")  # formats whose files hold all that a table holds


@dataclass(frozen=True)
class SparkTable:
    """A table of a session: a frame, the name of a stored table, or a path; `scratch`: where answers are committed."""

    session: Any
    source: Any
    scratch: Scratch | None = None

    @property
    def path(self) -> str | None:
        """The path, if it is one."""
        found = str(self.source) if isinstance(self.source, str | Path) else ""
        return found if "/" in found or _ending(found) in _READERS else None

    @property
    def format(self) -> str | None:
        """The format of the files at a path; None for a table that is no path, or whose ending is unknown."""
        if self.path is None:
            return None
        ending = _ending(self.path)
        return _READERS.get(ending) if ending else "parquet" if self.version is None else self.version.format

    @cached_property
    def version(self) -> Version | None:
        """The version that was newest when it was opened; None for what has none, or none that can be seen here."""
        if self.path is not None:
            return None if _ending(self.path) in _READERS else version_at(self.path)
        if not isinstance(self.source, str):
            return None
        try:
            about = _described(self)
        except Exception:  # it is not there, which the frame will say
            return None
        return version_at(about.get("Location", "")) if about.get("Provider", "").lower() in VERSIONED else None


def _ending(path: str) -> str:
    return Path(path.rstrip("/*")).suffix.lower()


def spark_tables(
    source: Any, tables: Mapping[str, Any] | None, scratch: str | Path | None = None
) -> dict[str, SparkTable]:
    """The tables of a session, its URL or a frame; without names all tables that its catalogue has nearby."""
    if not is_spark(source):
        raise InputError("Name tables of a Spark session: nz.open(spark, tables={'visits': 'clinic.visits'}).")
    folder = None if scratch is None else Scratch.of(scratch)
    frame = source if hasattr(source, "mapInArrow") else None
    session = frame.sparkSession if frame is not None else _session(source) if isinstance(source, str) else source
    _warn_of_plain_files(session)
    try_executors(session)
    if folder is not None:
        with doing("Spark: trying the scratch folder"):
            folder.check(session)
    if frame is not None:
        return {"data": SparkTable(session, frame, folder)}
    if tables is None:
        listed = _quietly(
            lambda: [t.name for t in session.catalog.listTables() if t.tableType in _STORED], _UNREACHABLE
        )
        if not listed:
            raise InputError("The catalogue of this Spark session has no stored table here: name some, tables={…}.")
        tables = {name: name for name in listed}
    if not tables or not all(isinstance(name, str) for name in tables):
        raise InputError("Give a dictionary of tables by name: tables={'visits': 'clinic.visits'}.")
    return {name: SparkTable(session, table, folder) for name, table in tables.items()}


_ENCRYPTED = "spark.io.encryption.enabled"
_SETTINGS: dict[str, Any] = {
    _ENCRYPTED: "true",
    "spark.ui.showConsoleProgress": "false",  # it shows the number of tasks, which depends on the data
}
_LOGS = Path(__file__).with_name("log4j2.properties")
_PANDAS = "PySpark does not yet fully support pandas"  # which we do not use
_STORED = ("MANAGED", "EXTERNAL")
_UNREACHABLE = "The Spark server cannot be reached: check its address, and that it runs."
_NO_DATA = "The data of table {} cannot be read: is it there, with columns, and of the kind its name says?"
_NO_START = "Spark cannot start here: see that Java is 17 or newer, and that JAVA_HOME, if it is set, names it."
_NO_JAVA = "Spark needs Java 17 or newer: install it, or set JAVA_HOME; a server by sc://… needs none here."


def _session(url: str) -> Any:
    try:
        import pyspark
        from pyspark.sql import SparkSession
    except ImportError:
        raise InputError("Data in Spark need the extra: pip install 'noisette[spark]'.") from None
    check_version(pyspark.__version__)
    warnings.filterwarnings("ignore", _PANDAS)
    if url.startswith("sc://"):
        address = urlparse(url)
        _quietly(
            lambda: socket.create_connection((address.hostname or "", address.port or 15002), _PATIENCE).close(),
            _UNREACHABLE,
        )
        from pyspark.sql.connect.session import SparkSession as Remote

        with doing("connecting to Spark"):
            return _quietly(Remote.builder.remote(url).create, _UNREACHABLE)  # not one that is open to another server
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        raise InputError(_NO_JAVA)
    builder = SparkSession.builder.master(url).config(map=_SETTINGS | _logging())
    ours = SparkSession.getActiveSession() is None
    with doing("starting Spark"):
        session = _quietly(builder.getOrCreate, _NO_START if url.startswith("local") else _UNREACHABLE)
    if ours:
        atexit.register(_stop, session)  # or else executors of a cluster are started anew until Java has ended
    if session.sparkContext.master != url:
        raise InputError("This process has a Spark session of another address: pass that session itself, or stop it.")
    if url.startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        session.sparkContext.pythonExec = sys.executable  # or else any python3, which need not have Noisette
    return session


def _stop(session: Any) -> None:
    with suppress(Exception):  # Java has ended
        session.stop()


def _logging() -> dict[str, str]:
    """Errors alone are logged, unless Spark has settings of its own here."""
    if {"SPARK_HOME", "SPARK_CONF_DIR"} & set(os.environ) or " " in str(_LOGS):
        return {}
    return {"spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGS}"}


def _warn_of_plain_files(session: Any) -> None:
    try:
        encrypted = session.conf.get(_ENCRYPTED, "false") == "true"
    except Exception:  # a server that does not say
        encrypted = False
    if not encrypted:
        warnings.warn(
            f"Spark writes rows to local files that are not encrypted: let {_ENCRYPTED} be true, or keep the disks of "
            "its executors from others.",
            stacklevel=2,
        )


def check_version(version: str) -> None:
    """Refuse what is too old.

    >>> check_version("4.0.1")
    """
    first = version.partition(".")[0]
    if first.isdigit() and int(first) < _OLDEST:
        raise InputError(f"Spark {version} is too old: version 4.0 or a newer one is needed.")


def opened(tables: Mapping[str, SparkTable]) -> dict[str, "DataFrame"]:
    """The frames of tables, all of one session; no row is read."""
    if not all(isinstance(table, SparkTable) for table in tables.values()):
        raise InputError("All tables must be of one Spark session: store the others there.")
    session = next(iter(tables.values())).session
    if any(table.session is not session for table in tables.values()):
        raise InputError("All tables must be of one Spark session: store the others there.")
    if len({name.lower() for name in tables}) < len(tables):
        raise InputError("Give each table a name of its own: upper and lower case do not tell names apart.")
    try:
        version = str(session.version)
    except Exception:  # a server that does not say
        version = ""
    check_version(version)
    with doing("Spark: looking up tables"):
        return {name: _frame(name, table) for name, table in tables.items()}


def _frame(name: str, table: SparkTable) -> "DataFrame":
    source, session = table.source, table.session
    if table.path is not None:
        if table.format is None:
            raise InputError(f"Spark reads table {name} from Parquet or ORC files: store it as one of them.")
        frame = _quietly(lambda: _reader(table).format(table.format).load(table.path), _NO_DATA.format(name))
    elif isinstance(source, str):
        missing = f"There is no table {source} in the catalogue of this Spark session: name it as schema.table."
        if _quietly(lambda: session.catalog.getTable(source).tableType, missing) not in _STORED:
            raise InputError(
                f"{source} is a view, which could fail on some row: store it as a table, or give the frame itself."
            )
        frame = _quietly(lambda: _reader(table).table(source), missing)
    elif not is_spark(source) or not hasattr(source, "mapInArrow"):
        raise InputError(f"Give table {name} as a frame of Spark, the name of a stored table, or a path.")
    elif source.sparkSession is not session:
        raise InputError("All tables must be of one Spark session: store the others there.")
    else:
        frame = source
    if not _quietly(lambda: frame.schema.fields, _NO_DATA.format(name)):
        raise InputError(_NO_DATA.format(name))
    made: DataFrame = frame
    return made


def _reader(table: SparkTable) -> Any:
    reader = table.session.read
    return reader if table.version is None else table.version.read(reader)


# Where a table is, and its state


def place_of(table: SparkTable) -> str | None:
    """Where a table is, in words that no other table has; None for a frame, which may be anything."""
    if not isinstance(table.source, str | Path):
        return None
    if table.path is not None:
        return f"spark:{table.path}"
    try:
        found = table.session.catalog.getTable(table.source)
        where = table.session.catalog.getDatabase(".".join(found.namespace or [])).locationUri
        return f"spark:{where}/{found.name}"
    except Exception:
        return f"spark:{table.source}"


def state_of(table: SparkTable, frame: "DataFrame") -> list[str] | None:
    """The version of a table, or its files with sizes and times; None where these do not say all, or are not seen."""
    try:
        if table.version is not None:
            return [table.version.state()]
        if not isinstance(table.source, str | Path) or (table.path is None and not _in_files(table)):
            return None
        files = sorted(frame.inputFiles())
        found: Sequence[str | None] = [_written(file) for file in files]
        if files and None in found:
            found = _listed(table.session, files)
        return [one for one in found if one is not None] or None
    except Exception:
        return None


def _in_files(table: SparkTable) -> bool:
    """Whether a table of the catalogue is no more than its files: tables with versions may hide rows of a file."""
    return _described(table).get("Provider", "").lower() in _FILES


def _described(table: SparkTable) -> dict[str, str]:
    """What the catalogue says of a table."""
    found = table.session.sql(f"DESCRIBE TABLE EXTENDED {table.source}").toArrow().to_pylist()
    return {row["col_name"]: row["data_type"] or "" for row in found}


def _written(file: str) -> str | None:
    address = urlparse(file)
    if address.scheme not in ("", "file"):
        return None
    about = os.stat(unquote(address.path))
    return f"{file} {about.st_size} {about.st_mtime_ns}"


def _listed(session: Any, files: Sequence[str]) -> Sequence[str | None]:
    """The same of files elsewhere, whose names, sizes and times Spark lists without reading them."""
    frame = session.read.format("binaryFile").load(files).select("path", "length", "modificationTime")
    return sorted(f"{row['path']} {row['length']} {row['modificationTime']}" for row in frame.toArrow().to_pylist())


def _quietly(act: Callable[[], T], said: str) -> T:
    """What Spark answers when data is opened; its own words stay inside."""
    try:
        with unlogged():
            return act()
    except Exception:
        pass
    raise InputError(said)
