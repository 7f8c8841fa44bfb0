"""Tables of measured errors, the goals, and the same for a machine to read."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from benchmarks.error.measured import LEVEL, Bars, Measured, together
from benchmarks.harness import Check, Table

MEAN, WORST = 0.80, 1.3  # of the best published algorithm: geometric mean over the sets, and the worst set
MAP_MEAN, MAP_WORST = 1.1, 2.5  # the same for maps
USUAL, GUARANTEED = 0.93, LEVEL  # how often bars hold

Cases = dict[tuple[float, str], list[Measured]]


def by_case(found: Sequence[Measured]) -> Cases:
    """What was measured at each epsilon on each workload, set by set."""
    cases: Cases = {}
    for one in found:
        for workload in one.ours:
            cases.setdefault((one.epsilon, workload), []).append(one)
    return dict(sorted(cases.items(), key=lambda case: (case[0][1], case[0][0])))


# Errors


def errors(found: Sequence[Measured]) -> list[Table]:
    """For each epsilon and workload, everybody's error over that of Identity, the least geometric mean first."""
    tables = []
    for (epsilon, workload), sets in by_case(found).items():
        ratios = [one.ratios(workload) for one in sets]
        rows = {name: [one[name] for one in ratios] for name in ratios[0] if all(name in one for one in ratios)}
        ordered = sorted(rows, key=lambda name: together(rows[name]))
        header = ["error / Identity", *(one.histogram.name for one in sets), "geometric mean"]
        lines = [[name, *map(_short, rows[name]), _short(together(rows[name]))] for name in ordered]
        tables.append(Table(f"{workload}, epsilon {epsilon:g}", header, lines))
    return tables


def to_best(found: Sequence[Measured]) -> Table:
    """Our error over that of the best published algorithm of each set, chosen with hindsight."""
    cases, rows = by_case(found), []
    for (epsilon, workload), sets in cases.items():
        ratios = [one.to_best(workload) for one in sets]
        cells = [f"{ratio:.2f} {one.best(workload)}" for one, ratio in zip(sets, ratios, strict=True)]
        cells.append(f"{together(ratios):.3f} ± {_resolution(sets, workload) * together(ratios):.3f}")
        cells.append(f"{together([one.to_best(workload, informed=False) for one in sets]):.3f}")
        rows.append([f"{workload}, {epsilon:g}", *cells])
    names = [one.histogram.name for one in next(iter(cases.values()))]
    header = ["workload, epsilon", *names, "geometric mean", "the same without †"]
    note = f"± one standard error of our runs. † given the true number of rows for free: {_informed(found)}."
    return Table("Ours / best published", header, rows, note)


def _informed(found: Sequence[Measured]) -> str:
    return ", ".join(sorted(frozenset[str]().union(*(one.histogram.informed for one in found)))) or "none"


def _resolution(sets: Sequence[Measured], workload: str) -> float:
    """The relative standard error of the geometric mean."""
    each = np.array([one.ours[workload].error / one.ours[workload].value for one in sets])
    return float(np.sqrt((each**2).sum()) / len(each))


def plain(found: Sequence[Measured]) -> Table:
    """Our error on other histograms over that of noise on every cell and of the best plain strategy."""
    rows = []
    for (epsilon, workload), sets in by_case(found).items():
        for one in sets:
            ours, chain = one.ratios(workload)["ours"], one.ratios(workload)["best chain"]
            cells = f"{len(one.histogram.x)} cells"
            rows.append([f"{one.histogram.name}, {cells}", workload, f"{epsilon:g}", _short(ours), _short(chain)])
            rows[-1].append(f"{ours / min(chain, 1.0):.2f}")
    header = ["Adult", "workload", "epsilon", "ours / Identity", "best chain / Identity", "ours / better of both"]
    return Table("Columns of Adult", header, rows)


# Error bars


