"""The tour as values: attack, ask, spend all of the budget, be refused.

The truth about the made-up data is read past the curator: nobody is behind these rows, so it may be shown.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from noisette.answers import Column, Release, check
from noisette.attacks import guessing_ceiling
from noisette.cli.demo.questions import LAST, MONTHS, QUESTIONS, TARGET, TOO_MUCH, Question
from noisette.curator import Curator
from noisette.curator.demo import CITY, OLDEST, TOUR, city, homes, tables
from noisette.curator.described import described_data
from noisette.errors import BudgetError
from noisette.ledger import Book, Entry, open_ledger
from noisette.privacy import Approx, Promise, Pure
from noisette.questions import Map

if TYPE_CHECKING:
    import pyarrow

__all__ = [
    "AGAIN",
    "ALL",
    "LARGE",
    "OTHERS",
    "SMALL",
    "SPEND",
    "Answer",
    "Attack",
    "CityMaps",
    "Counts",
    "Tour",
    "Truth",
    "attacked",
    "mapped",
    "toured",
]


class Truth:
    """Answers without noise, for invented data alone; a curator has no such thing."""

    def __init__(self, tables: dict[str, "pyarrow.Table"]) -> None:
        import duckdb

        self._engine = duckdb.connect()
        for name, table in tables.items():
            self._engine.register(name, table)

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """The true answer, row by row."""
        found: list[dict[str, Any]] = self._engine.sql(sql).to_arrow_table().to_pylist()
        return found

    def of(self, answer: Release, sql: str) -> dict[str, NDArray[np.float64]]:
        """The true number for each number of an answer; groups that are not there count 0."""
        keys = [column.name for column in answer.columns if not column.measured]
        known = {tuple(row[key] for key in keys): row for row in self.rows(sql)}
        groups = list(zip(*(answer[key].values.to_pylist() for key in keys), strict=True)) or [()] * len(answer)
        return {
            column.name: np.array([float(known.get(group, {}).get(column.name, 0)) for group in groups])
            for column in answer.columns
            if column.measured
        }

    def close(self) -> None:
        """Let go of the tables."""
        self._engine.close()


def held(column: Column, truth: NDArray[np.float64]) -> int:
    """How many error bars hold the truth."""
    assert column.low is not None
    assert column.high is not None
    return int(np.sum((column.low <= truth) & (truth <= column.high)))


# The differencing attack: two harmless counts, one with a person and one without


ALL = "SELECT count(*) AS n FROM visits WHERE diagnosis = 'depression'"
OTHERS = f"{ALL} AND age <> {OLDEST}"
SPEND = Pure("0.1")
AGAIN = 20


@dataclass(frozen=True)
class Counts:
    """Two answers, and how far each may be off."""

    everyone: float
    others: float
    error: float = 0.0

    @property
    def difference(self) -> float:
        """What the attacker concludes about the one person."""
        return self.everyone - self.others

    @property
    def doubt(self) -> float:
        """How far off that may be: the errors of two independent answers together."""
        return math.sqrt(2) * self.error

    @property
    def texts(self) -> list[str]:
        """Both answers and their difference, with their errors."""
        pairs = (self.everyone, self.error), (self.others, self.error), (self.difference, self.doubt)
        return [f"{number:,.0f}" + (f" ± {error:,.0f}" if error else "") for number, error in pairs]

    def reveals(self, most: float) -> bool:
        """Whether it reveals more than was known before, which is that a person has 0 to `most` visits."""
        return self.doubt < most / 2


@dataclass(frozen=True)
class Attack:
    """What the attacker gets from exact answers and from private ones, and what no attacker can exceed."""

    secret: int
    most: int
    exact: Counts
    private: Counts
    repeated: frozenset[float]
    cost: Pure
    left: tuple[Promise, Promise]

    @property
    def ceiling(self) -> float:
        """How often whoever knows everyone else can at most guess right whether she is treated or not."""
        return float(guessing_ceiling(self.cost.epsilon))


def attacked(data: Curator, truth: Truth) -> Attack:
    """Attack exact answers, then private ones, and ask again and again."""
    everyone, others = (truth.rows(question)[0]["n"] for question in (ALL, OTHERS))
    secret = truth.rows(f"SELECT count(*) AS n FROM visits WHERE diagnosis = 'depression' AND age = {OLDEST}")[0]["n"]
    answers = data.sql(ALL, spend=SPEND), data.sql(OTHERS, spend=SPEND)
    repeated = frozenset(_number(data.sql(ALL, spend=SPEND)) for _ in range(AGAIN))
    most = data.policy.tables["visits"].limits.rows or 0
    private = Counts(_number(answers[0]), _number(answers[1]), max(float(answer["n"].half[0]) for answer in answers))
    left = answers[0].left, answers[1].left
    return Attack(int(secret), most, Counts(everyone, others), private, repeated, Pure(2 * SPEND.epsilon), left)


def _number(answer: Release) -> float:
    return float(answer["n"].values[0].as_py())


# The tour


LARGE, SMALL = 65_000, 6_500  # patients
_CELLS = 64  # of a map, along each axis

Progress = Callable[[str], None]
_EPSILONS = [2.0**i for i in range(-5, 3)]
_LINES = {
    "a patient counts up to 16 times": "SELECT ward, count(*) AS n FROM visits GROUP BY ward",
    "a patient counts once": "SELECT count(DISTINCT patient_id) AS n FROM visits",
}


@dataclass(frozen=True)
class Answer:
    """What was asked and given, and the truth, which may be shown since the data is invented."""

    question: Question
    sql: str
    release: Release
    truth: dict[str, NDArray[np.float64]]

    @property
    def bars(self) -> tuple[int, int]:
        """How many error bars hold the truth, and how many there are."""
        right = sum(held(self.release[name], true) for name, true in self.truth.items())
        return right, len(self.truth) * len(self.release)


@dataclass
class Tour:
    """All that happened."""

    patients: int
    rows: int
    facts: dict[str, Any]
    attack: Attack
    explained: str = ""
    answers: list[Answer] = field(default_factory=list)
    left: list[tuple[str, Fraction]] = field(default_factory=list)
    curves: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    hidden: dict[str, int] = field(default_factory=dict)
    refusals: list[str] = field(default_factory=list)
    entries: tuple[Entry, ...] = ()
    head: str = ""
    checked: int = 0
    maps: "CityMaps | None" = None
    budget: Promise = field(default_factory=lambda: Pure(1))

    @property
    def bars(self) -> tuple[int, int]:
        """How many error bars of all answers hold the truth, and how many there are."""
        right, bars = zip(*(answer.bars for answer in self.answers), strict=True)
        return sum(right), sum(bars)

    @property
    def seen(self) -> dict[str, list[tuple[float, float]]]:
        """The errors of counts, by how often a patient counts: (epsilon, error)."""
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in self.curves}
        for answer in self.answers:
            for name in answer.truth.keys() & {"visits", "patients"}:
                curve = list(found)[0 if len(answer.release) > 1 else 1]
                given = answer.release[name].values.to_numpy(zero_copy_only=False)
                if len(answer.question.sql) == 1:
                    found[curve] += [(float(_eps(answer.question.spend)), abs(e)) for e in given - answer.truth[name]]
        return found


@dataclass(frozen=True)
class CityMaps:
    """A map of where invented people live, and how many there truly are in each of its cells."""

    people: int
    release: Release
    truth: NDArray[np.float64]


def mapped(people: int) -> CityMaps:
    """Ask for a map of a made-up city, whose data have a budget of their own."""
    west, south, east, north = CITY
    lon, lat = (homes(people).column(name).to_numpy() for name in ("lon", "lat"))
    truth = np.histogram2d(lon, lat, bins=_CELLS, range=((west, east), (south, north)))[0]
    return CityMaps(people, city(1, people).ask(Map("lon", "lat", cells=_CELLS), spend=1), truth)


def toured(patients: int = LARGE, progress: Progress = lambda step: None) -> Tour:
    """Make the hospital, open it in a folder that is gone afterwards, and take the tour; `progress` hears each step."""
    progress("Making up a hospital")
    made = tables(patients)
    truth = Truth(made)
    with TemporaryDirectory(prefix="noisette-demo-") as folder:
        progress("Opening it")
        data = _opened(made, Path(folder))
        assert isinstance(data.ledger, Book)
        try:
            tour = _tour(data, truth, data.ledger, progress)
        finally:
            data.ledger.close()
            truth.close()
    progress("Drawing a map")
    tour.maps = mapped(patients)
    return tour


def _opened(made: dict[str, "pyarrow.Table"], folder: Path) -> Curator:
    import pyarrow.parquet

    files = {name: folder / f"{name}.parquet" for name in made}
    for name, table in made.items():
        pyarrow.parquet.write_table(table, files[name])
    found = described_data(files, policy=TOUR)
    ledger = open_ledger(folder / "visits.ledger", budget=found.policy.budget, data=found.fingerprints)
    return found.curator(ledger)  # unlike `open`, this leaves nothing in the user's state folder


def _tour(data: Curator, truth: Truth, ledger: Book, progress: Progress) -> Tour:
    facts = _facts(truth)
    progress("Attacking it")
    tour = Tour(facts["patients"], facts["visits"], facts, attacked(data, truth), budget=ledger.budget)
    tour.left.append(("nothing yet", _eps(ledger.budget)))
    names = "The attack: everyone", "The attack: everyone but her"
    tour.left += [(name, _eps(left)) for name, left in zip(names, tour.attack.left, strict=True)]
    for question in QUESTIONS:
        progress(question.title)
        _ask(tour, data, truth, question)
    tour.hidden = _hidden(tour, truth)
    progress(MONTHS.title)
    explained = data.explain(MONTHS.sql[0], error=TARGET)
    tour.explained = str(explained)
    _ask(tour, data, truth, Question(MONTHS.title, MONTHS.text, MONTHS.sql, explained.spend, MONTHS.chart))
    progress("Error against epsilon")
    tour.curves = {name: [(e, data.explain(sql, spend=e).error) for e in _EPSILONS] for name, sql in _LINES.items()}
    progress("Spending the rest")
    _spend_the_rest(tour, data, truth)
    tour.entries, tour.head, tour.checked = ledger.entries, str(ledger.verify()), ledger.check()
    return tour


def _facts(truth: Truth) -> dict[str, Any]:
    """Of the made-up data itself."""
    limit, bound = TOUR["tables"]["visits"]["rows"], TOUR["tables"]["visits"]["columns"]["cost"]["bounds"][1]
    return truth.rows(
        "SELECT count(*) AS patients, sum(n)::BIGINT AS visits, max(n) AS most, "
        f"sum(greatest(n - {limit}, 0))::BIGINT AS beyond, sum(clamped)::BIGINT AS clamped FROM "
        f"(SELECT count(*) AS n, count(*) FILTER (cost > {bound}) AS clamped FROM visits GROUP BY patient_id)"
    )[0]


def _ask(tour: Tour, data: Curator, truth: Truth, question: Question) -> None:
    """Ask, check the record of each answer against the ledger, and put the truth beside it."""
    ledger = data.ledger
    assert isinstance(ledger, Book)
    for sql, release in zip(question.sql, data.ask(list(question.sql), spend=question.spend), strict=True):
        check(release.to_json(), ledger=ledger)
        tour.answers.append(Answer(question, sql, release, truth.of(release, sql)))
    tour.left.append((question.title, _eps(data.budget.left)))


def _hidden(tour: Tour, truth: Truth) -> dict[str, int]:
    """Diagnoses that were not released, and how many patients have them, the rarest first."""
    asked = next(answer for answer in tour.answers if answer.release.columns[0].name == "diagnosis")
    released = set(asked.release["diagnosis"].values.to_pylist())
    known = {row["diagnosis"]: row["patients"] for row in truth.rows(asked.sql) if row["diagnosis"] not in released}
    return dict(sorted(known.items(), key=lambda item: item[1]))


def _spend_the_rest(tour: Tour, data: Curator, truth: Truth) -> None:
    """Ask for more than is left, then for all that is left, then for a little more."""
    _refused(tour, data, TOO_MUCH, Pure(1))
    rest = Question(
        "The last of the budget", "What is left is spent on one more count.", (LAST,), Pure(tour.left[-1][1])
    )
    _ask(tour, data, truth, rest)
    _refused(tour, data, TOO_MUCH, Pure("0.01"))


def _refused(tour: Tour, data: Curator, sql: str, spend: Promise) -> None:
    try:
        data.sql(sql, spend=spend)
    except BudgetError as refusal:
        tour.refusals.append(str(refusal))


def _eps(promise: Promise) -> Fraction:
    assert isinstance(promise, Pure | Approx)
    return promise.epsilon
