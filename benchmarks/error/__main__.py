"""`python -m benchmarks.error`: release real histograms, compare the errors with published ones, print the verdicts."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.error import report
from benchmarks.error.data import EPSILONS, SHARED, Histogram, adult, histograms, missing
from benchmarks.error.measured import LEVEL, Make, Measured, adaptive, measured
from benchmarks.harness import Check

RUNS, QUICK = 20, 3


def options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.error", description=__doc__)
    parser.add_argument("--runs", type=int, help=f"releases of each set at each epsilon (default: {RUNS})")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} releases each: a look, not a measurement")
    parser.add_argument("--shared", type=Path, default=SHARED, metavar="FOLDER", help="default: ../shared")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write everything measured to this file")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None, make: Make = adaptive) -> list[Check]:
    """Measure, print tables and verdicts, and return the goals."""
    wanted = options(arguments)
    if absent := missing(wanted.shared):
        print(f"Nothing is measured, because data is missing beside the checkout: {', '.join(map(str, absent))}.")
        return []
    runs = wanted.runs or (QUICK if wanted.quick else RUNS)
    print(f"Error of released histograms under pure epsilon: means of {runs} runs with the product's own noise")
    sets = measure(histograms(wanted.shared), runs, make)
    columns = measure(adult(wanted.shared), runs, make)
    checks = show(sets, columns)
    if wanted.json:
        wanted.json.write_text(json.dumps(report.record([*sets, *columns], checks, runs), indent=1) + "\n")
    return checks


def measure(given: Sequence[Histogram], runs: int, make: Make) -> list[Measured]:
    """Every set at every epsilon, with progress on stderr."""
    found = []
    for one in given:
        for epsilon in EPSILONS:
            sys.stderr.write(f"{one.name}, epsilon {epsilon:g}\n")
            found.append(measured(one, epsilon, runs, make))
    return found


def show(sets: Sequence[Measured], columns: Sequence[Measured]) -> list[Check]:
    """Print the tables and a line for each goal."""
    tables = [*report.errors(sets), report.to_best(sets), report.bars([*sets, *columns])]
    tables += [report.plain(columns)] if columns else []
    for table in tables:
        print(f"\n{table}")
    if not columns:
        print("\nThe columns of Adult are left out, because data/adult.csv is missing.")
    checks = report.goals(sets)
    print(f"\nGoals (bars of level {LEVEL:g})")
    for check in checks:
        print(f"  {report.verdict(check)}")
    return checks


if __name__ == "__main__":
    main()
