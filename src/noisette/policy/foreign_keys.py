"""Units through foreign keys: which table says whose row it is, checked from the policy and the stored types.

`unit = { through = "orders", on = { order_id = "id" } }`: a row belongs to the unit of the order that it refers to. The
far table declares a unit of its own, or another foreign key. That no two of its rows have one key is for the engine to
say (`Source.unique`): neighbouring databases satisfy the declared keys, so the data must satisfy them, too.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from noisette.engines.contract import FLOATS, base_type
from noisette.names import closest
from noisette.policy.rules import TableRules, inside, policy_error
from noisette.policy.tables import check_column, equality_type
from noisette.query.schema import Link, Schema, Table

__all__ = ["check_unique", "with_units"]


def with_units(
    schema: Schema, rules: Mapping[str, TableRules], stored: Mapping[str, Mapping[str, str]]
) -> dict[str, Table]:
    """The tables with the units that their foreign keys lead to, or a sentence on what is wrong with one of them."""
    for name, table in rules.items():
        if isinstance(table.unit, Link):
            _check(table.unit, _place(name), name, rules, stored)
    return {name: _followed(table, schema, rules) for name, table in schema.items()}


def _place(table: str) -> str:
    return inside(inside("tables", table), "unit")


def _followed(table: Table, schema: Schema, rules: Mapping[str, TableRules]) -> Table:
    links: list[Link] = []
    while isinstance(link := rules[links[-1].table if links else table.name].unit, Link):
        if link.table in (table.name, *(step.table for step in links)):
            raise policy_error(
                _place(table.name), "leads in a circle: let one of its tables name a column as its unit."
            )
        links.append(link)
    if not links:
        return table
    owner = schema[links[-1].table]
    return replace(table, unit=owner.unit, unit_type=owner.unit_type, through=tuple(links))


def _check(
    link: Link, place: str, name: str, rules: Mapping[str, TableRules], stored: Mapping[str, Mapping[str, str]]
) -> None:
    if link.table not in rules:
        raise policy_error(
            inside(place, "through"), f"names a table that is not there: {closest(link.table, sorted(rules))}"
        )
    if rules[link.table].public:
        raise policy_error(
            inside(place, "through"), "names a public table, which leads to nobody: name a private one with a unit."
        )
    if rules[link.table].unit is None:
        far = inside("tables", link.table)
        raise policy_error(inside(place, "through"), f'names a table without a unit: add unit = "column" to [{far}].')
    for here, there in link.on:
        check_column(here, stored[name], inside(place, "on"))
        check_column(there, stored[link.table], inside(place, "on"))
        column = rules[link.table].columns.get(there)
        if column is not None and column.private_bounds:  # what is bought could make two keys one
            raise policy_error(
                inside(place, "on"), f"refers to {there}, so its bounds cannot be for sale: leave them out."
            )
        _check_types(stored[name][here], stored[link.table][there], here, there, inside(place, "on"))


def _check_types(here: str, there: str, name: str, other: str, place: str) -> None:
    """Keys must be equal as they are stored: a cast can make two of them one, and NaN equals what an engine likes."""
    if equality_type(here) != equality_type(there):
        raise policy_error(
            place,
            f"compares {name}, stored as {here}, with {other}, stored as {there}: store both as the same type.",
        )
    if base_type(here) in FLOATS:
        raise policy_error(place, f"compares {name}, stored as {here}: store keys as whole numbers or as text.")


def check_unique(schema: Schema, unique: Callable[[Table, Sequence[str]], bool]) -> None:
    """Refuse data in which a foreign key refers to several rows; `unique` asks the engine, once for each key."""
    links = {(link.table, link.there): name for name, table in schema.items() for link in table.through[:1]}
    for (far, columns), name in links.items():
        if not unique(schema[far], columns):
            raise policy_error(
                inside(_place(name), "on"),
                f"refers to several rows of {far} with the same {', '.join(columns)}: keep one row for each.",
            )
