"""Many releases together: the epsilon at one delta, and the time to find it, beside other accountants.

Every round computes afresh, from the mechanisms to epsilon. An accountant that states an error is held to its upper
bound. Vocabulary: a `Release` is a mechanism with the number of its uses · an `Accountant` tells their epsilon.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial, reduce
from importlib.metadata import version
from operator import add

import noisette as nz
from benchmarks.harness import OURS, Bench, Check, Job, Section, Table, cpu_seconds, duration, times
from noisette.privacy.pld import tight
from noisette.privacy.pld.compose import composed_epsilon
from noisette.privacy.pld.loss import Normal, Subsampled

DELTA = "1e-6"
RATE = "0.01"
SAME = 1e-6  # relative: bounds this near to each other are as tight
FASTER, MUCH_FASTER = 3, 10  # against the fastest peer; the second where there is a closed form
SLOW = 1.5  # seconds: who takes longer is timed once, outside the rounds
FINE_UP_TO = 10_000  # releases: beyond, an error of 0.01 costs prv_accountant up to half a minute and 1.5 GB


@dataclass(frozen=True)
class Release:
    """A mechanism of sensitivity 1, used `count` times; `sampled` on a random part of the people."""

    law: str
    noise: int
    count: int
    sampled: bool = False


@dataclass(frozen=True)
class Case:
    """Releases to be accounted for together, and how many times faster than the fastest peer that should be."""

    what: str
    releases: tuple[Release, ...]
    least: float

    @property
    def total(self) -> int:
        """The number of releases."""
        return sum(release.count for release in self.releases)

    @property
    def exact(self) -> float | None:
        """Epsilon by the closed form, for Gaussians alone."""
        if any(release.law != "Gaussian" or release.sampled for release in self.releases):
            return None
        return gaussian_epsilon(math.sqrt(sum(release.count / release.noise**2 for release in self.releases)))


@dataclass(frozen=True)
class Accountant:
    """Somebody who finds an upper bound on epsilon."""

    name: str
    epsilon: Callable[[Sequence[Release]], float]
    most: float = math.inf


class Looser(Check):
    """By how much, relative to the tightest peer, the bound is larger; negative where it is smaller."""

    @property
    def target(self) -> str:
        """The target as text."""
        return f"≤ {self.at_most:g}"

    @property
    def cells(self) -> list[str]:
        """The last three cells of a table's row: excess, target, verdict."""
        return [f"{self.value:+.1e}", self.target, "pass" if self.passed else "MISS"]


def cases() -> list[Case]:
    """What is measured, with its targets."""
    once = [
        *(Release("Gaussian", sigma, count) for count in (1_000, 100_000) for sigma in (100, 1_000)),
        *(Release("Laplace", scale, count) for count in (1_000, 100_000) for scale in (100, 2_000)),
        Release("Gaussian", 1, 1_000, sampled=True),
        Release("Gaussian", 4, 100_000, sampled=True),
    ]
    mixed = [Release("Laplace", 10 + i, 3) for i in range(25)] + [Release("Gaussian", 20 + i, 5) for i in range(25)]
    return [*map(alone, once), Case("25 Laplace × 3, 25 Gaussian × 5", tuple(mixed), FASTER)]


def alone(release: Release) -> Case:
    """One mechanism, used many times."""
    name = f"{release.law} {release.noise}{f', rate {RATE}' if release.sampled else ''} × {release.count:,}"
    return Case(name, (release,), MUCH_FASTER if release.law == "Gaussian" and not release.sampled else FASTER)


def gaussian_epsilon(mu: float) -> float:
    """Solve Phi(mu/2 - e/mu) - e^e Phi(-mu/2 - e/mu) = delta.   [Balle-Wang 2018, Theorem 8]"""
    from scipy.optimize import brentq
    from scipy.special import log_ndtr

    def log_delta(e: float) -> float:
        one, other = log_ndtr(mu / 2 - e / mu), e + log_ndtr(-mu / 2 - e / mu)
        return one + math.log(-math.expm1(other - one))

    return float(brentq(lambda e: log_delta(e) - math.log(float(DELTA)), 0, mu * mu + 8 * mu, xtol=1e-15, rtol=1e-14))


def ours(releases: Sequence[Release]) -> float:
    """By guarantees; sampling, which is no mechanism, by its loss."""
    tight.tight_epsilon.cache_clear()
    tight.tight_delta.cache_clear()
    if any(release.sampled for release in releases):
        parts = {Subsampled(Normal(Fraction(1, r.noise)), Fraction(RATE)): r.count for r in releases}
        return composed_epsilon(parts, float(DELTA))
    laws = {"Laplace": nz.Laplace, "Gaussian": nz.Gaussian}
    return reduce(add, (laws[r.law](r.noise).guarantee(1) * r.count for r in releases)).epsilon_at(DELTA)


def installed() -> tuple[list[Accountant], dict[str, str]]:
    """Import every peer; return those that work, and for the others why not."""
    peers: list[Accountant] = []
    missing = {}
    for name, load in {"dp_accounting": _dp_accounting, "prv_accountant": _prv_accountant}.items():
        try:
            peers += load()
        except Exception as error:
            missing[name] = f"{type(error).__name__}: {error}".splitlines()[0]
    return peers, missing


