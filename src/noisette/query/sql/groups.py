"""What a SELECT lists and what it groups by: items with their names, and keys given in any of five ways."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from sqlglot import exp

from noisette.errors import InputError
from noisette.names import is_unicode
from noisette.query.canonical import normal
from noisette.query.expression import Expression
from noisette.query.plan import expression_text
from noisette.query.sql.expression import expression
from noisette.query.sql.names import Scope, find, matches, number, written
from noisette.query.sql.result import Groups, has_aggregate, is_aggregate

__all__ = [
    "Item",
    "check_keys",
    "distinct",
    "free",
    "items_of",
    "keys_of",
    "name_of",
    "names_of",
    "positions_of",
    "without_stars",
]


@dataclass(frozen=True)
class Item:
    """One thing a SELECT lists; `alias` is the name it is given, if any."""

    node: exp.Expr
    alias: str | None = None


def items_of(select: exp.Select) -> list[Item]:
    """What a SELECT lists."""
    found = [Item(n.this, n.alias) if isinstance(n, exp.Alias) else Item(n) for n in select.expressions]
    if not found:
        raise InputError("SELECT lists nothing: write SELECT COUNT(*) FROM ....")
    return found


def keys_of(select: exp.Select, items: list[Item], scope: Scope) -> tuple[Expression, ...]:
    """The keys, each once: columns, expressions, aliases, positions or ALL after GROUP BY, or all items of DISTINCT."""
    group = select.args.get("group")
    if select.args.get("distinct"):
        if group or any(has_aggregate(item.node) for item in items):
            raise InputError("DISTINCT stands alone: leave it out where there is GROUP BY or an aggregate.")
        return distinct([expression(item.node, scope) for item in items])
    if group is None:
        return ()
    plain = [item.node for item in items if not has_aggregate(item.node) and item.node.find(exp.Column)]
    nodes = plain if group.args.get("all") else [_meant(node, items, scope) for node in group.expressions]
    if any(has_aggregate(node) for node in nodes):
        raise InputError("Groups are made of columns, not of aggregates: leave the aggregate out of GROUP BY.")
    check_keys(nodes)
    return distinct([expression(node, scope) for node in nodes])


def positions_of(sets: list[list[exp.Expr]], items: list[Item], groups: Groups) -> tuple[tuple[int, ...], ...]:
    """For each set of keys, which of the query's keys are in it."""
    texts = [expression_text(normal(key)) for key in groups.keys]

    def place(node: exp.Expr) -> int:
        return texts.index(expression_text(normal(expression(_meant(node, items, groups.scope), groups.scope))))

    return tuple(tuple(sorted({place(node) for node in one})) for one in sets)


def _meant(node: exp.Expr, items: list[Item], scope: Scope) -> exp.Expr:
    """What a key of GROUP BY means: a position and an alias stand for what is selected there."""
    if isinstance(node, exp.Literal) and not node.is_string:
        place = number(node.this)
        if not isinstance(place, int) or not 1 <= place <= len(items):
            raise InputError(f"GROUP BY counts what is selected: write a number from 1 to {len(items)}, or a name.")
        return items[place - 1].node
    if isinstance(node, exp.Column) and not node.args.get("table") and not matches(node, scope):
        named = [item.node for item in items if item.alias and item.alias.casefold() == node.name.casefold()]
        return named[0] if len(named) == 1 else node
    return node


def without_stars(items: list[Item], scope: Scope) -> list[Item]:
    """The same with the columns that each * stands for."""
    found = []
    for item in items:
        star = isinstance(item.node, exp.Star) or (isinstance(item.node, exp.Column) and item.node.is_star)
        table = item.node.args.get("table") if star else None
        found += [*_all(scope, table)] if star else [item]
    return found


def _all(scope: Scope, table: exp.Identifier | None) -> list[Item]:
    """The columns that * stands for."""
    seen = (full for full in scope.columns if full not in scope.hidden)
    wanted = None if table is None else table.name.casefold()
    return [Item(written(full)) for full in seen if wanted in (None, full.partition(".")[0].casefold())]


def distinct(keys: list[Expression]) -> tuple[Expression, ...]:
    """Each expression once, in the order of the first."""
    found: dict[str, Expression] = {}
    for key in keys:
        found.setdefault(expression_text(normal(key)), key)
    return tuple(found.values())


def check_keys(nodes: Iterable[exp.Expr]) -> None:
    """Raise if a key is the same in every row."""
    if any(not node.find(exp.Column) for node in nodes):
        raise InputError("A constant makes no groups: write GROUP BY with the name of a column.")


def names_of(items: list[Item], scope: Scope) -> list[str]:
    """The names of the outputs: the alias, the column, or the function and its column; repeats are numbered."""
    taken: set[str] = set()
    names = []
    for place, item in enumerate(items, 1):
        if not is_unicode(item.alias or ""):
            raise InputError("The name of a column must be valid Unicode: one of them holds half a character.")
        names.append(free(item.alias or name_of(item.node, scope) or f"column_{place}", taken))
        taken.add(names[-1].casefold())
    return names


def free(name: str, taken: Collection[str]) -> str:
    """A name, with a number behind it if it is taken; case does not tell names apart."""
    new, again = name, 2
    while new.casefold() in taken:
        new, again = f"{name}_{again}", again + 1
    return new


def name_of(node: exp.Expr, scope: Scope) -> str | None:
    """What an output is called that has no alias: its column, or the function and its column."""
    if isinstance(node, exp.Column):
        return find(node, scope).partition(".")[2]
    if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
        return "count"
    if isinstance(node, exp.Filter | exp.Round):
        return name_of(node.this, scope)
    if not is_aggregate(node) and not isinstance(node, exp.Func):
        return None
    columns = {each.name for each in node.find_all(exp.Column)}
    function = _FUNCTIONS.get(node.key, node.key) if not isinstance(node, exp.Anonymous) else str(node.this).lower()
    if isinstance(node, exp.Count) and isinstance(node.this, exp.Distinct):
        function = "count_distinct"
    simple = len(columns) == 1 and isinstance(_argument(node), exp.Column)
    return f"{function}_{columns.pop()}" if simple else function


_FUNCTIONS = {
    "variancepop": "variance",
    "stddevpop": "stddev",
    "stddevsamp": "stddev",
    "percentilecont": "quantile",
    "percentiledisc": "quantile",
    "withingroup": "quantile",
    "countif": "count_if",
    "dayofweekiso": "isodow",
    "dayofmonth": "day",
    "dayofweek": "dow",
    "weekofyear": "week",
    "timestamptrunc": "date_trunc",
    "datediff": "date_diff",
    "timetostr": "strftime",
    "approxquantile": "quantile",
    "splitpart": "split_part",
    "covarpop": "covar_pop",
    "covarsamp": "covar_samp",
    "regrslope": "regr_slope",
    "regrintercept": "regr_intercept",
    "regrr2": "regr_r2",
    "regrcount": "regr_count",
}


def _argument(node: exp.Expr) -> exp.Expr | None:
    """The first thing an aggregate or function is of."""
    if isinstance(node, exp.Anonymous):
        return next((each for each in node.expressions if isinstance(each, exp.Column)), None)
    if isinstance(node, exp.Count) and isinstance(node.this, exp.Distinct):
        return next(iter(node.this.expressions), None)
    if isinstance(node, exp.WithinGroup):
        return node.find(exp.Column)
    return node.this if isinstance(node.this, exp.Expr) else None
