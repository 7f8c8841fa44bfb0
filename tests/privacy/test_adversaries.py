"""Adversaries who choose each cost after seeing earlier answers: none of them breaks a filter or an odometer."""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

import noisette as nz
from noisette.privacy import Filter, Odometer, Profile, filters
from noisette.privacy.convert import gaussian_delta
from noisette.privacy.guarantee import Losses
from noisette.privacy.pld.loss import Response
from noisette.privacy.pld.tight import tight_delta


def most(menu: tuple[Fraction, ...], eps: float, accepts: Callable[[tuple[int, ...]], bool]) -> float:
    """The delta(eps) of the best of all adaptive strategies that buy randomized responses while the rule accepts.

    From the counts of what was bought and the loss so far: stop, or buy what is best in expectation.
    """
    unit = Fraction(1, math.lcm(*(m.denominator for m in menu)))
    steps = [int(m / unit) for m in menu]

    @cache
    def value(loss: int, counts: tuple[int, ...]) -> float:
        best = -math.expm1(min(0.0, eps - loss * float(unit)))
        for i, step in enumerate(steps):
            then = (*counts[:i], counts[i] + 1, *counts[i + 1 :])
            if accepts(then):
                p = 1 / (1 + math.exp(-step * float(unit)))
                best = max(best, p * value(loss + step, then) + (1 - p) * value(loss - step, then))
        return best

    return value(0, (0,) * len(menu))


MENUS = [
    (("0.1", "0.3"), Fraction(1, 100)),
    (("0.2", "0.6"), Fraction(1, 10)),
    (("0.3", "0.6", "0.9"), Fraction(1, 8)),
    (("0.5", "1"), Fraction(1, 5)),
]


@pytest.mark.parametrize(("menu", "delta"), MENUS)
@pytest.mark.parametrize("rule", ["zcdp", "gaussian", "both"])
def test_no_strategy_breaks_an_approximate_budget(menu, delta, rule):
    costs = tuple(map(Fraction, menu))

    @cache
    def accepts(counts: tuple[int, ...]) -> bool:
        parts = tuple((Response(e), k) for e, k in zip(costs, counts, strict=True) if k)
        eps = sum(e * k for e, k in zip(costs, counts, strict=True))
        return Filter(nz.Approx(1, delta), reserve=0, rule=rule).allows(nz.Pure(eps, losses=Losses(parts)))

    assert 0 < most(costs, 1.0, accepts) <= delta


@pytest.mark.parametrize(("menu", "delta"), MENUS)
def test_tight_composition_is_not_a_filter(menu, delta):
    """The broken twin: accept while the optimal composition of all costs so far keeps delta."""
    costs = tuple(map(Fraction, menu))

    @cache
    def accepts(counts: tuple[int, ...]) -> bool:
        parts = tuple((Response(e), k) for e, k in zip(costs, counts, strict=True) if k)
        return tight_delta(parts, Fraction(0), Fraction(1)) <= delta

    assert most(costs, 1.0, accepts) > 1.1 * delta


Transcript = tuple[tuple[Fraction, bool], ...]


def transcripts(strategy: Callable[[Transcript], Fraction | None], seen: Transcript = ()) -> Iterator[Transcript]:
    """All ways an interaction can go: the strategy names the next epsilon, or None to stop."""
    e = strategy(seen)
    if e is None:
        yield seen
        return
    for answer in (True, False):
        yield from transcripts(strategy, (*seen, (e, answer)))


def loss(seen: Transcript) -> float:
    return math.fsum(float(e) if answer else -float(e) for e, answer in seen)


def chance(seen: Transcript) -> float:
    """Under P; under Q it is e^-loss times that."""
    return math.prod(1 / (1 + math.exp(-float(e) if answer else float(e))) for e, answer in seen)