def bars(found: Sequence[Measured], of: str = "ranges") -> Table:
    """How often error bars hold, and how wide they are."""
    rows = [
        [
            one.histogram.name,
            f"{one.epsilon:g}",
            _held(one.usual),
            f"{one.usual.width:.1f}",
            _held(one.guaranteed),
            f"{one.guaranteed.width:.1f}",
        ]
        for one in found
    ]
    header = ["set", "epsilon", "usual hold", "half-width", "guaranteed hold", "half-width"]
    note = f"Level {LEVEL:g}; ± is one standard error over runs; half-widths are means over the mean |error|."
    return Table(f"Error bars of {of}", header, rows, note)


def _held(bars: Bars) -> str:
    return f"{bars.held.value:.3f} ± {bars.held.error:.3f}"


# Goals


def goals(found: Sequence[Measured]) -> list[Check]:
    """What the errors and the error bars on sets with published errors are held to."""
    return [*_error_goals(found), *_bar_goals(found)]


def map_goals(found: Sequence[Measured]) -> list[Check]:
    """What maps are held to: also below every single published algorithm."""
    checks = []
    for (epsilon, workload), sets in by_case(found).items():
        ratios = [one.ratios(workload) for one in sets]
        means = {
            name: together([one[name] for one in ratios]) for name in ratios[0] if all(name in one for one in ratios)
        }
        ours = means.pop("ours")
        best = min(means, key=lambda name: means[name])
        what = f"maps, epsilon {epsilon:g}: geometric mean of ours / {best}, the best single algorithm"
        checks.append(Check(what, ours / means[best], at_most=1.0))
    return [*checks, *_error_goals(found, "maps", MAP_MEAN, MAP_WORST), *_bar_goals(found)]


def _error_goals(found: Sequence[Measured], of: str = "", most: float = MEAN, worst_most: float = WORST) -> list[Check]:
    checks = []
    for (epsilon, workload), sets in by_case(found).items():
        ratios = {one.histogram.name: one.to_best(workload) for one in sets}
        worst, where = max(ratios, key=lambda name: ratios[name]), f"{of or workload}, epsilon {epsilon:g}"
        mean = together(list(ratios.values()))
        checks.append(Check(f"{where}: geometric mean of ours / best published", mean, at_most=most))
        checks.append(Check(f"{where}: worst set ({worst})", ratios[worst], at_most=worst_most))
    return checks


def _bar_goals(found: Sequence[Measured]) -> list[Check]:
    checks = []
    for epsilon in sorted({one.epsilon for one in found}):
        sets = [one for one in found if one.epsilon == epsilon]
        usual, sure = (
            min(sets, key=lambda one: one.usual.held.value),
            min(sets, key=lambda one: one.guaranteed.held.value),
        )
        what = f"epsilon {epsilon:g}: {{}} bars hold, least of all sets ({{}})"
        text = what.format("usual", usual.histogram.name), what.format("guaranteed", sure.histogram.name)
        checks.append(Check(text[0], usual.usual.held.value, at_least=USUAL, unit=""))
        checks.append(Check(text[1], sure.guaranteed.held.value, at_least=GUARANTEED, unit=""))
    return checks


def verdict(check: Check) -> str:
    """A goal, the figure, and whether it is met."""
    return f"{'met   ' if check.passed else 'MISSED'}  {check.what}: {check.text}, goal {check.target}"


def record(found: Sequence[Measured], checks: Sequence[Check], runs: int) -> dict[str, Any]:
    """Everything measured, for a machine to read."""
    measured = [
        {"set": one.histogram.name, "epsilon": one.epsilon, "workload": workload}
        | {"scaled_error": one.ours[workload].value, "standard_error": one.ours[workload].error}
        | {"ratio_to_identity": one.ratios(workload)}
        | {"ratio_to_best": one.to_best(workload) if one.histogram.published else None}
        for one in found
        for workload in one.ours
    ]
    held = [
        {
            "set": one.histogram.name,
            "epsilon": one.epsilon,
            "usual": asdict(one.usual),
            "guaranteed": asdict(one.guaranteed),
        }
        for one in found
    ]
    made = [{"what": one.what, "value": one.value, "goal": one.target, "met": one.passed} for one in checks]
    return {"runs": runs, "errors": measured, "bars": held, "goals": made}


def _short(ratio: float) -> str:
    return f"{ratio:.3f}" if ratio < 100 else f"{ratio:.0f}"
