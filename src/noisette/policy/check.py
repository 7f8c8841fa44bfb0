"""Every problem of a policy file, each with its line, in place of the first one alone.

A problem names its place (`tables.visits.columns.age.bounds`). It is noted, what stands there is taken out, and the
rest is checked again: what follows from a problem that is noted is not reported as another one.
"""

import copy
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from noisette.errors import NoisetteError
from noisette.policy.policy import read_policy, toml_of
from noisette.policy.rules import inside

__all__ = ["Problem", "lines_of", "problems"]

_MOST = 200  # problems of one file
_PLACE = re.compile(r"(?:each of |The )?(.+?) in the policy")
_LIMITS = ("rows", "groups", "rows_per_group", "most_rows")
_HEADER, _KEY = re.compile(r"\s*\[([^\[\]]+)\]"), re.compile(r"\s*(\"(?:[^\"\\]|\\.)*\"|[A-Za-z0-9_-]+)\s*=")
_INLINE = re.compile(r"[{,]\s*([A-Za-z0-9_-]+)\s*=")
_BUDGET = "Say how much may be spent in all: write epsilon, or epsilon and delta, or rho, below [budget]."


class Problem(NamedTuple):
    """What is wrong, in one sentence, and in which line, if that is known."""

    line: int | None
    what: str

    def __str__(self) -> str:
        return self.what if self.line is None else f"line {self.line}: {self.what}"


def problems(path: Path, valid: Callable[[Mapping[str, Any]], object] = read_policy) -> list[Problem]:
    """All problems of a policy file; `valid` reads a policy and raises NoisetteError at the first one."""
    try:
        given = copy.deepcopy(toml_of(path))
    except NoisetteError as fault:
        line = re.search(r"at line (\d+)", str(fault))
        return [Problem(None if line is None else int(line[1]), str(fault))]
    lines = lines_of(path.read_text(encoding="utf-8-sig"))
    return sorted(_found(given, valid, lines), key=lambda problem: problem.line or 0)


def _found(
    given: dict[str, Any], valid: Callable[[Mapping[str, Any]], object], lines: Mapping[str, int]
) -> list[Problem]:
    found: list[Problem] = []
    budget = given.get("budget", {})
    if isinstance(budget, Mapping) and not {"epsilon", "delta", "rho"} & set(budget):
        found.append(Problem(lines.get("budget"), _BUDGET))
        given["budget"] = {**budget, "epsilon": "1"}
    while len(found) < _MOST:
        try:
            valid(given)
        except NoisetteError as fault:
            named = _PLACE.match(str(fault))
            place = named[1] if named else ""
            found.append(Problem(_line(place, lines), str(fault)))
            if not _taken_out(given, place):
                break
        else:
            break
    return found


def _line(place: str, lines: Mapping[str, int]) -> int | None:
    """The line of a place, or of the nearest one around it that is written."""
    around = [written for written in lines if _within(place, written)]
    return lines[max(around, key=len)] if around else None


def _taken_out(given: dict[str, Any], place: str) -> bool:
    """Take out what stands at a place, or the nearest thing around it; False where nothing does."""
    if place == "budget":
        given["budget"] = {"epsilon": "1"}
        return True
    around = [(found, part, name) for found, part, name in _places(given, "") if _within(place, found)]
    if not around:
        return False
    _, part, name = max(around, key=lambda each: len(each[0]))
    tables = given.get("tables")
    if name == "unit" and isinstance(tables, dict) and any(part is table for table in tables.values()):
        _without_unit(tables, part)
    else:
        part.pop(name)
    return True


def _without_unit(tables: Mapping[str, Any], table: dict[str, Any]) -> None:
    """Take out whose rows they are, with the limits, which limit nobody alone, and the units that this one leads to."""
    for name in ("unit", *_LIMITS):
        table.pop(name, None)
    for other in (each for each in tables.values() if isinstance(each, dict)):
        unit = other.get("unit")
        if isinstance(unit, dict) and tables.get(str(unit.get("through"))) is table:
            _without_unit(tables, other)


def _within(place: str, found: str) -> bool:
    return place == found or place.startswith(f"{found}.")


def _places(part: dict[str, Any], place: str) -> Iterator[tuple[str, dict[str, Any], str]]:
    for name, value in part.items():
        here = inside(place, name)
        yield here, part, name
        if isinstance(value, dict) and not {"through", "on"} <= set(value):  # half of a foreign key is none
            yield from _places(value, here)


def lines_of(text: str) -> dict[str, int]:
    """The line of each section and key, as far as they stand at the beginning of a line or in one inline table.

    >>> lines_of("[budget]\\nepsilon = 1\\n[tables.a]\\nx = { y = 2 }")
    {'budget': 1, 'budget.epsilon': 2, 'tables.a': 3, 'tables.a.x': 4, 'tables.a.x.y': 4}
    """
    found: dict[str, int] = {}
    section = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            section = ".".join(part.strip() for part in header[1].strip().split("."))
            found.setdefault(section, number)
        elif key := _KEY.match(line):
            place = f"{section}.{key[1]}" if section else key[1]
            found.setdefault(place, number)
            for inner in _INLINE.findall(line[key.end() :]):
                found.setdefault(f"{place}.{inner}", number)
    return found
