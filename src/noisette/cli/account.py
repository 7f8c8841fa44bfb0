"""`noisette account`: what releases cost together, by basic addition, by zCDP and by tight composition."""

import json as json_module
import math
from collections.abc import Iterator
from fractions import Fraction
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noisette.cli.common import patience, table_of
from noisette.cli.releases import Term, parsed
from noisette.errors import NoisetteError
from noisette.exact.number import fraction, nearest_float
from noisette.privacy import ZCDP, Approx, Guarantee, Profile, Pure
from noisette.privacy.guarantee import losses_of
from noisette.privacy.pld.tight import rho_bound
from noisette.terminal import console, echo

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["account", "accounted", "show"]


def account(
    releases: Annotated[
        str,
        typer.Argument(
            help="Releases, added with + and multiplied by whole numbers: pure(eps), approx(eps, delta), zcdp(rho), "
            "laplace(scale), geometric(scale), gaussian(sigma), response(eps), staircase(eps), "
            "subsampled(release, rate)."
        ),
    ],
    delta: Annotated[list[str] | None, typer.Option(help="The delta to find epsilon for; may be repeated.")] = None,
    epsilon: Annotated[list[str] | None, typer.Option(help="An epsilon to find delta for; may be repeated.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the account as JSON, with all digits.")] = False,
) -> None:
    """Tell what releases cost together: by basic addition, by zCDP and by tight composition."""
    try:
        with patience("Adding up"):
            found = accounted(releases, delta or ["1e-6"], epsilon or [])
    except NoisetteError as error:
        echo(str(error), err=True)
        raise typer.Exit(2) from None
    if json:
        echo(json_module.dumps(found, indent=2))
    else:
        show(found, console())


# Totals


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


# Tables


_LETTERS = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}


def show(found: dict[str, Any], console: "Console") -> None:
    """Print the terms, what they cost together, and delta at each epsilon that was asked for."""
    under = f" under {found['neighbours']}" if found["neighbours"] else ""
    number = f"{found['releases']:,} releases" if found["releases"] > 1 else "One release"
    console.print(f"{number}{under}\n")
    console.print(_terms_table(found["terms"]))
    console.print(_totals_table(found))
    for at in found["delta"]:
        ways = [f"{_digits(at['tight'])} by tight composition", f"{_digits(at['zcdp'])} by zCDP"]
        console.print(f"delta at epsilon = {at['epsilon']}: " + ", ".join(ways[: 1 if at["zcdp"] is None else 2]))


def _terms_table(terms: list[dict[str, Any]]) -> Any:
    table = table_of("release", ">times", "one of them", ">ε alone", ">ε saved without it")
    table.title = f"What each costs at δ = {terms[0]['delta']}"
    for term in terms:
        one = ", ".join(f"{_LETTERS[name]} = {_digits(value)}" for name, value in term["one"].items())
        costs = [_digits(term["alone"]), _digits(term["saved_without"])]
        table.add_row(term["release"], f"{term['count']:,}", one or "–", *costs)
    return table


def _totals_table(found: dict[str, Any]) -> Any:
    table = table_of("by", ">ε", ">δ")
    table.title = "What they cost together"
    zcdp = "zCDP" if found["rho"] is None else f"zCDP, ρ = {_digits(found['rho'])}"
    for at in found["epsilon"]:
        table.add_row("basic addition", _digits(at["basic"]["epsilon"]), _digits(at["basic"]["delta"]))
        table.add_row(zcdp, _digits(at["zcdp"]), at["delta"])
        table.add_row("tight composition", _digits(at["tight"]), at["delta"], style="bold", end_section=True)
    return table


def _digits(value: float | None) -> str:
    """Six digits, rounded up except for a relative 1e-8, which is what a fine grid costs; JSON has all of them.

    >>> _digits(4.7745675), _digits(100.00000001), _digits(None), _digits(1.2e-9)
    ('4.77457', '100', 'no bound', '1.2e-9')
    """
    if value is None:
        return "no bound"
    if value == 0:
        return "0"
    unit = Fraction(10) ** (math.floor(math.log10(value)) - 5)
    text = f"{float(math.ceil(Fraction(value) * (1 - Fraction(1, 10**8)) / unit) * unit):.6g}"
    return text.replace("e-0", "e-").replace("e+0", "e+")
