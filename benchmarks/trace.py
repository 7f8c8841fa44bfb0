"""The path of one SQL question through the package: `python -m benchmarks.trace`.

Counts the files and functions that run, the calls, the calls into another package, and what runs most often.
"""

import sys
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pyarrow

import noisette as nz

ROOT = Path(nz.__file__).parent
QUESTION = "SELECT ward, count(*) AS n, avg(age) AS age FROM data GROUP BY ward"
WARDS = {"ward": {"keys": ["north", "south"]}, "age": {"bounds": [0, 120]}}


class Trace:
    """The calls of the package's own functions, as `sys.setprofile` reports them."""

    def __init__(self) -> None:
        self.calls: Counter[CodeType] = Counter()
        self.crossings = 0

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        """Count a call, and whether the nearest caller of the package is in another subpackage."""
        if event != "call" or not _ours(frame.f_code):
            return
        self.calls[frame.f_code] += 1
        caller = frame.f_back
        while caller is not None and not _ours(caller.f_code):
            caller = caller.f_back
        self.crossings += caller is not None and _package(caller.f_code) != _package(frame.f_code)


def _ours(code: CodeType) -> bool:
    return code.co_filename.startswith(str(ROOT))


def _package(code: CodeType) -> str:
    return Path(code.co_filename).relative_to(ROOT).parts[0]


def traced() -> Trace:
    """One question to a curator that has answered another one before, so that imports are done."""
    people = pyarrow.table({"person": [1, 2, 3, 3], "age": [34, 51, 68, 68], "ward": ["north", "south"] * 2})
    curator = nz.open(people, unit="person", rows=2, budget=9, policy={"tables": {"data": {"columns": WARDS}}})
    curator.sql("SELECT count(*) AS n FROM data WHERE age > 40", spend=1)
    trace = Trace()
    sys.setprofile(trace)
    try:
        curator.sql(QUESTION, spend=1)
    finally:
        sys.setprofile(None)
    return trace


def main() -> None:
    """Print the counts."""
    trace = traced()
    files = {code.co_filename for code in trace.calls}
    print(f"{len(files)} files, {len(trace.calls)} functions, {sum(trace.calls.values())} calls")
    print(f"{trace.crossings} calls into another package")
    for code, times in trace.calls.most_common(25):
        print(f"{times:6}  {Path(code.co_filename).relative_to(ROOT)}:{code.co_qualname}")
    formed = [times for code, times in trace.calls.items() if code.co_qualname == "canonical"]
    print(f"canonical forms are made {sum(formed)} times")


if __name__ == "__main__":
    main()
