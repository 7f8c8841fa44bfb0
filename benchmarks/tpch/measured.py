"""What one query costs and how far it is off: noise and bias apart, coverage of the bars, CPU over raw DuckDB.

truth      what raw DuckDB answers
limited    the answer at epsilon 1000, with a thousandth of the noise: what limits and bounds leave of the truth
bias       |limited - truth|       noise       |answer - limited|       error       |answer - truth|
All three are medians over true groups (and runs), relative to the truth; a group that is not released is 100 % off.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias, cast

import duckdb
import numpy as np
import pyarrow
from numpy.typing import NDArray

import noisette as nz
from benchmarks.harness import OURS, Bench, Job
from benchmarks.tpch.queries import Shape
from noisette.answers import Column
from noisette.curator.asking import question_of
from noisette.curator.described import Described
from noisette.engines.contract import Draw, Source
from noisette.engines.duckdb.source import DuckDB
from noisette.errors import NoisetteError
from noisette.exact.random import SYSTEM, Random
from noisette.query.measure import Exact, Request
from noisette.query.schema import Schema
from noisette.questions.contract import Offer

RAW, AGAIN = "DuckDB", "other spend"
LEVEL = 0.95
DELTA = "1e-9"
SECRET = bytes(16)
WITHOUT_NOISE = 1000  # the most that every mechanism takes: a thousandth of the noise
SPENDS = (1 + Fraction(i, 10**6) for i in count())  # every one is new: the same question for the same spend is free

Groups: TypeAlias = dict[tuple[Any, ...], int]


class Remembered:
    """A source that computes each exact answer once, since many runs add noise to the same one."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._found: dict[Request, Exact] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def aggregate(self, request: Request, schema: Schema, secret: bytes) -> Exact:
        """The exact measures, computed the first time."""
        if request not in self._found:
            self._found[request] = self._source.aggregate(request, schema, secret)
        return self._found[request]

    def release(self, request: Request, draw: Draw[Any], schema: Schema, secret: bytes, rng: Random = SYSTEM) -> Any:
        """Apply a draw to them."""
        return draw(self.aggregate(request, schema, secret), rng)


@dataclass(frozen=True)
class Errors:
    """How far one column is off, relative to the truth; `held` and `held_limited`: bars with the number in them."""

    column: str
    error: float
    noise: float
    bias: float
    held: float
    held_limited: float


@dataclass
class Measured:
    """One query at one scale; `refused` is why there is no answer. `cpu` and `again` are ratios to raw DuckDB."""

    name: str
    scale: str
    project: str
    groups: int = 0
    lost: float = 0.0
    columns: list[Errors] = field(default_factory=list)
    raw_seconds: float = 0.0
    cpu: float = 0.0
    again: float = 0.0
    refused: str = ""

    @property
    def record(self) -> dict[str, Any]:
        """All of it for the JSON file."""
        return asdict(self)


# Errors


def errors(shape: Shape, data: Described, truth: pyarrow.Table, scale: str, runs: int) -> Measured:
    """Ask a query many times at epsilon 1 and compare; a refusal is a result, too."""
    found = Measured(shape.name, scale, shape.project, len(truth))
    source = cast(Source, Remembered(data.engine))
    try:
        limited = _answers(_offer(shape, data, WITHOUT_NOISE), data, source, 1)[0]
        answers = _answers(_offer(shape, data, 1), data, source, runs)
    except NoisetteError as refusal:
        found.refused = str(refusal)
        return found
    keys = [column.name for column in limited if not column.measured]
    groups = _rows(truth.select(keys).columns, len(truth))
    numbers = [column.name for column in limited if column.measured]
    found.lost = float(np.mean([_lost(answer, groups) for answer in answers]))
    found.columns = [_errors(name, truth, groups, limited, answers) for name in numbers]
    return found


def _offer(shape: Shape, data: Described, epsilon: int) -> Offer:
    spend = nz.Approx(epsilon, DELTA)
    return question_of(shape.sql, data.schema).offer(data.schema, spend, data.policy.neighbours, LEVEL)


def _answers(offer: Offer, data: Described, source: Source, runs: int) -> list[tuple[Column, ...]]:
    return [offer.answers(offer.draw(source, data.schema, SECRET))[0] for _ in range(runs)]


