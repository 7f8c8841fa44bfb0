"""The record of a release: everything with which a stranger can check its claim, as JSON."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from noisette.answers.figures import at_some_delta
from noisette.errors import InputError
from noisette.privacy import ZCDP, Approx, Guarantee, Profile, Pure

__all__ = ["FORMAT", "LONGEST", "as_json", "laid_out", "read", "stated"]

FORMAT = 1
"""The meaning of a record that is written never changes; a new meaning is a new number."""

LONGEST: Final = 200_000_000
"""The most characters of a record."""

_MOST, _MOST_TEXT, _DEEPEST = 10_000, 1_000_000, 8


def stated(guarantee: Guarantee) -> dict[str, Any]:
    """A guarantee as exact texts.

    >>> stated(Approx("1/3", "1e-6"))
    {'kind': 'Approx', 'epsilon': '1/3', 'delta': '1/1000000'}
    """
    match guarantee:
        case Pure() | Approx() | ZCDP():
            return {"kind": type(guarantee).__name__, **{name: str(x) for name, x in guarantee.numbers.items()}}
        case Profile():
            known = {delta: guarantee.epsilon_at(delta) for delta in ("1e-6", "1e-9")}
            finite = {delta: epsilon for delta, epsilon in known.items() if epsilon < math.inf}
            return {"kind": "Profile", "at": finite or dict([at_some_delta(guarantee)])}


def as_json(parts: Mapping[str, Any]) -> str:
    """JSON that any reader understands: no NaN, no infinity, dates as texts, names in order."""
    return json.dumps(_plain({"format": FORMAT, **parts}), sort_keys=True, allow_nan=False, ensure_ascii=False)


def laid_out(parts: Mapping[str, Any]) -> str:
    """The same JSON in the order given, indented for people to read.

    >>> print(laid_out({"half_width": math.inf}))
    {
      "half_width": null
    }
    """
    return json.dumps(_plain(parts), indent=2, ensure_ascii=False, allow_nan=False)


def read(record: str) -> dict[str, Any]:
    """A record from its JSON, which may be anybody's: what would take too long to check is refused.

    A name that stands there twice would say one thing to us and another to somebody else.

    >>> read('{"format": 1, "mechanisms": [{}], "guarantee": {}, "neighbours": "replace", "format": 1}')
    Traceback (most recent call last):
    noisette.errors.InputError: This is not the record of a release: give the text that to_json wrote.
    """
    try:
        if len(record) > LONGEST:
            raise InputError(f"A record has at most {LONGEST:,} characters: ask for fewer groups at once.")
        found = json.loads(record, object_pairs_hook=_once, parse_constant=_refused)
        known = found["format"] == FORMAT and {"mechanisms", "guarantee", "neighbours"} <= set(found)
        if known and found["mechanisms"]:
            _check_size(found["mechanisms"])
            return dict(found)
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    raise InputError("This is not the record of a release: give the text that to_json wrote.")


def _check_size(parts: Any) -> None:
    """Raise if there are too many mechanisms, or too much is written in those that differ."""
    found = list(_mechanisms(parts))
    different = {json.dumps(part, sort_keys=True) for part in found}
    if len(found) > _MOST or sum(map(len, different)) > _MOST_TEXT:
        raise InputError(
            f"This record is too large to be checked: {_MOST:,} mechanisms and {_MOST_TEXT:,} characters of those that "
            "differ are the most."
        )


def _mechanisms(parts: Any, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """The mechanisms of a record, and those within plans and candidates."""
    if depth > _DEEPEST:
        raise ValueError("plans of plans of plans")
    for part in parts:
        yield part
        for name in ("one of", "candidates"):
            for inner in part.get(name, {}).values():
                yield from _mechanisms(inner, depth + 1)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands there twice")
    return found


def _refused(constant: str) -> Any:
    raise ValueError("no record has NaN or infinity")


def _plain(value: Any) -> Any:
    match value:
        case Mapping():
            return {str(name): _plain(part) for name, part in value.items()}
        case str() | bool() | int() | None:
            return value
        case float():
            return value if math.isfinite(value) else None
        case Sequence():
            return [_plain(part) for part in value]
        case _:
            return str(value)
