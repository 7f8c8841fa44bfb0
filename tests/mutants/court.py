"""Tries mutants: each in a forked process, on the quick cases that enter the changed functions, until one fails."""

import gc
import mmap
import resource
import signal
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import pytest
from tests.mutants import forks
from tests.mutants.cases import Record, record, spent
from tests.mutants.change import Process, functions, mutated
from tests.mutants.table import Mutant

_HANGS = 900.0  # seconds until a process that never ends is ended
_ROUNDS = (3, 12)  # cases of each file in the first rounds


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: the case that convicts it, or None; how many cases ran, and how many there are."""

    mutant: Mutant
    case: str | None
    how: str
    ran: int
    cases: int
    seconds: float


class Court:
    """A plugin that tries mutants in place of running the tests that were collected."""

    def __init__(self, mutants: list[Mutant], known: Record, *, workers: int, seconds: float, say: Any) -> None:
        self.mutants, self.known, self.workers, self.seconds, self.say = mutants, known, workers, seconds, say
        self.verdicts: list[Verdict] = []
        self.failed: list[str] = []  # cases that fail without a mutation
        self._at = mmap.mmap(-1, 8)  # the number of the case that runs, shared with forked processes

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed or session.config.option.collectonly:
            return None
        self.witness, self.items = Witness(session), {item.nodeid: item for item in session.items}
        for mutant in self.mutants:
            mutated(mutant, self.known.sources)  # says so if the table is stale
        self.process = Process(self.known.sources)
        gc.freeze()
        try:
            record(self.known, session.items, self.witness.run, self.process, self.workers, self.say)
            self.failed = [case for case in self.known.failed() if case in self.items]
            self._try_all()
        finally:
            gc.unfreeze()
        return True

    def _try_all(self) -> None:
        for mutant, found in forks.each(self.mutants, self._tried, workers=self.workers, patience=_HANGS):
            verdict = found or Verdict(mutant, "one of them", "hangs", 0, 0, _HANGS)
            self.verdicts.append(verdict)
            self.say(line(verdict))

    # In a forked process

    def _tried(self, mutant: Mutant) -> Verdict:
        """Try the mutant; a case convicts it that fails alone with it and passes alone without it."""
        begun, cases = spent(), self._cases(mutant)
        while True:
            case, how, ran = self._convicted(mutant, cases)
            if case is None or self._alone(mutant, case, sure=ran == 1):
                return Verdict(mutant, case, how, ran, len(cases), spent() - begun)
            cases.remove(case)

    def _alone(self, mutant: Mutant, case: str, *, sure: bool) -> bool:
        """Whether the mutation makes the difference, not what ran before."""
        with_it = sure or self._convicted(mutant, [case])[0] is not None
        return with_it and bool(forks.alone(lambda: self.witness.run(self.items[case]) is None, _HANGS / 2))

    def _cases(self, mutant: Mutant) -> list[str]:
        self.costs = self.known.entering(functions(mutant, self.known.sources))
        return [case for case in ordered(self.costs, mutant) if case in self.items]

    def _convicted(self, mutant: Mutant, cases: list[str]) -> tuple[str | None, str, int]:
        """The case that fails, how, and how many ran."""
        self._at.seek(0)
        found = forks.alone(lambda: self._until_one_fails(mutant, cases), _HANGS / 2)
        at = int.from_bytes(self._at[:8], "little")
        return found or (cases[at], "its process was ended", at + 1)

    def _until_one_fails(self, mutant: Mutant, cases: list[str]) -> tuple[str | None, str, int]:
        self.process.apply(mutant)
        begun = spent()
        for number, case in enumerate(cases):
            self._at[:8] = number.to_bytes(8, "little")
            _allow(5 + 5 * self.costs[case])
            after = cases[number + 1 : number + 2]
            if failure := self.witness.run(self.items[case], self.items[after[0]] if after else None):
                return case, failure, number + 1
            if spent() - begun > self.seconds:
                return None, "", number + 1
        return None, "", len(cases)


class Witness:
    """A plugin that runs cases and sees how they fail."""

    def __init__(self, session: pytest.Session) -> None:
        self.session, self.failure = session, None
        session.config.pluginmanager.unregister(name="terminalreporter")
        session.config.pluginmanager.register(self)

    def run(self, item: pytest.Item, after: pytest.Item | None = None) -> str | None:
        """How the case fails; None if it passes. Fixtures that `after` needs stay as they are."""
        self.failure = None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        if self.failure:
            self.session._setupstate.teardown_exact(None)
        return self.failure

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            lines = [each for each in report.longreprtext.splitlines() if each.startswith("E ")]
            self.failure = self.failure or (lines or ["fails"])[0].removeprefix("E ").strip()[:100]


class Endless(BaseException):
    """A case needs far more processor time than without the mutation."""


def _endless(number: int, frame: Any) -> None:
    raise Endless("needs far more time than without the mutation")


def _allow(seconds: float) -> None:
    """Processor time until a case is interrupted; ten seconds later its process is killed."""
    signal.signal(signal.SIGXCPU, _endless)
    end = int(time.process_time() + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (end, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def line(verdict: Verdict) -> str:
    """One line on a verdict."""
    place, counted = verdict.mutant.place, f"{verdict.ran} of {verdict.cases} cases, {verdict.seconds:.1f} s"
    return (
        f"SURVIVES  {place} ({counted})" if verdict.case is None else f"dies      {place} ({counted}): {verdict.case}"
    )


# Which cases come first


def ordered(costs: dict[str, float], mutant: Mutant) -> list[str]:
    """The named cases, those of the mirror, of the package, and the others: some of each file first, the cheapest."""
    far = {case: _far(case, mutant) for case in costs}
    cheap = sorted(costs, key=lambda case: (costs[case], case))
    rounds = _rounds(cheap)
    return sorted(cheap, key=lambda case: (far[case], rounds[case] if far[case] > 1 else 0))


def _far(case: str, mutant: Mutant) -> int:
    if case.startswith(mutant.by or ("?",)):
        return 0
    if case.startswith(tuple(_mirrors(mutant.file))):
        return 1
    return 2 if case.startswith(f"tests/{PurePath(mutant.file).parts[0]}/") else 3


def _mirrors(file: str) -> Iterator[str]:
    """Where the tests of a module stand, and its examples."""
    path = PurePath(file).with_suffix("")
    yield f"src/noisette/{file}::"
    yield f"tests/{path.parent}/test_{path.name}"
    yield f"tests/{path.parent.parent}/test_{path.parent.name}"


def _rounds(cases: list[str]) -> dict[str, int]:
    """In which round a case runs: a few of each file, some more, the rest."""
    seen: defaultdict[str, int] = defaultdict(int)
    found = {}
    for case in cases:
        file = case.partition("::")[0]
        found[case] = sum(seen[file] >= limit for limit in _ROUNDS)
        seen[file] += 1
    return found
