"""Filters: budgets that hold when each cost is chosen after seeing earlier answers.

A sum of guarantees (`a + b`) is for costs that are fixed in advance. Where an analyst sees an answer and then chooses
the next cost, a filter adds up the costs and refuses the one that would break the budget.
[Rogers-Roth-Ullman-Vadhan 2016]   The rules are those of `charges`; without a budget, use an odometer.
"""

import math
import threading
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from noisette.errors import BudgetError, InputError, PrivacyError
from noisette.exact.number import Number, fraction
from noisette.exact.rational import exp_up, sqrt_up
from noisette.privacy.charges import Charge, FilterState, Rule, bounded, charge_of, checked_reserve
from noisette.privacy.convert import gaussian_delta, pure_within_approx, zcdp_delta, zcdp_epsilon
from noisette.privacy.guarantee import ZCDP, Approx, Guarantee, Promise, Pure
from noisette.privacy.neighbours import common
from noisette.privacy.odometer import FORKED
from noisette.privacy.pld.loss import Normal
from noisette.privacy.pld.tight import tight_epsilon
from noisette.process import here

__all__ = ["Filter"]

_SHOWN = 10**9  # epsilons of an Approx budget are shown in billionths


class Filter:
    """A budget for costs that may depend on earlier answers; it refuses a cost that would break it.

    budget        accepts while                                                  by
    Pure(e)       sum of e_i <= e                                                Rogers et al. 2016
    ZCDP(rho)     sum of rho_i <= rho, e_i-DP counted as e_i^2/2                 Feldman-Zrnic 2021
    Approx(e, d)  sum of e_i <= e, or else one of
      zcdp        sum of rho_i <= the rho that implies (e, rest)-DP              Whitehouse et al. 2023, Theorem 1
      gaussian    sum of mu_i^2 <= the mu^2 that implies (e, rest)-DP            Smith-Thakurta 2022
                  for rest = d - reserve - plain

    "zcdp" accepts at least as much as advanced composition, sqrt(2 ln(1/d) S) + S/2 <= e for S = sum of e_i^2: that is
    the plain conversion of S/2-zCDP, and the conversion used here is tighter (Canonne-Kamath-Steinke 2020). "gaussian"
    is exact for Gaussian noise and also counts e_i-DP (`square_of_pure`), but not costs known by zCDP alone. The rule
    of an Approx budget is `rule`, or is chosen by its first cost, which no answer has influenced: "gaussian" if that
    is Gaussian noise alone (and fine enough that a thousand like it fit into the reserve), else "zcdp".

    Mixed costs. For any pair of neighbours, e_i-DP is randomized response and mu_i-GDP a Gaussian, both post-processed;
    each enters the one sum of the rule. An (e_i, d_i) cost is e_i-DP except for an event of probability d_i. These d_i
    must add up to at most the `reserve`, a part of delta that is fixed in advance (by default a hundredth;
    `reserve=delta` is basic composition). So must (1 + e^e) times the total variation between Gaussian noise as
    accounted and as drawn.

    Plain sums with Gaussian noise. A cost known by rho alone has no e_i, so after one such cost the plain sum no longer
    applies. With `plain`, another part of delta that is fixed in advance, the cost enters the plain sum with its e_i at
    delta 1e-11, as long as those deltas add up to at most `plain` (proof in `charges`). Then a large pure cost still
    fits after a little Gaussian noise.

    >>> f, g = (Filter(Approx(2, "1e-6"), plain=part) for part in (0, "1e-7"))
    >>> f.charge(ZCDP("0.004")); g.charge(ZCDP("0.004"))
    >>> [round(float(filter.left.epsilon), 2) for filter in (f, g)]
    [0.41, 1.43]

    A refusal changes nothing: BudgetError says that the cost does not fit into what is left, another PrivacyError that
    the budget cannot count such a cost at all. Charge first, then draw noise. Any number of threads may charge; a
    forked process may not, since it has a copy of the budget. Costs may depend on earlier answers, never on the data
    itself.

    >>> f = Filter(Pure(1))
    >>> f.charge(Pure("0.4")); f.charge(Pure("0.4")); f.allows(Pure("0.4"))
    False
    >>> f.spent, f.left
    (Pure('4/5'), Pure('1/5'))
    >>> f.charge(Pure("0.4"))
    Traceback (most recent call last):
        ...
    noisette.errors.BudgetError: The budget has 0.2-DP left, and a cost of 0.4-DP does not fit: ask for less, or stop.
    """

    def __init__(
        self,
        budget: Promise,
        *,
        reserve: Number | None = None,
        plain: Number = 0,
        rule: Rule | None = None,
        state: FilterState | None = None,
    ) -> None:
        if not isinstance(budget, Pure | Approx | ZCDP):
            raise InputError("A budget must be a Pure, Approx or ZCDP: Filter(Approx(1, '1e-6')).")
        if rule not in (None, "zcdp", "gaussian") or (rule and not isinstance(budget, Approx)):
            raise InputError("rule must be 'zcdp' or 'gaussian', for an Approx budget.")
        self.budget = budget
        whole = budget.delta
        self.reserve = checked_reserve(reserve, whole)
        self.plain = fraction(plain, "plain")
        if not 0 <= self.plain <= whole - self.reserve:
            raise InputError("plain must lie between 0 and delta minus reserve: it is another part of delta.")
        self._parts = _Parts(self.reserve, self.plain, whole - self.reserve - self.plain)
        self._lock, self._process = threading.Lock(), here()
        self._state = FilterState(Charge(), budget.neighbours, rule) if state is None else state

    @property
    def state(self) -> FilterState:
        """What was spent, exactly; a filter constructed with it continues from there."""
        return self._state

    def __repr__(self) -> str:
        return f"Filter({self.budget!r}, spent={self.spent!r})"

    def allows(self, cost: Guarantee, *, times: int = 1) -> bool:
        """Return whether the cost could be charged now, `times` times; another thread may charge first."""
        state, charge = self._state, charge_of(cost)
        common(state.neighbours, cost.neighbours)
        first = self._after(state, charge, cost)
        rest = replace(first, total=first.total + charge * (times - 1))
        return _fits(self.budget, self._parts, rest)

    def _after(self, state: FilterState, charge: Charge, cost: Guarantee) -> FilterState:
        """The state after a cost; the first cost chooses the rule, "gaussian" only if its slack is small enough."""
        after = state.plus(charge, cost.neighbours)
        if state.rule is not None or after.rule != "gaussian" or not isinstance(self.budget, Approx):
            return after
        rough = 1000 * _with_slack(after.total, self.budget.epsilon) > self.reserve
        return replace(after, rule="zcdp") if rough else after

    def charge(self, cost: Guarantee) -> None:
        """Spend the cost, or raise BudgetError (PrivacyError if it is of another kind) and change nothing."""
        charge = charge_of(cost)
        if here() != self._process:
            raise PrivacyError(FORKED)
        with self._lock:
            before, after = self._state, self._after(self._state, charge, cost)
            if _fits(self.budget, self._parts, after):
                self._state = after
                return
        _check_kind(self.budget, after, charge)
        raise BudgetError(_refusal(self.budget, self._parts, before, after, cost))

    @property
    def spent(self) -> Promise:
        """What was spent, as the smallest budget of this kind that would have allowed it, rounded up.

        For an Approx budget it shows how full the budget is, at the same delta and reserve. It is no guarantee for
        an analyst who stops because of the answers: that is the whole budget, or the epsilon of an odometer.
        """
        state = self._state
        match self.budget:
            case Pure():
                return Pure(_known(state.total.epsilon), neighbours=state.neighbours)
            case ZCDP():
                return ZCDP(_known(state.total.rho), neighbours=state.neighbours)
            case Approx():
                return _least_budget(self.budget, self._parts, state)

    @property
    def left(self) -> Promise:
        """The largest cost of the budget's kind that is still allowed, rounded down."""
        return _left(self.budget, self._parts, self._state)


