"""Tables and goals of the suite, and the other systems' figures where they lie beside the checkout."""

import re
import statistics
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness import Check, Table, duration, times
from benchmarks.tpch.measured import LEVEL, Errors, Measured
from benchmarks.tpch.queries import Shape

MEDIAN_AT_MOST, EACH_AT_MOST, PEER_AT_MOST = 3.0, 12.0, 1.1


def show(found: Sequence[Measured], shapes: Sequence[Shape], shared: Path) -> list[Check]:
    """Print everything and return the goals."""
    checks = []
    for scale in dict.fromkeys(one.scale for one in found):
        some = [one for one in found if one.scale == scale]
        for table in (accuracy(some, scale), cost(some, scale)):
            print(f"\n{table}")
        checks += cpu_goals(some, scale)
    for shape in shapes:
        if shape.instead:
            print(f"  {shape.name}: {shape.instead}")
    anchors = shared / "anchors" / "tpch.md"
    if anchors.exists():
        table, goals = beside_peers(found, anchors.read_text())
        print(f"\n{table}")
        checks += goals
    else:
        print("\nOther systems' figures are left out, because ../shared/anchors/tpch.md is missing.")
    for check in checks:
        print("  " + "  ".join([check.what, *check.cells]))
    return checks


def percent(share: float) -> str:
    """A share as it is printed.

    >>> percent(0.0123), percent(0.000049), percent(1.0)
    ('1.2 %', '.005 %', '100 %')
    """
    value = 100 * share
    digits = 0 if value >= 9.95 else 1 if value >= 0.995 else 2 if value >= 0.00995 else 3
    return f"{value:.{digits}f} %".replace("0.", ".", 1) if value < 1 else f"{value:.{digits}f} %"


def accuracy(found: Sequence[Measured], scale: str) -> Table:
    """One line for each column of each query."""
    rows = []
    for one in found:
        if one.refused:
            rows.append([one.name, "refused", "", "", "", "", "", ""])
        for column in one.columns:
            lost = f"{one.groups} ({percent(one.lost)})"
            bars = [f"{100 * share:.0f} %" for share in (column.held_limited, column.held)]
            numbers = [percent(x) for x in (column.error, column.noise, column.bias)]
            rows.append([one.name, column.column, lost, *numbers, *bars])
    note = f"bars of level {LEVEL:g}: those that hold the number without noise, and those that hold the truth"
    refused = [f"{one.name}: {one.refused}" for one in found if one.refused]
    header = ["", "column", "groups (lost)", "error", "noise", "bias", "hold limited", "hold truth"]
    title = f"Scale {scale}, epsilon 1, delta 1e-9: medians of relative errors"
    return Table(title, header, rows, "\n  ".join([note, *refused]))


def cost(found: Sequence[Measured], scale: str) -> Table:
    """CPU time of each query over that of raw DuckDB."""
    timed = [one for one in found if one.raw_seconds]
    rows = [[one.name, duration(1e9 * one.raw_seconds), times(one.cpu), times(one.again)] for one in timed]
    return Table(f"Scale {scale}: CPU over raw DuckDB, one thread", ["", "DuckDB", "first", "other spend"], rows)


def cpu_goals(found: Sequence[Measured], scale: str) -> list[Check]:
    """The median and the largest ratio."""
    ratios = {one.name: one.cpu for one in found if one.cpu}
    if not ratios:
        return []
    worst = max(ratios, key=ratios.__getitem__)
    return [
        Check(f"CPU over raw DuckDB, scale {scale}, median", statistics.median(ratios.values()), MEDIAN_AT_MOST),
        Check(f"CPU over raw DuckDB, scale {scale}, largest ({worst})", ratios[worst], EACH_AT_MOST),
    ]


# Other systems

