"""Filters: equal costs use them fully, refusals change nothing; `test_adversaries.py` tries to break them."""

import math
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import cache

import pytest

import noisette as nz
from noisette.errors import BudgetError, InputError, PrivacyError
from noisette.privacy import Filter, Neighbours, charges
from noisette.privacy.charges import charge_of
from noisette.privacy.convert import gaussian_delta, zcdp_epsilon
from noisette.privacy.guarantee import once
from noisette.privacy.pld.loss import LatticeNormal, Normal, Response, Subsampled
from noisette.privacy.sampling import poisson


def gaussian(mu: Fraction, variation: Fraction = Fraction(0)) -> nz.ZCDP:
    return nz.ZCDP(mu**2 / 2, losses=once(Normal(mu, variation)))


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
    assert not f.allows(nz.ZCDP("1e-9", losses=once(Normal(Fraction(1, 20_000)))))
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
    assert (step * 80).epsilon > 1
    f.charge(step * 80)
    assert not f.allows(step * 80)
    with pytest.raises(PrivacyError, match="neither an epsilon nor a rho"):
        f.charge(poisson(nz.Gaussian(1).guarantee(1), "0.1"))
    loss = Subsampled(Response(Fraction(1), Fraction(1, 10**7)), Fraction(1, 10))
    assert Filter(nz.Approx("0.2", "1e-6")).allows(nz.Approx(1, "1e-8", losses=once(loss)))
    assert Filter(nz.Pure(1)).allows(nz.Pure("1/2") + nz.Pure("1/2"))
    assert Filter(nz.Approx(5, "1e-6")).allows(nz.Approx("0.1", "1e-9") + nz.ZCDP("0.1"))


# Deltas of the costs


def test_deltas_are_spent_from_the_reserve():
    f = Filter(nz.Approx(1, "1e-6"), reserve="1e-6")  # basic composition
    f.charge(nz.Approx("0.5", "4e-7"))
    with pytest.raises(BudgetError, match="exceed their reserve of 1e-06: ask with a smaller delta, or open"):
        f.charge(nz.Approx("0.1", "7e-7"))
    f.charge(nz.Approx("0.5", "6e-7"))
    assert (f.spent, f.left) == (nz.Approx(1, "1e-6"), nz.Approx(0, 0))
    assert not Filter(nz.Approx(1, "1e-6")).allows(nz.Approx("0.1", "2e-8"))
    assert Filter(nz.Approx(1, "1e-6")).allows(nz.Approx("0.1", "1e-8"))


def test_what_separates_drawn_from_accounted_noise_is_spent_too():
    near = gaussian(Fraction(1, 10), Fraction(1, 10**9))
    f = Filter(nz.Approx(1, "1e-6"), reserve="1e-8", rule="gaussian")  # 1 + e = 3.7 of them, twice
    f.charge(near)
    f.charge(near)
    with pytest.raises(BudgetError, match="larger reserve"):
        f.charge(near)
    assert Filter(nz.Approx(1, "1e-6"), reserve=0, rule="zcdp").allows(near)
    assert not Filter(nz.Approx(1, "1e-6"), reserve=0, rule="gaussian").allows(near)
    assert Filter(nz.Approx(1, "1e-6"), reserve=0).allows(near)  # too coarse for the Gaussian rule, so by zCDP


# Both rules, each with its own part of delta


def test_both_rules_use_their_own_part_of_delta():
    """A thousandth of delta is for noise as drawn; of the rest, each rule has exactly what it is given."""
    one = Fraction(gaussian_delta(Fraction(1), Fraction(1)))
    f = Filter(nz.Approx(1, one / Fraction("0.799")), reserve=0, zcdp=one / Fraction("0.799") / 5, rule="both")
    assert f.allows(gaussian(Fraction(1, 10)), times=100)
    assert not f.allows(gaussian(Fraction(1, 10)), times=101)
    alone = Filter(nz.Approx(1, "1e-6"), reserve=0, rule="zcdp")
    beside = Filter(nz.Approx(1, "5e-6"), reserve=0, zcdp="1e-6", rule="both")
    for rho in ("0.0172", "0.0257", "0.0258", "0.04"):
        assert beside.allows(nz.ZCDP(rho)) == alone.allows(nz.ZCDP(rho))


def test_both_rules_count_costs_of_every_kind():
    """After a cost known by zCDP alone, the part for zCDP is what is left; Gaussian noise alone never touches it."""
    f = Filter(nz.Approx(5, "1e-6"), rule="both")
    for cost in (nz.Gaussian(10).guarantee(1), nz.Pure("0.1"), nz.Approx("0.1", "1e-9")):
        f.charge(cost)
    before = next(k for k in range(200) if not f.allows(nz.Gaussian(10).guarantee(1), times=k + 1))
    f.charge(nz.ZCDP("1e-6"))
    after = next(k for k in range(200) if not f.allows(nz.Gaussian(10).guarantee(1), times=k + 1))
    assert (before, after) == (98, 78)
    assert f.spent <= f.budget
    f.charge(f.left)
    assert f.spent <= f.budget
    assert not f.allows(nz.Pure("1e-3"))


