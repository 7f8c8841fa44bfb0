"""One row for each class that keeps a state: how its events look, and which part of what it states is reached.

A row is a name and a function that yields what is found of all short histories; `reached` is the part of the stated
guarantee that these histories are known to use (with longer ones it may be more). `slow` ones run with `make test`.
"""

import datetime
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

import pyarrow
from tests.contracts.states import budgets, clients, counters, holdouts, watched
from tests.contracts.states.judging import Found

import noisette as nz
from noisette.holdout.leaderboard import Leaderboard
from noisette.holdout.reusable import ReusableHoldout
from noisette.holdout.thresholdout import Thresholdout
from noisette.ledger import Memory
from noisette.ledger.book import Book
from noisette.local import GRR
from noisette.local.memo import Memo
from noisette.local.rappor import Rappor
from noisette.mechanisms import AboveThreshold, Geometric, NumericSparse, Sparse, SparseVector
from noisette.privacy import ZCDP, Approx, Filter, Neighbours, Odometer, Pure
from noisette.privacy.sensitivity import Sensitivity
from noisette.questions import above, oracle, stream
from noisette.releases.streams.alarms import Alarm
from noisette.releases.streams.buffered import BufferedCounter
from noisette.releases.streams.opening import OpeningCounter
from noisette.releases.streams.pan_private import PanPrivateDensity
from noisette.releases.streams.participation import Participation
from noisette.releases.streams.square_root import SquareRootCounter
from noisette.releases.streams.tree_counter import TreeCounter
from noisette.releases.streams.windows import SlidingWindow

ADD, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
ROOT, BUFFERS = ZCDP("1/2"), Approx(1, "1e-6")
TWICE, APART = Participation(2), Participation(2, apart=2)
BOTH = Participation(2, groups=2, taken=1)


@dataclass(frozen=True)
class Row:
    """How the events of one class look."""

    found: Callable[[], Iterator[Found]]
    reached: float
    slow: bool = False


@cache
def schema() -> Any:
    """A table of days and of one column with three values."""
    day = datetime.date(2026, 1, 1)
    rules = {"columns": {"k": {"bounds": [0, 2], "nullable": False}}}
    table = pyarrow.table({"k": [0, 1, 2], "day": [day] * 3})
    return nz.open({"t": table}, budget=9, policy={"tables": {"t": rules}}).schema


def pure(*costs: str) -> list[Pure]:
    """Costs to choose from."""
    return [Pure(cost) for cost in costs]


def held(positives: int = 1, grid: int = 1, quiet: int = 3, **terms: Any) -> Thresholdout:
    """The mechanism of a holdout of two records, with little noise."""
    comparing = SparseVector(Fraction(grid, 2 * quiet), Fraction(grid, quiet), positives=positives)
    return Thresholdout(comparing, records=2, threshold="1/2", grid=grid, **terms)


def days(spend: Any, neighbours: Neighbours, **terms: Any) -> Any:
    """A stream of three days."""
    asked = stream.Stream("day", since="2026-01-01", until="2026-01-04", every="1 day", **terms)
    return asked.stream(schema(), spend, neighbours)


def density(epsilon: Any, release_epsilon: Any = 1) -> PanPrivateDensity:
    """The state of one person."""
    return PanPrivateDensity(1, epsilon=epsilon, release_epsilon=release_epsilon)


def tree(neighbours: Neighbours = ADD, **terms: Any) -> TreeCounter:
    """Sums of four steps."""
    return TreeCounter.calibrated(1, horizon=4, neighbours=neighbours, **terms)


