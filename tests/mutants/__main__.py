"""Changes critical places one by one and runs the quick tests that reach them: is every change convicted?

    python -m tests.mutants [--only PATTERN] [--tenth COMMIT] [-j N] [--seconds 30] [--write] [--list]

It prints the mutants that survive and exits with 1 if one of them is critical to privacy. `--tenth` takes the tenth of
the table that the hash of a commit chooses. `--write` notes in the table which cases convict; a run tries them first.
"""

import argparse
import os
import re
import signal
import sys
import time
from functools import partial

import pytest
from tests.mutants.cases import Record, spent
from tests.mutants.change import SOURCES
from tests.mutants.court import Court
from tests.mutants.table import TABLES, Mutant, mutants, with_cases

ROOT = SOURCES.parents[1]
QUICK = ["-m", "not slow", "--hypothesis-profile", "quick"]
# Nothing is printed but by the court; what a case prints goes nowhere in its process.
PLAIN = ["-p", "no:cacheprovider", "-p", "no:xdist", "--capture=no", "-qq", "--no-header", "--no-summary"]


def main() -> int:
    """Try the mutants that are asked for."""
    options = _options()
    chosen = _chosen(options)
    if options.list:
        print(*chosen, sep="\n\n")
        return 0
    os.chdir(ROOT)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # which ends the forked processes as well
    begun, known = time.monotonic(), Record(ROOT, SOURCES)
    court = Court(chosen, known, workers=options.j, seconds=options.seconds, say=partial(print, flush=True))
    code = pytest.main([*QUICK, *PLAIN, *options.tests], plugins=[court])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) or len(court.verdicts) < len(chosen):
        print("The mutants were not tried: pytest ended with", code)
        return 2
    if options.write:
        written(court)
    return report(court, time.monotonic() - begun)


def report(court: Court, seconds: float) -> int:
    """Print what survives. The exit code: 0 if every critical mutant dies, and no case fails without one."""
    alive = [each for each in court.verdicts if each.case is None]
    for verdict in sorted(alive, key=lambda each: not each.mutant.critical):
        print(f"\n{verdict.mutant}\n    survives {verdict.ran} of the {verdict.cases} quick cases that enter it")
    if court.failed:
        print(
            f"\n{len(court.failed)} cases fail without any mutation, so they convict nothing:",
            *court.failed,
            sep="\n    ",
        )
    critical = sum(each.mutant.critical for each in alive)
    print(f"\n{len(court.verdicts)} mutants, {len(alive)} survive, {critical} of them critical to privacy;", end=" ")
    print(f"{spent():.0f} s of processor time in {seconds:.0f} s.")
    return 1 if critical or court.failed else 0


def written(court: Court) -> None:
    """Name in the table which cases convict, so that the next run tries them first."""
    found = {one.mutant: one.case for one in court.verdicts if one.case is not None and "::" in one.case}
    for path in TABLES.glob("*.txt"):
        path.write_text(with_cases(path.read_text(encoding="utf-8"), found), encoding="utf-8")


def _chosen(options: argparse.Namespace) -> list[Mutant]:
    tenth = None if options.tenth is None else int(options.tenth, 16) % 10
    return [
        each for each in mutants() if re.search(options.only, each.place) and (tenth is None or each.tenth == tenth)
    ]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", metavar="PATTERN", help="mutants whose place matches this")
    parser.add_argument("--tenth", metavar="COMMIT", help="the tenth that the hash of a commit chooses")
    parser.add_argument("-j", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--seconds", type=float, default=30, help="processor time for one mutant")
    parser.add_argument("--write", action="store_true", help="name the cases that convict in the table")
    parser.add_argument("--list", action="store_true", help="print the table and try nothing")
    parser.add_argument("tests", nargs="*", help="where to look for cases (all of them)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
