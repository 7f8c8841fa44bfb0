"""Whether executors can run what is sent to them: asked once for each session, before anything is charged.

They need Noisette itself, and its engine in the version of this process: another one could hash, and so choose rows,
in another way.
"""

from collections.abc import Iterable, Iterator
from typing import Any
from weakref import WeakSet

import pyarrow

from noisette.engines.spark.catalogue import spark_schema
from noisette.engines.spark.silence import unlogged
from noisette.errors import InputError
from noisette.progress import doing
from noisette.version import __version__

__all__ = ["try_executors"]

_VERSIONS = pyarrow.schema(dict.fromkeys(("noisette", "duckdb"), pyarrow.string()))
_TRIED: WeakSet[Any] = WeakSet()


def try_executors(session: Any) -> None:
    """Refuse a session whose executors cannot run Noisette, or run another version of it or of its engine."""
    if session in _TRIED:
        return
    found: list[dict[str, str]] = []
    try:
        with doing("Spark: trying an executor"), unlogged():
            found = session.range(0, 1, 1, 1).mapInArrow(_told, spark_schema(_VERSIONS)).toArrow().to_pylist()
    except Exception:
        pass
    if not found:
        raise InputError(
            "The executors of this Spark session cannot run Noisette: install noisette[spark] for their Python, and "
            "name that Python by PYSPARK_PYTHON before the session starts."
        )
    for name, here in _versions().items():
        if found[0][name] != here:
            raise InputError(
                f"Executors have version {found[0][name]} of {name} and this process has {here}: install the same one, "
                "since another could retain other rows."
            )
    _TRIED.add(session)


def _told(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """The versions that an executor has, in one row."""
    for _ in batches:
        yield pyarrow.RecordBatch.from_pylist([_versions()], _VERSIONS)


def _versions() -> dict[str, str]:
    import duckdb

    return {"noisette": __version__, "duckdb": duckdb.__version__}
