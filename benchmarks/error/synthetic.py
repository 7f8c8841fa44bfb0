"""Synthetic rows of the Adult table: the error of three-way and two-way tables, CPU time, and what a model learns.

Errors are total variation between tables of the rows and of the data. Published figures are those of the scripts of MST
and AIM at epsilon 1, delta 1e-9 on the same 64 three-way tables.   [McKenna et al. 2021, 2022]
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Check, Table
from noisette.releases.synthetic.rake import Fit, Rake
from noisette.releases.synthetic.tables import Attribute, CodedRows

Rows = NDArray[np.int64]

DELTA = "1e-9"
EPSILONS = ("0.1", "1", "10")
PUBLISHED = {"independent": (0.204, None), "MST": (0.0989, 111.0), "AIM": (0.0748, 782.0)}
GOALS = {"three": 0.066, "pairs": 0.036, "largest": 0.14, "seconds": 10.0}
LEARNED = {"logistic": 0.885, "gradient boosting": 0.895}
ORDERED = frozenset({"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"})
LABEL = "income>50K"


@dataclass(frozen=True)
class Data:
    """A table of codes, its attributes, and the three-way tables that are compared."""

    rows: Rows
    attributes: tuple[Attribute, ...]
    triples: tuple[tuple[int, ...], ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each attribute has."""
        return tuple(one.size for one in self.attributes)


@dataclass(frozen=True)
class Measured:
    """Errors of one release; `unmeasured` is the largest among pairs that were not measured."""

    three: float
    pairs: float
    largest: float
    unmeasured: float
    seconds: float


def read(shared: Path) -> Data | None:
    """The Adult table beside the checkout, if it is there."""
    table, domain, triples = (
        shared / "data" / name for name in ("adult.csv", "adult-domain.json", "adult_3way64.json")
    )
    if not (table.exists() and domain.exists() and triples.exists()):
        return None
    sizes = json.loads(domain.read_text(encoding="utf-8"))
    with table.open(encoding="utf-8") as lines:
        names = next(lines).strip().split(",")
        rows = np.loadtxt(lines, dtype=np.int64, delimiter=",", ndmin=2)
    wanted = json.loads(triples.read_text(encoding="utf-8"))["workload64"]
    kinds = tuple(Attribute(name, sizes[name], name in ORDERED) for name in names)
    return Data(rows, kinds, tuple(tuple(names.index(name) for name in one) for one in wanted))


def variation(one: Rows, other: Rows, columns: Sequence[int], sizes: Sequence[int]) -> float:
    """The total variation between tables of two sets of rows."""
    shape = [sizes[i] for i in columns]
    found = []
    for rows in (one, other):
        cells = np.ravel_multi_index([rows[:, i] for i in columns], shape)
        found.append(np.bincount(cells, minlength=int(np.prod(shape))) / len(rows))
    return float(np.abs(found[0] - found[1]).sum() / 2)


def released(data: Data, epsilon: str, strategy: Any = "rake") -> tuple[Fit, float]:
    """One release and its CPU time."""
    before = time.process_time()
    fit = Rake.calibrated(f"{epsilon},{DELTA}", data.attributes, strategy=strategy)(CodedRows.of(data.rows, data.sizes))
    return fit, time.process_time() - before


def measured(data: Data, fit: Fit, seconds: float) -> Measured:
    """The errors of a release."""
    made, sizes = np.column_stack(fit.codes), data.sizes
    three = [variation(data.rows, made, one, sizes) for one in data.triples]
    pairs = {one: variation(data.rows, made, one, sizes) for one in combinations(range(len(sizes)), 2)}
    known = {one.pair for one in fit.measured}
    unmeasured = max((error for pair, error in pairs.items() if pair not in known), default=0.0)
    return Measured(
        float(np.mean(three)), float(np.mean(list(pairs.values()))), max(pairs.values()), unmeasured, seconds
    )


