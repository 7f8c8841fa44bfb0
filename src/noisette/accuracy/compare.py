"""Which mechanism errs least on a workload, at one guarantee."""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from typing import Any, Literal, TypeAlias

from noisette.accuracy.error import error_law, largest_error
from noisette.errors import InputError
from noisette.exact.number import Number, level_of, positive, whole
from noisette.laws import DiscreteLaplace, DiscreteStaircase, NormBall
from noisette.mechanisms.calibration import calibrate
from noisette.mechanisms.catalogue import mechanisms
from noisette.mechanisms.contract import Output, Probabilities
from noisette.privacy import ZCDP, Approx, Neighbours, Promise, Pure, Spend, as_promise, sensitivity
from noisette.privacy.columns import Matrix
from noisette.privacy.sensitivity import Sensitivity
from noisette.text import as_html, as_text

__all__ = ["Compared", "Comparison", "Setting", "candidates", "compare", "same_law"]


Column: TypeAlias = Literal["largest", "half_width", "sd"]
COLUMNS: dict[str, str] = {"sd": "sd", "half_width": "one answer ±", "largest": "all answers ±"}


# The candidates: every mechanism for numbers, and every one for vectors in each norm; one that does not apply says why


_NORMS = {1: "l1", 2: "l2", math.inf: "l∞"}


@dataclass(frozen=True)
class Setting:
    """What is to be released: a workload's sensitivity, its number of answers, the grid, the level of the errors."""

    workload: Sensitivity
    answers: int
    grid: Fraction | None
    level: float


@cache
def candidates() -> dict[str, Callable[[Setting, Promise], Any]]:
    """Return by name what makes a mechanism for a task and a promise.

    >>> list(candidates())
    ['Gaussian', 'Geometric', 'Laplace', 'Staircase', 'KNorm l1', 'KNorm l2', 'KNorm l∞']
    """
    found = mechanisms().values()
    numbers = {kind.__name__: partial(_numbers, kind) for kind in found if kind.kind is Output.NUMBERS}
    vectors = {
        f"{kind.__name__} {name}": partial(_vector, kind, norm)
        for kind in found
        if kind.kind is Output.VECTOR
        for norm, name in _NORMS.items()
    }
    return {**numbers, **vectors}


def _numbers(kind: Any, task: Setting, promise: Promise) -> Any:
    if "grid" in inspect.signature(kind.calibrated).parameters:
        return calibrate(kind, promise, sensitivity=task.workload, grid=task.grid)
    if task.grid != 1:
        raise InputError("For whole numbers only: pass grid=1 if the answers are.")
    return calibrate(kind, promise, sensitivity=task.workload)


def _vector(kind: Any, norm: float, task: Setting, promise: Promise) -> Any:
    return calibrate(kind, promise, sensitivity=task.workload, norm=norm, dimension=task.answers, grid=task.grid)


def same_law(a: Any, b: Any) -> bool:
    """Tell whether the noise of two mechanisms has the same law, up to the fineness of their lattices.

    >>> from noisette.mechanisms import Geometric, KNorm, Laplace
    >>> same_law(Laplace(2), KNorm(1, 2, dimension=5)), same_law(Geometric(2), Laplace(2))
    (True, False)
    """
    return _shape(a) == _shape(b)


def _shape(m: Any) -> tuple[Any, ...]:
    step = m.step if m.kind is Output.VECTOR else m.grid
    match m.law:
        case DiscreteLaplace(scale=scale):
            return _laplace(scale * step, m.grid)
        case NormBall(norm=norm, scale=scale, dimension=dimension) if norm == 1 or dimension == 1:
            return _laplace(scale * step, m.grid)
        case DiscreteStaircase(epsilon=epsilon, width=1):
            return _laplace(step / epsilon, m.grid)
        case law:
            return type(m), law, step


def _laplace(scale: Fraction, grid: Fraction) -> tuple[Any, ...]:
    return DiscreteLaplace, float(f"{float(scale):.6g}"), grid == 1


@dataclass(frozen=True)
class Compared:
    """One calibrated mechanism and its errors: of one answer (sd, half-width) and the largest of all."""

    name: str
    mechanism: Probabilities
    sd: float
    half_width: float
    largest: float


