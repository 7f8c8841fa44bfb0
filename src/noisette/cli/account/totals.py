"""What releases cost one by one and together: by basic addition, by zCDP and by tight composition."""

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any

from noisette.cli.account.reading import parsed
from noisette.cli.account.releases import Term
from noisette.exact.number import fraction, nearest_float
from noisette.privacy import ZCDP, Approx, Guarantee, Profile, Pure
from noisette.privacy.guarantee import losses_of
from noisette.privacy.pld.tight import rho_bound

__all__ = ["accounted"]


def accounted(text: str, deltas: list[str], epsilons: list[str]) -> dict[str, Any]:
    """What is printed: the terms, epsilon at each delta, delta at each epsilon; None where there is no bound."""
    terms = parsed(text)
    total = _total(terms)
    rho = rho_bound(losses_of(total).parts, losses_of(total).rho)
    return {
        "releases": sum(term.count for term in terms),
        "neighbours": str(total.neighbours) if total.neighbours else None,
        "rho": None if rho is None else nearest_float(rho, up=True),
        "terms": list(_costs(terms, total, deltas[0])),
        "epsilon": [_at_delta(terms, total, rho, d) for d in deltas],
        "delta": [_at_epsilon(total, rho, e) for e in epsilons],
    }


def _total(terms: list[Term]) -> Guarantee:
    return reduce(add, (term.together for term in terms), Pure(0))


def _costs(terms: list[Term], total: Guarantee, delta: str) -> Iterator[dict[str, Any]]:
    """Each term by itself, and what would be saved without it."""
    whole_cost = total.epsilon_at(delta)
    for i, term in enumerate(terms):
        rest = _total(terms[:i] + terms[i + 1 :]).epsilon_at(delta)
        saved = max(0.0, whole_cost - rest) if math.isfinite(whole_cost) else math.inf
        yield {
            "release": term.text,
            "count": term.count,
            "one": _promise(term.one),
            "delta": delta,
            "alone": _finite(term.together.epsilon_at(delta)),
            "saved_without": _finite(saved),
        }


def _promise(one: Guarantee) -> dict[str, float]:
    exact = {} if isinstance(one, Profile) else one.numbers
    return {name: nearest_float(number, up=True) for name, number in exact.items()}


def _at_delta(terms: list[Term], total: Guarantee, rho: Fraction | None, delta: str) -> dict[str, Any]:
    basic, basic_delta = _basic(terms, fraction(delta, "delta"))
    return {
        "delta": delta,
        "basic": {"epsilon": _finite(basic), "delta": basic_delta},
        "zcdp": None if rho is None else _finite(ZCDP(rho).epsilon_at(delta)),
        "tight": _finite(total.epsilon_at(delta)),
    }


def _basic(terms: list[Term], delta: Fraction) -> tuple[float, float]:
    """Basic addition: releases without an epsilon of their own share equally what the others leave of delta."""
    stated = [(term.one, term.count) for term in terms if isinstance(term.one, Pure | Approx)]
    sharing = [(term.one, term.count) for term in terms if not isinstance(term.one, Pure | Approx)]
    epsilon = sum((k * one.epsilon for one, k in stated), Fraction(0))
    own = sum((k * one.delta for one, k in stated), Fraction(0))
    if not sharing:
        return nearest_float(epsilon, up=True), min(1.0, nearest_float(own, up=True))
    if own >= delta:
        return math.inf, nearest_float(delta, up=True)
    share = (delta - own) / sum(k for _, k in sharing)
    costs = [k * Fraction(cost) if math.isfinite(cost := one.epsilon_at(share)) else None for one, k in sharing]
    if None in costs:
        return math.inf, nearest_float(delta, up=True)
    return nearest_float(sum(filter(None, costs), epsilon), up=True), nearest_float(delta, up=True)


def _at_epsilon(total: Guarantee, rho: Fraction | None, epsilon: str) -> dict[str, Any]:
    return {
        "epsilon": epsilon,
        "zcdp": None if rho is None else ZCDP(rho).delta_at(epsilon),
        "tight": total.delta_at(epsilon),
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
