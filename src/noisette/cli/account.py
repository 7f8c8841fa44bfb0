"""`noisette account`: what releases cost together, from an expression such as "laplace(1)*100 + gaussian(10)*50".

The expression is read as a tree, of which only sums, whole multiples, numbers and the calls below are accepted;
nothing in it is ever run.
"""

import ast
import inspect
import json as json_module
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, cast

import typer

from noisette.errors import InputError, NoisetteError
from noisette.exact.number import Number, fraction, nearest_float, positive
from noisette.mechanisms import Gaussian, Geometric, Laplace, RandomizedResponse, Staircase
from noisette.privacy import ZCDP, Approx, Guarantee, Neighbours, Profile, Pure
from noisette.privacy.guarantee import Ledger
from noisette.privacy.loss import Loss, Response, Subsampled
from noisette.privacy.tight import rho_bound

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["account"]

_LONGEST, _MOST, _MOST_SAMPLED = 2000, 10**6, 1000  # characters, releases, epsilon
_LETTERS = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}
_ADVICE = 'write something like "laplace(1)*100 + gaussian(10)*50".'


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
    from rich.console import Console

    try:
        found = _accounted(releases, delta or ["1e-6"], epsilon or [])
    except NoisetteError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None
    if json:
        typer.echo(json_module.dumps(found, indent=2))
    else:
        _show(found, Console(highlight=False))


# Reading


@dataclass(frozen=True)
class _Term:
    """A release as it was written, what one of them promises, and how many there are."""

    text: str
    one: Guarantee
    count: int = 1

    @property
    def together(self) -> Guarantee:
        return self.one * self.count


Value: TypeAlias = "Fraction | list[_Term]"


def _parsed(text: str) -> list[_Term]:
    """Read an expression.

    >>> [(term.text, term.count) for term in _parsed("laplace(1/2)*100 + 2*zcdp(rho=0.1)")]
    [('laplace(1/2)', 100), ('zcdp(rho=0.1)', 2)]
    """
    line = " ".join(text.split())
    if len(line) > _LONGEST:
        raise InputError(f"The expression is longer than {_LONGEST:,} characters: write repetitions as a multiple.")
    try:
        terms = _terms(_tree(line), line)
    except RecursionError:
        raise InputError(f"The expression is nested too deeply: {_ADVICE}") from None
    if sum(term.count for term in terms) > _MOST:
        raise InputError(f"At most {_MOST:,} releases are accounted for at once.")
    return terms


def _tree(line: str) -> ast.expr:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(line, mode="eval").body
    except (SyntaxError, ValueError, MemoryError):
        raise InputError(f"The expression cannot be read: {_ADVICE}") from None


def _terms(node: ast.expr, line: str) -> list[_Term]:
    match node:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _terms(left, line) + _terms(right, line)
        case ast.BinOp(left=ast.Constant() as times, op=ast.Mult(), right=of):
            return _repeated(_terms(of, line), times)
        case ast.BinOp(left=of, op=ast.Mult(), right=ast.Constant() as times):
            return _repeated(_terms(of, line), times)
        case ast.Call(func=ast.Name(id=name)) if name in _KNOWN:
            return [_Term(_source(node, line), _called(name, node, line))]
    raise InputError(f"{_source(node, line)!r} is not a sum of releases from {', '.join(_KNOWN)}: {_ADVICE}")


def _repeated(terms: list[_Term], times: ast.Constant) -> list[_Term]:
    k = times.value
    if type(k) is not int or k < 1:
        raise InputError("A release is multiplied by a whole number, at least 1.")
    return [_Term(term.text, term.one, term.count * k) for term in terms]


def _called(name: str, node: ast.Call, line: str) -> Guarantee:
    """Bind what was written to the parameters of a known release; stars and unknown names are refused."""
    signature = inspect.signature(_KNOWN[name])
    try:
        given = {keyword.arg or "**": keyword.value for keyword in node.keywords}
        bound = signature.bind(*node.args, **given).arguments
        if len(given) < len(node.keywords):
            raise TypeError
    except TypeError:
        raise InputError(f"{name} is written {name}({', '.join(map(str, signature.parameters))}).") from None
    return _KNOWN[name](**{key: _value(value, key, line) for key, value in bound.items()})


def _value(node: ast.expr, name: str, line: str) -> Value:
    return _terms(node, line) if name == "release" else _number(node, name, line)


def _number(node: ast.expr, name: str, line: str) -> Fraction:
    """A decimal, or two of them with a / between, exactly as written."""
    match node:
        case ast.Constant():
            return fraction(_source(node, line), name)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant() as operand):
            return -_number(operand, name, line)
        case ast.BinOp(left=ast.Constant() as top, op=ast.Div(), right=ast.Constant() as bottom):
            below = _number(bottom, name, line)
            if below:
                return _number(top, name, line) / below
    raise InputError(f"{name} must be a number such as 1, 0.5 or 1/10.")


