"""ROLLUP, CUBE and GROUPING SETS: which sets of keys a GROUP BY means."""

from itertools import chain, combinations

from sqlglot import exp

from noisette.errors import InputError

__all__ = ["MOST_SETS", "plain_group", "sets_of"]

MOST_SETS = 16
"""The most sets of one query: those of CUBE (a, b, c, d)."""

_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)

Nodes = list[exp.Expr]


def sets_of(select: exp.Select) -> list[Nodes] | None:
    """The keys of each set of groups, as they are written; None where there is one set.

    >>> from sqlglot import parse_one
    >>> found = sets_of(parse_one("SELECT COUNT(*) FROM t GROUP BY a, ROLLUP (b, c)", dialect="duckdb"))
    >>> [[node.name for node in one] for one in found]
    [['a', 'b', 'c'], ['a', 'b'], ['a']]
    """
    group = select.args.get("group")
    if group is None or not any(isinstance(node, _SETS) for node in group.expressions):
        return None
    found: list[Nodes] = [[]]
    for node in group.expressions:
        found = [one + other for one in found for other in _sets(node)]
        if len(found) > MOST_SETS:
            raise InputError(f"A query has at most {MOST_SETS} sets of groups: ask for fewer, GROUPING SETS ((a), ()).")
    return found


def plain_group(sets: list[Nodes]) -> exp.Group:
    """GROUP BY all keys of all sets."""
    nodes = {node.sql(): node for one in sets for node in one}
    if not nodes:
        raise InputError("These sets have no keys: write GROUP BY ROLLUP (a), or leave GROUP BY out.")
    return exp.Group(expressions=[node.copy() for node in nodes.values()])


def _sets(node: exp.Expr) -> list[Nodes]:
    match node:
        case exp.Rollup():
            parts = [_keys(each) for each in node.expressions]
            return [list(chain(*parts[:size])) for size in range(len(parts), -1, -1)]
        case exp.Cube():
            parts = [_keys(each) for each in node.expressions]
            if len(parts) > MOST_SETS.bit_length() - 1:
                raise InputError("CUBE takes at most 4 columns: ask for fewer, or nz.Cube for all tables of two.")
            sizes = range(len(parts), -1, -1)
            return [list(chain(*some)) for size in sizes for some in combinations(parts, size)]
        case exp.GroupingSets():
            return [found for each in node.expressions for found in _sets(each)]
        case _:
            return [_keys(node)]


def _keys(node: exp.Expr) -> Nodes:
    """The keys that stand in one place: (a, b) are two."""
    if isinstance(node, exp.Tuple):
        return list(node.expressions)
    if isinstance(node, exp.Paren):
        return [node.this]
    if isinstance(node, _SETS):
        raise InputError("ROLLUP and CUBE take columns: write them one after the other, or within GROUPING SETS.")
    return [node]
