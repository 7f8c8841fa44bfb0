"""Which places are critical, by what stands there: each has a mutation in the table, or a reason why not.

A new mechanism, question or engine is found by itself, and its places fail the check until they have a mutation.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.change import SOURCES
from tests.mutants.table import TABLES


@dataclass(frozen=True)
class Rule:
    """Functions below a folder, by their name or by what they do."""

    why: str
    file: str
    name: str
    text: str = ""


PACKAGES = (
    *("curator", "engines", "exact", "holdout", "ledger", "local", "mechanisms", "policy"),
    *("privacy", "query", "questions", "releases", "sandbox"),
)
_ALLOWS = r"privacy/filters|policy/house_rules|curator/house|ledger/accounts"
_CLAMPS = r"engines/(memory/values|sql/(expressions|steps))|holdout/"
_SAMPLERS = r"exact/(samplers|choice|keyed|bit_arrays|geometric_arrays|gaussian_arrays)"
RULES = (
    Rule("states a guarantee", r"", r"guarantee(_\w+)?"),
    Rule("says how far answers move", r"", r"\w+", r"(?<!\w)Sensitivity\("),
    Rule("charges", r"", r"_?charged?"),
    Rule("allows a spend", _ALLOWS, r"_?fits\w*|within|allows|admit|admissible"),
    Rule("protects a process", r"", r"\w+", r"here\(\) !="),
    Rule("names a kept answer", r"curator/|engines/", r"\w*key(_of)?", r"hashlib|key_of\(|secret"),
    Rule(
        "retains rows", r"engines/", r"_?(retained\w*|per_value|per_period|_of_few|_?first(_groups|_rows)?|_?bound_\w+)"
    ),
    Rule("goes on at a seam", r"engines/", r"\w+", r"in pieces\("),
    Rule("clamps", _CLAMPS, r"\w+", r"\b(clamped|clip)\("),
    Rule("selects partitions", r"mechanisms/partitions/", r"__call__|_drawn|_seen|_delta"),
    Rule("draws", _SAMPLERS, r"\w+", r"\brng\."),
    Rule("draws for a device", r"local/", r"client|permanent|instantaneous"),
)


def places(sources: Path = SOURCES) -> dict[str, str]:
    """Each critical place, file::function, and why it is one."""
    found: dict[str, str] = {}
    for path in sorted(path for package in PACKAGES for path in (sources / package).rglob("*.py")):
        file, text = path.relative_to(sources).as_posix(), path.read_text(encoding="utf-8")
        rules = [
            rule for rule in RULES if re.match(rule.file, file) and re.search(rule.text or rf"def {rule.name}\(", text)
        ]
        for name, node in _functions(ast.parse(text).body) if rules else ():
            why = [rule.why for rule in rules if _is(rule, name, node, text)]
            if why and not _passes_on(node):
                found[f"{file}::{name}"] = " and ".join(why)
    return found


def reasons() -> dict[str, str]:
    """The critical places that need no mutation, and why: each a line of `table/without.md`."""
    lines = (TABLES / "without.md").read_text(encoding="utf-8").splitlines()
    rows = (line.strip("| ").split(" | ") for line in lines if "::" in line)
    return {place.strip("`"): why for place, why in rows}


def _functions(body: list[ast.stmt], within: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield within + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{within}{node.name}.")


def _is(rule: Rule, name: str, node: ast.FunctionDef, text: str) -> bool:
    if not re.fullmatch(rule.name, name.rpartition(".")[2]):
        return False
    return not rule.text or any(re.search(rule.text, ast.get_source_segment(text, each) or "") for each in _code(node))


def _code(node: ast.FunctionDef) -> list[ast.stmt]:
    """The body without its docstring."""
    return node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body


def _passes_on(node: ast.FunctionDef) -> bool:
    """Whether it only hands over what another one says, or says that it must be written."""
    body = _code(node)
    if len(body) != 1 or isinstance(body[0], ast.Raise):
        return not body or isinstance(body[0], ast.Raise)
    [only] = body
    said = isinstance(only, ast.Expr) and isinstance(only.value, ast.Constant)
    plain = (ast.Return, ast.Attribute, ast.Name, ast.Load, ast.Call, ast.Starred)
    return said or (isinstance(only, ast.Return) and all(isinstance(part, plain) for part in ast.walk(only)))
