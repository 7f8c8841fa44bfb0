"""The table of mutations: what is changed where, why it is critical, and which tests must notice.

An entry stands in `table/*.txt`. It names a place (file below `src/noisette`, function), shows the text that is
there and the text that replaces it, and says what goes wrong then. `by` names the tests that are tried first.

    engines/bounding/keys.py::Layout.first
        - ordered[piece.start - 1]
        + ordered[piece.start]
        A unit that begins at a seam keeps all of its rows.
        by tests/engines/test_bounding.py

Every entry is critical to privacy, except those whose reason begins with "Utility:".
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TABLES = Path(__file__).with_name("table")
_UTILITY = "Utility:"


@dataclass(frozen=True)
class Mutant:
    """One change of one function."""

    place: str
    was: str
    now: str
    why: str
    by: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        return self.place.partition("::")[0]

    @property
    def function(self) -> str:
        return self.place.partition("::")[2]

    @property
    def critical(self) -> bool:
        return not self.why.startswith(_UTILITY)

    @property
    def tenth(self) -> int:
        """In which tenth of the table it is, whatever else is in it."""
        return hashlib.sha256(f"{self.place}\n{self.was}\n{self.now}".encode()).digest()[0] % 10

    def __str__(self) -> str:
        return f"{self.place}\n    - {_shown(self.was)}\n    + {_shown(self.now)}\n    {self.why}"


def _shown(text: str) -> str:
    return text.replace("\n", "\n      ")


def mutants(folder: Path = TABLES) -> list[Mutant]:
    """The whole table, in the order of its files."""
    return [each for path in sorted(folder.glob("*.txt")) for each in read(path.read_text(encoding="utf-8"))]


def read(text: str) -> Iterator[Mutant]:
    """The entries of a file. Lines that begin with # are comments."""
    entry: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.strip() and not line.startswith("#"):
            entry.append(line)
        elif entry and not line.strip():
            yield _entry(entry)
            entry = []


def _entry(lines: list[str]) -> Mutant:
    place, *rest = lines
    was, now = _lines(rest, "    - "), _lines(rest, "    + ")
    words = [each.strip() for each in rest if not each.startswith(("    - ", "    + ", "    +"))]
    by = tuple(name for each in words if each.startswith("by ") for name in each.split()[1:])
    why = " ".join(each for each in words if not each.startswith("by "))
    if not (was and why and "::" in place):
        raise ValueError(f"The entry {place} needs file::function, a line with -, and a reason.")
    return Mutant(place, was, now, why, by)


def _lines(lines: list[str], sign: str) -> str:
    return "\n".join(each.removeprefix(sign) for each in lines if each.startswith(sign))


def with_cases(text: str, found: dict[Mutant, str]) -> str:
    """The text of a table in which each of these mutants names the case that convicts it."""
    blocks = text.rstrip("\n").split("\n\n")
    for i, block in enumerate(blocks):
        lines = [line for line in block.split("\n") if not line.startswith("    by ")]
        for mutant in read(block):
            if case := found.get(mutant):
                blocks[i] = "\n".join([*lines, f"    by {case.partition('[')[0]}"])
    return "\n\n".join(blocks) + "\n"
