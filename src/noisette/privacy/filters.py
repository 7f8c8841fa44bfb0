"""Filters and odometers: budgets that hold when each cost is chosen in the light of earlier answers.

A sum of guarantees (`a + b`) is about costs that are settled in advance. Where an analyst sees an answer and then
decides what the next one may cost, a rule must look at the costs alone and refuse before the budget breaks.
[Rogers-Roth-Ullman-Vadhan 2016]

Rules that lose nothing by that freedom (every sum is over the costs on the way that was really taken):
 - pure:      sum of e_i <= e keeps e-DP, as the losses themselves are bounded one by one;
 - zCDP:      sum of rho_i <= rho keeps rho-zCDP.   [Feldman-Zrnic 2021; Whitehouse-Ramdas-Rogers-Wu 2023]
 - Gaussian:  sum of mu_i^2 <= mu^2 keeps mu-GDP: for mu_i settled by what came before, E exp(s sum of mu_i Z_i) is
              that of one normal variable.   [Smith-Thakurta 2022; Koskela-Tobaben-Honkela 2023]
Tight numerical composition of the costs so far is NOT such a rule, and neither is "this rule or that one", where each
would use the whole of delta. The pure rule has no delta, so it may stand beside another one: ways that end within it
add nothing to delta, and the others end within the other rule.

Vocabulary: `e`, `d` epsilon and delta · `rho` zCDP · `square` mu^2 · `slack` total variation · `reserve` the part of
delta for the costs' own deltas.
"""

import math
import threading
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, TypeAlias

from noisette.errors import InputError, PrivacyError
from noisette.exact.number import Number, fraction, nearest_float, positive
from noisette.exact.rational import exp_up, sqrt_up
from noisette.privacy.convert import gaussian_delta, pure_to_zcdp, pure_within_approx, zcdp_delta, zcdp_epsilon
from noisette.privacy.guarantee import ZCDP, Approx, Guarantee, Ledger, Profile, Promise, Pure
from noisette.privacy.loss import Loss, Normal, Response, Subsampled
from noisette.privacy.neighbours import Neighbours, common
from noisette.privacy.sampling import amplified
from noisette.privacy.tight import tight_epsilon

__all__ = ["Filter", "Odometer"]

Rule: TypeAlias = Literal["zcdp", "gaussian"]

_RESERVE = Fraction(1, 100)
_SHOWN = 10**9  # epsilons of an Approx budget are told in billionths
_BASEL = Fraction(607_927, 10**6)  # below 6/pi^2
_GROWTH = Fraction(5, 4)
_HALF_PI = Fraction(355, 226)  # above pi/2


# What a cost takes


@dataclass(frozen=True)
class _Charge:
    """What a cost takes by each rule; None where the rule cannot count it."""

    eps: Fraction | None = Fraction(0)
    rho: Fraction | None = Fraction(0)
    square: Fraction | None = Fraction(0)
    delta: Fraction = Fraction(0)
    slack: Fraction = Fraction(0)

    def __add__(self, other: "_Charge") -> "_Charge":
        return _Charge(
            _plus(self.eps, other.eps),
            _plus(self.rho, other.rho),
            _plus(self.square, other.square),
            self.delta + other.delta,
            self.slack + other.slack,
        )

    def __mul__(self, k: int) -> "_Charge":
        eps, rho, square = (None if a is None else k * a for a in (self.eps, self.rho, self.square))
        return _Charge(eps, rho, square, k * self.delta, k * self.slack)


_UNKNOWN = _Charge(None, None, None)


def _plus(a: Fraction | None, b: Fraction | None) -> Fraction | None:
    return None if a is None or b is None else a + b


def _least(a: Fraction | None, b: Fraction | None) -> Fraction | None:
    return min((x for x in (a, b) if x is not None), default=None)


def square_of_pure(e: Fraction) -> Fraction:
    """The mu^2 of the Gaussian pair that dominates every e-DP mechanism, rounded up.

    mu = 2 Phi^-1(e^e / (1 + e^e)): there the two trade-off curves touch, and both are convex. It is below e sqrt(pi/2).
    [Blackwell 1953 and Dong-Roth-Su 2022, for the pair of Kairouz-Oh-Viswanath 2015]

    >>> round(float(square_of_pure(Fraction(1))) ** 0.5, 6)
    1.232035
    """
    if e <= Fraction(1, 64):
        return _HALF_PI * e * e
    if e > 700:
        return 8 * e  # Phi(-x) <= e^(-x^2/2) / 2
    from scipy.special import ndtri

    mu = -2 * float(ndtri(1 / (1 + math.exp(e)))) * (1 + 2.0**-36)
    return min(_HALF_PI * e * e, Fraction(mu) ** 2)