@dataclass(frozen=True)
class Comparison:
    """Mechanisms ranked by their error at one guarantee, and those that do not apply, with the reason.

    Print it, show it in a notebook, or draw it against epsilon with `noisette.charts.error(comparison)`.
    """

    task: Setting
    guarantee: Promise
    by: Column
    rows: tuple[Compared, ...]
    refused: tuple[tuple[str, str], ...]

    @property
    def best(self) -> Compared:
        """The row with the least error."""
        return self.rows[0]

    @property
    def budget(self) -> Fraction:
        """The guarantee's epsilon, or rho under zCDP."""
        return self.guarantee.size

    def curve(self, name: str, budgets: list[float]) -> list[float]:
        """Return the ranking's error of one mechanism at other epsilons (or rhos); NaN where it refuses.

        >>> c = compare(sensitivity.counts(20), 1, answers=20)
        >>> [round(error, 2) for error in c.curve("KNorm l∞", [1, 2])]
        [27.88, 13.94]
        """
        return [self._error(name, _at(self.guarantee, budget)) for budget in budgets]

    def _error(self, name: str, promise: Promise) -> float:
        try:
            return _measure(candidates()[name](self.task, promise), self.task, self.by)
        except InputError:
            return math.nan

    @property
    def _cells(self) -> tuple[str, list[str], list[list[str]], list[str]]:
        task = self.task
        number = f"{task.answers:,} answers" if task.answers > 1 else "1 answer"
        title = f"{number}, {self.guarantee}, errors at {100 * task.level:g} %"
        rows = [[row.name, *(_digits(getattr(row, column)) for column in COLUMNS)] for row in self.rows]
        return title, ["mechanism", *COLUMNS.values()], rows, [f"{name}: {why}" for name, why in self.refused]

    def __str__(self) -> str:
        return as_text(*self._cells)

    def _repr_html_(self) -> str:
        return as_html(*self._cells)


def compare(
    workload: Sensitivity | Matrix,
    guarantee: Spend,
    *,
    answers: int | None = None,
    grid: Number | None = None,
    level: float = 0.95,
    by: Column = "largest",
) -> Comparison:
    """Rank the mechanisms for a workload by their error at a guarantee; nothing is released.

    The workload is a `Sensitivity` with the number of answers, or a matrix (queries x cells of a histogram; neighbours
    as the guarantee says, else add/remove). `grid=1` says that all answers are whole numbers. Rank `by` the largest
    error of all answers, the half-width of one, or its sd.

    Laplace noise grows with l1, Gaussian with l2, l∞-norm noise with linf and the number of answers; staircase noise
    divides epsilon by l0.

    >>> print(compare(sensitivity.counts(20), Approx(1, "1e-6"), answers=20))
    20 answers, (1, 1e-06)-DP, errors at 95 %
    mechanism     sd  one answer ±  all answers ±
    KNorm l∞   12.41         22.02          27.88
    Gaussian   18.89         37.03          56.98
    KNorm l2   20.49         40.59          65.97
    Staircase  28.28         59.91          119.3
    Laplace    28.28         59.91          119.3
    Geometric: For whole numbers only: pass grid=1 if the answers are.
    KNorm l1: The same law as Laplace.
    """
    promise = as_promise(guarantee, "guarantee")
    task = _task(workload, promise, answers, grid, level)
    if by not in COLUMNS:
        raise InputError(f"by must be one of {', '.join(COLUMNS)}.")
    rows: list[Compared] = []
    refused: list[tuple[str, str]] = []
    for name, make in candidates().items():
        try:
            made = make(task, promise)
            twin = next((row.name for row in rows if same_law(row.mechanism, made)), None)
            if twin:
                raise InputError(f"The same law as {twin}.")
            rows.append(Compared(name, made, *(_measure(made, task, column) for column in COLUMNS)))
        except InputError as reason:
            refused.append((name, str(reason)))
    if not rows:
        raise InputError(f"No mechanism keeps this guarantee for this workload: {refused[0][1]}")
    return Comparison(task, promise, by, tuple(sorted(rows, key=lambda row: float(getattr(row, by)))), tuple(refused))


def _task(workload: Any, promise: Promise, answers: int | None, grid: Number | None, level: float) -> Setting:
    if isinstance(workload, Sensitivity):
        if answers is None:
            raise InputError("A sensitivity does not say how many answers there are: pass answers=….")
        moves, number = workload, whole(answers, "answers")
    else:
        moves = sensitivity.workload(workload, neighbours=promise.neighbours or Neighbours.ADD_REMOVE)
        number = len(workload)
        if answers not in (None, number):
            raise InputError("A matrix has one answer for each row: leave `answers` out.")
    if moves.l0 > number:
        moves = Sensitivity(moves.l1, moves.l2_squared, moves.linf, number, neighbours=moves.neighbours)
    return Setting(moves, number, None if grid is None else positive(grid, "grid"), level_of(level))


def _measure(m: Probabilities, task: Setting, column: str) -> float:
    match column:
        case "sd":
            return math.sqrt(m.variance())
        case "half_width":
            return error_law(m, answers=task.answers).half_width(task.level)
        case _:
            return largest_error(m, task.answers, level=task.level)


def _digits(value: float) -> str:
    """Four digits, or all of those before the point."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _at(guarantee: Promise, budget: float) -> Promise:
    """The same guarantee with another epsilon (or rho)."""
    match guarantee:
        case Pure():
            return Pure(budget, neighbours=guarantee.neighbours)
        case Approx():
            return Approx(budget, guarantee.delta, neighbours=guarantee.neighbours)
        case ZCDP():
            return ZCDP(budget, neighbours=guarantee.neighbours)
