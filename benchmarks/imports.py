"""What `import noisette` costs, beside `import numpy`, each in a fresh interpreter."""

import statistics
import subprocess
import sys

from benchmarks.harness import Bench, Check, Section, Table, duration

MODULES = ("noisette", "noisette.exact.vector", "numpy")
AT_MOST = 2.0


def import_seconds(module: str) -> float:
    """CPU time of one import in an interpreter of its own, without the interpreter's own start."""
    code = f"import time; begun = time.process_time(); import {module}; print(time.process_time() - begun)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return float(done.stdout)


def run(bench: Bench) -> Section:
    """Import in turn; the first import of each, which may compile, is not counted."""
    rounds = bench.pick(15, 3)
    bench.say(f"{rounds} fresh interpreters each")
    seconds: dict[str, list[float]] = {module: [] for module in MODULES}
    for turn in range(rounds + 1):
        bench.say("fresh interpreters", detail=f"round {turn}/{rounds}")
        for module in MODULES:
            seconds[module].append(import_seconds(module))
    return report(bench, {module: statistics.median(times[1:]) * 1e9 for module, times in seconds.items()})


def report(bench: Bench, ns: dict[str, float]) -> Section:
    """Compare with NumPy."""
    bench.measured += [{"section": bench.section, "case": m, "job": "import", "ns": cost} for m, cost in ns.items()]
    checks = [Check(f"import {m}, cost against numpy", ns[m] / ns["numpy"], at_most=AT_MOST) for m in MODULES[:-1]]
    rows = [
        [f"import {module}", duration(ns[module]), duration(ns["numpy"]), *check.cells]
        for module, check in zip(MODULES, checks, strict=False)
    ]
    return Section([Table("Import", ["", "noisette", "numpy", "ratio", "target", ""], rows)], checks)