ROWS: dict[str, tuple[str, tuple[tuple[str, ...], ...]]] = {
    "Q1 sums": ("Q1", (("sum_qty", "sum_base_price", "sum_disc_price", "sum_charge"),)),
    "Q1 averages; count": ("Q1", (("avg_qty", "avg_price", "avg_disc"), ("count_order",))),
    "Q6": ("Q6", (("revenue",),)),
    "Q4 count by priority": ("orders by priority", (("n",),)),
    "Q13 (groups lost)": ("Q13", (("custdist",),)),
    "customer × nation: n, avg": ("customer × nation", (("n",), ("mean",))),
    "customer × orders: n, sum": ("customer × orders", (("n",), ("total",))),
    "Q12 orders × lineitem": ("all orders × lineitem", (("high", "low"),)),
    "Q5 revenue by nation": ("revenue by nation", (("revenue",),)),
    "Q14 share": ("share of promotions", (("promo_revenue",),)),
    "Q22 by country code: n, sum": ("balances by country code", (("n",), ("total",))),
    "variance, deviation of o_totalprice": ("variance of prices", (("variance",), ("deviation",))),
    "median of o_totalprice": ("median of prices", (("middle",),)),
    "count distinct customers by nation": ("customers by nation", (("n",),)),
}
"""For each row of the other systems' table, the query and the columns whose errors it lists; several are a range."""


def beside_peers(found: Sequence[Measured], text: str) -> tuple[Table, list[Check]]:
    """Our errors beside the other systems', and whether each is the least or nearly."""
    header, *lines = _cells(text)
    by_place = {(one.name, one.scale): one for one in found if one.columns}
    rows, checks = [], list[Check]()
    for line in lines:
        if line[0] not in ROWS:
            continue
        query, parts = ROWS[line[0]]
        ours = {scale: _ours(by_place[query, scale], parts) for scale in ("0.1", "1") if (query, scale) in by_place}
        shown = " / ".join(", ".join(f"{100 * x:.2g}" for x in ours[s]) if s in ours else "–" for s in ("0.1", "1"))
        rows.append([line[0], shown, *line[2:]])
        checks += _goals(line[0], ours, line[2:])
    title = "Beside other systems: median relative error in %, scale 0.1 / 1 (the larger end where several columns)"
    return Table(title, ["", "noisette", *header[2:]], rows), checks


def _cells(text: str) -> list[list[str]]:
    lines = [line.strip().strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    return [
        [cell.strip() for cell in line]
        for line in lines
        if not set(line[0].strip()) <= set("-: ") or not line[0].strip()
    ]


def _ours(one: Measured, parts: Sequence[Sequence[str]]) -> list[float]:
    errors: dict[str, Errors] = {column.column: column for column in one.columns}
    return [max(errors[name].error for name in part) for part in parts]


def _goals(row: str, ours: dict[str, list[float]], peers: Sequence[str]) -> list[Check]:
    checks = []
    for place, scale in enumerate(("0.1", "1")):
        if scale not in ours:
            continue
        theirs = [_figures(cell, place) for cell in peers]
        for part, error in enumerate(ours[scale]):
            best = min((peer[part] for peer in theirs if len(peer) == len(ours[scale])), default=None)
            if best is not None:
                ratio = round(100 * error, 2) / max(best, 0.005)
                checks.append(Check(f"{row}, part {part + 1}, scale {scale}, over the best peer", ratio, PEER_AT_MOST))
    return checks


def _figures(cell: str, place: int) -> list[float]:
    """The errors of a cell at one scale, of ranges the larger end.

    >>> _figures("1.2–1.6; 1.5 / .13–.23; 1.4", 1), _figures("fails", 0)
    ([0.23, 1.4], [])
    """
    scales = re.sub(r"\([^)]*\)|\*", "", cell).split("/")
    if len(scales) != 2:
        return []
    parts = [re.findall(r"\d*\.?\d+", part) for part in re.split(r"[;,]", scales[place])]
    return [float(numbers[-1]) for numbers in parts if numbers]
