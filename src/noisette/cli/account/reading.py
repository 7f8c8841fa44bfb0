"""Read an expression such as "laplace(1)*100 + gaussian(10)*50".

It is read as a tree, and only sums, whole multiples, numbers and the calls of known releases are accepted; nothing
in it is ever run.
"""

import ast
import inspect
import warnings
from fractions import Fraction
from typing import TypeAlias

from noisette.cli.account.releases import KNOWN, Term
from noisette.errors import InputError
from noisette.exact.number import fraction
from noisette.privacy import Guarantee

__all__ = ["parsed"]

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