ROWS: dict[type, dict[str, Row]] = {
    PanPrivateDensity: {
        "default": Row(lambda: watched.pan_private(density("1/10")), 0.9999),
        "loud": Row(lambda: watched.pan_private(density(1, 10)), 0.9999),
        "quiet": Row(lambda: watched.pan_private(density(1, "1/4")), 0.9999),
        "even": Row(lambda: watched.pan_private(density("1/2", 2)), 0.9999),
        "near": Row(lambda: watched.pan_private(density(1, 3)), 0.9999),
        "releases alone": Row(lambda: watched.pan_private(density(20, 2), letters="AR", longest=4), 0.999),
    },
    Alarm: {
        "add": Row(lambda: watched.alarm(Alarm.calibrated(12, drift=1, threshold=2)), 0.99),
        "replace": Row(lambda: watched.alarm(Alarm.calibrated(12, drift=1, threshold=2, neighbours=REPLACE)), 0.49, True),
        "two events": Row(lambda: watched.alarm(Alarm.calibrated(12, drift=1, threshold=2, events=2), events=2), 0.74, True),
    },
    SparseVector: {
        "one": Row(lambda: watched.sparse(SparseVector("1/4", "1/4")), 0.9999),
        "two": Row(lambda: watched.sparse(SparseVector("1/2", "1/2", positives=2)), 0.9999, True),
        "monotone": Row(lambda: watched.sparse(SparseVector("1/4", "1/4", positives=2, monotone=True)), 0.99, True),
    },
    AboveThreshold: {"one": Row(lambda: watched.sparse(AboveThreshold("1/8"), 2), 0.49)},
    Sparse: {
        "one": Row(lambda: watched.sparse(Sparse("1/8", positives=1), 2), 0.49),
        "two": Row(lambda: watched.sparse(Sparse("1/4", positives=2), 3), 0.37, True),
    },
    NumericSparse: {"one": Row(lambda: watched.sparse(NumericSparse("1/8", value_scale="1/6", positives=1), 1), 0.45)},
    above.Watching: {
        f"{of}, {neighbours}": Row(lambda of=of, n=neighbours: watched.above(above.Above(2, of=of).stream({}, Pure(12), n)), 0.9)
        for of in ("counts", "numbers") for neighbours in Neighbours
    },
    oracle.Consulting: {
        "known total": Row(lambda: holdouts.oracle(consulting(16, ADD, total=3), asked=1), 0.99),
        "counted": Row(lambda: holdouts.oracle(consulting(20, ADD), asked=1), 0.8, True),
        "replace": Row(lambda: holdouts.oracle(consulting(16, REPLACE, total=3)), 0.99, True),
    },
    ReusableHoldout: {
        "one question": Row(lambda: holdouts.reusable(held(quiet=5), asked=1), 0.99),
        "two questions": Row(lambda: holdouts.reusable(held()), 0.99, True),
        "two answers": Row(lambda: holdouts.reusable(held(2)), 0.6, True),
        "a function": Row(lambda: holdouts.reusable(held(grid=2), asked=1), 0.49, True),
    },
    Leaderboard: {
        "one leader": Row(lambda: holdouts.leaderboard(held(one_sided=True)), 0.99),
        "two leaders": Row(lambda: holdouts.leaderboard(held(2, one_sided=True)), 0.66, True),
    },
    TreeCounter: {
        "one event": Row(lambda: counters.counter(tree()), 0.9999),
        "replace": Row(lambda: counters.counter(tree(REPLACE, fan=2)), 0.9999),
        "two keys": Row(lambda: counters.counter(tree(fan=2, who=Participation(2, groups=2)), 3, 2), 0.9999),
        "taken": Row(lambda: counters.counter(tree(REPLACE, fan=3, who=Participation(2, taken=1)), 3), 0.5, True),
    },
    SquareRootCounter: {
        **{str(n): Row(lambda n=n: counters.counter(SquareRootCounter.calibrated(ROOT, horizon=4, neighbours=n)), 0.76) for n in Neighbours},
        "apart": Row(lambda: counters.counter(SquareRootCounter.calibrated(ROOT, horizon=4, who=APART)), 0.9999),
        "both ways": Row(lambda: counters.counter(SquareRootCounter.calibrated(ROOT, horizon=4, who=BOTH), 3, 2), 0.84, True),
    },
    BufferedCounter: {
        **{str(n): Row(lambda n=n: counters.counter(BufferedCounter.calibrated(BUFFERS, horizon=4, neighbours=n)), 0.78, n is ADD) for n in Neighbours},
        "fading": Row(lambda: counters.counter(BufferedCounter.calibrated(BUFFERS, horizon=4, who=TWICE, half_life=2)), 0.9999, True),
        "apart": Row(lambda: counters.counter(BufferedCounter.calibrated(BUFFERS, horizon=4, who=APART)), 0.9999, True),
    },
    SlidingWindow: {
        **{f"tree, {n}": Row(lambda n=n: counters.window(SlidingWindow(TreeCounter.calibrated(1, horizon=2, who=TWICE, neighbours=n))), 0.9999, n is REPLACE) for n in Neighbours},
        **{f"buffers, {n}": Row(lambda n=n: counters.window(SlidingWindow(BufferedCounter.calibrated(BUFFERS, horizon=2, who=TWICE, neighbours=n))), 0.9999, n is REPLACE) for n in Neighbours},
    },
    OpeningCounter: {
        str(n): Row(lambda n=n: counters.opening(OpeningCounter.calibrated(BUFFERS, horizon=2, who=TWICE, neighbours=n)), 0.96, n is REPLACE) for n in Neighbours
    },
    stream.Publishing: {
        "buffers": Row(lambda: counters.publishing(days(BUFFERS, ADD)), 0.9999, True),
        "tree": Row(lambda: counters.publishing(days(Pure(1), ADD, events=2), steps=2), 0.9999),
        "replace": Row(lambda: counters.publishing(days(Pure(1), REPLACE, events=2)), 0.5, True),
    },
    Filter: {
        "pure": Row(lambda: budgets.filtered(Filter, Pure(1), pure("0.4", "0.3")), 0.9999),
        "zcdp": Row(lambda: budgets.filtered(Filter, ZCDP("0.3"), pure("0.3", "0.6")), 0.88),
        "approx": Row(lambda: budgets.filtered(Filter, Approx(1, "0.1"), pure("0.3", "0.6", "0.9"), reserve=0), 0.2),
        "both": Row(lambda: budgets.filtered(Filter, Approx(1, "0.1"), pure("0.2", "0.6"), rule="both"), 0.3, True),
        "own deltas": Row(lambda: budgets.filtered(Filter, Approx(1, "0.1"), [Approx("0.4", "0.02"), *pure("0.3")], reserve="0.05"), 0.3),
    },
    Odometer: {
        "many": Row(lambda: budgets.metered(Odometer("0.3", first="0.3"), pure("0.3", "0.5"), 20), 0.3, True),
        "own deltas": Row(lambda: budgets.metered(Odometer("0.1", reserve="0.1"), [Approx("0.3", "0.02"), Approx("0.1", "0.01")], 5), 0.96),
    },
    Memory: {
        "pure": Row(lambda: budgets.in_memory(Memory, Pure(1), pure("0.4", "0.3")), 0.9999),
        "approx": Row(lambda: budgets.in_memory(Memory, Approx(1, "0.1"), pure("0.4", "0.3")), 0.2, True),
    },
    Book: {"pure": Row(lambda: budgets.on_disk(Pure(1), pure("0.4", "0.6")), 0.9999)},
    Memo: {
        "two values": Row(lambda: clients.memo(Memo(GRR(1, domain=3), most=2)), 0.9999),
        "one value": Row(lambda: clients.memo(Memo(GRR("1/2", domain=2), most=1)), 0.9999),
    },
    Rappor: {"one hash": Row(lambda: clients.rappor(Rappor(f="1/2", p="1/2", q="3/4", domain=2, length=3, hashes=1)), 0.9999)},
}  # fmt: skip


