"""What can go wrong, as a tree.

    NoisetteError
    ├── InputError      a parameter or an answer cannot be used; nothing was drawn and nothing was spent
    │   └── LimitError      no limit says how many rows of one unit may count
    ├── FailedError     a question failed after its charge; that is its answer, the same whenever it is asked again
    ├── UnfinishedError the data could not be reached; asked again, the question goes on under the same charge
    ├── CancelledError  the caller cancelled the question: before its charge, or its answer is kept and free
    └── PrivacyError    going on would break a promise (mixed neighbouring relations, a guarantee that does not hold)
        └── BudgetError     the budget or a rule on spends does not allow this cost; nothing was drawn or spent

Every message is one sentence that says what is wrong and the smallest fix. No message quotes the data.
"""

from noisette.text import visible

__all__ = [
    "BudgetError",
    "CancelledError",
    "FailedError",
    "InputError",
    "LimitError",
    "NoisetteError",
    "PrivacyError",
    "UnfinishedError",
]

_FAILED = (
    "This question failed after it was charged, and that is its answer: to ask it again is free and changes nothing, "
    "so ask another one, or tell the owner of the data."
)
_UNFINISHED = (
    "The server of the data cannot be reached, and nothing was released: "
    "ask again when it can be, under the same charge."
)


_NOT_CHARGED = "This question was cancelled before its charge: it cost nothing."
_KEPT = "This question was cancelled after its charge: its answer is kept, ask again to see it for free."


class NoisetteError(Exception):
    r"""The root of all errors that Noisette raises on purpose; names in a message are shown as they can be seen.

    >>> print(NoisetteError("There is no column a\x1b[2Jb."))
    There is no column a\u001b[2Jb.
    """

    def __str__(self) -> str:
        return visible(super().__str__(), "\n")


class InputError(NoisetteError, ValueError):
    """A parameter or an answer cannot be used as it is; nothing was drawn and nothing was spent."""


class LimitError(InputError):
    """No limit says how many rows of one unit may count; where a question may choose one, it does."""


class FailedError(NoisetteError):
    """A question failed after its charge. There is one sentence, whatever the reason was: that may tell of the data.

    >>> str(FailedError("canary")) == str(FailedError())
    True
    """

    def __init__(self, *_: object) -> None:
        super().__init__(_FAILED)


class UnfinishedError(NoisetteError):
    """The server of the data could not be reached, and nothing was released: no value of any row has a part in that."""

    def __init__(self, *_: object) -> None:
        super().__init__(_UNFINISHED)


class CancelledError(NoisetteError):
    """The caller cancelled a question.

    >>> str(CancelledError())
    'This question was cancelled before its charge: it cost nothing.'
    """

    def __init__(self, *, charged: bool = False) -> None:
        super().__init__(_KEPT if charged else _NOT_CHARGED)


class PrivacyError(NoisetteError):
    """Going on would break a promise; it is always an error, never a warning."""


class BudgetError(PrivacyError):
    """A budget or a rule on spends does not allow this cost; nothing was drawn and nothing was spent."""
