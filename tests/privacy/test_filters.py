"""Filters and odometers: no adaptive strategy breaks them, equal costs use them fully, refusals change nothing."""

import math
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.stats import norm

import noisette as nz
from noisette.errors import InputError, PrivacyError
from noisette.privacy import Neighbours
from noisette.privacy.convert import gaussian_delta
from noisette.privacy.filters import Filter, Odometer, square_of_pure
from noisette.privacy.guarantee import Ledger, once
from noisette.privacy.loss import LatticeNormal, Normal, Response, Subsampled
from noisette.privacy.sampling import poisson
from noisette.privacy.tight import tight_delta


def gaussian(mu: Fraction, variation: Fraction = Fraction(0)) -> nz.ZCDP:
    return nz.ZCDP(mu**2 / 2, ledger=once(Normal(mu, variation)))


# Adversaries who choose each cost in the light of earlier answers


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
@pytest.mark.parametrize("rule", ["zcdp", "gaussian"])
def test_no_strategy_breaks_an_approximate_budget(menu, delta, rule):
    costs = tuple(map(Fraction, menu))

    @cache
    def accepts(counts: tuple[int, ...]) -> bool:
        parts = tuple((Response(e), k) for e, k in zip(costs, counts, strict=True) if k)
        eps = sum(e * k for e, k in zip(costs, counts, strict=True))
        return Filter(nz.Approx(1, delta), reserve=0, rule=rule).allows(nz.Pure(eps, ledger=Ledger(parts)))

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
    told = first * y + first**2 / 2  # the loss after the first answer, y standard normal under P

    def delta_of(rest: float) -> np.ndarray:
        return norm.cdf(rest / 2 - (eps - told) / rest) - np.exp(eps - told) * norm.cdf(-rest / 2 - (eps - told) / rest)

    all_left = delta_of(math.sqrt(mu**2 - first**2))
    some_left = np.maximum(delta_of(0.3), -np.expm1(np.minimum(0.0, eps - told)))
    truth = gaussian_delta(Fraction(mu), Fraction(eps))
    assert (norm.pdf(y) * all_left).sum() * step == pytest.approx(truth, rel=1e-6)
    assert (norm.pdf(y) * np.where(told > 0.8, some_left, all_left)).sum() * step < truth


@pytest.mark.parametrize("e", ["1/1000", "1/64", "0.016", "0.1", "1", "3", "20", "600", "701"])
def test_a_gaussian_dominates_what_is_pure(e):
    """The curves of delta, at every epsilon in question; and hardly a smaller one would."""
    e0, square = Fraction(e), square_of_pure(Fraction(e))
    mu, least = Fraction(math.sqrt(square) * (1 + 1e-15)), Fraction(math.sqrt(square) * 0.999)
    response = [nz.Pure(e0).delta(e0 * i / 8) for i in range(8)]
    assert all(gaussian_delta(mu, e0 * i / 8) >= d * (1 - 1e-12) for i, d in enumerate(response))
    assert e0 > 20 or gaussian_delta(least, Fraction(0)) < response[0]


# Full use


@pytest.mark.parametrize(
    ("budget", "cost", "times"),
    [
        (nz.Pure(1), nz.Pure("0.1"), 10),
        (nz.ZCDP("1/2"), nz.ZCDP("1/100"), 50),
        (nz.ZCDP("1/2"), nz.Pure("0.1"), 100),
        (nz.Approx(1, 0), nz.Pure("0.1"), 10),
        (nz.Approx(1, Fraction(gaussian_delta(Fraction(1), Fraction(1)))), gaussian(Fraction(1, 10)), 100),
    ],
)
def test_equal_costs_use_the_budget_fully(budget, cost, times):
    f = Filter(budget, reserve=0)
    for _ in range(times):
        f.charge(cost)
    assert not f.allows(cost)
    assert not f.allows(nz.ZCDP("1e-9", ledger=once(Normal(Fraction(1, 20_000)))))
    assert f.allows(nz.Pure(0))
    assert f.spent <= budget


