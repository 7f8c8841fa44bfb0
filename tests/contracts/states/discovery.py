"""Which classes keep a state and state a guarantee: found by walking the package, so that none is forgotten.

A class *states* a guarantee if a public name of it speaks of a guarantee, an epsilon, a budget or what is spent. It
*keeps* a state if one of its methods changes the object, or begins a state that goes on elsewhere, or works out what is
left, or what holds for ever. What is kept to save work is no state: a `cached_property`, or an `lru_cache`.
"""

import ast
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator
from functools import cache, cached_property
from types import ModuleType

import noisette

STATED = re.compile("guarantee|epsilon|budget|spent")
KEPT = re.compile("begin|machine|left|.*forever")
MADE = {"__init__", "__post_init__", "__new__"}


def modules() -> Iterator[ModuleType]:
    """All modules of the package."""
    for module in pkgutil.walk_packages(noisette.__path__, "noisette."):
        if not module.name.endswith("__main__"):
            yield importlib.import_module(module.name)


def found() -> list[type]:
    """All public classes that keep a state and state a guarantee."""
    return [
        cls
        for module in modules()
        for name, cls in vars(module).items()
        if inspect.isclass(cls) and cls.__module__ == module.__name__ and name[0] != "_" and is_subject(cls)
    ]


def is_subject(cls: type) -> bool:
    """Whether a class keeps a state and states a guarantee; what is only a form of others is judged in them."""
    public = [name for name in {*dir(cls), *fields(cls)} if not name.startswith("_")]
    if not any(STATED.search(name) for name in public):
        return False
    return (any(KEPT.fullmatch(name) for name in {*public} - fields(cls)) or changes(cls)) and not is_form(cls)


def fields(cls: type) -> set[str]:
    """What is given to an object when it is made, as a dataclass or a named tuple."""
    named = getattr(cls, "_fields", ()) if issubclass(cls, tuple) else ()
    return {*getattr(cls, "__dataclass_fields__", ()), *named}


def is_form(cls: type) -> bool:
    """Whether it is a protocol, or a base with something left out."""
    if getattr(cls, "_is_protocol", False) or inspect.isabstract(cls):
        return True
    return any(isinstance(node, ast.Raise) and "NotImplementedError" in ast.dump(node) for node in ast.walk(text(cls)))


def text(cls: type) -> ast.ClassDef:
    """Its text as a tree."""
    return _classes(cls.__module__)[cls.__name__]


@cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def changes(cls: type) -> bool:
    """Whether a method assigns to the object, or to a place inside of it, after it is made."""
    methods = [node for node in text(cls).body if isinstance(node, ast.FunctionDef) and node.name not in MADE]
    targets = [target for method in methods for node in ast.walk(method) for target in _targets(node)]
    return any(name and not isinstance(getattr(cls, name, None), cached_property) for name in map(_own, targets))


def _targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return [one for target in node.targets for one in getattr(target, "elts", [target])]
    return [node.target] if isinstance(node, ast.AugAssign | ast.AnnAssign) and node.value else []


def _own(target: ast.expr) -> str | None:
    """The name of what is changed of the object itself."""
    while isinstance(target, ast.Subscript):
        target = target.value
    own = isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"
    return target.attr if own else None