class _Parts(NamedTuple):
    """The parts of a budget's delta: for the costs' own deltas, for the plain sum, and for the other rule."""

    own: Fraction
    plain: Fraction
    rule: Fraction


def _known(number: Fraction | None) -> Fraction:
    assert number is not None
    return number


def _fits(budget: Promise, parts: _Parts, state: FilterState) -> bool:
    total = state.total
    if total.delta > parts.own:
        return False
    match budget:
        case Pure():
            return total.epsilon is not None and total.epsilon <= budget.epsilon
        case ZCDP():
            return total.rho is not None and total.rho <= budget.rho
        case Approx():
            plainly = _plainly(total, parts)
            return (plainly is not None and plainly <= budget.epsilon) or _fits_rule(budget, parts, state)


def _plainly(total: Charge, parts: _Parts) -> Fraction | None:
    """The plain sum of epsilons, if its deltas fit into their part of delta."""
    return total.plain if total.aside <= parts.plain else None


def _fits_rule(budget: Approx, parts: _Parts, state: FilterState) -> bool:
    total = state.total
    if state.rule == "gaussian":
        if total.square is None or _with_slack(total, budget.epsilon) > parts.own:
            return False
        return Fraction(gaussian_delta(sqrt_up(total.square), budget.epsilon)) <= parts.rule
    if total.rho is None:
        return False
    return not total.rho or Fraction(zcdp_delta(total.rho, budget.epsilon)) <= parts.rule


