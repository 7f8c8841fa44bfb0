"""`python -m benchmarks.error`: release real histograms, compare the errors with published ones, print the verdicts."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.error import report, synthetic
from benchmarks.error.data import EPSILONS, SHARED, Histogram, adult, histograms, maps, missing
from benchmarks.error.measured import LEVEL, Make, Measured, adaptive, adaptive_map, measured
from benchmarks.harness import Check

RUNS, QUICK = 20, 3


def options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.error", description=__doc__)
    parser.add_argument("--runs", type=int, help=f"releases of each set at each epsilon (default: {RUNS})")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} releases each: a look, not a measurement")
    parser.add_argument("--maps", action="store_true", help="maps only")
    parser.add_argument("--shared", type=Path, default=SHARED, metavar="FOLDER", help="default: ../shared")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write everything measured to this file")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None, make: Make = adaptive, make_map: Make = adaptive_map) -> list[Check]:
    """Measure, print tables and verdicts, and return the goals."""
    wanted = options(arguments)
    if absent := missing(wanted.shared):
        print(f"Nothing is measured, because data is missing beside the checkout: {', '.join(map(str, absent))}.")
        return []
    runs = wanted.runs or (QUICK if wanted.quick else RUNS)
    print(f"Error of released counts under pure epsilon: means of {runs} runs with the product's own noise")
    lines = not wanted.maps
    sets = measure(histograms(wanted.shared), runs, make) if lines else []
    columns = measure(adult(wanted.shared), runs, make) if lines else []
    known = measure(maps(wanted.shared), runs, make_map)
    checks = (show(sets, columns) if lines else []) + (show_maps(known) if known else [])
    figures = synthetic_rows(wanted.shared, max(1, runs // 3), checks) if lines else {}
    if wanted.json:
        record = report.record([*sets, *columns, *known], checks, runs) | {"synthetic": figures}
        wanted.json.write_text(json.dumps(record, indent=1) + "\n")
    return checks


def synthetic_rows(shared: Path, runs: int, checks: list[Check]) -> dict[str, Any]:
    """Print the errors of synthetic rows, add their goals, and return the figures."""
    tables, goals, figures = synthetic.section(shared, runs)
    for table in tables:
        print(f"\n{table}")
    for goal in goals:
        print(f"  {report.verdict(goal)}")
    checks += goals
    return figures


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
    return verdicts(report.goals(sets))


def show_maps(found: Sequence[Measured]) -> list[Check]:
    """The same for maps."""
    for table in (*report.errors(found), report.to_best(found), report.bars(found, "rectangles")):
        print(f"\n{table}")
    return verdicts(report.map_goals(found))


def verdicts(checks: list[Check]) -> list[Check]:
    """Print each goal with its figure, and whether it is met."""
    print(f"\nGoals (bars of level {LEVEL:g})")
    for check in checks:
        print(f"  {report.verdict(check)}")
    return checks


if __name__ == "__main__":
    main()