def test_rules_for_approximate_budgets_are_worth_it():
    """Real Gaussian noise, counted as such, against zCDP and against basic composition."""
    one = nz.Gaussian(100).guarantee(1)

    def most_times(cost: nz.ZCDP, rule: str | None = None) -> int:
        f, low, high = Filter(nz.Approx(1, "1e-6"), rule=rule), 0, 10_000
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if f.allows(cost * middle) else (low, middle)
        return low

    assert (most_times(one), most_times(one, "zcdp")) == (559, 486)
    assert (most_times(nz.Pure("0.01")), most_times(nz.Pure("0.01"), "gaussian")) == (486, 356)


@pytest.mark.parametrize("delta", ["1e-2", "1e-6", "1e-12"])
@pytest.mark.parametrize("eps", ["0.1", "1", "8"])
def test_never_less_than_advanced_composition(eps, delta):
    """For S the sum of e_i^2 with sqrt(2 ln(1/delta) S) + S/2 = epsilon."""
    log = -math.log(float(delta))
    s = (math.sqrt(2 * (log + float(eps))) - math.sqrt(2 * log)) ** 2
    assert math.sqrt(2 * log * s) + s / 2 == pytest.approx(float(eps))
    assert Filter(nz.Approx(eps, delta)).allows(nz.Pure(Fraction(math.sqrt(s / 400))) * 400)


def test_sums_and_samples_are_costs():
    f = Filter(nz.Approx(1, "1e-6"), reserve="5e-7")
    step = poisson(nz.Approx(1, "1e-7"), "0.01")
    assert (step * 80).eps > 1
    f.charge(step * 80)
    assert not f.allows(step * 80)
    with pytest.raises(PrivacyError, match="neither by epsilon nor by rho"):
        f.charge(poisson(nz.Gaussian(1).guarantee(1), "0.1"))
    loss = Subsampled(Response(Fraction(1), Fraction(1, 10**7)), Fraction(1, 10))
    assert Filter(nz.Approx("0.2", "1e-6")).allows(nz.Approx(1, "1e-8", ledger=once(loss)))
    assert Filter(nz.Pure(1)).allows(nz.Pure("1/2") + nz.Pure("1/2"))
    assert Filter(nz.Approx(5, "1e-6")).allows(nz.Approx("0.1", "1e-9") + nz.ZCDP("0.1"))


# Deltas of the costs


def test_deltas_are_spent_from_the_reserve():
    f = Filter(nz.Approx(1, "1e-6"), reserve="1e-6")  # basic composition
    f.charge(nz.Approx("0.5", "4e-7"))
    with pytest.raises(PrivacyError, match="larger reserve"):
        f.charge(nz.Approx("0.1", "7e-7"))
    f.charge(nz.Approx("0.5", "6e-7"))
    assert (f.spent, f.left) == (nz.Approx(1, "1e-6"), nz.Approx(0, 0))
    assert not Filter(nz.Approx(1, "1e-6")).allows(nz.Approx("0.1", "2e-8"))
    assert Filter(nz.Approx(1, "1e-6")).allows(nz.Approx("0.1", "1e-8"))


def test_what_separates_drawn_from_accounted_noise_is_spent_too():
    near = gaussian(Fraction(1, 10), Fraction(1, 10**9))
    f = Filter(nz.Approx(1, "1e-6"), reserve="1e-8")  # 1 + e = 3.7 of them, twice
    f.charge(near)
    f.charge(near)
    with pytest.raises(PrivacyError, match="larger reserve"):
        f.charge(near)
    assert Filter(nz.Approx(1, "1e-6"), reserve=0, rule="zcdp").allows(near)
    assert not Filter(nz.Approx(1, "1e-6"), reserve=0).allows(near)


# Refusals