def learned(data: Data, made: Rows) -> dict[str, float] | None:
    """The area under the curve of models that are trained on made-up rows and tested on real ones."""
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.linear_model import LogisticRegression
        from sklearn.metrics import roc_auc_score
    except ImportError:
        return None
    label = next(i for i, one in enumerate(data.attributes) if one.name == LABEL)
    models = {
        "logistic": LogisticRegression(max_iter=300),
        "gradient boosting": HistGradientBoostingClassifier(max_iter=150),
    }
    found = {}
    for name, model in models.items():
        shown = _one_hot if name == "logistic" else _plain
        model.fit(shown(data, made, label), made[:, label])
        chances = model.predict_proba(shown(data, data.rows, label))[:, 1]
        found[name] = float(roc_auc_score(data.rows[:, label], chances))
    return found


def _plain(data: Data, rows: Rows, label: int) -> Any:
    return np.delete(rows, label, axis=1)


def _one_hot(data: Data, rows: Rows, label: int) -> Any:
    parts: list[Any] = []
    for i, one in enumerate(data.attributes):
        if i != label:
            parts += [rows[:, [i]] / one.size] if one.ordered else [np.eye(one.size)[rows[:, i]]]
            parts += [(rows[:, [i]] / one.size) ** 2, rows[:, [i]] > 0] if one.ordered else []
    return np.column_stack(parts).astype(float)


def section(shared: Path, runs: int) -> tuple[list[Table], list[Check], dict[str, Any]]:
    """Tables, goals, and the figures for a machine to read; nothing without the data."""
    data = read(shared)
    if data is None:
        return [], [], {}
    found: dict[str, list[Measured]] = {}
    models: list[dict[str, float]] = []
    for epsilon in EPSILONS:
        for _ in range(runs):
            fit, seconds = released(data, epsilon)
            found.setdefault(f"ours, epsilon {epsilon}", []).append(measured(data, fit, seconds))
            if epsilon == "1" and len(models) < 3 and (one := learned(data, np.column_stack(fit.codes))):
                models.append(one)
    for strategy in ("mst", "aim"):
        found[f"{strategy} on our parts, epsilon 1"] = [measured(data, *released(data, "1", strategy))]
    auc = {name: float(np.mean([one[name] for one in models])) for name in LEARNED} if models else {}
    checks = _goals(found["ours, epsilon 1"], auc)
    return (
        [_table(found, auc)],
        checks,
        {name: [vars(one) for one in many] for name, many in found.items()} | {"auc": auc},
    )


def _table(found: dict[str, list[Measured]], auc: dict[str, float]) -> Table:
    rows = []
    for name, many in found.items():
        three = np.array([one.three for one in many])
        spread = f" ± {three.std():.4f}" if len(many) > 1 else ""
        others = [float(np.mean([getattr(one, part) for one in many])) for part in ("pairs", "largest", "unmeasured")]
        seconds = float(np.mean([one.seconds for one in many]))
        rows.append([name, f"{three.mean():.4f}{spread}", *(f"{one:.4f}" for one in others), f"{seconds:.1f}"])
    for name, (error, taken) in PUBLISHED.items():
        rows.append([f"published {name}, epsilon 1", f"{error:.4f}", "", "", "", "" if taken is None else f"{taken:g}"])
    header = ["Adult", "64 three-way tables", "91 pairs", "largest pair", "largest not measured", "CPU s"]
    note = "; ".join(f"{name} AUC {value:.3f}" for name, value in auc.items())
    missing = "scikit-learn is not installed, so no model is trained on the rows."
    return Table(
        "Synthetic rows, mean total variation",
        header,
        rows,
        f"Trained on rows, tested on data: {note}." if auc else missing,
    )


def _goals(ours: Sequence[Measured], auc: dict[str, float]) -> list[Check]:
    means = {name: float(np.mean([getattr(one, name) for one in ours])) for name in GOALS}
    what = {
        "three": "synthetic rows, 64 three-way tables, epsilon 1",
        "pairs": "synthetic rows, 91 pairs, epsilon 1",
        "largest": "synthetic rows, largest error of a pair, epsilon 1",
        "seconds": "synthetic rows, CPU seconds, epsilon 1",
    }
    checks = [Check(what[name], means[name], at_most=most, unit="") for name, most in GOALS.items()]
    return checks + [
        Check(f"AUC, {name}", auc[name], at_least=least, unit="") for name, least in LEARNED.items() if auc
    ]
