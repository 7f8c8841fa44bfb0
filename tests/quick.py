"""`make check`: the quick tests in two processes, each with half of the files and none of the other half.

A worker of xdist would collect all files and send three reports for each of thousands of cases that take milliseconds:
as much again as the cases themselves. `NOISETTE_PART=1/2` leaves the files of the other parts uncollected.
"""

import os
import subprocess
import sys
import zlib
from pathlib import Path

_PARTS = 2


def of_another_part(file: Path) -> bool:
    """Whether the tests of a file belong to a part that another process runs."""
    part, _, parts = os.environ.get("NOISETTE_PART", "").partition("/")
    if not parts or file.suffix != ".py" or file.name == "conftest.py":
        return False
    return zlib.crc32("/".join(file.parts[-3:]).encode()) % int(parts) != int(part) - 1


def main(options: list[str]) -> int:
    """Run all parts at once and show what each printed; return the worst code."""
    command = [sys.executable, "-m", "pytest", "-m", "not slow", "--hypothesis-profile", "quick", "-q", *options]
    running = [
        subprocess.Popen(
            command,
            env={**os.environ, "NOISETTE_PART": f"{part}/{_PARTS}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for part in range(1, _PARTS + 1)
    ]
    for each in running:
        print(each.communicate()[0])
    return max(each.returncode for each in running)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