@pytest.mark.parametrize(
    ("f", "first", "second", "why"),
    [
        (Filter(nz.Pure(1)), nz.Pure("0.9"), nz.Pure("0.2"), "does not fit"),
        (Filter(nz.Pure(1)), nz.Pure("0.5"), nz.ZCDP("0.001"), "not pure"),
        (Filter(nz.Pure(1)), nz.Pure("0.5"), nz.Approx("0.1", "1e-9"), "has a delta"),
        (Filter(nz.ZCDP(1)), nz.ZCDP("0.9"), nz.Pure(1), "does not fit"),
        (Filter(nz.ZCDP(1)), nz.ZCDP("0.9"), nz.Approx("0.1", "1e-9"), "has a delta"),
        (Filter(nz.Approx(1, "1e-6")), nz.Pure("0.5"), nz.Pure("0.6"), "does not fit"),
        (Filter(nz.Approx(1, "1e-6")), gaussian(Fraction(1, 10)), nz.ZCDP("1e-6"), "rule='zcdp'"),
        (
            Filter(nz.Approx(1, "1e-6")),
            gaussian(Fraction(1, 10)),
            nz.ZCDP("1e-6", ledger=once(LatticeNormal(Fraction(500_000), 1))),
            "rule='zcdp'",
        ),
        (
            Filter(nz.Pure(1)),
            nz.Pure("0.1", neighbours=Neighbours.REPLACE),
            nz.Pure("0.1", neighbours=Neighbours.ADD_REMOVE),
            "under replace does not add",
        ),
    ],
)
def test_refusals_change_nothing(f, first, second, why):
    f.charge(first)
    before = (f.spent, f.left, f._state)
    with pytest.raises(PrivacyError, match=why) as refused:
        f.charge(second)
    assert str(refused.value).endswith(".")
    assert ". " not in str(refused.value)
    assert (f.spent, f.left, f._state) == before
    assert f.spent.neighbours is first.neighbours


def test_a_refused_first_cost_settles_nothing():
    f = Filter(nz.Approx(1, "1e-6"))
    with pytest.raises(PrivacyError):
        f.charge(gaussian(Fraction(2)).under(Neighbours.REPLACE))
    f.charge(nz.ZCDP("0.001", neighbours=Neighbours.ADD_REMOVE))
    assert f.spent.neighbours is Neighbours.ADD_REMOVE


def test_a_relation_that_differs_from_the_budgets_is_refused():
    f = Filter(nz.Pure(1, neighbours=Neighbours.ADD_REMOVE))
    with pytest.raises(PrivacyError):
        f.allows(nz.Pure("0.1", neighbours=Neighbours.REPLACE))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Filter(1),
        lambda: Filter(nz.Pure(1) + nz.Approx(1, "1e-6") + nz.ZCDP(1)),
        lambda: Filter(nz.Approx(1, "1e-6"), reserve="2e-6"),
        lambda: Filter(nz.Pure(1), reserve="1e-6"),
        lambda: Filter(nz.Approx(1, "1e-6"), rule="pld"),
        lambda: Filter(nz.Pure(1), rule="zcdp"),
        lambda: Filter(nz.Pure(1)).charge(0.1),
        lambda: Odometer(0),
        lambda: Odometer(1),
        lambda: Odometer("1e-6", first=0),
    ],
)
def test_wrong_parameters(wrong):
    with pytest.raises(InputError):
        wrong()


# What is spent and what is left


@pytest.mark.parametrize(
    ("budget", "costs"),
    [
        (nz.Pure(1), [nz.Pure("0.3")]),
        (nz.ZCDP("0.1"), [nz.ZCDP("0.01"), nz.Pure("0.1")]),
        (nz.Approx(1, "1e-6"), []),
        (nz.Approx(1, "1e-6"), [nz.Pure("0.05") * 20, nz.Approx("0.01", "1e-9")]),
        (nz.Approx(1, "1e-6"), [nz.Gaussian(10).guarantee(1), nz.Pure("0.05")]),
        (nz.Approx(1, "1e-6"), [gaussian(Fraction(1, 4))]),
    ],
)
def test_what_is_left_is_allowed_and_nothing_more(budget, costs):
    f = Filter(budget)
    for cost in costs:
        if f.allows(cost):
            f.charge(cost)
    assert f.allows(f.left)
    numbers = [getattr(f.left, name) for name in ("eps", "rho", "delta0") if hasattr(f.left, name)]
    assert not f.allows(type(f.left)(numbers[0] + Fraction(1, 10**9), *numbers[1:]))
    assert f.spent <= budget
    f.charge(f.left)
    assert f.spent <= budget


