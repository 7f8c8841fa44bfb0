"""Rules of the operations on texts: what they ask of their arguments, and what is known of the result.

Constants say where a text is cut, what is replaced and which pattern it is compared with. Of a few declared keys the
results are listed.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import product

from noisette.errors import InputError
from noisette.query import intervals, pattern, texts
from noisette.query.expression import Call, Operation
from noisette.query.kind import Kind, in_order
from noisette.query.known import MANY, Rule, mapped, truth, whole, whole_constant, written
from noisette.query.requirements import all_of, constants, not_null, operator

__all__ = ["TEXT_RULES"]

FARTHEST = 1_000_000
"""The farthest place of a character that a query names."""


def _changed(each: Callable[[str], str]) -> Rule:
    """One text makes another."""

    def rule(call: Call, kinds: tuple[Kind, ...]) -> Kind:
        all_of("text", call, kinds)
        return replace(kinds[0], keys=mapped(kinds[0], lambda key: each(str(key))))

    return rule


def _text_first(call: Call, kinds: tuple[Kind, ...]) -> Kind:
    not_null(call, kinds)
    all_of("text", call, kinds[:1], call.arguments[:1])
    return kinds[0]


def _substring(call: Call, kinds: tuple[Kind, ...]) -> Kind:
    kind, example = _text_first(call, kinds), "SUBSTRING(x, 1, 2)"
    start = whole_constant(call, 1, 1, FARTHEST, example)
    length = whole_constant(call, 2, 0, FARTHEST, example)
    return replace(kind, keys=mapped(kind, lambda key: texts.substring(str(key), start, length)))


def _right(call: Call, kinds: tuple[Kind, ...]) -> Kind:
    kind = _text_first(call, kinds)
    length = whole_constant(call, 1, 0, FARTHEST, "RIGHT(x, 2)")
    return replace(kind, keys=mapped(kind, lambda key: texts.right(str(key), length)))


def _length(call: Call, kinds: tuple[Kind, ...]) -> Kind:
    kind = _text_first(call, kinds)
    return Kind("integer", Fraction(0), None, Fraction(1), mapped(kind, lambda key: len(str(key))), kind.nullable)


def _concat(call: Call, kinds: tuple[Kind, ...]) -> Kind:
    all_of("text", call, kinds)
    nullable, lists = any(kind.nullable for kind in kinds), [kind.keys for kind in kinds]
    found = [keys for keys in lists if keys is not None]
    if len(found) < len(lists) or math.prod(map(len, found)) > MANY:
        return Kind("text", nullable=nullable)
    keys = in_order(texts.joined(*map(str, parts)) for parts in product(*found))
    return Kind("text", keys=keys, nullable=nullable)


def _replace(call: Call, kinds: tuple[Kind, ...]) -> Kind:
    kind, (old, new) = _text_first(call, kinds), (written(call, place) for place in (1, 2))
    if not isinstance(old, str) or not isinstance(new, str) or not old or len(new) > 100:
        raise InputError("REPLACE takes constants of at most 100 characters: write REPLACE(x, '-', '').")
    return replace(kind, keys=mapped(kind, lambda key: texts.replaced(str(key), old, new)))


def _split_part(call: Call, kinds: tuple[Kind, ...]) -> Kind:
    kind, mark = _text_first(call, kinds), written(call, 1)
    if not isinstance(mark, str) or not mark:
        raise InputError("SPLIT_PART takes a mark that is not empty: write SPLIT_PART(x, '-', 1).")
    place = whole_constant(call, 2, 1, MANY, "SPLIT_PART(x, '-', 1)")
    return replace(kind, keys=mapped(kind, lambda key: texts.part(str(key), mark, place)))


def _like(call: Call, kinds: tuple[Kind, ...]) -> Kind:
    constants(call, call.arguments[1:])
    all_of("text", call, kinds)
    return truth(kinds[0].nullable)


def _matches(call: Call, kinds: tuple[Kind, ...]) -> Kind:
    kind = _like(call, kinds)
    pattern.read(str(written(call, 1)))
    return kind


def _as_text(call: Call, kinds: tuple[Kind, ...]) -> Kind:
    not_null(call, kinds)
    (kind,) = kinds
    if kind.type == "integer":
        whole(call, kinds, 0)
    elif kind.type not in ("boolean", "date"):
        raise InputError(
            f"{operator(call)} makes text of integers, dates and conditions, not of {kind.type}: use STRFTIME or FLOOR."
        )
    known = kind if kind.keys is not None else _few(kind)
    return Kind("text", keys=mapped(known, texts.as_text), nullable=kind.nullable)


def _few(kind: Kind) -> Kind:
    """The same with all its values as keys, if they are few."""
    few = kind.count is not None and kind.count <= MANY
    return replace(kind, keys=kind.maybe(False).values()) if few else kind


# Texts that are read as other types: what cannot be read is NULL


def _read(result: Kind) -> Rule:
    def rule(call: Call, kinds: tuple[Kind, ...]) -> Kind:
        _text_first(call, kinds)
        return result

    return rule


_MOST = Fraction(10**15 - 1)

ONE, TWO, THREE = (range(n, n + 1) for n in (1, 2, 3))

TEXT_RULES: Mapping[Operation, tuple[range, Rule]] = {
    "like": (TWO, _like),
    "matches": (TWO, _matches),
    "lower": (ONE, _changed(texts.letter_by_letter(str.lower))),
    "upper": (ONE, _changed(texts.letter_by_letter(str.upper))),
    "trim": (ONE, _changed(lambda text: text.strip(" "))),
    "substring": (THREE, _substring),
    "right": (TWO, _right),
    "length": (ONE, _length),
    "concat": (range(2, 2**31), _concat),
    "replace": (THREE, _replace),
    "split_part": (THREE, _split_part),
    "as_text": (ONE, _as_text),
    "try_integer": (ONE, _read(intervals.settled(Kind("integer", -_MOST, _MOST, Fraction(1))))),
    "try_real": (ONE, _read(Kind("real", -_MOST - 1, _MOST + 1))),  # 999999999999999.9999 is rounded up
    "try_date": (ONE, _read(Kind("date"))),
}
"""For each operation on texts: how many arguments it takes, and its rule."""
