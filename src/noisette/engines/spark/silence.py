"""What PySpark logs by itself, and must not while our questions run.

PySpark writes every error that has a query context to stderr, as JSON and at any log level: a cast that fails is quoted
there with its value. Stored tables give no cause for such an error; a frame that computes may.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["unlogged"]

_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
_OURS = ContextVar("noisette_unlogged", default=False)


@contextmanager
def unlogged() -> Iterator[None]:
    """Keep errors of Spark out of the logs of this process; those of other threads are logged as before."""
    _install()
    before = _OURS.set(True)
    try:
        yield
    finally:
        _OURS.reset(before)


def _install() -> None:
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:  # older versions log nothing
        return
    for name in _LOGGERS:
        PySparkLogger.getLogger(name).addFilter(_theirs)  # a filter that is there is not added again


def _theirs(_: logging.LogRecord) -> bool:
    return not _OURS.get()
