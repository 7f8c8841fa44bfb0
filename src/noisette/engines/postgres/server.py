"""A connection to a PostgreSQL server, kept between questions: to connect costs more than most questions.

An error of the server becomes ours, raised where its own is no longer around: its words may quote data.
"""

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import pyarrow

from noisette.errors import InputError, NoisetteError, UnfinishedError
from noisette.process import here

__all__ = ["Run", "Server"]

T = TypeVar("T")

_FAILED = "The PostgreSQL server could not read this; what it said stays inside, since it may quote data."


class Run:
    """Runs statements on one connection."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def table(self, text: str) -> pyarrow.Table:
        """What a SELECT returns."""
        with self._connection.cursor() as cursor:
            cursor.execute(text)
            return cursor.fetch_arrow_table()

    def __call__(self, text: str) -> list[dict[str, Any]]:
        """The rows of a SELECT about the catalogue; none of another statement."""
        with self._connection.cursor() as cursor:
            cursor.execute(text)
            found: list[dict[str, Any]] = cursor.fetch_arrow_table().to_pylist() if cursor.description else []
            return found

    def close(self) -> None:
        """End the connection, and with it a transaction; one that is lost already has nothing more to say."""
        try:
            self._connection.close()
        except Exception:
            return


class Server:
    """One connection for all threads, one after the other; each process has its own."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._held: dict[Any, Run] = {}

    def __call__(self, url: str, use: Callable[[Run], T]) -> T:
        """What is made with the connection; where one that was kept fails, it is made once more with a new one.

        The server may end a connection that waits. A use that fails with the new one fails for another reason.
        """
        with self._lock:
            held = self._held.get((here(), url))
            if held is not None:
                made = self._tried(held, use)
                if made is not None:
                    return made[0]
            lost, made = self._anew(url, use)
            if made is not None:
                return made[0]
        raise UnfinishedError if lost else NoisetteError(_FAILED)

    def __del__(self) -> None:
        for (process, _), run in self._held.items():
            if process == here():
                run.close()

    def _tried(self, held: Run, use: Callable[[Run], T]) -> tuple[T] | None:
        from adbc_driver_manager import Error

        try:
            return (use(held),)
        except (Error, pyarrow.ArrowException, OSError):
            self._forget(held)
        except BaseException:
            self._forget(held)
            raise
        return None

    def _anew(self, url: str, use: Callable[[Run], T]) -> tuple[bool, tuple[T] | None]:
        """Whether the server is out of reach, and what was made if it is not."""
        try:
            from adbc_driver_manager import Error, OperationalError
            from adbc_driver_postgresql import dbapi
        except ImportError:
            raise InputError("Data in PostgreSQL need the extra: pip install 'noisette[postgres]'.") from None
        run, lost = None, True
        try:
            run = self._held[here(), url] = Run(dbapi.connect(url, autocommit=True))
            lost = False
            return False, (use(run),)
        except OperationalError:
            lost = True
        except (Error, pyarrow.ArrowException, OSError):
            pass
        except BaseException:
            self._forget(run)
            raise
        self._forget(run)
        return lost, None

    def _forget(self, run: Run | None) -> None:
        if run is not None:
            self._held = {place: other for place, other in self._held.items() if other is not run}
            run.close()
