"""`python -m benchmarks`: measure, print tables, write JSON."""

import argparse
import json
import platform
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks import (
    accounting,
    asking,
    budget,
    choosing,
    engine,
    growth,
    imports,
    independence,
    keys,
    ledger,
    limits,
    linear,
    local,
    maps,
    multiplicative,
    noise,
    postgres,
    quantiles,
    small,
    spark,
    spark_memory,
    spark_peers,
    sparse_tables,
    sparse_vector,
    streams,
)
from benchmarks.harness import Bench, Section, Table
from benchmarks.peers import installed

SECTIONS: dict[str, Callable[[Bench], Section]] = {
    "noise": noise.run,
    "small": small.run,
    "growth": growth.run,
    "independence": independence.run,
    "accounting": accounting.run,
    "import": imports.run,
    "asking": asking.run,
    "engine": engine.run,
    "ledger": ledger.run,
    "budget": budget.run,
    "choosing": choosing.run,
    "sparse_vector": sparse_vector.run,
    "sparse_tables": sparse_tables.run,
    "quantiles": quantiles.run,
    "keys": keys.run,
    "linear": linear.run,
    "maps": maps.run,
    "streams": streams.run,
    "multiplicative": multiplicative.run,
    "local": local.run,
    "limits": limits.run,
    "postgres": postgres.run,
    "spark": spark.run,
    "spark_memory": spark_memory.run,
    "spark_peers": spark_peers.run,
}
LATEST = Path(__file__).with_name("latest.json")


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Noisette side by side with its peers.")
    parser.add_argument("--only", choices=SECTIONS, action="append", help="measure this section only (repeatable)")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, smaller sizes: a look, not a measurement")
    parser.add_argument("--json", type=Path, default=LATEST, metavar="FILE", help="default: benchmarks/latest.json")
    return parser.parse_args()


def main() -> None:
    """Run the sections one after the other and print each as soon as it is done."""
    wanted = options()
    sys.stderr.write("loading peers\n")
    peers, missing = installed()
    bench = Bench(peers, quick=wanted.quick)
    print(about(bench, missing))
    sections = {name: section(bench, name) for name in SECTIONS if name in (wanted.only or SECTIONS)}
    print(verdict(sections))
    wanted.json.write_text(json.dumps(record(bench, missing, sections), indent=1) + "\n", encoding="utf-8")


def section(bench: Bench, name: str) -> Section:
    """Measure one section and print its tables."""
    bench.section = name
    try:
        found = SECTIONS[name](bench)
    except ModuleNotFoundError as missing:
        found = Section([Table(f"{name}: left out, {missing.name} is not installed", [""], [])])
    bench.say("done", detail="\n" if sys.stderr.isatty() else "")
    for table in found.tables:
        print(f"\n{table}", flush=True)
    return found


def about(bench: Bench, missing: dict[str, str]) -> str:
    """Say what is compared, and which peers are not here."""
    lines = [", ".join(f"{name} {number}" for name, number in versions(bench).items())]
    lines += [f"{name} not installed: {reason}" for name, reason in missing.items()]
    lines.append("CPU time, medians of interleaved rounds" + (" (quick)" if bench.quick else ""))
    return "\n".join(lines)


def versions(bench: Bench) -> dict[str, str]:
    """Versions of all that takes part."""
    found = {"Python": platform.python_version()}
    for name in ("noisette", "numpy", "cryptography"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "(not installed, from the path)"
    return found | {peer.name: peer.version for peer in bench.peers}


def verdict(sections: dict[str, Section]) -> str:
    """Count the targets met, and name those missed."""
    checks = [check for found in sections.values() for check in found.checks if check.passed is not None]
    missed = [check for check in checks if not check.passed]
    met = f"{len(checks) - len(missed)} of {len(checks)} targets met" if checks else "no targets here"
    lines = [f"\n{met}"]
    return "\n".join(lines + [f"  MISS  {c.what}: {c.cells[0]}, target {c.target}" for c in missed])


def record(bench: Bench, missing: dict[str, str], sections: dict[str, Section]) -> dict[str, Any]:
    """Everything measured, for a machine to read."""
    checks = [
        {"section": name, "what": c.what, "ratio": c.value, "target": c.target or None, "passed": c.passed}
        for name, found in sections.items()
        for c in found.checks
    ]
    return {
        "versions": versions(bench),
        "not_installed": missing,
        "quick": bench.quick,
        "checks": checks,
        "measured": bench.measured,
    }


if __name__ == "__main__":
    main()