def test_noise_as_drawn_has_a_part_of_its_own_beside_both_rules():
    near = gaussian(Fraction(1, 10), Fraction(1, 10**10))
    f = Filter(nz.Approx(1, "1e-6"), reserve=0, rule="both")  # 1 + e = 3.7 of them, twice
    f.charge(near)
    f.charge(near)
    assert float(f.spent.epsilon) == pytest.approx(0.580, abs=1e-3)
    f.charge(near)  # by zCDP from here on
    assert float(f.spent.epsilon) == pytest.approx(0.841, abs=1e-3)
    assert f.left.delta == 0


# Plain sums with Gaussian noise in them


@pytest.mark.parametrize("rho", ["1e-9", "0.004", "0.1", "3"])
def test_the_pair_of_a_cost_is_true(rho):
    """For Gaussian noise, whose curve is known, and by the conversion of zCDP that is used elsewhere."""
    pair = charge_of(nz.ZCDP(rho))
    mu = Fraction(math.sqrt(2 * Fraction(rho)))
    assert (pair.epsilon, pair.aside) == (None, Fraction(1, 10**11))
    assert gaussian_delta(mu, pair.plain) <= float(pair.aside)
    assert float(pair.plain) == pytest.approx(nz.ZCDP(rho).epsilon_at("1e-11"), rel=1e-9)
    assert charge_of(nz.Pure("0.3")).plain == Fraction(3, 10)
    assert (pair * 3).plain == 3 * pair.plain == (pair + pair + pair).plain
    assert (pair + charge_of(nz.Pure("0.3"))).plain == pair.plain + Fraction(3, 10)


@pytest.mark.parametrize("noise_first", [True, False])
def test_a_large_cost_fits_beside_a_little_noise(noise_first):
    noise = nz.Gaussian(12).guarantee(1)
    costs = [noise, nz.Pure("1.4")] if noise_first else [nz.Pure("1.4"), noise]
    for plain, fits in (("1e-7", True), (0, False)):
        f = Filter(nz.Approx(2, "1e-6"), plain=plain)
        f.charge(costs[0])
        assert f.allows(costs[1]) == fits
    f = Filter(nz.Approx(2, "1e-6"), plain="1e-7")
    for cost in costs:
        f.charge(cost)
    assert f.spent.epsilon >= charge_of(noise).plain + Fraction("1.4")
    f.charge(f.left)
    assert f.spent <= f.budget
    assert not f.allows(nz.Pure("1e-6"))


def test_plain_sums_end_where_their_part_of_delta_does():
    f = Filter(nz.Approx(4, "1e-6"), plain="3e-11")
    for left in (True, True, True, False):
        f.charge(nz.ZCDP("1e-6"))
        assert f.allows(nz.Pure(3)) == left
    assert f.allows(nz.ZCDP("1e-6"))  # the other rule goes on


def test_so_many_times_is_as_often_as_it_can_be_charged():
    for first, cost in ((nz.Pure(1), nz.ZCDP("0.001")), (nz.ZCDP("0.001"), nz.Pure("0.1")), (nz.Pure(0), nz.Pure(1))):
        f = Filter(nz.Approx(2, "1e-6"), plain="1e-7")
        f.charge(first)
        most = next(k for k in range(1, 1000) if not f.allows(cost, times=k)) - 1
        for _ in range(most):
            f.charge(cost)
        assert not f.allows(cost)


def test_other_budgets_do_not_know_pairs():
    with pytest.raises(PrivacyError, match="not pure"):
        Filter(nz.Pure(9)).charge(nz.ZCDP("1e-6"))
    assert Filter(nz.ZCDP(1)).allows(nz.ZCDP(1))


def worst(plain_of, monkeypatch):
    """The delta(1) of the best adaptive strategy with pure responses, and others that are known by rho alone.

    At a delta of 0.02 for pairs, since at 1e-11 no strategy could be seen to break anything.
    """
    monkeypatch.setattr(charges, "_ASIDE", Fraction(1, 50))
    monkeypatch.setattr(charges, "_plain", plain_of)
    small, large = nz.Pure("0.2"), nz.ZCDP("0.18")  # a response with epsilon 0.6 keeps 0.18-zCDP

    @cache
    def accepts(few, many):
        state = charges.FilterState(charge_of(small) * few + charge_of(large) * many, None, "zcdp")
        return Filter(nz.Approx(1, "0.1"), reserve=0, plain="0.06", state=state).allows(nz.Pure(0))

    @cache
    def value(loss, few, many):
        best = -math.expm1(min(0.0, 1 - loss / 5))
        for step, then in ((1, (few + 1, many)), (3, (few, many + 1))):
            if accepts(*then):
                p = 1 / (1 + math.exp(-step / 5))
                best = max(best, p * value(loss + step, *then) + (1 - p) * value(loss - step, *then))
        return best

    return value(0, 0, 0)


def test_no_strategy_breaks_plain_sums_beside_the_other_rule(monkeypatch):
    assert 0 < worst(lambda rho: Fraction(zcdp_epsilon(rho, Fraction(1, 50))), monkeypatch) <= 0.1


