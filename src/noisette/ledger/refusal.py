"""What people read when a ledger refuses: what is left, what was asked, and what to do."""

from fractions import Fraction

from noisette.answers.figures import promise, rounded
from noisette.privacy import ZCDP, Approx, Filter, Guarantee, Promise, Pure
from noisette.privacy.charges import charge_of
from noisette.privacy.guarantee import once
from noisette.privacy.pld.loss import Normal

__all__ = [
    "ACCEPT",
    "BUDGET",
    "GAP",
    "REBIND",
    "RESTORE",
    "START_OVER",
    "UNCHARGED",
    "refusal",
    "unfit",
]

ACCEPT = "`noisette ledger accept`, or noisette.ledger.accept in Python"
REBIND = "`noisette ledger rebind --why …`, or noisette.ledger.rebind in Python"
BUDGET = "`noisette ledger budget`, or ledger.raise_budget in Python"
UNCHARGED = "Nothing was charged under this key: charge first, then draw, then keep."
GAP = "States are kept one after the other: the one before this is not there."
START_OVER = "`noisette open … --start-over --why …`, or start_over='why' in Python"
RESTORE = f"restore a backup and accept it ({ACCEPT})"

_DIGITS = 4
_STEPS = 2**20


def refusal(filter: Filter, cost: Guarantee, whose: str) -> str:
    """One sentence on a cost that a budget does not hold; what is left is rounded down, what is asked up.

    >>> refusal(Filter(Pure(1)), Pure("4/3"), "The budget")
    'The budget has ε = 1 left and this question costs ε = 1.334: spend less on it (explain shows the error), or stop.'
    """
    own = charge_of(cost).delta
    room = filter.left.delta
    if own > room:
        return (
            f"{whose} has {_down(room, 'δ')} left for what needs one, such as unknown keys, and this question needs "
            f"{_up(own, 'δ')}: spend a smaller delta on it, or let the owner declare keys and bounds."
        )
    left, asked = _compared(filter, cost)
    if left == "ρ = 0" and not isinstance(filter.left, ZCDP) and filter.left.epsilon:
        left = f"{_down(filter.left.epsilon, 'ε')} left but no ρ"
        return f"{whose} has {left}, and this question costs {asked}: spend an epsilon alone on it, or stop."
    if left.endswith("= 0"):
        return f"{whose} is used up and this question costs {asked}: only what was answered before can be had again."
    keys = f" (and {_down(room, 'δ')} for unknown keys)" if room else ""
    return (
        f"{whose} has {left} left{keys} and this question costs {asked}: spend less on it (explain shows the error), "
        "or stop."
    )


def _compared(filter: Filter, cost: Guarantee) -> tuple[str, str]:
    """What is left and what is asked, in the same measure."""
    budget, rho = filter.budget, charge_of(cost).rho
    if isinstance(budget, ZCDP):
        pure = f"{_up(cost.epsilon, 'ε')}, which is " if isinstance(cost, Pure) else ""
        assert isinstance(filter.left, ZCDP)
        return _down(filter.left.rho, "ρ"), f"{pure}{_up(rho or Fraction(0), 'ρ')}"
    if isinstance(cost, ZCDP):
        return _down(_largest_rho(filter, cost), "ρ"), _up(cost.rho, "ρ")
    assert not isinstance(filter.left, ZCDP)
    asked = _up(cost.epsilon, "ε") if isinstance(cost, Pure | Approx) else promise(cost)
    return _down(filter.left.epsilon, "ε"), asked


def _largest_rho(filter: Filter, asked: ZCDP) -> Fraction:
    """The largest rho below what was asked that an Approx budget holds: of Gaussian noise, if that was asked for."""
    gaussian = charge_of(asked).square is not None

    def fits(n: int) -> bool:
        mu = Fraction(n, _STEPS)
        return filter.allows(ZCDP(mu**2 / 2, losses=once(Normal(mu)) if gaussian else None))

    low, high = 0, _STEPS
    while fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return min(asked.rho, Fraction(low, _STEPS) ** 2 / 2)


def unfit(budget: Promise, cost: Guarantee) -> str | None:
    """One sentence on a cost that a budget of this kind cannot count; None if it can."""
    charge = charge_of(cost)
    if charge.delta and not isinstance(budget, Approx):
        return "This question needs a delta and the budget has none: declare the keys, or let the owner add a delta."
    if isinstance(budget, Pure) and charge.epsilon is None:
        return "This question has Gaussian noise and the budget is a pure epsilon: spend an epsilon alone."
    return None


def _up(number: Fraction, symbol: str) -> str:
    return f"{symbol} = {rounded(number, up=True, digits=_DIGITS)}"


def _down(number: Fraction, symbol: str) -> str:
    return f"{symbol} = {rounded(number, up=False, digits=_DIGITS)}"
