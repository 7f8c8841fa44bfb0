"""Regular expressions that cannot run away: read once, then run as an automaton, or written for an engine's own.

What can be said: characters, `.`, classes such as `[a-z]`, `[^,]`, `\\d`, `\\w`, `\\s`, anchors `^` and `$`, groups,
alternatives and the repetitions `*`, `+`, `?`, `{2}`, `{2,}` and `{2,5}`. Classes with a backslash are about ASCII, `.`
is any character, and `^` and `$` are the ends of the text. What needs more than one pass (references back, looking
ahead or behind) is refused, so that every engine takes linear time and finds the same matches (Thompson 1968).
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from noisette.errors import InputError

__all__ = ["escaped", "found", "like", "read", "to_re2"]

LARGEST = 1_000
"""The most steps of an automaton."""

_SPECIAL = r".^$*+?()[]{}|" + "\\"
_WORD = (("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z"))
_CLASSES = {"d": (("0", "9"),), "w": _WORD, "s": (("\t", "\n"), ("\f", "\r"), (" ", " "))}
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r"}

Ranges: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class One:
    """One character of some ranges, or one that is in none of them."""

    ranges: Ranges
    negated: bool = False


@dataclass(frozen=True)
class End:
    """The start or the end of the text."""

    place: Literal["start", "end"]


@dataclass(frozen=True)
class Repeat:
    """A pattern several times; `high` None is any number."""

    of: "Node"
    low: int
    high: int | None


@dataclass(frozen=True)
class All:
    """One after the other."""

    parts: tuple["Node", ...]


@dataclass(frozen=True)
class Any:
    """One of several."""

    parts: tuple["Node", ...]


Node: TypeAlias = One | End | Repeat | All | Any
ANY = One((), negated=True)


# Reading


@functools.lru_cache(maxsize=256)
def read(text: str) -> Node:
    """A pattern as a tree, or a sentence on what cannot be said.

    >>> read("a+") == Repeat(One((("a", "a"),)), 1, None)
    True
    """
    if len(text) > 500:
        raise InputError("A pattern has at most 500 characters: write a shorter one.")
    reader = _Reader(text)
    node = reader.alternatives(20)
    if reader.at < len(text):
        raise reader.refusal()
    if _size(node) > LARGEST:
        raise InputError("A pattern is too large once its repetitions are written out: write a smaller one.")
    return node


class _Reader:
    """A place in a pattern."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def refusal(self) -> InputError:
        return InputError(
            "A pattern cannot be read: write characters, classes [a-z], ., ^, $, groups, | and *, +, ?, {2,5} alone."
        )

    def next(self) -> str:
        if self.at >= len(self.text):
            raise self.refusal()
        self.at += 1
        return self.text[self.at - 1]

    def take(self, wanted: str) -> bool:
        found = self.text.startswith(wanted, self.at)
        self.at += len(wanted) if found else 0
        return found

    def alternatives(self, depth: int) -> Node:
        if depth == 0:
            raise InputError("A pattern has too many brackets within each other: write a plainer one.")
        parts = [self.sequence(depth)]
        while self.take("|"):
            parts.append(self.sequence(depth))
        return parts[0] if len(parts) == 1 else Any(tuple(parts))

    def sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            parts.append(self.repeated(self.single(depth)))
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def repeated(self, node: Node) -> Node:
        low, high = self.times()
        if (low, high) == (1, 1):
            return node
        following = self.text[self.at : self.at + 1]
        if isinstance(node, End) or (following and following in "*+?{"):  # lazy and possessive ones, too
            raise self.refusal()
        return Repeat(node, low, high)

    def times(self) -> tuple[int, int | None]:
        for sign, times in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.take(sign):
                return times
        return self.braces() if self.take("{") else (1, 1)

    def braces(self) -> tuple[int, int | None]:
        close = self.text.find("}", self.at)
        low, comma, high = self.text[self.at : max(close, self.at)].partition(",")
        numbers = [part for part in (low, high) if part]
        if close < 0 or not low or not all(n.isascii() and n.isdigit() and len(n) < 4 for n in numbers):
            raise self.refusal()
        self.at = close + 1
        least, most = int(low), int(high) if high else None if comma else int(low)
        if most is not None and (most < least or most == 0):
            raise self.refusal()
        return (least, most)

    def single(self, depth: int) -> Node:
        letter = self.next()
        match letter:
            case "(":
                if self.take("?") and not self.take(":"):
                    raise self.refusal()
                inner = self.alternatives(depth - 1)
                if not self.take(")"):
                    raise self.refusal()
                return inner if not isinstance(inner, End) else All((inner,))
            case "[":
                return self.bracket()
            case ".":
                return ANY
            case "^" | "$":
                return End("start" if letter == "^" else "end")
            case "\\":
                return self.escape()
            case _ if letter in _SPECIAL:
                raise self.refusal()
        return One(((letter, letter),))

    def escape(self) -> One:
        letter = self.next()
        if letter in _CLASSES:
            return One(_CLASSES[letter])
        if letter.lower() in _CLASSES:
            return One(_CLASSES[letter.lower()], negated=True)
        if letter in _CONTROLS:
            return One(((_CONTROLS[letter], _CONTROLS[letter]),))
        if letter.isalnum() or not letter.isascii():
            raise self.refusal()
        return One(((letter, letter),))

    def bracket(self) -> One:
        negated, ranges = self.take("^"), list[tuple[str, str]]()
        while not self.take("]"):
            low, dash = self.member(), self.take("-")
            if dash and not self.text.startswith("]", self.at):
                high = self.member()
                if isinstance(low, tuple) or isinstance(high, tuple) or low > high:
                    raise self.refusal()
                ranges.append((low, high))
            else:
                ranges += [*(low if isinstance(low, tuple) else [(low, low)]), *[("-", "-")] * dash]
        if not ranges:
            raise self.refusal()
        return One(tuple(ranges), negated)

    def member(self) -> str | Ranges:
        letter = self.next()
        if letter == "\\":
            one = self.escape()
            if one.negated:
                raise self.refusal()
            return one.ranges[0][0] if len(one.ranges) == 1 and one.ranges[0][0] == one.ranges[0][1] else one.ranges
        if letter in "[]":
            raise self.refusal()
        return letter


