"""`make check`: the quick tests in two processes, each with half of the files and none of the other half.

A worker of xdist would collect all files and send three reports for each of thousands of cases that take milliseconds:
as much again as the cases themselves. `NOISETTE_PART=1/2` leaves the files of the other parts uncollected.
"""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

_ROOT, _PARTS = Path(__file__).parents[1], 2


def of_another_part(file: Path) -> bool:
    """Whether the tests of a file belong to a part that another process runs."""
    part, _, parts = os.environ.get("NOISETTE_PART", "").partition("/")
    return bool(parts) and _part_of(int(parts)).get(file, int(part)) != int(part)


@cache
def _part_of(parts: int) -> dict[Path, int]:
    """The part of each file: the largest first, each to the part that has least so far."""
    files = [*_ROOT.glob("tests/**/test_*.py"), *_ROOT.glob("src/**/*.py")]
    loads, found = [0] * parts, {}
    for size, file in sorted(((path.stat().st_size, path) for path in files), reverse=True):
        lightest = loads.index(min(loads))
        loads[lightest] += size
        found[file] = lightest + 1
    return found


def main(options: list[str]) -> int:
    """Run all parts at once; show the first as it goes on, then what the others printed; return the worst code."""
    command = [sys.executable, "-m", "pytest", "-m", "not slow", "--hypothesis-profile", "quick", "-q", *options]
    running = [
        subprocess.Popen(
            command,
            env={**os.environ, "NOISETTE_PART": f"{part}/{_PARTS}"},
            stdout=None if part == 1 else subprocess.PIPE,
            stderr=None if part == 1 else subprocess.STDOUT,
            text=True,
        )
        for part in range(1, _PARTS + 1)
    ]
    for each in running:
        print(each.communicate()[0] or "", end="")
    return max(each.returncode for each in running)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
