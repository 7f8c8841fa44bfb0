"""The attacks for as long as is wanted: over new seeds, until one convicts.

    python -m tests.attack [--minutes 60] [--seed N] [--only NAME] [--engine NAME] [--json FILE] [--page docs/trust.md]

The first conviction ends it, with the smallest example found and the command that shows it again. What was tried is
written as JSON, and into the table of a page between its markers.
"""

import argparse
import datetime
import json
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.attack import ledgers
from tests.attack.attacks import ATTACKS
from tests.attack.canaries import canaries
from tests.attack.engines import ENGINES
from tests.attack.failures import failed, oracles
from tests.attack.holes import HOLES, SEIZED
from tests.attack.seized import histories, seized
from tests.attack.strangers import groups, records, texts
from tests.attack.tables import Shelf, World
from tests.attack.trial import Convicted, attacked
from tests.attack.words import words_at_random

import noisette as nz

BEGIN, END = "<!-- attack: begin -->", "<!-- attack: end -->"
Act = Callable[[int, Shelf], Counter[str]]


def known(seed: int, shelf: Shelf) -> Counter[str]:
    """All that convicted once."""
    found: Counter[str] = Counter()
    for world, question in HOLES.values():
        if shelf.place is not None and not isinstance(world, World):
            continue
        found += attacked(shelf, world, [question])
    for density, events in SEIZED.values():
        found += seized(density, events)
    return found


def ledger(seed: int, shelf: Shelf) -> Counter[str]:
    """Threads, forks, connections, processes, kills, failures and forgeries."""
    found: Counter[str] = Counter()
    acts: list[Callable[[Path], Counter[str]]] = [
        lambda place: ledgers.threads(shelf, place),
        lambda place: ledgers.forks(),
        ledgers.connections,
        ledgers.processes,
        lambda place: ledgers.replays(place, kill=True),
        failed,
        *(lambda place, name=name: ledgers.forged(place, name) for name in ledgers.FORGERIES),  # type: ignore[misc]
    ]
    for act in acts:
        with tempfile.TemporaryDirectory(dir=shelf.folder) as place:
            found += act(Path(place))
    return found


ALL: dict[str, tuple[Act, int]] = {
    "known": (known, 1),
    **ATTACKS,
    "oracles": (oracles, 1),
    "states": (histories, 1),
    "canaries": (canaries, 1),
    "ledger": (ledger, 1),
    "words": (words_at_random, 5),
    "groups": (groups, 4),
    "records": (records, 2),
    "texts": (texts, 2),
}
"""Each attack, and how many seeds of it are tried in a round; what convicted once comes first."""

PLACED = ("known", "tables", "rules", "time")
"""Those whose tables can be placed in another engine; the others are about files, ledgers and what is written."""


@dataclass
class Report:
    """What was tried so far."""

    first: int
    begun: float = field(default_factory=time.monotonic)
    tried: dict[str, Counter[str]] = field(default_factory=dict)
    convicted: dict[str, Any] | None = None

    def add(self, name: str, found: Counter[str]) -> None:
        """Count what an attack tried."""
        self.tried[name] = self.tried.get(name, Counter()) + found + Counter(seeds=1)

    @property
    def minutes(self) -> float:
        """How long it took."""
        return (time.monotonic() - self.begun) / 60

    def line(self, name: str) -> str:
        """Where it is, in a line."""
        total = sum(self.tried.values(), Counter())
        said = f"{total['worlds']:,} tables, {total['questions']:,} questions, {total['answered']:,} answered"
        return f"{self.minutes:6.1f} min  {said}  {name}"

    def to_json(self) -> str:
        """All of it for a program."""
        made = {
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "version": nz.__version__,
            "minutes": round(self.minutes, 1),
            "first_seed": self.first,
            "tried": {name: dict(sorted(counts.items())) for name, counts in self.tried.items()},
            "convicted": self.convicted,
        }
        return json.dumps(made, indent=2)

    def table(self) -> str:
        """All of it for a page."""
        rows = [
            f"| {name} | {c['seeds']:,} | {c['worlds']:,} | {c['questions']:,} | {c['answered']:,} | {c['refused']:,} |"
            for name, c in self.tried.items()
        ]
        end = "No attack convicted" if self.convicted is None else f"The attack *{self.convicted['attack']}* convicted"
        day = datetime.datetime.now(datetime.UTC).date().isoformat()
        head = (
            "| attack | seeds | tables | questions, for each relation | answered | refused |\n|---|---|---|---|---|---|"
        )
        return f"{end}: version {nz.__version__}, {day}, {self.minutes:.0f} minutes.\n\n{head}\n" + "\n".join(rows)


def on_page(page: Path, table: str) -> None:
    """Put a table between the markers of a page."""
    text = page.read_text(encoding="utf-8")
    between = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    page.write_text(between.sub(lambda _: f"{BEGIN}\n{table}\n{END}", text), encoding="utf-8")


def rounds(only: str | None, first: int, *, placed: bool = False) -> Iterator[tuple[str, int]]:
    """Names and seeds for ever: one round after the other."""
    chosen = {name: times for name, (_, times) in ALL.items() if only in (None, name)}
    if placed:
        chosen = {name: times for name, times in chosen.items() if name in PLACED}
    number = 0
    while True:
        for name, times in chosen.items():
            for i in range(times):
                yield name, first + number * times + i
        number += 1


def attack(report: Report, shelf: Shelf, options: argparse.Namespace, say: Callable[[str], None]) -> Report:
    """Go on until the time is up or an attack convicts; with one seed named, that seed alone."""
    for name, seed in rounds(options.only, report.first, placed=shelf.place is not None):
        say(report.line(name))
        try:
            report.add(name, ALL[name][0](seed, shelf))
        except Convicted as found:
            again = f"python -m tests.attack --only {name} --seed {seed} --minutes 0"
            again += "" if options.engine is None else f" --engine {options.engine}"
            report.convicted = {"attack": name, "seed": seed, "found": str(found), "again": again}
            break
        if report.minutes >= options.minutes:
            break
    return report


def main(arguments: list[str] | None = None, say: Callable[[str], None] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, help="where to begin; by default at the seconds since 1970")
    parser.add_argument("--only", choices=sorted(ALL))
    parser.add_argument("--engine", choices=sorted(ENGINES), help="where the tables are; by default in process")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--page", type=Path)
    options = parser.parse_args(arguments)
    say = say or (lambda line: print(f"\r{line:<100}", end="", file=sys.stderr, flush=True))
    with tempfile.TemporaryDirectory(prefix="noisette-attack-") as folder:
        os.environ["XDG_STATE_HOME"] = folder  # heads and the like of ledgers that live for seconds
        first = int(time.time()) if options.seed is None else options.seed
        with nullcontext() if options.engine is None else ENGINES[options.engine]() as place:
            report = attack(Report(first), Shelf(Path(folder), place=place), options, say)
    print(f"\n{report.table()}")
    if options.json:
        options.json.write_text(report.to_json() + "\n", encoding="utf-8")
    if options.page:
        on_page(options.page, report.table())
    if report.convicted is None:
        return 0
    print(
        f"\nCONVICTED by {report.convicted['attack']}, seed {report.convicted['seed']}\n\n{report.convicted['found']}"
    )
    print(f"\nAgain: {report.convicted['again']}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