def escaped(text: str) -> str:
    """The pattern of a text as it stands.

    >>> escaped("50% (a)")
    '50% \\\\(a\\\\)'
    """
    return "".join(f"\\{letter}" if letter in _SPECIAL else letter for letter in text)


def like(text: str, escape: str) -> str:
    """The pattern that LIKE means where a character takes the meaning of % and _ away.

    >>> like("a!%%", "!")
    '^a%.*$'
    """
    parts, letters = [], iter(text)
    for letter in letters:
        if letter == escape:
            parts.append(escaped(next(letters, "")))
        else:
            parts.append({"%": ".*", "_": "."}.get(letter) or escaped(letter))
    return f"^{''.join(parts)}$"


# Running


def found(text: str, pattern: str) -> bool:
    """Whether a pattern is found somewhere in a text, in time proportional to both.

    >>> found("noisette", "^no.*(s|t)+e$"), found("noisette", "^x")
    (True, False)
    """
    program = _program(pattern)
    places = {0}
    for position in range(len(text) + 1):
        places = _followed(program, places | {0}, position == 0, position == len(text))
        if len(program) in places:
            return True
        if position < len(text):
            places = {p + 1 for p in places if isinstance(s := program[p], One) and _is(text[position], s)}
    return False


_Step: TypeAlias = One | End | tuple[int, ...]
"""A character, an end of the text, or jumps by some numbers of steps."""


@functools.lru_cache(maxsize=256)
def _program(pattern: str) -> tuple[_Step, ...]:
    return tuple(_compiled(read(pattern)))


def _compiled(node: Node) -> list[_Step]:
    match node:
        case One() | End():
            return [node]
        case All(parts):
            return [step for part in parts for step in _compiled(part)]
        case Any((first, *others)):
            here = _compiled(first)
            rest = _compiled(Any(tuple(others))) if len(others) > 1 else _compiled(others[0])
            return [(1, len(here) + 2), *here, (len(rest) + 1,), *rest]
        case Repeat(of, low, high):
            here = _compiled(of)
            if high is None:
                return [*here * low, (1, len(here) + 2), *here, (-len(here) - 1,)]
            maybe = high - low
            tail = [((1, (len(here) + 1) * (maybe - i)), *here) for i in range(maybe)]
            return [*here * low, *(step for steps in tail for step in steps)]
        case _:
            raise AssertionError(node)


def _size(node: Node) -> int:
    match node:
        case All(parts) | Any(parts):
            return sum(_size(part) + 2 for part in parts)
        case Repeat(of, low, high):
            return (_size(of) + 2) * (low + 1 if high is None else high)
        case _:
            return 1


def _followed(program: Sequence[_Step], places: set[int], first: bool, last: bool) -> set[int]:
    """The places that are reached without another character."""
    seen, stack = set(places), list(places)
    while stack:
        at = stack.pop()
        step = program[at] if at < len(program) else ANY
        if isinstance(step, End):
            jumps: tuple[int, ...] = (1,) if (first if step.place == "start" else last) else ()
        else:
            jumps = step if isinstance(step, tuple) else ()
        new = {at + jump for jump in jumps} - seen
        seen |= new
        stack += new
    return seen


def _is(letter: str, one: One) -> bool:
    return any(low <= letter <= high for low, high in one.ranges) != one.negated


# Writing


def to_re2(pattern: str) -> str:
    """The same pattern for RE2, with nothing left to its settings.

    >>> to_re2("^[a-c]+|.$")
    '(?:\\\\A[\\\\x{61}-\\\\x{63}]+|(?s:.)\\\\z)'
    """
    return _written(read(pattern))


def _written(node: Node) -> str:
    match node:
        case One((), True):
            return "(?s:.)"
        case One(ranges, negated):
            inside = "".join(f"{_code(low)}-{_code(high)}" for low, high in ranges)
            return f"[{'^' * negated}{inside}]"
        case End(place):
            return r"\A" if place == "start" else r"\z"
        case All(parts):
            return "".join(map(_written, parts))
        case Any(parts):
            return f"(?:{'|'.join(map(_written, parts))})"
        case Repeat(of, low, high):
            times = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((low, high))
            times = times or (f"{{{low}}}" if low == high else f"{{{low},{'' if high is None else high}}}")
            inner = _written(of)
            return f"{inner if isinstance(of, One) else f'(?:{inner})'}{times}"
        case _:
            raise AssertionError(node)


def _code(letter: str) -> str:
    return f"\\x{{{ord(letter):x}}}"
