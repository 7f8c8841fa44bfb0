"""Places in a policy: what stands there, checked, or a sentence that names the place."""

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from noisette.errors import InputError

__all__ = ["closest", "flag", "inside", "only", "policy_error", "section"]


def policy_error(place: str, what: str) -> InputError:
    """An error that names its place.

    >>> raise policy_error("budget", "must be a section.")
    Traceback (most recent call last):
    noisette.errors.InputError: budget in the policy must be a section.
    """
    return InputError(f"{place} in the policy {what}")


def inside(place: str, name: object) -> str:
    """A place within another, written as TOML writes it.

    >>> inside("tables", "visits"), inside("tables", "my visits")
    ('tables.visits', 'tables."my visits"')
    """
    text = str(name) if re.fullmatch(r"[A-Za-z0-9_-]+", str(name)) else f'"{name}"'
    return f"{place}.{text}" if place else text


def section(given: Any, place: str) -> Mapping[str, Any]:
    """A part of the policy that holds others by name."""
    if not isinstance(given, Mapping):
        raise policy_error(place, f"must be a section: write [{place}] and what belongs to it below.")
    for name in given:
        if not isinstance(name, str) or not name:
            raise policy_error(place, "may hold names only: write each as a text.")
    return given


def only(given: Mapping[str, Any], known: Iterable[str], place: str) -> None:
    """Refuse a name that means nothing."""
    for name in given:
        if name not in known:
            raise policy_error(inside(place, name), f"is unknown: {closest(name, known)}")


def closest(name: str, known: Iterable[str]) -> str:
    """What may have been meant.

    >>> closest("bound", ["keys", "bounds"]), closest("x", ["keys", "bounds"])
    ('did you mean bounds?', 'there may be keys, bounds.')
    """
    names = list(known)
    folded = {each.casefold(): each for each in names}
    found = difflib.get_close_matches(name.casefold(), folded, n=1)
    return f"did you mean {folded[found[0]]}?" if found else f"there may be {', '.join(names)}."


def flag(given: Any, place: str) -> bool:
    """A truth value."""
    if not isinstance(given, bool):
        raise policy_error(place, "must be true or false, without quotes.")
    return given
