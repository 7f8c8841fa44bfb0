"""Questions per budget: how many of each kind, with the same error bar, fit into epsilon 5 and delta 1e-6.

A ledger's rule holds for costs that are chosen along the way; the accountants beside it are for costs that are fixed in
advance, which is less to ask. Vocabulary: a `Kind` is a question with its error · `Cost` what one of them takes.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import version

import pyarrow

import noisette as nz
from benchmarks.harness import Bench, Check, Section, Table
from noisette.laws.law import smallest
from noisette.ledger import Memory
from noisette.privacy import Approx, Guarantee, Promise
from noisette.privacy.charges import charge_of
from noisette.privacy.convert import gaussian_delta

BUDGET = Approx(5, "1e-6")
EPSILON, DELTA = 5.0, 1e-6
LEAST = 0.97  # of exact Gaussian composition


@dataclass(frozen=True)
class Kind:
    """A question in SQL and the error bar to keep, at `rows` rows where it depends on them."""

    what: str
    sql: str
    error: float
    rows: int | None = None
    keys_delta: str | None = None


KINDS = [
    Kind("a count", "SELECT count(*) AS n FROM visits", 30),
    Kind("counts by declared keys", "SELECT ward, count(*) AS n FROM visits GROUP BY ward", 30),
    Kind("a sum", "SELECT sum(age) AS s FROM visits", 3000),
    Kind("an average", "SELECT avg(age) AS a FROM visits", 3, 1000),
    Kind("a median (± ranks)", "SELECT median(age) AS m FROM visits", 100),
    Kind("counts by unknown keys", "SELECT name, count(*) AS n FROM visits GROUP BY name", 30, keys_delta="1e-9"),
]
COLUMNS = {
    "age": {"bounds": [0, 100], "nullable": False},
    "ward": {"keys": ["north", "south"], "nullable": False},
    "name": {"nullable": False},
}


def opened(budget: Promise = BUDGET) -> nz.Curator:
    """One row; plans do not depend on it."""
    row = pyarrow.table({"patient": [1], "age": [40], "ward": ["north"], "name": ["ann"]})
    policy = {"tables": {"visits": {"unit": "patient", "rows": 1, "columns": COLUMNS}}}
    return nz.open({"visits": row}, budget=budget, policy=policy)


@dataclass(frozen=True)
class Cost:
    """What one question takes: an epsilon if it is priced alone, and mu^2 if its noise is Gaussian."""

    epsilon: float
    square: float | None


def most(fits: Callable[[int], bool]) -> int:
    """How many fit.

    >>> most(lambda k: k <= 37)
    37
    """
    return smallest(lambda k: not fits(k + 1))


# Accountants: whether k questions of a cost keep the budget


def basic(cost: Cost, k: int) -> bool:
    """Epsilons add up."""
    return k * cost.epsilon <= EPSILON


def advanced(cost: Cost, k: int) -> bool:
    """Dwork, Rothblum and Vadhan 2010."""
    e = cost.epsilon
    return e * math.sqrt(2 * k * math.log(1 / DELTA)) + k * e * math.expm1(e) <= EPSILON


def zcdp(cost: Cost, k: int) -> bool:
    """Bun and Steinke 2016, with their conversion."""
    rho = k * (cost.epsilon**2 if cost.square is None else cost.square) / 2
    return rho + 2 * math.sqrt(rho * math.log(1 / DELTA)) <= EPSILON


def exact(cost: Cost, k: int) -> bool:
    """Gaussian noise, composed exactly."""
    assert cost.square is not None
    return gaussian_delta(Fraction(math.sqrt(k * cost.square)), Fraction(EPSILON)) <= DELTA


def dp_accounting() -> dict[str, Callable[[Cost, int], bool]]:
    """By Rényi divergences and by privacy-loss distributions; Laplace noise where there is no Gaussian."""
    import dp_accounting as dp
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.rdp import RdpAccountant

    def fits(accountant: Callable[[], object]) -> Callable[[Cost, int], bool]:
        def accepts(cost: Cost, k: int) -> bool:
            gaussian = None if cost.square is None else dp.GaussianDpEvent(1 / math.sqrt(cost.square))
            made = accountant().compose(gaussian or dp.LaplaceDpEvent(1 / cost.epsilon), k)
            return bool(made.get_epsilon(DELTA) <= EPSILON)

        return accepts

    name = f"dp_accounting {version('dp-accounting')}"
    return {f"{name} RDP": fits(RdpAccountant), f"{name} PLD": fits(PLDAccountant)}


def peers(bench: Bench) -> dict[str, Callable[[Cost, int], bool]]:
    """The accountants of others; one that is missing is noted."""
    try:
        return dp_accounting()
    except ImportError as error:
        bench.failed("questions per budget", "dp_accounting", error)
        return {}


# What is found


def run(bench: Bench) -> Section:
    """Questions per budget for six kinds, and at a given noise."""
    others = {"basic": basic, "advanced": advanced, "zCDP": zcdp, **peers(bench)}
    checks: list[Check] = []
    header = ["question", "error", "noisette", "noisette, priced alone", *others, "exact", "of exact", "target", ""]
    rows = [row(bench, kind, others, checks) for kind in KINDS]
    note = "Exact: Gaussian composition of costs fixed in advance. Of delta, unknown keys have 1e-9 each, in all 1e-7."
    note += "" if len(others) > 3 else " dp_accounting is not installed."
    tables = [Table("Questions per budget at epsilon 5, delta 1e-6", header, rows, note), given_noise(checks)]
    return Section(tables, checks)


def row(bench: Bench, kind: Kind, others: dict[str, Callable[[Cost, int], bool]], checks: list[Check]) -> list[str]:
    """How many questions of a kind fit, by each accountant."""
    bench.say(kind.what)
    chosen = opened().explain(kind.sql, error=kind.error, rows=kind.rows).offer.guarantee
    alone = least_epsilon(kind)
    counted, cost = fitting(Memory(BUDGET), chosen), cost_of(chosen, alone)
    cells = [kind.what, f"± {kind.error:g}", f"{counted}", f"{fitting(Memory(BUDGET), alone)}"]
    cells += [str(most(lambda k, fits=fits: fits(cost, k))) for fits in others.values()]
    if cost.square is None:
        return [*cells, "–", "", "", ""]
    tight = most(lambda k: exact(cost, k))
    check = Check(f"{kind.what}, of exact Gaussian composition", counted / tight, at_least=LEAST)
    checks.append(check)
    return [*cells, str(tight), *check.cells]


def least_epsilon(kind: Kind) -> Guarantee:
    """What the question costs if it is priced for itself: the least epsilon for its error."""
    if kind.keys_delta is not None:
        return opened().explain(kind.sql, error=kind.error, delta=kind.keys_delta).offer.guarantee
    return opened(nz.Pure(5)).explain(kind.sql, error=kind.error, rows=kind.rows).offer.guarantee


def cost_of(chosen: Guarantee, alone: Guarantee) -> Cost:
    """What accountants see: mu^2 of Gaussian noise, and the epsilon of the question alone."""
    epsilon = charge_of(alone).epsilon
    assert epsilon is not None
    charge = charge_of(chosen)
    gaussian = charge.epsilon is None and charge.square is not None
    return Cost(float(epsilon), float(charge.square or 0) if gaussian else None)


def fitting(ledger: Memory, cost: Guarantee) -> int:
    """How often a ledger accepts a cost."""
    return most(lambda k: ledger.allows(cost, times=k))


def given_noise(checks: list[Check]) -> Table:
    """Noise of standard deviation 300 where a user has 30 rows, as in the comparison of SQL systems."""

    def rows() -> Iterator[list[str]]:
        one = nz.Gaussian(300).guarantee(30)
        tight = most(lambda k: exact(Cost(0.1, 0.01), k))
        for name, keys in (("a tenth of delta for unknown keys", None), ("half of it", "5e-7")):
            counted = fitting(Memory(BUDGET, keys_delta=keys), one)
            check = Check(f"sd 300, 30 rows a user, {name}", counted / tight, at_least=LEAST if keys is None else None)
            checks.append(check)
            yield [name, str(counted), str(tight), *check.cells]

    return Table(
        "Gaussian noise of standard deviation 300, 30 rows a user",
        ["ledger", "noisette", "exact", "of exact", "target", ""],
        list(rows()),
    )
