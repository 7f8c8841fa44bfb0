"""What a case finds beside what is so by definition, and the twin that leaves something out at each seam."""

import ast
import importlib
from collections.abc import Iterator
from functools import cache, cached_property
from types import CodeType, FunctionType
from typing import Any, TypeAlias

from tests.contracts.seams.discovery import PIECES, cuts, found, functions, names, source

Pairs: TypeAlias = Iterator[tuple[Any, Any]]
"""What is found, and what it must be."""


def function_of(place: str) -> FunctionType:
    """The function of a place "module:qualified.name"."""
    module, _, qualname = place.partition(":")
    one: Any = importlib.import_module(f"noisette.{module}")
    for name in qualname.split("."):
        one = vars(one)[name]
    if isinstance(one, property | cached_property):
        return one.fget if isinstance(one, property) else one.func
    return getattr(one, "__wrapped__", getattr(one, "__func__", one))


@cache
def leaky(reader: str, size: str) -> CodeType | None:
    """The code of a function that goes on one too far at each seam, or leaves out its last piece; None without one."""
    (module, _, qualname), (cutter, _, name) = reader.partition(":"), size.partition(":")
    tree = ast.parse(source(module))
    function = dict(functions(tree))[qualname]
    steps = {id(step) for step in cuts(function) if name in names(step)}
    changed = _Leaky(steps, {PIECES} if f"{cutter}:{PIECES}" in found()[size] else set())
    changed.visit(function)
    if not changed.done:
        return None
    return _code(compile(ast.fix_missing_locations(tree), function_of(reader).__code__.co_filename, "exec"), qualname)


class _Leaky(ast.NodeTransformer):
    def __init__(self, steps: set[int], cutters: set[str]) -> None:
        self.steps, self.cutters, self.done = steps, cutters, 0

    def visit_Call(self, node: ast.Call) -> ast.AST:
        called, at = getattr(node.func, "id", None) or getattr(node.func, "attr", ""), None
        if called in ("range", "arange", "array_split"):
            at = next((i for i, one in enumerate(node.args) if id(one) in self.steps), None)
        self.generic_visit(node)
        if at is not None and called != "array_split":
            node.args[at] = ast.BinOp(node.args[at], ast.Add(), ast.Constant(1))
        if called in self.cutters or (at is not None and called == "array_split"):
            node = _without_the_last(node)
            at = 0
        self.done += at is not None
        return node


def _without_the_last(node: ast.expr) -> ast.Subscript:
    whole = ast.Call(ast.Name("list", ast.Load()), [node], [])
    return ast.Subscript(whole, ast.Slice(upper=ast.Constant(-1)), ast.Load())


def _code(code: CodeType, qualname: str) -> CodeType:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            if inner.co_qualname == qualname:
                return inner
            if qualname.startswith(f"{inner.co_qualname}."):
                return _code(inner, qualname)
    raise LookupError(qualname)
