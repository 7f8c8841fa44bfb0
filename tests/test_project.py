"""The project's own shape: layers, import cost, public names, stray paths."""

import __future__

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import ModuleType

import pytest

import noisette

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "noisette"

# A module imports from its own subpackage and from lower layers; equal numbers are siblings and do not mix.
# "" is noisette/__init__.py: it gathers what is below, and only the shells above may import it.
LAYERS = {
    "errors": -2,
    "names": -1,
    "process": -1,
    "progress": -1,
    "terminal": -1,
    "text": -3,
    "version": -1,
    "exact": 0,
    "laws": 1,
    "privacy": 1,
    "mechanisms": 2,
    "accuracy": 3,
    "attacks": 3,
    "audit": 3,
    "charts": 3,
    "holdout": 3,
    "local": 3,
    "": 4,
    "answers": 6,
    "query": 7,
    "engines": 8,
    "sandbox": 8,
    "releases": 8,
    "questions": 9,
    "policy": 9,
    "ledger": 9,
    "curator": 10,
    "dbapi": 11,
    "notebook": 11,
    "report": 11,
    "cli": 12,
    "__main__": 13,
}

PUBLIC_MODULES = {
    "exact",
    "laws",
    "local",
    "privacy",
    "mechanisms",
    "accuracy",
    "answers",
    "attacks",
    "audit",
    "charts",
    "curator",
    "errors",
    "holdout",
    "query",
    "questions",
    "sensitivity",
}
HEAVY = {"scipy", "mpmath", "vl_convert", "typer", "rich", "duckdb", "sqlglot", "pyarrow", "pandas", "polars"}

# The backslashes keep this pattern from matching itself.
STRAY = re.compile(rb"pypi\.org|files\.pythonhosted|(?<![\w.-])/(?:root|work)/")


# Layers


