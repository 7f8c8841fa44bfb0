"""Where the package cuts an array, a file or a loop into pieces of a fixed size: found by walking its text.

A *size* is a constant of a module that is called like one, or that says how far a loop goes at a time: the step of a
`range`, the parts of an `array_split`, what is read of a file again and again. It may do so by way of a local variable,
such as `step = max(1, _CHUNK // cells)`. Each place is a module and a name, with the functions that read it there.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import noisette

ROOT = Path(noisette.__file__).parent
NAMED = re.compile("_?(A_PARCEL|BATCH(_[A-Z]+)*|BLOCK|CHUNK|ENTRIES|GATHERED|PIECE|TOGETHER|WAITING|WINDOW)S?")
SPOKEN = re.compile(rf"\b{NAMED.pattern}\b")
LOOPS = re.compile(r"range\(([^\n]*,[^\n]*,|\n)|array_split\(|while .*\.read\(|\bpieces\(")
CONSTANT = re.compile("_*[A-Z][A-Z0-9_]*")
_BLOCKS = ast.FunctionDef | ast.ClassDef
PIECES = "pieces"
"""What cuts an array for all of its callers, who count as readers of its size."""


@cache
def found() -> dict[str, frozenset[str]]:
    """The functions that read each size, by "module:NAME"."""
    readers = defaultdict(set)
    for module, tree in modules().items():
        known = constants(tree)
        for qualname, function in functions(tree):
            sizes = {name for name in names(function) if NAMED.fullmatch(name)}
            for name in known & sizes.union(*map(names, cuts(function))):
                readers[f"{module}:{name}"].add(f"{module}:{qualname}")
    for size in [size for size, those in readers.items() if any(one.endswith(f":{PIECES}") for one in those)]:
        readers[size] |= set(callers(size.partition(":")[0]))
    return {size: frozenset(those) for size, those in readers.items()}


@cache
def modules() -> dict[str, ast.Module]:
    """The modules of the package that have loops or sizes at all, by their names in it."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(ROOT.rglob("*.py"))}
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): ast.parse(text)
        for path, text in texts.items()
        if LOOPS.search(text) or SPOKEN.search(text)
    }


def source(module: str) -> str:
    """The text of a module of the package."""
    return Path(find_spec(f"noisette.{module}").origin).read_text(encoding="utf-8")


def constants(tree: ast.Module) -> set[str]:
    """The names in capitals that a module gives or imports."""
    given = {name.id for node in tree.body if not isinstance(node, _BLOCKS) for name in ast.walk(node) if _stored(name)}
    imported = {alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    return {name for name in given | imported if CONSTANT.fullmatch(name)}


def _stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def functions(tree: ast.AST, within: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """All functions with their qualified names; a nested one counts as its outermost."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield within + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{within}{node.name}.")


def names(node: ast.AST) -> set[str]:
    """The names that are read in a part of the text; local variables stand for what they are made of."""
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} | getattr(node, "made_of", set())


def cuts(function: ast.FunctionDef) -> list[ast.expr]:
    """The expressions that say how far a loop of a function goes at a time."""
    nodes = list(ast.walk(function))
    again = [node for node in nodes if isinstance(node, ast.While)]
    steps = [step for node in nodes for step in _steps(node)]
    steps += [a for loop in again for node in ast.walk(loop.test) if _called(node) == "read" for a in node.args]
    made = _assigned(nodes) if steps else {}
    for step in steps:
        step.made_of = set().union(*(made.get(name, set()) for name in names(step)))
    return steps


def _steps(node: ast.AST) -> list[ast.expr]:
    called = _called(node)
    if called in ("range", "arange"):
        return node.args[2:3]
    return node.args[1:2] if called == "array_split" else []


def _called(node: ast.AST) -> str:
    if not isinstance(node, ast.Call):
        return ""
    return getattr(node.func, "id", None) or getattr(node.func, "attr", "")


def _assigned(nodes: list[ast.AST]) -> dict[str, set[str]]:
    """The names of which local variables are made, in one step."""
    made = defaultdict(set)
    for node in nodes:
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            both = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
            for to, of in zip(target.elts, value.elts, strict=True) if both else [(target, value)]:
                if isinstance(to, ast.Name):
                    made[to.id] |= names(of)
    return made


def callers(module: str) -> Iterator[str]:
    """The functions of the package that loop over the pieces that a module cuts."""
    for other, tree in modules().items():
        known = other == module or any(
            isinstance(node, ast.ImportFrom)
            and node.module == f"noisette.{module}"
            and PIECES in [alias.name for alias in node.names]
            for node in tree.body
        )
        for qualname, function in functions(tree) if known else ():
            if any(_called(node) == PIECES for node in ast.walk(function)):
                yield f"{other}:{qualname}"
