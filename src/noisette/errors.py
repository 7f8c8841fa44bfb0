"""What can go wrong, as a tree.

    NoisetteError
    ├── InputError      a parameter or an answer cannot be used; nothing was drawn and nothing was spent
    └── PrivacyError    going on would break a promise (mixed neighbouring relations, a guarantee that does not hold)
        └── BudgetError     the budget is used up: it does not hold this cost; nothing was drawn and nothing was spent

Every message is one sentence that says what is wrong and the smallest fix. No message quotes the data.
"""

__all__ = ["BudgetError", "InputError", "NoisetteError", "PrivacyError"]


class NoisetteError(Exception):
    """The root of all errors that Noisette raises on purpose."""


class InputError(NoisetteError, ValueError):
    """A parameter or an answer cannot be used as it is; nothing was drawn and nothing was spent."""


class PrivacyError(NoisetteError):
    """Going on would break a promise; it is always an error, never a warning."""


class BudgetError(PrivacyError):
    """What is left of a budget does not hold this cost; nothing was drawn and nothing was spent."""
