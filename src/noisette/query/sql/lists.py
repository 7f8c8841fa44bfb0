"""Lists of quantiles: QUANTILE(x, [0.25, 0.5, 0.75]) is one column for each of them.

Three and more are read off one tree of counts (`query.rank_tree`): many of them cost what three do.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction

from sqlglot import exp

from noisette.errors import InputError
from noisette.query.sql.groups import Item
from noisette.query.sql.names import number

__all__ = ["percent", "without_lists"]

_MOST = 100
_PLACE: dict[type[exp.Expr], str] = {exp.Quantile: "quantile", exp.ApproxQuantile: "quantile"}


def without_lists(items: list[Item], name: Callable[[Item], str | None]) -> list[Item]:
    """The same items, where one with a list of quantiles is one for each of them: `name` says what it is called.

    >>> from sqlglot import parse_one
    >>> listed = Item(parse_one("QUANTILE(age, [0.25, 0.995])", dialect="duckdb"))
    >>> [item.alias for item in without_lists([listed], lambda _: "age")]
    ['age_25', 'age_99_5']
    """
    return [one for item in items for one in _each(item, name)]


def _each(item: Item, name: Callable[[Item], str | None]) -> Iterator[Item]:
    listed = _listed(item.node)
    if listed is None:
        yield item
        return
    if not 1 <= len(listed.expressions) <= _MOST:
        raise InputError(f"A list of quantiles has 1 to {_MOST} of them: write QUANTILE(x, [0.25, 0.5, 0.75]).")
    for place, at in enumerate(listed.expressions):
        node = item.node.copy()
        array = _listed(node)
        assert array is not None
        array.replace(array.expressions[place].copy())
        yield Item(node, f"{item.alias or name(Item(node)) or 'quantile'}_{_percent(at)}")


def _listed(node: exp.Expr) -> exp.Array | None:
    """The list within a quantile, which may have a FILTER or WITHIN GROUP around it."""
    while isinstance(node, exp.Filter | exp.WithinGroup):
        within, node = isinstance(node, exp.WithinGroup), node.this
        if within:
            return node.this if isinstance(node.this, exp.Array) else None
    found = node.args.get(_PLACE.get(type(node), "expression")) if isinstance(node, _QUANTILES) else None
    return found if isinstance(found, exp.Array) else None


_QUANTILES = (*_PLACE, exp.PercentileCont, exp.PercentileDisc)


def _percent(node: exp.Expr) -> str:
    """Which quantile, for a name; what is no number is refused where it is read."""
    return percent(Fraction(number(node.this))) if isinstance(node, exp.Literal) and not node.is_string else ""


def percent(at: Fraction) -> str:
    """A quantile in a name.

    >>> percent(Fraction(1, 2)), percent(Fraction(1, 1000)), percent(Fraction(1, 3))
    ('50', '0_1', '1_of_3')
    """
    places = next((n for n in range(1, 200) if 10**n % at.denominator == 0), None)
    if places is None:
        return f"{at.numerator}_of_{at.denominator}"
    whole, rest = divmod(at * 100, 1)
    return f"{whole}_{str(int(rest * 10**places)).rjust(places, '0').rstrip('0')}" if rest else f"{whole}"