def _rows(columns: Sequence[Any], size: int) -> Groups:
    """Where each group stands, by its keys; a query without keys has one group."""
    values = [column.to_pylist() for column in columns]
    return {tuple(keys[i] for keys in values): i for i in range(size)}


def _places(answer: Sequence[Column], groups: Groups) -> NDArray[np.int64]:
    """Where each true group stands in an answer, -1 if it is not there."""
    size = len(answer[0].values)
    found = _rows([column.values for column in answer if not column.measured], size)
    return np.array([found.get(keys, -1) for keys in groups], np.int64)


def _lost(answer: Sequence[Column], groups: Groups) -> float:
    return float(np.mean(_places(answer, groups) < 0)) if groups else 0.0


def _errors(
    name: str, truth: pyarrow.Table, groups: Groups, limited: Sequence[Column], answers: Sequence[Sequence[Column]]
) -> Errors:
    true = np.array([float(value or 0) for value in truth.column(name).to_pylist()])  # the sum of nothing is NULL
    size = np.where(true == 0, 1, np.abs(true))
    kept, _, _ = _numbers(name, limited, groups)
    drawn, low, high = (np.array(part) for part in zip(*(_numbers(name, a, groups) for a in answers), strict=True))
    there = ~np.isnan(drawn)
    return Errors(
        name,
        error=_median(np.abs(drawn - true) / size),
        noise=_median((np.abs(drawn - kept) / size)[there]),
        bias=_median(np.abs(kept - true) / size),
        held=_share(((low <= true) & (true <= high))[there]),
        held_limited=_share(((low <= kept) & (kept <= high))[there & ~np.isnan(kept)]),
    )


def _numbers(name: str, answer: Sequence[Column], groups: Groups) -> tuple[NDArray[np.float64], ...]:
    """A column of an answer and the ends of its bars, in the order of the true groups; NaN where one is lost."""
    column = next(column for column in answer if column.name == name)
    assert column.low is not None
    assert column.high is not None
    values = np.asarray(column.values.to_numpy(zero_copy_only=False), float)
    at = _places(answer, groups)
    return tuple(np.append(part, np.nan)[at] for part in (values, column.low, column.high))


def _median(errors: NDArray[np.float64]) -> float:
    return float(np.median(np.nan_to_num(errors, nan=1.0))) if errors.size else 1.0


def _share(held: NDArray[np.bool_]) -> float:
    return float(np.mean(held)) if held.size else float("nan")


# CPU


def cpu(bench: Bench, shape: Shape, data: Described, paths: Mapping[str, Path], found: Measured, rounds: int) -> None:
    """Time raw DuckDB, the first answer of an open curator, and the same for another spend, in turn, on one thread."""
    curators = iter([_curator(data, paths) for _ in range(rounds + 1)])
    current: list[nz.Curator] = []

    def first() -> object:
        current[:] = [next(curators)]
        return ask()

    def ask() -> object:
        return current[0].sql(shape.sql, spend=nz.Approx(next(SPENDS), DELTA))

    with duckdb.connect() as connection:
        views(connection, paths)
        jobs = [Job(RAW, lambda: connection.sql(shape.sql).to_arrow_table()), Job(OURS, first), Job(AGAIN, ask)]
        ns = bench.measure(f"{shape.name}, scale {found.scale}", jobs, rounds=rounds)
    found.raw_seconds, found.cpu, found.again = ns[RAW] / 1e9, ns[OURS] / ns[RAW], ns[AGAIN] / ns[RAW]


def _curator(data: Described, paths: Mapping[str, Path]) -> nz.Curator:
    """A curator that has answered nothing yet; what was found out when the data was opened is known already."""
    return nz.Curator(DuckDB(dict(paths), data.schema, threads=1), data.policy, data.schema)


def views(connection: duckdb.DuckDBPyConnection, paths: Mapping[str, Path]) -> None:
    """The tables by their names, on one thread."""
    connection.execute("SET threads = 1")
    for name, path in paths.items():
        connection.execute(f"CREATE VIEW {name} AS FROM '{path}'")
