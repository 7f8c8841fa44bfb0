"""`python -m benchmarks --only spark_peers`: the question of `spark` about users, in two peers on their own Spark.

Peers get environments of their own below `.venv-spark`, since they want older versions of Spark; one that does not
install or run is left out, and said to be. Each runs in a process of its own, once to be warm and then timed.
"""

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from benchmarks.harness import OURS, Bench, Check, Section, Table, duration
from benchmarks.process_tree import seconds_of
from benchmarks.spark import FIRST, our_jobs, session, written

__all__ = ["run"]

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PEERS = {
    "tumult": ("Tumult Analytics", ["tmlt.analytics"], 7.0),
    "pipelinedp": ("PipelineDP", ["pipeline-dp", "pyspark"], 19.0),
}
PATIENCE = 1800  # seconds that a peer may take


def asked_of(peer: str, data: str, rounds: int) -> list[float] | str:
    """CPU seconds of each round, or why there are none."""
    folder = ROOT / ".venv-spark" / peer
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    install = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check", *PEERS[peer][1]]
    if subprocess.run(install, check=False).returncode:
        return "does not install here"
    command = [str(python), str(HERE / f"{peer}.py"), str(ROOT), data, str(rounds)]
    try:
        ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return f"took more than {PATIENCE} s"
    found = [line for line in ran.stdout.splitlines() if line.startswith('{"seconds":')]
    return (
        list(json.loads(found[-1])["seconds"]) if found else f"failed: {(ran.stderr.strip().splitlines() or [''])[-1]}"
    )


def run(bench: Bench) -> Section:
    """Ask here, then each peer."""
    rows, rounds = bench.pick(10**6, 10**5), bench.pick(2, 1)
    folder = Path(tempfile.mkdtemp(prefix="noisette-bench-"))
    (folder / "scratch").mkdir()
    try:
        data = written(folder / "visits", rows)
        with session(folder) as made:
            job = next(job for job in our_jobs(made, data, folder / "scratch") if job.name == FIRST)
            ours = bench.measure(f"{rows:,} rows", [job], rounds=max(2, rounds), clock=seconds_of)[FIRST]
        lines, checks, missing = [[OURS, duration(ours), "", "", ""]], list[Check](), list[str]()
        for peer, (name, _, goal) in PEERS.items():
            bench.say(name)
            found = asked_of(peer, data, rounds)
            if isinstance(found, str):
                missing.append(f"{name} {found}")
                sys.stderr.write(f"{missing[-1]}\n")
                continue
            theirs = 1e9 * statistics.median(found)
            check = Check(f"{rows:,} rows; {name} / {OURS}", theirs / ours, at_least=None if bench.quick else goal)
            lines.append([name, duration(theirs), *check.cells])
            checks.append(check)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    note = "Count and sum by 1,000 declared groups, 3 groups of a user and 2 rows in each. "
    note += "Tumult answers them as two questions. " + " ".join(f"{each}: left out." for each in missing)
    header = ["who", "CPU", f"/ {OURS}", "target", ""]
    return Section(
        [Table(f"{rows:,} rows in Spark, CPU of the whole process tree", header, lines, note.strip())], checks
    )