def _bounded(e: Fraction, d: Fraction = Fraction(0)) -> _Charge:
    """(e, d)-DP: with probability d all is told, otherwise it is e-DP.   [Kairouz-Oh-Viswanath 2015]"""
    return _Charge(e, pure_to_zcdp(e), square_of_pure(e), d)


def _of_loss(loss: Loss) -> _Charge:
    match loss:
        case Response(e, d):
            return _bounded(e, d)
        case Subsampled(base=Response(e, d), rate=q):
            return _bounded(amplified(e, q), q * d)
        case Normal(mu, variation):
            return _Charge(None, mu**2 / 2, mu**2, slack=variation)
        case _:
            bound = loss.pure()
            return _Charge(None, loss.rho(), None) if bound is None else _bounded(bound)


def _of_ledger(ledger: Ledger) -> _Charge:
    total = _Charge(None, ledger.rho, None) if ledger.rho else _Charge()
    for loss, count in ledger.parts:
        total += _of_loss(loss) * count
    return total


def _of_statement(cost: Guarantee) -> _Charge:
    match cost:
        case Pure():
            return _bounded(cost.eps)
        case Approx():
            return _bounded(cost.eps, cost.delta0)
        case ZCDP():
            return _Charge(None, cost.rho, None)
        case Profile():
            return _UNKNOWN


def _charge(cost: Guarantee) -> _Charge:
    """What a cost takes: the less of what its statement and its ledger say.

    With a delta, one of them speaks for all rules, the ledger if it can: "all is told" must be the same event in each.
    """
    if not isinstance(cost, Pure | Approx | ZCDP | Profile):
        raise InputError("A cost must be a Pure, Approx, ZCDP or Profile: take a mechanism's .guarantee(distance).")
    stated = _of_statement(cost)
    known = _UNKNOWN if cost.ledger is None else _of_ledger(cost.ledger)
    if stated.delta or known.delta:
        return stated if known.rho is None else known
    return _Charge(
        _least(stated.eps, known.eps),
        _least(stated.rho, known.rho),
        _least(stated.square, known.square),
        slack=known.slack,
    )


def _check_reserve(reserve: Number | None, delta: Fraction) -> Fraction:
    part = _RESERVE * delta if reserve is None else fraction(reserve, "reserve")
    if not 0 <= part <= delta:
        raise InputError("reserve must lie between 0 and delta: it is the part of delta for the costs' own deltas.")
    return part


# The filter


@dataclass(frozen=True)
class _State:
    """What was spent, under which relation, and by which rule an Approx budget is counted."""

    total: _Charge
    neighbours: Neighbours | None
    rule: Rule | None


