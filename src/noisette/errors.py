"""What can go wrong, as a tree.

    NoisetteError
    ├── InputError      a parameter or an answer cannot be used; nothing was drawn and nothing was spent
    ├── FailedError     a question failed after its charge; that is its answer, the same whenever it is asked again
    └── PrivacyError    going on would break a promise (mixed neighbouring relations, a guarantee that does not hold)
        └── BudgetError     the budget is used up: it does not hold this cost; nothing was drawn and nothing was spent

Every message is one sentence that says what is wrong and the smallest fix. No message quotes the data.
"""

__all__ = ["BudgetError", "FailedError", "InputError", "NoisetteError", "PrivacyError"]

_FAILED = (
    "This question failed after it was charged, and that is its answer: to ask it again is free and changes nothing, "
    "so ask another one, or tell the owner of the data."
)


class NoisetteError(Exception):
    """The root of all errors that Noisette raises on purpose."""


class InputError(NoisetteError, ValueError):
    """A parameter or an answer cannot be used as it is; nothing was drawn and nothing was spent."""


class FailedError(NoisetteError):
    """A question failed after its charge. There is one sentence, whatever the reason was: that may tell of the data.

    >>> str(FailedError("canary")) == str(FailedError())
    True
    """

    def __init__(self, *_: object) -> None:
        super().__init__(_FAILED)


class PrivacyError(NoisetteError):
    """Going on would break a promise; it is always an error, never a warning."""


class BudgetError(PrivacyError):
    """What is left of a budget does not hold this cost; nothing was drawn and nothing was spent."""