def eager(budget: nz.Pure | nz.Approx | nz.ZCDP) -> Callable[[Transcript], Fraction | None]:
    """Buy more while the answers point one way, less otherwise, until the filter refuses everything."""

    @cache
    def allowed(costs: tuple[Fraction, ...], more: Fraction) -> bool:
        f = Filter(budget)
        for e in costs:
            f.charge(nz.Pure(e))
        return f.allows(nz.Pure(more))

    def strategy(seen: Transcript) -> Fraction | None:
        costs = tuple(sorted(e for e, _ in seen))
        wanted = (Fraction(3, 5), Fraction(1, 4)) if loss(seen) > 0 else (Fraction(1, 4), Fraction(3, 5))
        return next((e for e in wanted if allowed(costs, e)), None)

    return strategy


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("delta", ["0.2", "0.1", "0.02"])
def test_all_transcripts_of_an_approximate_filter(delta):
    ways = list(transcripts(eager(nz.Approx(1, delta))))
    assert math.fsum(map(chance, ways)) == pytest.approx(1)
    assert len({tuple(e for e, _ in way) for way in ways}) > 1  # costs did depend on answers
    assert math.fsum(chance(way) * -math.expm1(min(0.0, 1 - loss(way))) for way in ways) <= float(delta)


def test_all_transcripts_of_a_pure_filter():
    assert max(map(loss, transcripts(eager(nz.Pure(2))))) == pytest.approx(2, abs=0.25)
    assert max(map(loss, transcripts(eager(nz.Pure(2))))) <= 2


@pytest.mark.parametrize("a", [1.01, 2, 5, 30])
def test_all_transcripts_of_a_zcdp_filter(a):
    ways = list(transcripts(eager(nz.ZCDP("0.3"))))
    divergence = math.log(math.fsum(chance(way) * math.exp((a - 1) * loss(way)) for way in ways)) / (a - 1)
    assert (0.1 if a < 5 else 0.03) * a < divergence <= 0.3 * a


def test_gaussian_costs_may_depend_on_earlier_answers():
    """Two steps, the second the larger the nearer its goal the first one came: the curve is that of one Gaussian."""
    y, step = np.linspace(-12, 12, 48_001, retstep=True)
    first, mu, eps = 0.6, 1.0, 1.0
    loss = first * y + first**2 / 2  # the loss after the first answer, y standard normal under P

    def delta_of(rest: float) -> np.ndarray:
        return norm.cdf(rest / 2 - (eps - loss) / rest) - np.exp(eps - loss) * norm.cdf(-rest / 2 - (eps - loss) / rest)

    all_left = delta_of(math.sqrt(mu**2 - first**2))
    some_left = np.maximum(delta_of(0.3), -np.expm1(np.minimum(0.0, eps - loss)))
    truth = gaussian_delta(Fraction(mu), Fraction(eps))
    assert (norm.pdf(y) * all_left).sum() * step == pytest.approx(truth, rel=1e-6)
    assert (norm.pdf(y) * np.where(loss > 0.8, some_left, all_left)).sum() * step < truth


# Both rules: Gaussian noise first; its answer decides by which rule, with which part of delta, to go on


def rho_of(p: float, t: float) -> float:
    """The rho of a mechanism whose loss is t with probability p, and one other value."""
    orders, q = 1 + np.geomspace(1e-3, 100, 200), p * math.exp(-t)
    logs = np.log([[p, 1 - p], [q, 1 - q]])

    def at_most(x: np.ndarray, y: np.ndarray) -> float:
        moments = np.logaddexp.reduce(orders[:, None] * x + (1 - orders[:, None]) * y, axis=1)
        return float(np.max(moments / (orders - 1) / orders))

    return max(at_most(logs[0], logs[1]), at_most(logs[1], logs[0]))


def two_points(rho: float) -> Iterator[tuple[float, float]]:
    """Mechanisms with two losses that are just rho-zCDP, as (p, t)."""
    for t in np.linspace(6, 16, 40):
        if rho_of(1e-9, t) < rho < rho_of(1 - 1e-9, t):
            yield brentq(lambda p, t=t: rho_of(p, t) - rho, 1e-9, 1 - 1e-9), t