def test_a_twin_with_a_pair_that_is_not_true_breaks(monkeypatch):
    assert worst(lambda rho: Fraction(1, 5), monkeypatch) > 0.1


# Refusals


@pytest.mark.parametrize(
    ("new", "first", "second", "why"),
    [
        (lambda: Filter(nz.Pure(1)), nz.Pure("0.9"), nz.Pure("0.2"), "0.1-DP left, and a cost of 0.2-DP does not fit"),
        (lambda: Filter(nz.Pure(1)), nz.Pure("0.5"), nz.ZCDP("0.001"), "not pure"),
        (lambda: Filter(nz.Pure(1)), nz.Pure("0.5"), nz.Approx("0.1", "1e-9"), "has a delta"),
        (lambda: Filter(nz.ZCDP(1)), nz.ZCDP("0.9"), nz.Pure(1), "0.1-zCDP left, and a cost of 1-DP does not fit"),
        (lambda: Filter(nz.ZCDP(1)), nz.ZCDP("0.9"), nz.Approx("0.1", "1e-9"), "has a delta"),
        (
            lambda: Filter(nz.Approx(1, "1e-6")),
            nz.Pure("0.5"),
            nz.Pure("0.6"),
            r"0.5, 1e-08\)-DP left, .* does not fit",
        ),
        (lambda: Filter(nz.Approx(1, "1e-6")), gaussian(Fraction(1, 10)), nz.ZCDP("1e-6"), "rule='zcdp'"),
        (
            lambda: Filter(nz.Approx(1, "1e-6")),
            gaussian(Fraction(1, 10)),
            nz.ZCDP("1e-6", losses=once(LatticeNormal(Fraction(500_000), 1))),
            "rule='zcdp'",
        ),
        (
            lambda: Filter(nz.Pure(1)),
            nz.Pure("0.1", neighbours=Neighbours.REPLACE),
            nz.Pure("0.1", neighbours=Neighbours.ADD_REMOVE),
            "under replace does not add",
        ),
    ],
)
def test_refusals_change_nothing(new, first, second, why):
    f = new()
    f.charge(first)
    before = (f.spent, f.left, f._state)
    with pytest.raises(PrivacyError, match=why) as refused:
        f.charge(second)
    assert str(refused.value).endswith(".")
    assert ". " not in str(refused.value)
    assert type(refused.value) is (BudgetError if "does not fit" in why else PrivacyError)
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
        lambda: Filter(nz.Pure(1), plain="1e-6"),
        lambda: Filter(nz.Approx(1, "1e-6"), plain="-1e-7"),
        lambda: Filter(nz.Approx(1, "1e-6"), plain="1e-6"),  # a hundredth is reserved
        lambda: Filter(nz.Approx(1, "1e-6"), rule="pld"),
        lambda: Filter(nz.Pure(1), rule="zcdp"),
        lambda: Filter(nz.Approx(1, "1e-6"), zcdp="1e-7"),  # beside which rule?
        lambda: Filter(nz.Approx(1, "1e-6"), rule="both", zcdp="1e-6"),
        lambda: Filter(nz.Approx(1, "1e-6"), rule="both", zcdp="-1e-7"),
        lambda: Filter(nz.Pure(1)).charge(0.1),
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
    numbers = list(f.left.numbers.values())
    assert not f.allows(type(f.left)(numbers[0] + Fraction(1, 10**9), *numbers[1:]))
    assert f.spent <= budget
    f.charge(f.left)
    assert f.spent <= budget


def test_spent_is_the_least_budget_that_would_do():
    f = Filter(nz.Approx(1, "1e-6"))
    for _ in range(30):
        f.charge(nz.Pure("0.02"))
    assert float(f.spent.epsilon) == pytest.approx(min(0.6, nz.ZCDP("0.006").epsilon_at("0.99e-6")), rel=1e-6)
    smaller = Filter(nz.Approx(f.spent.epsilon, "1e-6"))
    smaller.charge(nz.Pure("0.02") * 30)
    assert not Filter(nz.Approx(f.spent.epsilon - Fraction(1, 10**6), "1e-6")).allows(nz.Pure("0.02") * 30)


# Threads


@pytest.fixture
def impatient():
    """Threads that interrupt each other as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.slow_after(2)
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
            except BudgetError:
                assert f.spent <= budget
        return done

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(spend, range(16))) == times
    assert f.spent.epsilon_at("1e-6") == pytest.approx(budget.epsilon_at("1e-6"))


def test_coins_of_one_cost_are_thrown_together():
    """Two tests of one release tell all with a chance of 1 - (1 - d)^2, which is what their spend allowed."""
    d = Fraction(1, 1000)
    both = 2 * d - d * d
    cost = nz.Approx(1, d) + nz.Approx(1, d)
    assert charge_of(cost).delta == both
    assert Filter(nz.Approx(2, both), reserve=both).allows(cost)
    assert not Filter(nz.Approx(2, both), reserve=both - Fraction(1, 10**12)).allows(cost)
    assert charge_of(cost * 50).delta <= 100 * d
