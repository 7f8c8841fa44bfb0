"""A number from outside is read in one place, `exact/number.py`, which has the limits: "1e1000000000" is soon written.

Modules that read what strangers wrote convert no text by themselves. What they convert all the same is listed here,
with the reason why it cannot be a text from outside.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "noisette"
READERS = {"Fraction", "Decimal", "int", "float"}
PACKAGES = {
    "answers",
    "dbapi",
    "ledger",
    "policy",
}  # records, statements, entries and policies, and what is read of them
LOADS = re.compile(r"\b(?:json|tomllib)\.loads?\(")
OTHERS = {"mechanisms/record.py", "local/wire.py"}

PLAIN = {
    "a number of this process": {
        "answers/digest.py": {"int(value)"},
        "answers/figures.py": {
            "Fraction(str(number))", "Fraction(number)", "Decimal(exact.numerator)", "Decimal(exact.denominator)",
            "int(end)", "float(end)",
        },
        "answers/release.py": {"float(end)"},
        "answers/rendering.py": {"float(f'{value:g}')"},
        "answers/statement.py": {"float(eps)"},
        "answers/warnings.py": {
            "float(half[wide].max())", "int(rows.sum())",
            "float(np.median(_FIFTH * half[unsure] / np.abs(values[unsure])))",
            "float(np.median(2 * _TENTH * half[most] / width))",
        },
        "cli/demo/report.py": {"float(eps)", "float(after)", "float(before - after)"},
        "curator/purchases/purchase.py": {"int(answer.columns[0].values[0].as_py())"},
        "dbapi/values.py": {"Decimal(repr(float(value)))", "float(value)"},
        "ledger/postgres.py": {"int(self.timeout)", "int(1000 * self.timeout)"},
        "policy/house_rules.py": {"Fraction(spend.epsilon_at(delta))"},
        "policy/tables.py": {
            "Fraction(key)", "Fraction((bound - _EPOCH) // datetime.timedelta(microseconds=1))",
            "Fraction(days if declared == 'date' else days * 86400000000)",
        },
        "policy/toml.py": {"Fraction(short)", "float(number)"},
        "questions/parts/chosen_limits.py": {"float(CHOOSING)", "float(COUNTING)", "int(choice.limits[place])"},
    },
    "it ends at once, and what is no number is refused": {"dbapi/dialect.py": {"float(text)"}},
    "the type of a value": {"policy/tables.py": {"'integer': int", "'real': int"}},
    "checked to be a whole number": {
        "dbapi/values.py": {"int(value)"},
        "local/wire.py": {"int(value)"},
        "questions/data.py": {"int(value)"},
    },
    "a few digits, as its pattern says": {"engines/spark/versions.py": {"int(last[:20])", "int(match[1])"}},
    "the database's own answer": {
        "ledger/postgres.py": {"int(self.run('SELECT version FROM ledger_version')[0][0])"},
        "ledger/sqlite.py": {"int(self.run('PRAGMA user_version')[0][0])"},
    },
    "the system's or the command line's, of this very process": {
        "sandbox/runner.py": {"int(sys.argv[1])"},
        "sandbox/running.py": {"int(wanted)", "int(line.split()[1])"},
        "policy/check.py": {"int(line[1])"},
    },
}  # fmt: skip


def reads_outside(name: str, text: str) -> bool:
    """Whether a module reads JSON or TOML, or belongs to what strangers hand in."""
    return bool(LOADS.search(text)) or name in OTHERS or name.partition("/")[0] in PACKAGES


def conversions(tree: ast.AST) -> Iterator[str]:
    """Calls of a reader on what is no constant, and readers that are handed on: `map(int, …)`, `for read in (…)`."""
    loops = [node.iter for node in ast.walk(tree) if isinstance(node, ast.For | ast.comprehension)]
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name), args=args) if name in READERS:
                exact = name == "Fraction" and len(args) == 2  # of two whole numbers
                if not exact and not all(isinstance(arg, ast.Constant) for arg in args):
                    yield ast.unparse(node)
            case ast.Call(func=ast.Name(id="map" | "filter" | "partial"), args=args):
                yield from (ast.unparse(node) for arg in args if _is_reader(arg))
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts) if node in loops:
                yield from (ast.unparse(node) for part in parts if _is_reader(part))
            case ast.Dict(keys=names, values=parts):
                pairs = zip(names, parts, strict=True)
                yield from (f"{ast.unparse(name)}: {part.id}" for name, part in pairs if name and _is_reader(part))


def _is_reader(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in READERS


def faults(name: str, text: str) -> set[str]:
    if not reads_outside(name, text):
        return set()
    return set(conversions(ast.parse(text))).difference(*(files.get(name, ()) for files in PLAIN.values()))


@pytest.mark.parametrize("part", sorted(path.name for path in PACKAGE.iterdir() if path.name != "__pycache__"))
def test_numbers_from_outside_are_read_in_one_place(part):
    top = PACKAGE / part
    found = {
        name: bad
        for path in (sorted(top.rglob("*.py")) if top.is_dir() else [top])
        if path.suffix == ".py"
        if (bad := faults(name := path.relative_to(PACKAGE).as_posix(), path.read_text(encoding="utf-8")))
    }
    assert found == {}, "read these with noisette.exact.number, or say why they are no text from outside"


def test_every_exception_is_still_there():
    for files in PLAIN.values():
        for name, calls in files.items():
            assert calls <= set(conversions(ast.parse((PACKAGE / name).read_text(encoding="utf-8")))), name


@pytest.mark.parametrize(
    ("name", "text", "guilty"),
    [
        ("answers/check.py", "def f(moved):\n    return (Fraction(moved[name]) for name in ('l1', 'linf'))", True),
        ("answers/check.py", "Pure(Fraction(claim['epsilon']), neighbours=neighbours)", True),
        (
            "mechanisms/record.py",
            "next((read(text) for read in (Neighbours, Fraction, int, float) if read in held), text)",
            True,
        ),
        ("mechanisms/record.py", "READERS = {'l1': Fraction}", True),
        (
            "releases/stored.py",
            "import json\nhow = json.loads(text)\nshares = tuple(map(Fraction, how['shares']))",
            True,
        ),
        ("curator/new.py", "found = json.load(file)\nn = int(found['n'])", True),
        ("policy/new.py", "Decimal(text)", True),
        ("answers/check.py", "Fraction(1, 3) + Fraction('1/3') + fraction_of(claim['epsilon'], 'epsilon')", False),
        ("answers/check.py", "isinstance(x, int | float) or isinstance(x, float)", False),
        ("mechanisms/record.py", "READERS = {Fraction: fraction_of}", False),
        ("releases/tree.py", "float(self.scale)", False),
    ],
)
def test_the_rule_convicts_readers_of_their_own(name, text, guilty):
    assert bool(faults(name, text)) == guilty
