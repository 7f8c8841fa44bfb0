"""Real histograms and maps with their workloads, and the errors that published algorithms make on them.

The files lie beside the checkout: the vectors, workloads and errors of DPBench, and the Adult table.
[Hay-Machanavajjhala-Miklau-Chen-Zhang 2016]
"""

import json
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.releases.maps.tables import summed_area, uneven_sums

Counts: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

SHARED = Path(__file__).parents[3] / "shared"
EPSILONS = (0.01, 0.1, 1.0)
PREFIXES, RANGES = "Prefix", "RandomRange2000"
ADULT = ("age", "fnlwgt", "hours-per-week", "capital-gain")


@dataclass(frozen=True)
class Workload:
    """Ranges of cells low .. high, both included."""

    name: str
    low: Counts
    high: Counts

    def of(self, x: Any) -> Floats:
        """The number in each range of the cells x."""
        before = np.concatenate([[0], np.cumsum(x)])
        return np.asarray(before[self.high + 1] - before[self.low], float)

    @property
    def prefixes(self) -> bool:
        """Whether the ranges are prefixes."""
        return self.name == PREFIXES


@dataclass(frozen=True)
class Rectangles:
    """Rectangles of a map by their edges in cells, as `releases.maps` takes them."""

    name: str
    low: Floats
    high: Floats
    prefixes: bool = False

    def of(self, x: Any) -> Floats:
        """The number in each rectangle of the cells x."""
        return uneven_sums(summed_area(np.asarray(x, float)), self.low, self.high)


@dataclass(frozen=True)
class Histogram:
    """Counts of cells of a line or a map, the ranges that are asked, and published errors.

    These are scaled errors by epsilon, workload and algorithm. Algorithms that are `informed` were given the true
    number of rows for free.
    """

    name: str
    x: Counts
    workloads: tuple[Workload | Rectangles, ...]
    published: dict[tuple[float, str], dict[str, float]] = field(default_factory=dict)
    informed: frozenset[str] = frozenset()


def missing(shared: Path) -> list[Path]:
    """The files without which nothing can be compared."""
    needed = [shared / "anchors" / "dpbench.json", shared / "data" / "dpbench_workloads.json"]
    absent = [path for path in needed if not path.exists()]
    if needed[0] in absent:
        return absent
    return absent + [path for dims in (1, 2) for path in _vectors(shared, dims).values() if not path.exists()]


def _errors(shared: Path, dims: int) -> list[dict[str, Any]]:
    """The published errors in one or two dimensions."""
    read = json.loads((shared / "anchors" / "dpbench.json").read_text(encoding="utf-8"))
    return [one for one in read if one["dims"] == dims]


def _vectors(shared: Path, dims: int) -> dict[str, Path]:
    return {one["dataset"]: shared / "data" / "dpbench" / one["file"] for one in _errors(shared, dims)}


def _asked(shared: Path, dims: int) -> Any:
    return json.loads((shared / "data" / "dpbench_workloads.json").read_text(encoding="utf-8"))[f"{dims}D"][RANGES]


def histograms(shared: Path) -> list[Histogram]:
    """The one-dimensional sets that have published errors."""
    low, high = np.array(_asked(shared, 1), np.int64).T
    found = []
    for name, path in _vectors(shared, 1).items():
        x = np.load(path).astype(np.int64)
        found.append(_compared(shared, name, x, (prefixes(len(x)), Workload(RANGES, low, high))))
    return found


def maps(shared: Path) -> list[Histogram]:
    """The maps that have published errors; none if there are none."""
    known = _vectors(shared, 2)
    if not known:
        return []
    low, high = np.array(_asked(shared, 2), float).transpose(1, 0, 2)
    rectangles = Rectangles(RANGES, low, high + 1)
    return [_compared(shared, name, np.load(path).astype(np.int64), (rectangles,)) for name, path in known.items()]


def _compared(shared: Path, name: str, x: Counts, workloads: tuple[Workload | Rectangles, ...]) -> Histogram:
    """A set with the published errors on its workloads."""
    errors = _errors(shared, x.ndim)
    informed = frozenset(one["algorithm"] for one in errors if one.get("side_information"))
    published: dict[tuple[float, str], dict[str, float]] = {
        (epsilon, one.name): {} for epsilon, one in product(EPSILONS, workloads)
    }
    for one in errors:
        if one["dataset"] == name and (one["eps"], one["workload"]) in published:
            published[one["eps"], one["workload"]][one["algorithm"]] = one["scaled_error"]
    return Histogram(name, x, workloads, published, informed)


def prefixes(cells: int) -> Workload:
    """All prefixes of a line."""
    return Workload(PREFIXES, np.zeros(cells, np.int64), np.arange(cells))


def adult(shared: Path) -> list[Histogram]:
    """Columns of the Adult table, with all their prefixes and all their ranges; none if the table is not there."""
    table, domain = shared / "data" / "adult.csv", shared / "data" / "adult-domain.json"
    if not (table.exists() and domain.exists()):
        return []
    sizes = json.loads(domain.read_text(encoding="utf-8"))
    with table.open(encoding="utf-8") as lines:
        names = next(lines).strip().split(",")
        rows = np.loadtxt(lines, dtype=np.int64, delimiter=",", ndmin=2)
    return [
        Histogram(
            name,
            np.bincount(rows[:, names.index(name)], minlength=sizes[name]),
            (prefixes(sizes[name]), Workload("all ranges", *np.triu_indices(sizes[name]))),
        )
        for name in ADULT
        if name in names
    ]