def beyond(left: np.ndarray) -> np.ndarray:
    """What counts in delta where the loss has left this much of epsilon."""
    return -np.expm1(np.minimum(0.0, left))


def largest(allowed: Callable[[Fraction], bool]) -> Fraction:
    """The largest multiple of 2^-16, below 16, that is allowed."""
    low, high = 0, 1 << 20
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if allowed(Fraction(middle, 1 << 16)) else (low, middle)
    return Fraction(low, 1 << 16)


EPS, DELTA = 8, Fraction(1, 1000)


def best_of_the_parts(first: Fraction) -> float:
    """The delta(EPS) of a strategy whose first answer, with noise at mu = first, decides about the second cost."""
    f = Filter(nz.Approx(EPS, DELTA), reserve=DELTA / 10, zcdp=DELTA / 4, rule="both")
    f.charge(Profile.gaussian(first))
    rest = float(largest(lambda mu: f.allows(Profile.gaussian(mu or "1e-9"))))
    rho = float(largest(lambda rho: f.allows(nz.ZCDP(rho))))
    own = float(largest(lambda d: f.allows(nz.Approx(0, d / 2**16))) / 2**16)
    y, step = np.linspace(-10, 10, 4_001, retstep=True)
    left = EPS - float(first) * y - float(first**2) / 2
    best = norm.cdf(rest / 2 - left / rest) - np.exp(left) * norm.cdf(-rest / 2 - left / rest)
    best = np.maximum(best, own + (1 - own) * beyond(left))
    for p, t in two_points(rho * 0.999):
        other = math.log((1 - p) / (1 - p * math.exp(-t)))
        best = np.maximum(best, p * beyond(left - t) + (1 - p) * beyond(left - other))
    return float((norm.pdf(y) * best).sum() * step)


@pytest.mark.slow_after(0)
@pytest.mark.parametrize("first", ["0.3", "0.75", "1.7"])
def test_no_strategy_gains_from_several_parts_of_delta(first):
    assert 0.6 * DELTA < best_of_the_parts(Fraction(first)) <= DELTA


@pytest.mark.slow_after(0)
@pytest.mark.parametrize(("part", "first", "factor"), [("zcdp", "0.75", 1.02), ("own", "1.7", 1.15)])
def test_twins_in_which_two_rules_share_delta_break(part, first, factor, monkeypatch):
    honest = filters._parts

    def shared(*args, **both):
        return honest(*args, **both)._replace(**{"rule": DELTA, part: DELTA})

    monkeypatch.setattr(filters, "_parts", shared)
    assert best_of_the_parts(Fraction(first)) > factor * DELTA


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("delta", ["0.3", "0.05"])
@pytest.mark.parametrize("patience", [0.0, 0.5, 2.0])
def test_all_transcripts_of_an_odometer(delta, patience):
    """Stop when the loss has outrun what is reported, or by then has fallen too far: P(S) <= E_Q e^epsilon + delta."""

    @cache
    def reported(counts: tuple[int, int]) -> float:
        o = Odometer(delta, reserve=0, first="0.05")
        for e, k in zip(("0.2", "0.5"), counts, strict=True):
            o.charge(nz.Pure(e) * k)
        return o.epsilon

    def epsilon(seen: Transcript) -> float:
        return reported((sum(e < 0.3 for e, _ in seen), sum(e > 0.3 for e, _ in seen)))

    def strategy(seen: Transcript) -> Fraction | None:
        if len(seen) == 11 or loss(seen) > epsilon(seen) or loss(seen) < -patience:
            return None
        return Fraction(1, 2) if loss(seen) > 0.3 else Fraction(1, 5)

    ways = list(transcripts(strategy))
    beyond = [chance(way) * -math.expm1(min(0.0, epsilon(way) - loss(way))) for way in ways]
    assert math.fsum(beyond) <= float(delta)
