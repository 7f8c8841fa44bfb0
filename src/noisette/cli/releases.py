"""Releases that can be accounted for, and expressions of them such as "laplace(1)*100 + gaussian(10)*50".

An expression is read as a tree, and only sums, whole multiples, numbers and the calls of known releases are accepted;
nothing in it is ever run.
"""

import ast
import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, cast

from noisette.errors import InputError
from noisette.exact.number import Number, fraction, positive
from noisette.mechanisms import Gaussian, Geometric, Laplace, RandomizedResponse, Staircase
from noisette.names import closest
from noisette.privacy import ZCDP, Approx, Guarantee, Neighbours, Profile, Pure
from noisette.privacy.guarantee import Losses, losses_of
from noisette.privacy.pld.loss import Loss, Response, Subsampled

__all__ = ["KNOWN", "Term", "parsed"]

_MOST_SAMPLED = 1000  # epsilon


@dataclass(frozen=True)
class Term:
    """A release as it was written, what one of them promises, and how many there are."""

    text: str
    one: Guarantee
    count: int = 1

    @property
    def together(self) -> Guarantee:
        """What all of them promise."""
        return self.one * self.count


def _response(eps: Number, categories: Fraction = Fraction(2), distance: Number = 1) -> Guarantee:
    if categories.denominator != 1:
        raise InputError("categories must be a whole number, at least 2.")
    return RandomizedResponse(eps, categories=int(categories)).guarantee(distance)


def _subsampled(release: list[Term], rate: Number) -> Guarantee:
    """One release on a Poisson sample of the people, under add/remove."""
    q = positive(rate, "rate", most=1)
    one = release[0].one
    parts = losses_of(one).parts
    if len(release) > 1 or release[0].count > 1 or len(parts) != 1 or parts[0][1] != 1 or losses_of(one).rho:
        raise InputError("subsampled takes one release whose loss is known: multiply outside, subsampled(…, rate)*100.")
    if one.neighbours is Neighbours.REPLACE:
        raise InputError("subsampled holds under add/remove, and this release promises nothing there.")
    loss = parts[0][0]
    if isinstance(loss, Subsampled):
        raise InputError("A sample of a sample is one sample: multiply the rates instead.")
    if isinstance(one, Pure | Approx) and one.epsilon > _MOST_SAMPLED:
        raise InputError(f"subsampled takes releases of epsilon {_MOST_SAMPLED:,} or less: sampling hides no more.")
    return _stated(loss, q)


def _stated(base: Loss, rate: Fraction) -> Guarantee:
    """(eps, delta) becomes (ln(1 + q(e^eps - 1)), q delta); what has no plain statement is a profile."""
    loss = Subsampled(base, rate)
    losses, bound = Losses(((cast("Loss", loss), 1),)), loss.pure()
    if bound is not None:
        return Pure(bound, neighbours=Neighbours.ADD_REMOVE, losses=losses)
    if isinstance(base, Response):
        eps = Subsampled(Response(base.epsilon), rate).pure() or 0
        return Approx(eps, rate * base.delta, neighbours=Neighbours.ADD_REMOVE, losses=losses)
    return Profile(losses, neighbours=Neighbours.ADD_REMOVE)


KNOWN: dict[str, Callable[..., Guarantee]] = {
    "pure": lambda eps: Pure(eps),
    "approx": lambda eps, delta: Approx(eps, delta),
    "zcdp": lambda rho: ZCDP(rho),
    "laplace": lambda scale, distance=1: Laplace(scale).guarantee(distance),
    "geometric": lambda scale, distance=1: Geometric(scale).guarantee(distance),
    "gaussian": lambda sigma, distance=1: Gaussian(sigma).guarantee(distance),
    "response": _response,
    "staircase": lambda eps, sensitivity=1, distance=None: Staircase(eps, sensitivity=sensitivity).guarantee(distance),
    "subsampled": _subsampled,
}
"""By its name, what makes a release of its parameters, as they are called in an expression."""


# Reading


_LONGEST, _MOST = 2000, 10**6  # characters, releases
_ADVICE = 'write something like "laplace(1)*100 + gaussian(10)*50".'

Value: TypeAlias = Fraction | list[Term]


def parsed(text: str) -> list[Term]:
    """Read an expression.

    >>> [(term.text, term.count) for term in parsed("laplace(1/2)*100 + 2*zcdp(rho=0.1)")]
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


def _terms(node: ast.expr, line: str) -> list[Term]:
    match node:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _terms(left, line) + _terms(right, line)
        case ast.BinOp(left=ast.Constant() as times, op=ast.Mult(), right=of):
            return _repeated(_terms(of, line), times)
        case ast.BinOp(left=of, op=ast.Mult(), right=ast.Constant() as times):
            return _repeated(_terms(of, line), times)
        case ast.Call(func=ast.Name(id=name)) if name in KNOWN:
            return [Term(_source(node, line), _called(name, node, line))]
        case ast.Call(func=ast.Name(id=name)):
            raise InputError(f"{name} is no release: {closest(name, KNOWN)}")
    raise InputError(f"{_source(node, line)!r} is not a sum of releases from {', '.join(KNOWN)}: {_ADVICE}")


def _repeated(terms: list[Term], times: ast.Constant) -> list[Term]:
    k = times.value
    if type(k) is not int or k < 1:
        raise InputError("A release is multiplied by a whole number, at least 1.")
    return [Term(term.text, term.one, term.count * k) for term in terms]


def _called(name: str, node: ast.Call, line: str) -> Guarantee:
    """Bind what was written to the parameters of a known release; stars and unknown names are refused."""
    signature = inspect.signature(KNOWN[name])
    try:
        given = {keyword.arg or "**": keyword.value for keyword in node.keywords}
        bound = signature.bind(*node.args, **given).arguments
        if len(given) < len(node.keywords):
            raise TypeError
    except TypeError:
        raise InputError(f"{name} is written {name}({', '.join(map(str, signature.parameters))}).") from None
    return KNOWN[name](**{key: _value(value, key, line) for key, value in bound.items()})


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