class Filter:
    """A budget that may be spent in steps that depend on earlier answers; it refuses what would break it.

    budget        accepts while                                                  by
    Pure(e)       sum of e_i <= e                                                Rogers et al. 2016
    ZCDP(rho)     sum of rho_i <= rho, e_i-DP counted as e_i^2/2                 Feldman-Zrnic 2021
    Approx(e, d)  sum of e_i <= e, or else one of
      zcdp        sum of rho_i <= the rho that implies (e, d - reserve)-DP       Whitehouse et al. 2023, Theorem 1
      gaussian    sum of mu_i^2 <= the mu^2 that implies (e, d - reserve)-DP     Smith-Thakurta 2022

    "zcdp" is never less than advanced composition, sqrt(2 ln(1/d) S) + S/2 <= e for S = sum of e_i^2: that is the
    plain conversion of S/2-zCDP, and the one used here is tighter (Canonne-Kamath-Steinke 2020). "gaussian" is exact
    for Gaussian noise and also counts e_i-DP (`square_of_pure`), but not what is known by zCDP alone. The rule of an
    Approx budget is `rule`, or settled by its first cost, which no answer has influenced: "gaussian" if that is
    Gaussian noise alone, else "zcdp".

    Mixed costs. For any one pair of neighbours, e_i-DP is randomized response and mu_i-GDP a Gaussian, both processed
    further; each enters the one sum of the rule. An (e_i, d_i) cost is e_i-DP but for an event of probability d_i;
    those must add up to at most the `reserve`, a part of delta that is fixed before (a hundredth of it unless said
    otherwise; `reserve=delta` is basic composition). So must (1 + e^e) times the total variation between Gaussian
    noise as accounted and as drawn.

    A refusal raises PrivacyError and leaves everything as it was. Charge first, draw noise then. Any number of threads
    may charge. Costs may depend on earlier answers, never on the data itself.

    >>> f = Filter(Pure(1))
    >>> f.charge(Pure("0.4")); f.charge(Pure("0.4")); f.allows(Pure("0.4"))
    False
    >>> f.spent, f.left
    (Pure('4/5'), Pure('1/5'))
    """

    def __init__(self, budget: Promise, *, reserve: Number | None = None, rule: Rule | None = None) -> None:
        if not isinstance(budget, Pure | Approx | ZCDP):
            raise InputError("A budget must be a Pure, Approx or ZCDP: Filter(Approx(1, '1e-6')).")
        if rule not in (None, "zcdp", "gaussian") or (rule and not isinstance(budget, Approx)):
            raise InputError("rule must be 'zcdp' or 'gaussian', for an Approx budget.")
        self.budget = budget
        self.reserve = _check_reserve(reserve, budget.delta0 if isinstance(budget, Approx) else Fraction(0))
        self._lock = threading.Lock()
        self._state = _State(_Charge(), budget.neighbours, rule)

    def __repr__(self) -> str:
        return f"Filter({self.budget!r}, spent={self.spent!r})"

    def allows(self, cost: Guarantee) -> bool:
        """Tell whether the cost could be charged now; another thread may be faster."""
        state, charge = self._state, _charge(cost)
        common(state.neighbours, cost.neighbours)
        return _fits(self.budget, self.reserve, _after(state, charge, cost.neighbours))

    def charge(self, cost: Guarantee) -> None:
        """Spend the cost, or raise PrivacyError and change nothing."""
        charge = _charge(cost)
        with self._lock:
            after = _after(self._state, charge, cost.neighbours)
            if not _fits(self.budget, self.reserve, after):
                raise PrivacyError(_refusal(self.budget, self.reserve, after, charge))
            self._state = after

    @property
    def spent(self) -> Promise:
        """What was spent, as the least budget of this kind that would have allowed it, rounded up.

        For an Approx budget this is a way to tell how full it is, with the same delta and reserve. It is no guarantee
        for one who stops because of what the answers were: that is the budget's own, or an odometer's.
        """
        state = self._state
        match self.budget:
            case Pure():
                return Pure(_known(state.total.eps), neighbours=state.neighbours)
            case ZCDP():
                return ZCDP(_known(state.total.rho), neighbours=state.neighbours)
            case Approx():
                return _least_budget(self.budget, self.reserve, state)

    @property
    def left(self) -> Promise:
        """The largest cost of the budget's kind that is still allowed, rounded down."""
        state = self._state
        match self.budget:
            case Pure():
                return Pure(self.budget.eps - _known(state.total.eps), neighbours=state.neighbours)
            case ZCDP():
                return ZCDP(self.budget.rho - _known(state.total.rho), neighbours=state.neighbours)
            case Approx():
                return _largest_cost(self.budget, self.reserve, state)


def _known(number: Fraction | None) -> Fraction:
    assert number is not None
    return number


def _after(state: _State, charge: _Charge, neighbours: Neighbours | None) -> _State:
    rule = state.rule
    if rule is None and charge != _Charge():
        rule = "gaussian" if charge.eps is None and charge.square is not None else "zcdp"
    return _State(state.total + charge, common(state.neighbours, neighbours), rule)


def _fits(budget: Promise, reserve: Fraction, state: _State) -> bool:
    total = state.total
    if total.delta > reserve:
        return False
    match budget:
        case Pure():
            return total.eps is not None and total.eps <= budget.eps
        case ZCDP():
            return total.rho is not None and total.rho <= budget.rho
        case Approx():
            purely = total.eps is not None and total.eps <= budget.eps
            return purely or _fits_rule(budget, reserve, state)


def _fits_rule(budget: Approx, reserve: Fraction, state: _State) -> bool:
    total, allowed = state.total, budget.delta0 - reserve
    if state.rule == "gaussian":
        if total.square is None or _with_slack(total, budget.eps) > reserve:
            return False
        return Fraction(gaussian_delta(sqrt_up(total.square), budget.eps)) <= allowed
    if total.rho is None:
        return False
    return not total.rho or Fraction(zcdp_delta(total.rho, budget.eps)) <= allowed


def _with_slack(total: _Charge, e: Fraction) -> Fraction:
    return total.delta + (total.slack * (1 + exp_up(e)) if total.slack else 0)


def _refusal(budget: Promise, reserve: Fraction, after: _State, charge: _Charge) -> str:
    """One sentence on why the cost is refused, and what can be done."""
    if charge.delta and not isinstance(budget, Approx):
        return "This cost has a delta and the budget has none: open the filter with an Approx budget."
    if isinstance(budget, Pure) and charge.eps is None:
        return "This cost is not pure and the budget is: open the filter with an Approx or ZCDP budget."
    if charge.rho is None:
        return (
            "This cost is known neither by epsilon nor by rho: charge Approx(cost.epsilon(d), d) for a small d instead."
        )
    own = after.total.delta
    if isinstance(budget, Approx) and after.rule == "gaussian":
        if after.total.square is None:
            return "This filter counts Gaussian noise and the cost is known by zCDP alone: open one with rule='zcdp'."
        own = _with_slack(after.total, budget.eps)
    if own > reserve:
        return "The costs' own deltas would exceed what is set aside for them: open a filter with a larger reserve."
    return "This cost does not fit into what is left of the budget: ask for less, or stop."


