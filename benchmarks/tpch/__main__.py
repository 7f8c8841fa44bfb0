"""`python -m benchmarks.tpch`: all 22 queries of TPC-H, with what they cost and how far they are off."""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb

from benchmarks.harness import Bench, Check
from benchmarks.tpch import report
from benchmarks.tpch.data import CACHE, tables
from benchmarks.tpch.measured import Measured, cpu, errors, views
from benchmarks.tpch.projects import UNITS, policy
from benchmarks.tpch.queries import COMPARED, QUERIES, Shape
from noisette.curator.described import described_data

RUNS, ROUNDS, SCALES = 100, 3, ("0.1", "1")
SHARED = Path(__file__).resolve().parent.parent.parent.parent / "shared"


def options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tpch", description=__doc__)
    parser.add_argument("--scale", action="append", help=f"repeatable (default: {' and '.join(SCALES)})")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"answers of each query (default: {RUNS})")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds that are timed (default: {ROUNDS})")
    parser.add_argument("--chosen", action="store_true", help="limits are chosen by each question, not declared")
    parser.add_argument("--only", action="append", metavar="QUERY", help="Q1, Q2, ...; repeatable")
    parser.add_argument("--data", type=Path, default=CACHE, metavar="FOLDER", help=f"default: {CACHE}")
    parser.add_argument("--shared", type=Path, default=SHARED, metavar="FOLDER", help="default: ../shared")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write everything measured to this file")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> list[Check]:
    """Measure, print tables and verdicts, and return the goals."""
    wanted = options(arguments)
    shapes = [s for s in (*QUERIES, *COMPARED) if wanted.only is None or s.name in wanted.only]
    bench, found = Bench([], quick=False), list[Measured]()
    bench.section = "tpch"
    for scale in wanted.scale or SCALES:
        found += measured(bench, shapes, tables(scale, wanted.data), scale, wanted)
    checks = report.show(found, shapes, wanted.shared)
    if wanted.json:
        record = {"queries": [one.record for one in found], "timed": bench.measured}
        wanted.json.write_text(json.dumps(record, indent=1) + "\n")
    return checks


def measured(
    bench: Bench, shapes: Sequence[Shape], paths: Mapping[str, Path], scale: str, wanted: argparse.Namespace
) -> list[Measured]:
    """Every query at one scale."""
    opened = {project: described_data(dict(paths), policy=policy(project, chosen=wanted.chosen)) for project in UNITS}
    found = []
    for shape in shapes:
        bench.say(f"{shape.name}, scale {scale}")
        data = opened[shape.project]
        with duckdb.connect() as connection:
            views(connection, paths)
            truth = connection.sql(shape.sql).to_arrow_table()
        one = errors(shape, data, truth, scale, wanted.runs)
        if wanted.rounds and not one.refused:
            cpu(bench, shape, data, paths, one, wanted.rounds)
        found.append(one)
    return found


if __name__ == "__main__":
    main()