def test_spent_is_the_least_budget_that_would_do():
    f = Filter(nz.Approx(1, "1e-6"))
    for _ in range(30):
        f.charge(nz.Pure("0.02"))
    assert float(f.spent.eps) == pytest.approx(min(0.6, nz.ZCDP("0.006").epsilon("0.99e-6")), rel=1e-6)
    smaller = Filter(nz.Approx(f.spent.eps, "1e-6"))
    smaller.charge(nz.Pure("0.02") * 30)
    assert not Filter(nz.Approx(f.spent.eps - Fraction(1, 10**6), "1e-6")).allows(nz.Pure("0.02") * 30)


# Threads


@pytest.fixture
def impatient():
    """Threads that interrupt each other as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize(
    ("budget", "cost", "times"),
    [(nz.Pure(1), nz.Pure("0.01"), 100), (nz.ZCDP(1), nz.ZCDP("0.01"), 100), (nz.Approx(1, 0), nz.Pure("0.02"), 50)],
)
def test_threads_never_overspend(impatient, budget, cost, times):
    f = Filter(budget)

    def spend(_: int) -> int:
        done = 0
        for _ in range(20):
            try:
                f.charge(cost)
                done += 1
            except PrivacyError:
                assert f.spent <= budget
        return done

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(spend, range(16))) == times
    assert f.spent.epsilon("1e-6") == pytest.approx(budget.epsilon("1e-6"))


# The odometer


def test_an_odometer_never_goes_back():
    o, seen = Odometer("1e-6"), [0.0]
    costs = [
        nz.Pure("0.01"),
        nz.Approx("0.1", "1e-10"),
        nz.Pure("0.3") * 3,
        nz.ZCDP("0.01"),
        nz.Gaussian(3).guarantee(1),
    ]
    for i in range(60):
        o.charge(costs[min(i // 10, 4)])
        seen.append(o.epsilon())
    assert seen == sorted(seen)
    assert seen[1] == 0.01
    o.charge(nz.Approx("0.1", "1e-7"))
    assert o.epsilon() == math.inf


def test_an_odometer_is_hardly_above_the_filter():
    o = Odometer("1e-6")
    for _ in range(50):
        o.charge(nz.ZCDP("0.002"))
        assert o.epsilon() >= nz.ZCDP(o._state.total.rho).epsilon("1e-6")
    assert o.epsilon() <= 1.42 * nz.ZCDP("0.1").epsilon("1e-6")


def test_an_odometer_refuses_another_relation_and_stays():
    o = Odometer("1e-6")
    o.charge(nz.Pure("0.1", neighbours=Neighbours.REPLACE))
    with pytest.raises(PrivacyError):
        o.charge(nz.Pure("0.1", neighbours=Neighbours.ADD_REMOVE))
    assert o.epsilon() == 0.1


@pytest.mark.parametrize("delta", ["0.3", "0.05"])
@pytest.mark.parametrize("patience", [0.0, 0.5, 2.0])
def test_all_transcripts_of_an_odometer(delta, patience):
    """Stop when the loss has outrun what is reported, or by then has fallen too far: P(S) <= E_Q e^epsilon + delta."""

    @cache
    def reported(counts: tuple[int, int]) -> float:
        o = Odometer(delta, reserve=0, first="0.05")
        for e, k in zip(("0.2", "0.5"), counts, strict=True):
            o.charge(nz.Pure(e) * k)
        return o.epsilon()

    def epsilon(seen: Transcript) -> float:
        return reported((sum(e < 0.3 for e, _ in seen), sum(e > 0.3 for e, _ in seen)))

    def strategy(seen: Transcript) -> Fraction | None:
        if len(seen) == 11 or loss(seen) > epsilon(seen) or loss(seen) < -patience:
            return None
        return Fraction(1, 2) if loss(seen) > 0.3 else Fraction(1, 5)

    ways = list(transcripts(strategy))
    beyond = [chance(way) * -math.expm1(min(0.0, epsilon(way) - loss(way))) for way in ways]
    assert math.fsum(beyond) <= float(delta)