def _with_slack(total: Charge, e: Fraction) -> Fraction:
    return total.delta + (total.slack * (1 + exp_up(e)) if total.slack else 0)


def _check_kind(budget: Promise, after: FilterState, charge: Charge) -> None:
    """Refuse a cost that the budget's rule cannot count at all; the error says what to do instead."""
    if charge.delta and not isinstance(budget, Approx):
        raise PrivacyError("This cost has a delta and the budget has none: open the filter with an Approx budget.")
    if isinstance(budget, Pure) and charge.epsilon is None:
        raise PrivacyError("This cost is not pure and the budget is: open the filter with an Approx or ZCDP budget.")
    if charge.rho is None:
        raise PrivacyError(
            "This cost has neither an epsilon nor a rho: charge Approx(cost.epsilon_at(d), d) for a small d instead."
        )
    if isinstance(budget, Approx) and after.rule == "gaussian" and after.total.square is None:
        raise PrivacyError(
            "This filter counts Gaussian noise, and the cost is known by zCDP alone: open a filter with rule='zcdp'."
        )


def _refusal(budget: Promise, parts: _Parts, before: FilterState, after: FilterState, cost: Guarantee) -> str:
    """One sentence that says what is left and what to do."""
    own = after.total.delta
    if isinstance(budget, Approx) and after.rule == "gaussian":
        own = _with_slack(after.total, budget.epsilon)
    if own > parts.own:
        return (
            f"The costs' own deltas would exceed their reserve of {float(parts.own):.3g}: "
            "ask with a smaller delta, or open a filter with a larger reserve."
        )
    left = _left(budget, parts, before)
    return f"The budget has {left} left, and a cost of {cost} does not fit: ask for less, or stop."


def _left(budget: Promise, parts: _Parts, state: FilterState) -> Promise:
    match budget:
        case Pure():
            return Pure(budget.epsilon - _known(state.total.epsilon), neighbours=state.neighbours)
        case ZCDP():
            return ZCDP(budget.rho - _known(state.total.rho), neighbours=state.neighbours)
        case Approx():
            return _largest_cost(budget, parts, state)


def _least_budget(budget: Approx, parts: _Parts, state: FilterState) -> Approx:
    total, d, plainly = state.total, parts.rule, _plainly(state.total, parts)
    if total == Charge():
        return Approx(0, 0, neighbours=state.neighbours)
    found = math.inf
    if state.rule == "gaussian" and total.square is not None and d:
        found = tight_epsilon(((Normal(sqrt_up(total.square)), 1),), Fraction(0), d) if total.square else 0.0
    if state.rule == "zcdp" and total.rho is not None:
        found = zcdp_epsilon(total.rho, d) if total.rho else 0.0
    bounds = [budget.epsilon] if plainly is None else [budget.epsilon, _rounded_up(plainly) if total.aside else plainly]
    if found < math.inf:
        bounds.append(_rounded_up(Fraction(found)))
    return Approx(min(bounds), budget.delta, neighbours=state.neighbours)


def _rounded_up(number: Fraction) -> Fraction:
    return Fraction(math.ceil(number * _SHOWN), _SHOWN)


def _largest_cost(budget: Approx, parts: _Parts, state: FilterState) -> Approx:
    """The largest pure cost that fits, by bisection up to the epsilon that implies the whole budget."""
    d = max(Fraction(0), parts.own - _with_slack(state.total, budget.epsilon))

    def fits(n: int) -> bool:
        return _fits(budget, parts, state.plus(bounded(Fraction(n, _SHOWN), d), None))

    if not fits(0):
        return Approx(0, 0, neighbours=state.neighbours)
    low, high = 0, math.floor(pure_within_approx(budget.epsilon, budget.delta) * _SHOWN) + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return Approx(Fraction(low, _SHOWN), d, neighbours=state.neighbours)
