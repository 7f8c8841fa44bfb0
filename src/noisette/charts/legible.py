"""Texts that renderers can draw: characters that XML allows, and at most a few hundred of them.

Keys, aliases and notes may be any text. A control character ends the process that draws an SVG, and very long texts
take minutes to lay out; so every text on its way into a chart passes here. Texts that differ still do afterwards.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

__all__ = ["LONGEST", "legible"]

LONGEST: Final = 400  # characters of any text in a chart
_UNKNOWN: Final = "\N{REPLACEMENT CHARACTER}"
_NOT_XML: Final = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # what is not a Char of XML 1.0
_BEYOND: Final = re.compile("[\U00010000-\U0010ffff]")  # two units of UTF-16 each


def legible(spec: Any, *, beyond: bool = True) -> Any:
    """A specification whose texts can be drawn; without `beyond`, of characters below U+10000 alone.

    >>> legible({"values": ["a\\x1bb", "a\\x00b", "plain", "x" * 500]})["values"][:3]
    ['a�b', 'a�b (2)', 'plain']
    """
    given = dict.fromkeys(_texts(spec))
    made = {text: _drawable(text, beyond) for text in given}
    changed = {text: drawn for text, drawn in made.items() if text != drawn}
    return _with(spec, _apart(changed, given)) if changed else spec


def _drawable(text: str, beyond: bool) -> str:
    drawn = _NOT_XML.sub(_UNKNOWN, text[: LONGEST + 1])
    return _cut(drawn if beyond else _BEYOND.sub(_UNKNOWN, drawn))


def _cut(text: str, end: str = "") -> str:
    """A text with its end, cut before that where both are too long."""
    return text + end if len(text) + len(end) <= LONGEST else f"{text[: LONGEST - len(end) - 1]}…{end}"


def _apart(changed: Mapping[str, str], taken: Iterable[str]) -> dict[str, str]:
    """What each changed text becomes, numbered where another text is the same by then."""
    used, found = set(taken), {}
    numbers: dict[str, Iterator[int]] = {}
    for text, drawn in changed.items():
        count = numbers.setdefault(drawn, itertools.count(2))
        tries = (_cut(drawn, f" ({i})") for i in count)
        found[text] = next(name for name in itertools.chain([drawn], tries) if name not in used)
        used.add(found[text])
    return found


def _texts(spec: Any) -> Iterator[str]:
    match spec:
        case str():
            yield spec
        case Mapping():
            for name, part in spec.items():
                yield name
                yield from _texts(part)
        case list() | tuple():
            for part in spec:
                yield from _texts(part)


def _with(spec: Any, names: Mapping[str, str]) -> Any:
    """The same specification with other texts."""
    match spec:
        case str():
            return names.get(spec, spec)
        case Mapping():
            return {names.get(name, name): _with(part, names) for name, part in spec.items()}
        case list() | tuple():
            return [_with(part, names) for part in spec]
        case _:
            return spec