def _source(node: ast.expr, line: str) -> str:
    return ast.get_source_segment(line, node) or ""


# What can be accounted for: names, and their parameters as they are written


def _laplace(scale: Number, distance: Number = 1) -> Guarantee:
    return Laplace(scale).guarantee(distance)


def _geometric(scale: Number, distance: Number = 1) -> Guarantee:
    return Geometric(scale).guarantee(distance)


def _gaussian(sigma: Number, distance: Number = 1) -> Guarantee:
    return Gaussian(sigma).guarantee(distance)


def _response(eps: Number, categories: Fraction = Fraction(2), distance: Number = 1) -> Guarantee:
    if categories.denominator != 1:
        raise InputError("categories must be a whole number, at least 2.")
    return RandomizedResponse(eps, categories=int(categories)).guarantee(distance)


def _staircase(eps: Number, sensitivity: Number = 1, distance: Number | None = None) -> Guarantee:
    return Staircase(eps, sensitivity=sensitivity).guarantee(distance)


def _pure(eps: Number) -> Guarantee:
    return Pure(eps)


def _approx(eps: Number, delta: Number) -> Guarantee:
    return Approx(eps, delta)


def _zcdp(rho: Number) -> Guarantee:
    return ZCDP(rho)


def _subsampled(release: list[_Term], rate: Number) -> Guarantee:
    """One release on a Poisson sample of the people, under add/remove."""
    q = positive(rate, "rate", most=1)
    one = release[0].one
    parts = _ledger(one).parts
    if len(release) > 1 or release[0].count > 1 or len(parts) != 1 or parts[0][1] != 1 or _ledger(one).rho:
        raise InputError("subsampled takes one release whose loss is known: multiply outside, subsampled(…, rate)*100.")
    if one.neighbours is Neighbours.REPLACE:
        raise InputError("subsampled holds under add/remove, and this release promises nothing there.")
    loss = parts[0][0]
    if isinstance(loss, Subsampled):
        raise InputError("A sample of a sample is one sample: multiply the rates instead.")
    if isinstance(one, Pure | Approx) and one.eps > _MOST_SAMPLED:
        raise InputError(f"subsampled takes releases of epsilon {_MOST_SAMPLED:,} or less: sampling hides no more.")
    return _stated(loss, q)


def _stated(base: Loss, rate: Fraction) -> Guarantee:
    """(eps, delta) becomes (ln(1 + q(e^eps - 1)), q delta); what has no plain statement is a profile."""
    loss = Subsampled(base, rate)
    ledger, bound = Ledger(((cast("Loss", loss), 1),)), loss.pure()
    if bound is not None:
        return Pure(bound, neighbours=Neighbours.ADD_REMOVE, ledger=ledger)
    if isinstance(base, Response):
        eps = Subsampled(Response(base.epsilon), rate).pure() or 0
        return Approx(eps, rate * base.delta, neighbours=Neighbours.ADD_REMOVE, ledger=ledger)
    return Profile(ledger, neighbours=Neighbours.ADD_REMOVE)


_KNOWN: dict[str, Callable[..., Guarantee]] = {
    "pure": _pure,
    "approx": _approx,
    "zcdp": _zcdp,
    "laplace": _laplace,
    "geometric": _geometric,
    "gaussian": _gaussian,
    "response": _response,
    "staircase": _staircase,
    "subsampled": _subsampled,
}


# Accounting


def _accounted(text: str, deltas: list[str], epsilons: list[str]) -> dict[str, Any]:
    """What is printed: the terms, epsilon at each delta, delta at each epsilon; None where there is no bound."""
    terms = _parsed(text)
    total = _total(terms)
    rho = rho_bound(_ledger(total).parts, _ledger(total).rho)
    return {
        "releases": sum(term.count for term in terms),
        "neighbours": str(total.neighbours) if total.neighbours else None,
        "rho": None if rho is None else nearest_float(rho, up=True),
        "terms": list(_costs(terms, total, deltas[0])),
        "epsilon": [_at_delta(terms, total, rho, d) for d in deltas],
        "delta": [_at_epsilon(total, rho, e) for e in epsilons],
    }


def _total(terms: list[_Term]) -> Guarantee:
    return reduce(add, (term.together for term in terms), Pure(0))


def _ledger(guarantee: Guarantee) -> Ledger:
    """All the losses of a guarantee, randomized response where no more is known than (epsilon, delta)."""
    known = (guarantee * 1).ledger
    assert known is not None
    return known


