"""Puts a mutation into force in this process, in all functions that hold the changed code.

The module is compiled twice, as it is and with the change; where a function differs, the live function objects get the
new code, so that whoever imported, wrapped or stored the function runs it as well. What a cache knows is forgotten.
"""

import ast
import functools
import gc
import importlib
import inspect
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from tests.mutants.table import Mutant

SOURCES = Path(__file__).parents[2] / "src" / "noisette"


class StaleError(Exception):
    """An entry of the table that does not fit the sources."""


def mutated(mutant: Mutant, sources: Path = SOURCES) -> str:
    """The text of the module with the change."""
    text = _text(sources / mutant.file)
    found = [at for start, end in _regions(mutant, sources) for at in _places(text, mutant.was, start, end)]
    if len(found) != 1:
        raise StaleError(f"{mutant.place} has {mutant.was!r} {len(found)} times: name a text that is there once.")
    return text[: found[0]] + mutant.now + text[found[0] + len(mutant.was) :]


@cache
def changed(mutant: Mutant, sources: Path = SOURCES) -> list[tuple[CodeType, CodeType]]:
    """The code objects that the change replaces, each with what replaces it, outermost functions first."""
    path = str(sources / mutant.file)
    sound, broken = (compile(text, path, "exec") for text in (_text(Path(path)), mutated(mutant, sources)))
    if _own(sound) != _own(broken):
        raise StaleError(f"{mutant.place} changes what runs at import; change a function.")
    pairs = list(_differing(sound, broken))
    if not pairs:
        raise StaleError(f"{mutant.place} has the same code after the change.")
    return pairs


def functions(mutant: Mutant, sources: Path = SOURCES) -> frozenset[str]:
    """The functions that the change alters, as file::name."""
    return frozenset(name(mutant.file, sound) for sound, _ in changed(mutant, sources))


def name(file: str, code: CodeType) -> str:
    """The outermost function that this code belongs to."""
    return f"{file}::{code.co_qualname.partition('.<locals>')[0]}"


class Process:
    """The functions and caches of this process, found once before it forks."""

    def __init__(self, sources: Path = SOURCES) -> None:
        self.sources = sources
        self._functions: dict[tuple[str, str, int], list[FunctionType]] = {}
        self._caches: list[Any] = []
        self._remembered: list[tuple[Any, str]] = []
        for each in gc.get_objects():
            self._add(each)

    def _add(self, each: Any) -> None:
        kind = type(each)
        if kind is FunctionType:
            if each.__code__.co_filename.startswith(str(self.sources)):
                self._functions.setdefault(_key(each.__code__), []).append(each)
        elif kind is functools._lru_cache_wrapper:
            self._caches.append(each)
        elif names := _cached(kind):
            self._remembered += [(each, name) for name in names]

    def apply(self, mutant: Mutant) -> None:
        """Run the mutant from now on; there is no way back but to end the process."""
        importlib.import_module(_module(self.sources, mutant.file))
        for sound, broken in changed(mutant, self.sources):
            known = self._functions.get(_key(sound)) or _living(sound)
            if not known and "<locals>" not in sound.co_qualname:
                raise StaleError(f"{mutant.place}: no living function has the code of {sound.co_qualname}.")
            for each in known:
                # Two lambdas may begin in one line; an inner function that sees other variables is made anew.
                if _own(each.__code__) == _own(sound) and sound.co_freevars == broken.co_freevars:
                    each.__code__ = broken
        self.forget()

    def forget(self) -> None:
        """Empty all caches: what they hold was made without the mutation."""
        for each in self._caches:
            each.cache_clear()
        for each, key in self._remembered:
            getattr(each, "__dict__", {}).pop(key, None)


@cache
def _cached(kind: type) -> tuple[str, ...]:
    found = (name for base in kind.__mro__ for name, value in vars(base).items() if type(value) is cached_property)
    return tuple(found)


def _living(code: CodeType) -> list[FunctionType]:
    return [each for each in gc.get_objects() if type(each) is FunctionType and _key(each.__code__) == _key(code)]


def _key(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _module(sources: Path, file: str) -> str:
    parts = [sources.name, *Path(file).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


# Where in the text


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(_text(path))


def _regions(mutant: Mutant, sources: Path) -> Iterator[tuple[int, int]]:
    """Begin and end of each statement with this name: a function, or an assignment that holds lambdas."""
    path = sources / mutant.file
    lines = [0]
    for line in _text(path).split("\n"):
        lines.append(lines[-1] + len(line) + 1)
    for node in _named(_parsed(path).body, mutant.function.split(".")):
        yield lines[node.lineno - 1], lines[node.end_lineno or node.lineno]


def _named(body: list[ast.stmt], names: list[str]) -> Iterator[ast.stmt]:
    for node in _flat(body):
        if names[0] in _names(node):
            inner = getattr(node, "body", [])
            yield from _named(inner, names[1:]) if names[1:] else [node]


def _flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            yield from _flat([*node.body, *getattr(node, "orelse", [])])


def _names(node: ast.stmt) -> list[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [each.id for each in targets if isinstance(each, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []


def _places(text: str, was: str, start: int, end: int) -> Iterator[int]:
    at = text.find(was, start, end)
    while at >= 0:
        yield at
        at = text.find(was, at + 1, end)


# What differs: lines and columns do not count.


def _differing(sound: CodeType, broken: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    for one, other in zip(_inner(sound), _inner(broken), strict=True):
        if _own(one) != _own(other):
            yield one, other
        yield from _differing(one, other) if len(_inner(one)) == len(_inner(other)) else ()


def _own(code: CodeType) -> tuple[Any, ...]:
    """What this code does. A function counts with what is inside it; a module or a class body does not."""
    deep = bool(code.co_flags & inspect.CO_OPTIMIZED)  # a function
    constants = tuple(_constant(each, deep) for each in code.co_consts)
    return code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, constants


def _constant(each: Any, deep: bool) -> Any:
    if isinstance(each, CodeType):
        return _own(each) if deep else each.co_qualname
    return type(each), repr(each)


def _inner(code: CodeType) -> list[CodeType]:
    return [each for each in code.co_consts if isinstance(each, CodeType)]
