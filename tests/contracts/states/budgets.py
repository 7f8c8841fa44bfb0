"""Filters, odometers and ledgers, against everybody who chooses each cost after seeing earlier answers.

A cost is paid for an answer of the worst mechanism that has it: randomized response, which reveals everything with the
cost's own delta. The best of all strategies is found from the end: at each state stop, or buy what leads furthest. So
the loss is exact, and what is accepted and shown is what the object itself says in each state.

Vocabulary: `loss` of the answers so far, in steps of a unit · `worth` what a strategy gets to from there.
"""

import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from tests.contracts.states.judging import Found
from tests.contracts.states.loudness import part

from noisette.errors import BudgetError
from noisette.ledger import open_ledger
from noisette.privacy import ZCDP, Odometer, Promise, Pure

ORDERS = (1.25, 2.0, 8.0, 32.0)
"""At which the divergence of Rényi is compared."""

Buy = Callable[[Any, Any], Any]
"""A state and a cost: the state after it, or None where it is refused."""


def strategies(buy: Buy, start: Any, menu: Sequence[Any], stop: Callable[[int, Any], float], most: int) -> float:
    """The expectation that the best strategy of at most that many costs gets to; it ends with `stop(loss, state)`."""
    unit = unit_of(menu)

    @cache
    def worth(loss: int, state: Any, left: int) -> float:
        best = stop(loss, state)
        for cost in menu if left else ():
            if (then := buy(state, cost)) is not None:
                step, d = int(cost.epsilon / unit), float(cost.delta)
                p = 1 / (1 + math.exp(-float(cost.epsilon / part())))
                further = p * worth(loss + step, then, left - 1) + (1 - p) * worth(loss - step, then, left - 1)
                best = max(best, d * (stop(math.inf, then) if d else 0) + (1 - d) * further)
        return best

    return worth(0, start, most)


def unit_of(menu: Sequence[Any]) -> Fraction:
    """The step in which losses are whole."""
    return Fraction(1, math.lcm(*(cost.epsilon.denominator for cost in menu)))


def budgeted(budget: Promise, buy: Buy, start: Any, menu: Sequence[Any], most: int = 12) -> Iterator[Found]:
    """What the best strategies get against what the budget promises."""
    unit = float(unit_of(menu) / part())
    named = tuple(map(str, menu))
    if isinstance(budget, ZCDP):
        for a in ORDERS:
            best = strategies(buy, start, menu, lambda loss, _, a=a: math.exp((a - 1) * loss * unit), most)
            yield Found((*named, f"order {a}"), "any", float(budget.rho) * a, math.log(best) / (a - 1))
    elif isinstance(budget, Pure):
        yield Found(named, "any", float(budget.epsilon), furthest(buy, start, menu, most))
    else:
        stop = beyond(lambda _: float(budget.epsilon), unit)
        yield Found(named, "any", float(budget.delta), strategies(buy, start, menu, stop, most))


def beyond(epsilon: Callable[[Any], float], unit: float) -> Callable[[int, Any], float]:
    """1 - e^(epsilon - loss), where that is positive: the part of the chance that an epsilon does not cover."""

    def stop(loss: float, state: Any) -> float:
        shown = epsilon(state)
        return 0.0 if math.isinf(shown) else -math.expm1(min(0.0, shown - loss * unit))

    return stop


def furthest(buy: Buy, start: Any, menu: Sequence[Any], most: int) -> float:
    """The largest loss of any answers."""

    @cache
    def far(state: Any, left: int) -> float:
        bought = [(float(cost.epsilon / part()), buy(state, cost)) for cost in menu] if left else []
        return max((e + far(then, left - 1) for e, then in bought if then is not None), default=0.0)

    return far(start, most)


# The objects


def filtered(kind: type, budget: Promise, menu: Sequence[Any], **terms: Any) -> Iterator[Found]:
    """A filter that goes on from its state after every charge."""

    def buy(state: Any, cost: Any) -> Any:
        one = kind(budget, **terms, state=state)
        try:
            one.charge(cost)
        except BudgetError:
            return None
        return one.state

    yield from budgeted(budget, buy, kind(budget, **terms).state, menu)


def metered(odometer: Odometer, menu: Sequence[Any], most: int = 8) -> Iterator[Found]:
    """An odometer: whoever stops gets what exceeds the epsilon that it shows then."""

    def at(state: Any) -> Odometer:
        one = type(odometer)(odometer.delta, reserve=odometer.reserve, first=odometer.first)
        one._state = state
        return one

    def buy(state: Any, cost: Any) -> Any:
        one = at(state)
        one.charge(cost)
        return one._state

    shown = cache(lambda state: at(state).epsilon)
    best = strategies(buy, odometer._state, menu, beyond(shown, float(unit_of(menu) / part())), most)
    yield Found(tuple(map(str, menu)), "any", float(odometer.delta), best)


def in_memory(ledger: Callable[[Promise], Any], budget: Promise, menu: Sequence[Any]) -> Iterator[Found]:
    """A ledger that is charged anew for every sequence of costs, since none can be copied."""

    def buy(before: tuple[int, ...], cost: Any) -> Any:
        after, made = (*before, menu.index(cost)), ledger(budget)
        try:
            for i in after:
                made.charge("a count", menu[i], [])
        except BudgetError:
            return None
        return after

    yield from budgeted(budget, buy, (), menu, 5)


def on_disk(budget: Promise, menu: Sequence[Any]) -> Iterator[Found]:
    """A ledger in a file, which is opened again for every charge."""
    with tempfile.TemporaryDirectory() as folder:

        def buy(before: tuple[int, ...], cost: Any) -> Any:
            after = (*before, menu.index(cost))
            where = Path(folder) / f"{''.join(map(str, after))}.ledger"
            try:
                for i in after:
                    book = open_ledger(where, budget=budget)
                    try:
                        book.charge("a count", menu[i], [])
                    finally:
                        book.close()
            except BudgetError:
                return None
            return after

        yield from budgeted(budget, buy, (), menu, 5)