def _costs(terms: list[_Term], total: Guarantee, delta: str) -> Iterator[dict[str, Any]]:
    """Each term by itself, and what would be saved without it."""
    whole_cost = total.epsilon(delta)
    for i, term in enumerate(terms):
        rest = _total(terms[:i] + terms[i + 1 :]).epsilon(delta)
        saved = max(0.0, whole_cost - rest) if math.isfinite(whole_cost) else math.inf
        yield {
            "release": term.text,
            "count": term.count,
            "one": _promise(term.one),
            "delta": delta,
            "alone": _finite(term.together.epsilon(delta)),
            "saved_without": _finite(saved),
        }


def _promise(one: Guarantee) -> dict[str, float]:
    match one:
        case Pure():
            exact = {"epsilon": one.eps}
        case Approx():
            exact = {"epsilon": one.eps, "delta": one.delta0}
        case ZCDP():
            exact = {"rho": one.rho}
        case Profile():
            exact = {}
    return {name: nearest_float(number, up=True) for name, number in exact.items()}


def _at_delta(terms: list[_Term], total: Guarantee, rho: Fraction | None, delta: str) -> dict[str, Any]:
    basic, basic_delta = _basic(terms, fraction(delta, "delta"))
    return {
        "delta": delta,
        "basic": {"epsilon": _finite(basic), "delta": basic_delta},
        "zcdp": None if rho is None else _finite(ZCDP(rho).epsilon(delta)),
        "tight": _finite(total.epsilon(delta)),
    }


def _basic(terms: list[_Term], delta: Fraction) -> tuple[float, float]:
    """Basic addition: releases without an epsilon of their own share equally what the others leave of delta."""
    stated = [(term.one, term.count) for term in terms if isinstance(term.one, Pure | Approx)]
    sharing = [(term.one, term.count) for term in terms if not isinstance(term.one, Pure | Approx)]
    epsilon = sum((k * one.eps for one, k in stated), Fraction(0))
    own = sum((k * one.delta0 for one, k in stated if isinstance(one, Approx)), Fraction(0))
    if not sharing:
        return nearest_float(epsilon, up=True), min(1.0, nearest_float(own, up=True))
    if own >= delta:
        return math.inf, nearest_float(delta, up=True)
    share = (delta - own) / sum(k for _, k in sharing)
    costs = [k * Fraction(cost) if math.isfinite(cost := one.epsilon(share)) else None for one, k in sharing]
    if None in costs:
        return math.inf, nearest_float(delta, up=True)
    return nearest_float(sum(filter(None, costs), epsilon), up=True), nearest_float(delta, up=True)


def _at_epsilon(total: Guarantee, rho: Fraction | None, epsilon: str) -> dict[str, Any]:
    return {
        "epsilon": epsilon,
        "zcdp": None if rho is None else ZCDP(rho).delta(epsilon),
        "tight": total.delta(epsilon),
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


# Showing


def _show(found: dict[str, Any], console: "Console") -> None:
    under = f" under {found['neighbours']}" if found["neighbours"] else ""
    number = f"{found['releases']:,} releases" if found["releases"] > 1 else "One release"
    console.print(f"{number}{under}\n")
    console.print(_terms_table(found["terms"]))
    console.print(_totals_table(found))
    for at in found["delta"]:
        ways = [f"{_digits(at['tight'])} by tight composition", f"{_digits(at['zcdp'])} by zCDP"]
        console.print(f"delta at epsilon = {at['epsilon']}: " + ", ".join(ways[: 1 if at["zcdp"] is None else 2]))


def _terms_table(terms: list[dict[str, Any]]) -> Any:
    table = _table("release", ">times", "one of them", ">ε alone", ">ε saved without it")
    table.title = f"What each costs at δ = {terms[0]['delta']}"
    for term in terms:
        one = ", ".join(f"{_LETTERS[name]} = {_digits(value)}" for name, value in term["one"].items())
        costs = [_digits(term["alone"]), _digits(term["saved_without"])]
        table.add_row(term["release"], f"{term['count']:,}", one or "–", *costs)
    return table


def _totals_table(found: dict[str, Any]) -> Any:
    table = _table("by", ">ε", ">δ")
    table.title = "What they cost together"
    zcdp = "zCDP" if found["rho"] is None else f"zCDP, ρ = {_digits(found['rho'])}"
    for at in found["epsilon"]:
        table.add_row("basic addition", _digits(at["basic"]["epsilon"]), _digits(at["basic"]["delta"]))
        table.add_row(zcdp, _digits(at["zcdp"]), at["delta"])
        table.add_row("tight composition", _digits(at["tight"]), at["delta"], style="bold", end_section=True)
    return table


def _table(*columns: str) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE, pad_edge=False, title_justify="left", title_style="")
    for column in columns:
        table.add_column(column.lstrip(">"), justify="right" if column.startswith(">") else "left", overflow="fold")
    return table


def _digits(value: float | None) -> str:
    """Six digits, rounded up but for a relative 1e-8, which is what a fine grid costs; JSON has all of them.

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
