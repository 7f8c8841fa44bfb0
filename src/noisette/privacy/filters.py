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
_BESIDE = Fraction(3, 20)  # of delta, for the zCDP rule beside the Gaussian one
_ENOUGH = 200  # an epsilon beyond which no noise that can be drawn is near enough to what is accounted
_SLACK = Fraction(1, 1000)  # of delta, for Gaussian noise as drawn beside both rules: ledgers rely on it for ever


class Filter:
    """A budget for costs that may depend on earlier answers; it refuses a cost that would break it.

    budget        accepts while                                                  by
    Pure(e)       sum of e_i <= e                                                Rogers et al. 2016
    ZCDP(rho)     sum of rho_i <= rho, e_i-DP counted as e_i^2/2                 Feldman-Zrnic 2021
    Approx(e, d)  sum of e_i <= e, or else one of
      zcdp        sum of rho_i <= the rho that implies (e, rest)-DP              Whitehouse et al. 2023, Theorem 1
      gaussian    sum of mu_i^2 <= the mu^2 that implies (e, rest)-DP            Smith-Thakurta 2022
                  for rest = d - reserve - plain
      both        one of these two, each with a part of delta of its own

    "zcdp" accepts at least as much as advanced composition, sqrt(2 ln(1/d) S) + S/2 <= e for S = sum of e_i^2: that is
    the plain conversion of S/2-zCDP, and the conversion used here is tighter (Canonne-Kamath-Steinke 2020). "gaussian"
    is exact for Gaussian noise and also counts e_i-DP (`square_of_pure`), but not costs known by zCDP alone. The rule
    of an Approx budget is `rule`, or is chosen by its first cost, which no answer has influenced: "gaussian" if that
    is Gaussian noise alone (and fine enough that a thousand like it fit into the reserve), else "zcdp".

    "both" suits those who do not know what will be asked: `zcdp` is the part of delta for that rule (by default
    3/20), a thousandth of delta pays for the difference of Gaussian noise as accounted and as drawn, and the rest
    is for "gaussian". A cost of any kind can be counted, and Gaussian noise almost exactly. (Proof note:
    docs/proofs/composition.md)

    >>> from noisette.privacy import Profile
    >>> one = Profile.gaussian("0.1")                       # composed exactly, 104 fit
    >>> [Filter(Approx(5, "1e-6"), rule=rule).allows(one, times=102) for rule in ("zcdp", "both")]
    [False, True]

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
        zcdp: Number | None = None,
        rule: Rule | None = None,
        state: FilterState | None = None,
    ) -> None:
        if not isinstance(budget, Pure | Approx | ZCDP):
            raise InputError("A budget must be a Pure, Approx or ZCDP: Filter(Approx(1, '1e-6')).")
        if rule not in (None, "zcdp", "gaussian", "both") or (rule and not isinstance(budget, Approx)):
            raise InputError("rule must be 'zcdp', 'gaussian' or 'both', for an Approx budget.")
        self.budget = budget
        self._state = FilterState(Charge(), budget.neighbours, rule) if state is None else state
        self._parts = _parts(budget.delta, reserve, plain, zcdp, both=self._state.rule == "both")
        self._lock, self._process = threading.Lock(), here()

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
        rough = 1000 * _with_slack(after.total, self.budget.epsilon) > self._parts.own
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
    """The parts of a budget's delta: for the costs' own deltas, for the plain sum, and for the other rules.

    `rule` is that of the single other rule, or of the Gaussian one where `zcdp` is that of zCDP; then `slack` is for
    the difference of Gaussian noise as accounted and as drawn, which otherwise counts among the costs' own deltas.
    """

    own: Fraction
    plain: Fraction
    rule: Fraction
    zcdp: Fraction
    slack: Fraction | None


def _parts(delta: Fraction, reserve: Number | None, plain: Number, zcdp: Number | None, *, both: bool) -> _Parts:
    own, pairs = checked_reserve(reserve, delta), fraction(plain, "plain")
    if not 0 <= pairs <= delta - own:
        raise InputError("plain must lie between 0 and delta minus reserve: it is another part of delta.")
    rest = delta - own - pairs
    if not both:
        if zcdp is not None:
            raise InputError("zcdp is the part of delta for that rule beside another: say rule='both', too.")
        return _Parts(own, pairs, rest, rest, None)
    slack = _SLACK * delta
    part = _BESIDE * delta if zcdp is None else fraction(zcdp, "zcdp")
    if not 0 <= part <= rest - slack:
        raise InputError(
            "zcdp must lie between 0 and 0.999 delta minus reserve and plain: it is another part of delta."
        )
    return _Parts(own, pairs, rest - slack - part, part, slack)


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
    total, e = state.total, budget.epsilon
    if state.rule in ("gaussian", "both") and _fits_gaussian(total, parts, e):
        return True
    if state.rule == "gaussian" or total.rho is None:
        return False
    return not total.rho or Fraction(zcdp_delta(total.rho, e)) <= parts.zcdp


def _fits_gaussian(total: Charge, parts: _Parts, e: Fraction) -> bool:
    if total.square is None or not _drawn_as_accounted(total, parts, e):
        return False
    return Fraction(gaussian_delta(sqrt_up(total.square), e)) <= parts.rule


def _drawn_as_accounted(total: Charge, parts: _Parts, e: Fraction) -> bool:
    """Whether the difference of Gaussian noise as drawn fits into its part of delta."""
    if parts.slack is None:
        return _with_slack(total, e) <= parts.own
    if total.slack and e > _ENOUGH:
        return False
    return _with_slack(total, e) - total.delta <= parts.slack


def _with_slack(total: Charge, e: Fraction) -> Fraction:
    return total.delta + (total.slack * (1 + exp_up(e)) if total.slack else 0)


def _own(total: Charge, parts: _Parts, e: Fraction) -> Fraction:
    """What is taken of the part for the costs' own deltas."""
    return _with_slack(total, e) if parts.slack is None else total.delta


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
        own = _own(after.total, parts, budget.epsilon)
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
    total, plainly = state.total, _plainly(state.total, parts)
    if total == Charge():
        return Approx(0, 0, neighbours=state.neighbours)
    bounds = [budget.epsilon] if plainly is None else [budget.epsilon, _rounded_up(plainly) if total.aside else plainly]
    bounds += [_rounded_up(Fraction(found)) for found in _epsilons(budget, parts, state) if found < math.inf]
    return Approx(min(bounds), budget.delta, neighbours=state.neighbours)