def _least_budget(budget: Approx, reserve: Fraction, state: _State) -> Approx:
    total, d = state.total, budget.delta0 - reserve
    if total == _Charge():
        return Approx(0, 0, neighbours=state.neighbours)
    found = math.inf
    if state.rule == "gaussian" and total.square is not None and d:
        found = tight_epsilon(((Normal(sqrt_up(total.square)), 1),), Fraction(0), d) if total.square else 0.0
    if state.rule == "zcdp" and total.rho is not None:
        found = zcdp_epsilon(total.rho, d) if total.rho else 0.0
    bounds = [budget.eps] if total.eps is None else [budget.eps, total.eps]
    if found < math.inf:
        bounds.append(Fraction(math.ceil(Fraction(found) * _SHOWN), _SHOWN))
    return Approx(min(bounds), budget.delta0, neighbours=state.neighbours)


def _largest_cost(budget: Approx, reserve: Fraction, state: _State) -> Approx:
    """By bisection; nothing above what implies the whole budget can fit."""
    d = max(Fraction(0), reserve - _with_slack(state.total, budget.eps))

    def fits(n: int) -> bool:
        return _fits(budget, reserve, _after(state, _bounded(Fraction(n, _SHOWN), d), None))

    if not fits(0):
        return Approx(0, 0, neighbours=state.neighbours)
    low, high = 0, math.floor(pure_within_approx(budget.eps, budget.delta0) * _SHOWN) + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return Approx(Fraction(low, _SHOWN), d, neighbours=state.neighbours)


# The odometer


class Odometer:
    """A running epsilon that is valid whenever one stops, for whatever reason, and whatever the costs depended on.

    For all neighbours x, x' and all sets S of what is seen until one stops, with `epsilon` as it stands then:
        P(x -> S) <= E(e^epsilon; x' -> S) + delta.
    Proof. Level j is a zCDP filter with rho_j = first (5/4)^(j-1), which alone keeps (e_j, d_j)-DP, d_j = 6 d/(pi j)^2.
    What is reported is the e_j of the first level that holds all costs, or their pure sum if that is less. Split S by
    what is reported: each piece lies within its own filter, and the d_j add up to at most d; the pure sum bounds every
    loss and needs none. The costs' own deltas add up to at most the `reserve`, a part of delta; beyond it, or for a
    cost known neither by epsilon nor by rho, epsilon is infinite.   [in the style of Rogers et al. 2016]

    The price of never naming a budget is a factor of about 1.2 to 1.4 over that of a filter. It never decreases, and is
    rounded up.

    >>> o = Odometer("1e-6")
    >>> o.charge(Pure("0.1")); o.epsilon()
    0.1
    >>> for _ in range(99): o.charge(Pure("0.1"))
    >>> round(o.epsilon(), 3), round((Pure("0.1") * 100).epsilon("1e-6"), 3)      # the latter if settled in advance
    (6.65, 4.775)
    """

    def __init__(self, delta: Number, *, reserve: Number | None = None, first: Number = "0.001") -> None:
        whole = positive(delta, "delta")
        if whole >= 1:
            raise InputError("delta must be above 0 and below 1: a usual one is '1e-6'.")
        self.delta, self.reserve, self.first = whole, _check_reserve(reserve, whole), positive(first, "first")
        self._lock = threading.Lock()
        self._state = _State(_Charge(), None, "zcdp")

    def __repr__(self) -> str:
        return f"Odometer({str(self.delta)!r}, epsilon={self.epsilon()!r})"

    def charge(self, cost: Guarantee) -> None:
        """Count the cost; nothing but another neighbouring relation is refused."""
        charge = _charge(cost)
        with self._lock:
            self._state = _after(self._state, replace(charge, square=None), cost.neighbours)

    def epsilon(self) -> float:
        """Return what holds now, with the odometer's delta; rounded up."""
        total = self._state.total
        if total.delta > self.reserve:
            return math.inf
        bounds = [math.inf] if total.eps is None else [nearest_float(total.eps, up=True)]
        if total.rho:
            level, rho = 1, self.first
            while rho < total.rho:
                level, rho = level + 1, rho * _GROWTH
            bounds.append(zcdp_epsilon(rho, _BASEL * (self.delta - self.reserve) / level**2))
        return min(bounds)