def consulting(spend: int, neighbours: Neighbours, **terms: Any) -> Any:
    """An oracle with one update."""
    asked = oracle.Oracle("k", updates=1, threshold=1, **terms)
    return asked.stream(schema(), Pure(spend), neighbours)


# Twins: each is convicted by the adapter of its class


def forgotten_level() -> TreeCounter:
    """It states the move of one level less."""
    made = tree(fan=2)
    moved = Sensitivity(made.levels - 1, made.levels - 1, 1, made.levels - 1, neighbours=ADD)
    return replace(made, moved=moved)


def mistaken_relation(made: Any) -> Any:
    """It takes what is moved under add/remove for what is moved under replace."""
    s = made.moved
    return replace(made, moved=Sensitivity(s.l1, s.l2_squared, s.linf, s.l0, neighbours=REPLACE))


def low_threshold() -> OpeningCounter:
    """Its keys open a little too soon."""
    made = OpeningCounter.calibrated(BUFFERS, horizon=2, who=TWICE)
    return replace(made, threshold=made.threshold * 3 // 4)


def added_up() -> Iterator[Found]:
    """A stream that takes all rows so far for those that came in a step."""
    offer = days(Pure(1), ADD)
    return counters.publishing(offer, replace(offer.machine, pushed=True))


def with_values(cls: type) -> Any:
    """A sparse vector that releases values."""
    return cls("1/5", value_scale="1/16", positives=1)


TWINS: dict[str, Callable[[], Iterator[Found]]] = {
    "a release counts no more than the state": lambda: watched.pan_private(watched.SmallerOfBoth(1, epsilon="1/10"), "AIR", 4),
    "a bit that only remembers": lambda: watched.pan_private(watched.Remembering(1, epsilon="1/10"), longest=2),
    "an alarm that keeps its threshold": lambda: watched.alarm(twin_alarm(), numbers=(4,), steps=4),
    "a sparse vector that states one positive and gives two": lambda: watched.sparse(watched.Endless("1/4", "1/4", positives=2)),
    "values that are not charged": lambda: watched.sparse(with_values(watched.Unpaid), 1, heights=(1,)),
    "a forgotten level": lambda: counters.counter(forgotten_level()),
    "a tree that takes replace for add/remove": lambda: counters.counter(mistaken_relation(tree(fan=2))),
    "a square root that does": lambda: counters.counter(mistaken_relation(SquareRootCounter.calibrated(ROOT, horizon=4))),
    "buffers that do": lambda: counters.counter(mistaken_relation(BufferedCounter.calibrated(BUFFERS, horizon=4))),
    "a window for one event where there are two": lambda: counters.window(SlidingWindow(replace(tree(), who=TWICE))),
    "keys that open too soon": lambda: counters.opening(low_threshold()),
    "rows so far that are added up": added_up,
    "a filter that forgets a charge": lambda: budgets.filtered(budgets.Forgets, Pure(1), pure("0.4", "0.3")),
    "an odometer that rounds down": lambda: budgets.metered(budgets.RoundsDown("1e-3"), pure("0.35"), 2),
    "a ledger that forgets small charges": lambda: budgets.in_memory(budgets.Forgetful, Pure(1), pure("0.4", "0.3")),
    "a device that draws anew": lambda: clients.memo(clients.Fresh(GRR(1, domain=3), most=2), 2),
    "permanent bits that are drawn anew": lambda: clients.rappor(clients.Redraws(f="1/2", p="1/2", q="3/4", domain=2, length=3, hashes=1), days=5, shown=False),
    "a holdout that does not count its answers": lambda: holdouts.reusable(held(quiet=5), holdouts.Uncounted, only=1),
}  # fmt: skip


def twin_alarm() -> Alarm:
    """It goes on with one threshold."""
    return watched.OneThreshold(**vars(Alarm.calibrated(12, drift=1, threshold=2)))