def _epsilons(budget: Approx, parts: _Parts, state: FilterState) -> list[float]:
    """The least epsilon by each of the other rules that can count what was spent."""
    total, found = state.total, []
    gaussian = state.rule in ("gaussian", "both") and total.square is not None and parts.rule
    if gaussian and total.square is not None and _drawn_as_accounted(total, parts, budget.epsilon):
        sums = ((Normal(sqrt_up(total.square)), 1),)
        found.append(tight_epsilon(sums, Fraction(0), parts.rule) if total.square else 0.0)
    if state.rule in ("zcdp", "both") and total.rho is not None:
        found.append(zcdp_epsilon(total.rho, parts.zcdp) if total.rho else 0.0)
    return found


def _rounded_up(number: Fraction) -> Fraction:
    return Fraction(math.ceil(number * _SHOWN), _SHOWN)


def _largest_cost(budget: Approx, parts: _Parts, state: FilterState) -> Approx:
    """The largest pure cost that fits, by bisection up to the epsilon that implies the whole budget."""
    d = max(Fraction(0), parts.own - _own(state.total, parts, budget.epsilon))

    def fits(n: int) -> bool:
        return _fits(budget, parts, state.plus(bounded(Fraction(n, _SHOWN), d), None))

    if not fits(0):
        return Approx(0, 0, neighbours=state.neighbours)
    low, high = 0, math.floor(pure_within_approx(budget.epsilon, budget.delta) * _SHOWN) + 1
    plainly = _plainly(state.total, parts)
    guess = low if plainly is None else math.floor((budget.epsilon - plainly) * _SHOWN)  # right while questions are few
    while high - low > 1:
        middle = guess if low < guess < high else guess + 1 if guess == low else (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return Approx(Fraction(low, _SHOWN), d, neighbours=state.neighbours)