def modules(package: Path) -> dict[str, Path]:
    """Every module of a package directory by its dotted name."""
    named = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        named[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return named


def imports(name: str, path: Path, known: set[str]) -> Iterator[str]:
    """What a file imports from its own package, anywhere: inside functions and under TYPE_CHECKING too."""
    package = name.split(".")[0]
    here = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import():
                targets = [alias.name for alias in node.names]
            case ast.ImportFrom():
                base = here.split(".")[: 1 - node.level or None] if node.level else []
                source = ".".join([*base, *filter(None, [node.module])])
                dotted = [f"{source}.{alias.name}" for alias in node.names]
                targets = [target if target in known else source for target in dotted]
            case _:
                continue
        yield from (target for target in targets if target.split(".")[0] == package)


@cache
def import_graph(package: Path) -> dict[str, set[str]]:
    """What each module of a package imports from it."""
    found = modules(package)
    return {name: set(imports(name, path, set(found))) for name, path in found.items()}


def layer_faults(package: Path, layers: dict[str, int]) -> list[str]:
    """What is wrong with the imports of a package, one sentence each."""
    graph = import_graph(package)

    def part(name: str) -> str:
        return f"{name}..".split(".")[1]

    unknown = {part(name) for name in graph} - set(layers)
    faults = [f"{new!r} has no layer: add it to LAYERS in tests/test_project.py" for new in sorted(unknown)]
    for name, targets in graph.items():
        for target in sorted(targets):
            mine, its = part(name), part(target)
            if mine != its and not {mine, its} & unknown and layers.get(its, 99) >= layers[mine]:
                faults.append(f"{name} imports {target}, which is not in a lower layer")
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        faults.append(f"import cycle: {' -> '.join(reversed(error.args[1]))}")
    return faults


def test_imports_go_down_only():
    assert layer_faults(PACKAGE, LAYERS) == []


def package_edges(package: Path) -> set[tuple[str, str]]:
    """Which part of the package imports which other one; the root is called ""."""
    pairs = ((name, target) for name, targets in import_graph(package).items() for target in targets)
    edges = {tuple(f"{module}..".split(".")[1] for module in pair) for pair in pairs}
    return {(one, other) for one, other in edges if one != other}


def test_packages_depend_on_few_others_and_none_on_the_root():
    edges = {(one, other) for one, other in package_edges(PACKAGE) if one}
    assert {one for one, other in edges if not other} == set()
    small = {name for name, level in LAYERS.items() if level < 0}
    rooms = {(one, other) for one, other in edges if other not in small}
    assert len(rooms) <= 100, f"{len(rooms)} edges between packages: {sorted(rooms)}"


@pytest.mark.parametrize(
    ("files", "fault"),
    [
        ({"low/a.py": "import math, numpy", "high/b.py": "from mini.low import a"}, None),
        ({"low/a.py": "from . import b", "low/b.py": "x = 1"}, None),
        ({"low/a.py": "from mini.high.b import x", "high/b.py": ""}, "mini.low.a imports mini.high.b,"),
        ({"low/a.py": "from mini.high import b", "high/b.py": ""}, "mini.low.a imports mini.high.b,"),
        ({"low/a.py": "import mini.high.b", "high/b.py": ""}, "mini.low.a imports mini.high.b,"),
        ({"low/a.py": "from ..high.b import x", "high/b.py": ""}, "mini.low.a imports mini.high.b,"),
        ({"low/__init__.py": "from ..high import b", "high/b.py": ""}, "mini.low imports mini.high.b,"),
        (
            {"low/a.py": "def f():\n    import mini.high.b", "high/b.py": ""},
            "mini.low.a imports mini.high.b,",
        ),
        (
            {"low/a.py": "from typing import *\nif TYPE_CHECKING:\n    import mini.high.b", "high/b.py": ""},
            "mini.low.a imports mini.high.b,",
        ),
        ({"low/a.py": "from mini.twin.b import x", "twin/b.py": ""}, "mini.low.a imports mini.twin.b,"),
        ({"low/a.py": "import mini"}, "mini.low.a imports mini,"),
        ({"low/a.py": "from mini.low.b import x", "low/b.py": "from mini.low.a import y"}, "import cycle: "),
        ({"low/__init__.py": "from .a import x", "low/a.py": "from mini.low import y"}, "import cycle: "),
        ({"new/a.py": ""}, "'new' has no layer: add it"),
    ],
)
def test_layer_faults_are_found(tmp_path, files, fault):
    for name, text in {"__init__.py": "", **files}.items():
        path = tmp_path / "mini" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    faults = layer_faults(tmp_path / "mini", {"low": 0, "twin": 0, "high": 1, "": 2})
    assert len(faults) == (fault is not None), faults
    assert fault is None or faults[0].startswith(fault)


# Import cost


def run(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=300
    ).stdout


def import_seconds(module: str) -> float:
    """CPU time of one import in a fresh process."""
    return float(run(f"from time import process_time as t; a = t(); import {module}; print(t() - a)"))


def test_import_loads_nothing_heavy():
    loaded = run("import sys, noisette; print(*{name.split('.')[0] for name in sys.modules})").split()
    assert "noisette" in loaded
    assert HEAVY.isdisjoint(loaded), f"import noisette loads {sorted(HEAVY.intersection(loaded))}"


@pytest.mark.slow
def test_import_costs_at_most_twice_numpy():
    run("import numpy, noisette")  # writes the bytecode, warms the disk cache
    least = min(import_seconds("noisette") / import_seconds("numpy") for _ in range(9))  # one right after the other
    assert least <= 2, f"import noisette takes {least:.2f} times the CPU of import numpy"


def test_the_version_stands_once_for_records_and_once_for_installers():
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert noisette.__version__ == stated


# Public names


def is_submodule(package: ModuleType, name: str) -> bool:
    value = getattr(package, name)
    if not isinstance(value, ModuleType):
        return False
    return value.__name__.startswith(f"{package.__name__}.") and value.__name__.endswith(f".{name}")


def name_faults(package: ModuleType, public_modules: set[str]) -> list[str]:
    """Where `__all__` and the names a user sees differ, and which of them lack a docstring of their own."""
    listed = {name for name in package.__all__ if not name.startswith("_")}
    missing = {name for name in listed if not hasattr(package, name)}
    # A submodule appears in dir() once anything has imported it, so being there says nothing.
    seen = {
        name
        for name in dir(package)
        if not name.startswith("_")
        and not isinstance(getattr(package, name), __future__._Feature)
        and not (is_submodule(package, name) and name not in listed)
    }
    faults = [f"{name} is in __all__ but dir() does not show it" for name in sorted(listed - seen)]
    faults += [f"{name} is public but not in __all__" for name in sorted(seen - listed)]
    for name in sorted(listed - missing):
        value = getattr(package, name)
        if isinstance(value, ModuleType) and not (is_submodule(package, name) and name in public_modules):
            faults.append(f"{name} is a module that is not meant to be public")
        if (inspect.isroutine(value) or isinstance(value, type | ModuleType)) and not has_docstring(value):
            faults.append(f"{name} has no docstring")
    return faults


def has_docstring(value: object) -> bool:
    """True if somebody wrote one: dataclasses fill in their signature."""
    text = (value.__doc__ or "").strip()
    return bool(text) and not text.startswith(f"{getattr(value, '__name__', '')}(")


def test_public_names_are_listed_and_documented():
    assert name_faults(noisette, PUBLIC_MODULES) == []


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("def f():\n    'Doc.'\n__all__ = ['f', 'ONE']\nONE = 1\n_x = 2", []),
        ("from __future__ import annotations\n__all__ = []", []),
        ("def f():\n    'Doc.'\n__all__ = []", ["f is public but not in __all__"]),
        ("__all__ = ['f']", ["f is in __all__ but dir() does not show it"]),
        ("import math\n__all__ = []", ["math is public but not in __all__"]),
        ("import math\n__all__ = ['math']", ["math is a module that is not meant to be public"]),
        ("def f(): ...\n__all__ = ['f']", ["f has no docstring"]),
        (
            "from dataclasses import dataclass as _d\n@_d\nclass A:\n    x: int\n__all__ = ['A']",
            ["A has no docstring"],
        ),
    ],
)
def test_name_faults_are_found(text, faults):
    mini = ModuleType("mini")
    exec(text, mini.__dict__)
    assert name_faults(mini, set()) == faults


