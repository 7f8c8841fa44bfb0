"""Which quick cases enter which function, and what a case costs: recorded once for each state of the tree.

A case is run by a forked process under the profiler of the standard library. What a fixture of a module or of the
session enters is counted for all cases that use it. The record lies in the user's cache; a changed test file is
recorded anew, and everything is if the sources or the helpers of tests have changed.
"""

import cProfile
import gzip
import hashlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from tests.mutants import change, forks

_KEPT = 4  # records of the latest trees
_PATIENCE = 1200.0  # seconds for a file of tests
_SAVED = 60.0  # seconds after which what is known is saved, for a run that is interrupted


@dataclass
class Case:
    """A quick case: what it costs, in seconds of processor time, and which functions it enters."""

    cost: float
    enters: list[str] = field(default_factory=list)
    passed: bool = True


class Record:
    """The cases of a tree by the file of tests they stand in."""

    def __init__(self, root: Path, sources: Path, place: Path | None = None) -> None:
        self.root, self.sources = root, sources
        self.place = (place or _cache()) / f"{_state(root, sources)}.json.gz"
        self.files: dict[str, dict[str, Any]] = {}
        self._read()

    def _read(self) -> None:
        if self.place.exists():
            self.files = json.loads(gzip.decompress(self.place.read_bytes())) | self.files

    def missing(self, items: list[pytest.Item]) -> dict[str, list[pytest.Item]]:
        """The items whose file has changed since, by file."""
        by_file: dict[str, list[pytest.Item]] = {}
        for item in items:
            by_file.setdefault(_file(item), []).append(item)
        return {file: found for file, found in by_file.items() if self._stale(file, found)}

    def _stale(self, file: str, items: list[pytest.Item]) -> bool:
        known = self.files.get(file, {})
        return known.get("hash") != _hash(self.root / file) or {i.nodeid for i in items} - set(known["cases"])

    def add(self, file: str, cases: dict[str, Case]) -> None:
        """Write down what was found out about a file."""
        names = {name: number for number, name in enumerate(sorted({n for c in cases.values() for n in c.enters}))}
        rows = {key: [c.cost, c.passed, [names[n] for n in c.enters]] for key, c in cases.items()}
        self.files[file] = {"hash": _hash(self.root / file), "names": list(names), "cases": rows}

    def save(self) -> None:
        """Keep the record for the next run, and forget those of older trees."""
        self._read()  # another run may have added to it
        self.place.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.place.with_suffix(f".{os.getpid()}")
        fresh.write_bytes(gzip.compress(json.dumps(self.files).encode(), 5))
        fresh.replace(self.place)
        older = sorted(self.place.parent.glob("*.json.gz"), key=lambda path: path.stat().st_mtime)
        for path in older[:-_KEPT]:
            path.unlink(missing_ok=True)

    def entering(self, names: frozenset[str]) -> dict[str, float]:
        """The cases that enter one of these functions and pass without a mutation, with their costs."""
        found: dict[str, float] = {}
        for each in self.files.values():
            wanted = {number for number, name in enumerate(each["names"]) if name in names}
            if wanted:
                found |= {
                    k: cost for k, (cost, passed, enters) in each["cases"].items() if passed and wanted & set(enters)
                }
        return found

    def failed(self) -> list[str]:
        """The cases that fail without any mutation."""
        return [key for each in self.files.values() for key, row in each["cases"].items() if not row[1]]


def record(
    known: Record,
    items: list[pytest.Item],
    run: Callable[..., str | None],
    process: change.Process,
    workers: int,
    say: Any,
) -> None:
    """Bring the record up to date."""
    missing = known.missing(items)
    if not missing:
        return
    count, saved = sum(map(len, missing.values())), time.monotonic()
    say(f"Recording which functions {count:,} quick cases enter, in {len(missing):,} files.")
    files = sorted(missing, key=lambda file: -len(missing[file]))

    def work(file: str) -> dict[str, Case]:
        process.forget()  # the first case of a file that needs what is cached enters the function
        return Recorder(known.sources).cases(missing[file], run)

    for file, cases in forks.each(files, work, workers=workers, patience=_PATIENCE):
        known.add(file, cases if cases is not None else {i.nodeid: Case(0, passed=False) for i in missing[file]})
        if time.monotonic() - saved > _SAVED:
            known.save()
            saved = time.monotonic()
    known.save()


class Recorder:
    """A plugin that notes which functions of the sources a case enters, and each of its fixtures."""

    def __init__(self, sources: Path) -> None:
        self.sources = str(sources)
        self._running: list[cProfile.Profile] = []
        self._others: set[CodeType] = set()  # entered by other threads
        self._fixtures: dict[int, tuple[float, set[str]]] = {}

    def cases(self, items: list[pytest.Item], run: Callable[..., str | None]) -> dict[str, Case]:
        """Run these items, one after the other."""
        threading.setprofile(self._in_thread)
        items[0].config.pluginmanager.register(self)
        return {
            item.nodeid: self._case(item, after, run) for item, after in zip(items, [*items[1:], None], strict=True)
        }

    def _case(self, item: pytest.Item, after: pytest.Item | None, run: Callable[..., str | None]) -> Case:
        self._others.clear()
        cost, names, failure = self._watched(lambda: run(item, after))
        for fixture in _fixtures(item):
            more, entered = self._fixtures.get(id(fixture), (0.0, set()))
            cost, names = max(cost, more), names | entered
        return Case(round(cost, 4), sorted(names), failure is None)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Any:
        if fixturedef.scope == "function" or not self._running:
            return (yield)
        begun, profile = spent(), self._begin()
        try:
            return (yield)
        finally:
            self._fixtures[id(fixturedef)] = spent() - begun, self._end(profile)

    def _watched(self, work: Callable[[], Any]) -> tuple[float, set[str], Any]:
        begun, profile = spent(), self._begin()
        try:
            result = work()
        finally:
            names = self._end(profile)
        return spent() - begun, names, result

    def _begin(self) -> cProfile.Profile:
        if self._running:
            self._running[-1].disable()
        profile = cProfile.Profile(subcalls=False, builtins=False)
        self._running.append(profile)
        profile.enable()
        return profile

    def _end(self, profile: cProfile.Profile) -> set[str]:
        profile.disable()
        self._running.remove(profile)
        if self._running:
            self._running[-1].enable()
        seen = {each.code for each in profile.getstats() if isinstance(each.code, CodeType)} | self._others
        return {name for code in seen if (name := self._name(code))}

    def _name(self, code: CodeType) -> str:
        file = code.co_filename
        return change.name(os.path.relpath(file, self.sources), code) if file.startswith(self.sources) else ""

    def _in_thread(self, frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            self._others.add(frame.f_code)


def _fixtures(item: pytest.Item) -> Iterator[Any]:
    info = getattr(item, "_fixtureinfo", None)
    for found in info.name2fixturedefs.values() if info else ():
        yield from found


def spent() -> float:
    """Seconds of processor time of this process and of its children that ended."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


# The state of a tree


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "noisette-mutants"


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def _state(root: Path, sources: Path) -> str:
    """A name for what all cases depend on: Python, the sources, and what tests share."""
    tests = root / "tests"
    shared = [p for p in tests.rglob("*.py") if not p.name.startswith("test_") and p.parent != Path(__file__).parent]
    digest = hashlib.sha256(f"{sys.version} {Path(__file__).read_text()}".encode())
    for path in sorted([*sources.rglob("*.py"), *shared, *tests.glob("slow.txt")]):
        digest.update(f"{path.relative_to(root)} {_hash(path)}\n".encode())
    return digest.hexdigest()[:16]