def _dp_accounting() -> list[Accountant]:
    """Privacy-loss distributions with the default step, 1e-4."""
    import dp_accounting as dp
    from dp_accounting.pld import PLDAccountant

    laws = {"Laplace": dp.LaplaceDpEvent, "Gaussian": dp.GaussianDpEvent}

    def event(release: Release) -> dp.DpEvent:
        base = laws[release.law](release.noise)
        return dp.PoissonSampledDpEvent(float(RATE), base) if release.sampled else base

    def epsilon(releases: Sequence[Release]) -> float:
        accountant = PLDAccountant()
        for release in releases:
            accountant.compose(event(release), release.count)
        return float(accountant.get_epsilon(float(DELTA)))

    return [Accountant(f"dp_accounting {version('dp-accounting')}", epsilon)]


def _prv_accountant() -> list[Accountant]:
    """Privacy random variables, with the errors of its examples."""
    import prv_accountant as prv

    def variable(release: Release) -> prv.PrivacyRandomVariable:
        if release.sampled:
            return prv.PoissonSubsampledGaussianMechanism(float(RATE), release.noise)
        if release.law == "Laplace":
            return prv.LaplaceMechanism(mu=1 / release.noise)
        return prv.GaussianMechanism(release.noise)

    def epsilon(releases: Sequence[Release], error: float) -> float:
        counts, delta = [release.count for release in releases], float(DELTA)
        accountant = prv.PRVAccountant([variable(r) for r in releases], error, delta / 1000, counts)
        return float(accountant.compute_epsilon(delta, counts)[2])

    name = f"prv_accountant {version('prv-accountant')}"
    return [
        Accountant(f"{name} ±0.1", partial(epsilon, error=0.1)),
        Accountant(f"{name} ±0.01", partial(epsilon, error=0.01), FINE_UP_TO),
    ]


def measured(bench: Bench, case: Case, everybody: list[Accountant]) -> tuple[dict[str, float], dict[str, float]]:
    """Return everybody's epsilon and nanoseconds; who fails or is not asked is left out."""
    bench.say(case.what, detail="once")
    found: dict[str, float] = {}
    once: dict[str, float] = {}
    for who in (who for who in everybody if case.total <= who.most):
        try:
            once[who.name] = cpu_seconds(lambda who=who: found.update({who.name: who.epsilon(case.releases)}))
        except Exception as error:
            bench.failed(case.what, who.name, error)
    note = {"section": bench.section, "case": case.what}
    bench.measured += [note | {"job": name, "epsilon": epsilon} for name, epsilon in found.items()]
    jobs = [
        Job(who.name, partial(who.epsilon, case.releases))
        for who in everybody
        if who.name in found and (who.name == OURS or once[who.name] < SLOW)
    ]
    slow = {name: 1e9 * once[name] for name in found if name not in {job.name for job in jobs}}
    bench.measured += [note | {"job": name, "items": 1, "ns": ns, "rounds": [ns]} for name, ns in slow.items()]
    return found, slow | bench.measure(case.what, jobs, rounds=bench.pick(7, 3))


def run(bench: Bench) -> Section:
    """Measure every case."""
    peers, missing = installed()
    if bench.quick:
        peers = [peer for peer in peers if peer.most == math.inf]
    epsilons, costs, checks = [], [], []
    for case in cases():
        found, ns = measured(bench, case, [Accountant(OURS, ours), *peers])
        for rows, (check, row) in ((epsilons, tightness(case, peers, found)), (costs, speed(case, peers, ns))):
            rows.append(row)
            checks += [check] if check else []
    notes = [f"{name} not installed: {reason}" for name, reason in missing.items()]
    if any("*" in cell for row in epsilons for cell in row):
        notes.insert(0, "* below the exact value by an error of the peer's grid, and not compared with")
    names = [OURS, *(peer.name for peer in peers)]
    return Section(
        [
            Table(
                f"Accounting: epsilon at delta = {DELTA}",
                ["", "exact", *names, "excess over tightest", "target", ""],
                epsilons,
                "; ".join(notes),
            ),
            Table("Accounting: time", ["", *names, "× faster than fastest", "target", ""], costs),
        ],
        checks,
    )


def tightness(case: Case, peers: list[Accountant], found: dict[str, float]) -> tuple[Check | None, list[str]]:
    """Compare with the tightest peer that is not below the truth, where that is known."""
    exact = case.exact
    least = 0.0 if exact is None else exact * (1 - 1e-9)
    cells = [bound(found.get(peer.name), least) for peer in peers]
    row = [case.what, "–" if exact is None else f"{exact:.7g}", f"{found[OURS]:.7g}", *cells]
    valid = [found[peer.name] for peer in peers if found.get(peer.name, -1.0) >= least]
    if not valid:
        return None, [*row, "", "", ""]
    check = Looser(f"{case.what}, excess over the tightest peer", found[OURS] / min(valid) - 1, at_most=SAME)
    return check, [*row, *check.cells]


def bound(epsilon: float | None, least: float) -> str:
    """Write a peer's epsilon; a star marks one below the truth."""
    return "–" if epsilon is None else f"{epsilon:.7g}{'*' if epsilon < least else ''}"


def speed(case: Case, peers: list[Accountant], ns: dict[str, float]) -> tuple[Check | None, list[str]]:
    """Compare with the fastest peer, however wide its error."""
    theirs = [ns.get(peer.name) for peer in peers]
    cells = ["–" if cost is None else f"{duration(cost)} = {times(cost / ns[OURS])}" for cost in theirs]
    ratios = [cost / ns[OURS] for cost in theirs if cost is not None]
    row = [case.what, duration(ns[OURS]), *cells]
    if not ratios:
        return None, [*row, "", "", ""]
    check = Check(f"{case.what}, times faster than the fastest peer", min(ratios), at_least=case.least)
    return check, [*row, *check.cells]