# The terminal

_PRINTS = {"Console", "Progress", "from_markup", "render_str", "print", "secho"}  # by hand, around noisette.terminal


def terminal_faults(text: str) -> list[str]:
    """Where a module makes a console of its own, reads markup, or prints without it."""
    faults = []
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Call(ast.Name(name)) if name in _PRINTS:
                faults.append(name)
            case ast.Call(ast.Attribute(ast.Name("typer" | "click" | "sys" | "stdout" | "rich"), name)) if (
                name != "exit"
            ):
                faults += [name] if name in (*_PRINTS, "echo", "write") else []
            case ast.Attribute(_, "from_markup" | "render_str" as name):
                faults.append(name)
            case ast.keyword("markup" | "emoji" as name, ast.Constant(True)):
                faults.append(name)
    return faults


def test_everything_is_printed_by_one_console():
    files = [path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "terminal.py"]
    read = {str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8") for path in files}
    likely = re.compile(r"print|echo|Console|Progress|markup|emoji|render_str|\.write\(")  # parsing takes long
    found = {path: terminal_faults(text) for path, text in read.items() if likely.search(text)}
    assert {path: faults for path, faults in found.items() if faults} == {}


@pytest.mark.parametrize(
    "text",
    [
        "from rich.console import Console\nConsole(markup=False).print(1)",
        "console(markup=True)",
        "Text.from_markup(name)",
        "print(name)",
        "typer.echo(name)",
        "typer.secho(name)",
        "with Progress() as bar: pass",
        "rich.print(name)",
    ],
)
def test_faults_of_the_terminal_are_found(text):
    assert terminal_faults(text)
    assert not terminal_faults("shown = console()\nshown.print(name)\necho(name)")


# Shared connections


def test_no_test_asks_by_the_connection_that_a_process_shares():
    """Another test may have changed it, so that the outcome depends on the order."""
    asks = re.compile(r"duckdb\.(sql|execute|query|table|view|values|read_\w+|from_\w+)\(")
    found = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("*.py")
        if asks.search(path.read_text(encoding="utf-8"))
    }
    assert found == set()


# Stray paths


def project_files() -> list[Path]:
    """What git tracks or would track; without git, as in a source archive, the trees that are ours."""
    git = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(git, capture_output=True, check=True, text=True).stdout.split("\0")
        paths = [ROOT / name for name in listed if name]
    except (OSError, subprocess.CalledProcessError):
        trees = [ROOT / name for name in ("src", "tests", "docs", "benchmarks")]
        paths = [*ROOT.glob("*"), *(path for tree in trees for path in tree.rglob("*"))]
    return [path for path in paths if path.is_file() and "__pycache__" not in path.parts]


def test_no_machine_paths_or_registry_hosts():
    files = project_files()
    assert Path(__file__).resolve() in files
    stray = {str(path.relative_to(ROOT)): STRAY.findall(path.read_bytes()) for path in files}
    assert {path: hits for path, hits in stray.items() if hits} == {}


@pytest.mark.parametrize("text", ["|root|.cache", "see '|work|x'", "https:||pypi_org|simple"])
def test_stray_paths_are_found(text):
    assert STRAY.search(text.replace("|", "/").replace("_", ".").encode())


@pytest.mark.parametrize("text", ["docs/work/a.md", "../work/a", "the network/", "rework/root/x"])
def test_ordinary_paths_are_not_stray(text):
    assert not STRAY.search(text.encode())
