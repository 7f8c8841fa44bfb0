"""The errors of PEP 249, and which of them stands for each of ours; the sentence stays the same."""

from collections.abc import Iterator
from contextlib import contextmanager

from noisette.errors import BudgetError, FailedError, InputError, NoisetteError, UnfinishedError

__all__ = [
    "DataError",
    "DatabaseError",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Warning",
    "translated",
]


class Warning(UserWarning):
    """What to know before an answer is used; shown by Python's `warnings`, never raised."""


class Error(Exception):
    """The root of what a connection raises."""


class InterfaceError(Error):
    """The interface is used in a way that cannot work, such as a cursor after it was closed."""


class DatabaseError(Error):
    """Something is wrong with a question or its answer."""


class DataError(DatabaseError):
    """A value cannot be used."""


class OperationalError(DatabaseError):
    """The budget does not allow the question, or the data cannot be reached."""


class IntegrityError(DatabaseError):
    """Keys do not fit together; none is raised."""


class InternalError(DatabaseError):
    """A question failed after its charge."""


class ProgrammingError(DatabaseError):
    """The statement or its parameters cannot be used; nothing was spent."""


class NotSupportedError(DatabaseError):
    """What was asked for does not exist here."""


_ERRORS: tuple[tuple[type[NoisetteError], type[DatabaseError]], ...] = (
    (InputError, ProgrammingError),
    (BudgetError, OperationalError),
    (UnfinishedError, OperationalError),
    (FailedError, InternalError),
    (NoisetteError, DatabaseError),
)


@contextmanager
def translated() -> Iterator[None]:
    """Raise an error of PEP 249 in place of one of ours.

    >>> with translated():
    ...     raise InputError("Write SELECT.")
    Traceback (most recent call last):
    noisette.dbapi.errors.ProgrammingError: Write SELECT.
    """
    try:
        yield
    except NoisetteError as error:
        found = next(theirs for ours, theirs in _ERRORS if isinstance(error, ours))
        raise found(str(error)) from error
