"""`make slow`: measures the quick tests and adds those that take more than a twentieth of a second to `slow.txt`.

`make check` leaves out the cases of that list as it leaves out those marked `slow`; `make test` runs all of them. A
case that convicts a mutant stays quick, whatever it takes.
"""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.mutants.table import mutants

LIST = Path(__file__).with_name("slow.txt")
_LEAST = 0.05  # seconds, on an idle machine
_LINE = re.compile(r"\s*([\d.]+)s (?:call|setup|teardown)\s+(\S.*?)\s*$")


def listed() -> frozenset[str]:
    """The cases that were measured to be slow."""
    return frozenset(LIST.read_text(encoding="utf-8").splitlines())


def main() -> None:
    """Run the quick tests and write down which of them are not."""
    options = ["-m", "not slow", "-n", "2", "-q", "--durations=0", f"--durations-min={_LEAST / 2}"]
    ran = subprocess.run([sys.executable, "-m", "pytest", *options], capture_output=True, text=True, check=True)
    spent: Counter[str] = Counter()
    for line in ran.stdout.splitlines():
        if found := _LINE.match(line):
            spent[found[2]] += float(found[1])
    convicting = {case for mutant in mutants() for case in mutant.by}
    slow = {case for case, seconds in spent.items() if seconds >= _LEAST} - convicting
    LIST.write_text("\n".join(sorted(listed() | slow)) + "\n", encoding="utf-8")
    print(f"{len(slow):,} more cases are slow.")


if __name__ == "__main__":
    main()
