"""What a policy does not say yet, with the lines to write. Nothing is looked up in the data."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from noisette.policy.errors import inside
from noisette.query.schema import Column, Limits, Schema, Table

__all__ = ["Gap", "gaps", "with_gaps"]


@dataclass(frozen=True)
class Gap:
    """Something that is not declared: where it would stand, the line (with names to be replaced), and what for."""

    table: str
    column: str | None
    place: str
    line: str
    why: str


def gaps(schema: Schema) -> list[Gap]:
    """What is missing of the tables that protect somebody."""
    return [gap for table in schema.values() if not table.public for gap in _of_table(table)]


def _of_table(table: Table) -> Iterator[Gap]:
    place = inside("tables", table.name)
    if table.unit is not None and table.limits == Limits() and not table.private_rows:
        yield Gap(
            table.name, None, place, "rows = number", f"of one {table.unit} that may count; every question needs it"
        )
    for column in table.columns:
        line = None if column.name == table.unit else _line(column)
        if line is not None:
            yield Gap(table.name, column.name, inside(inside(place, "columns"), column.name), *line)


def _line(column: Column) -> tuple[str, str] | None:
    kind = column.kind
    if kind.type == "text" and kind.keys is None and not column.private_keys:
        return (
            "keys = [all, values]",
            "to group by it; else only keys that many share are released, with a delta",
        )
    if kind.type not in ("text", "boolean") and not kind.bounded and not column.private_bounds:
        return "bounds = [low, high]", "for sums, means and quantiles"
    return None


def with_gaps(text: str, missing: Iterable[Gap]) -> str:
    """A policy file with the missing lines as comments: they cannot be taken in as they are.

    >>> print(with_gaps("[tables.a]", [Gap("a", "x", "tables.a.columns.x", "bounds = [low, high]", "for sums")]))
    [tables.a]
    <BLANKLINE>
    # [tables.a.columns.x]
    # bounds = [low, high]  # for sums
    <BLANKLINE>
    """
    blocks = text.strip().split("\n\n")
    for gap in missing:
        comment = f"# {gap.line}  # {gap.why}"
        at = next((i for i, block in enumerate(blocks) if block.splitlines()[0] == f"[{gap.place}]"), None)
        if at is None:
            blocks.append(f"# [{gap.place}]\n{comment}")
        else:
            blocks[at] += f"\n{comment}"
    return "\n\n".join(blocks) + "\n"
