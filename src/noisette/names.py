"""Names that were mistyped, and what may have been meant: one sentence end for every place where a name is typed.

Only names that the one who typed may see are passed in: columns and tables as declared, functions, commands, keys of a
policy. Names of analysts and values of the data are never suggested.
"""

import difflib
from collections.abc import Iterable

__all__ = ["absent", "closest", "is_unicode"]

_MOST = 30  # names in one sentence


def closest(name: str, known: Iterable[str], among: str = "there may be", *, listed: bool = True) -> str:
    """The end of a sentence about a name that is unknown: the nearest known one, or all of them.

    With `listed=False`, `among` stands alone where no name is near.

    >>> closest("bound", ["keys", "bounds"]), closest("x", ["keys", "bounds"])
    ('did you mean bounds?', 'there may be keys, bounds.')
    """
    names = list(known)
    folded = {each.casefold(): each for each in reversed(names)}
    found = difflib.get_close_matches(name.casefold(), folded, n=1)
    if not (found or listed):
        return f"{among}."
    if found:
        return f"did you mean {folded[found[0]]}?"
    more = [f"{len(names) - _MOST} more"] if len(names) > _MOST else []
    return f"{among} {', '.join([*names[:_MOST], *more])}."


def absent(package: str, name: str, known: Iterable[str]) -> AttributeError:
    """The error for a name that a package does not have, with the nearest one that it has.

    >>> str(absent("noisette.privacy", "posson", ["poisson", "parallel"]))
    "noisette.privacy has no 'posson': did you mean poisson?"
    """
    nearest = "" if name.startswith("_") else f": {closest(name, known, 'see its documentation', listed=False)}"
    return AttributeError(f"{package} has no {name!r}{nearest}", name=name)


def is_unicode(text: str) -> bool:
    """Whether a text can be written down: a half of a surrogate pair can not.

    >>> is_unicode("é"), is_unicode("a\\ud800")
    (True, False)
    """
    return not any("\ud800" <= letter <= "\udfff" for letter in text)
