"""`noisette policy`: check a policy file, by itself and against how the data are stored."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noisette.cli.common import Folder, Json, as_json, in_options, patience, project_of, table_of, undeclared
from noisette.errors import InputError
from noisette.terminal import console, echo

if TYPE_CHECKING:
    from noisette.curator.project import Project
    from noisette.curator.row_check import TableCheck
    from noisette.policy.check import Problem
    from noisette.policy.rules import TableRules
    from noisette.policy.toml import Gap

__all__ = ["policy"]

policy = typer.Typer(help="Check what the owner declares.")


@policy.callback()
def _policy() -> None:
    """Check what the owner declares."""


@dataclass(frozen=True)
class _Checked:
    """A policy file with what is wrong with it, or what it does not say yet."""

    file: Path
    against_data: bool
    problems: "list[Problem]"
    missing: "list[Gap]" = field(default_factory=list)
    tables: "Mapping[str, TableRules]" = field(default_factory=dict)
    rows: "list[TableCheck] | None" = None


@policy.command()
def check(
    file: Annotated[
        Path | None, typer.Argument(help="A policy file; else that of the project.", metavar="FILE")
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option("--data", help="A table to check it against: FILE or name=FILE; may be repeated."),
    ] = None,
    rows: Annotated[
        bool, typer.Option("--rows", help="As the owner: count the rows that do not meet it, in exact numbers.")
    ] = False,
    json: Json = False,
    project: Folder = None,
) -> None:
    """Say every problem of a policy file, with its line; nothing is spent.

    With --data, or for the policy of a project, names and types are held against the columns of the data. Of rows it is
    only read whether the key that a foreign key refers to repeats, and how often values of public tables do.

    With --rows all rows are read, and what does not meet the policy is counted, column by column, in exact numbers:
    they are for the owner of the data alone. No ledger is written.

    A problem ends with 2. Lines that are not declared yet are no problem: they are listed as `missing`.
    """
    found = _checked(file, data, project, rows=rows)
    if json:
        echo(as_json(_record(found)))
    else:
        _show(found)
    if found.problems:
        raise typer.Exit(2)


def _checked(file: Path | None, data: list[str] | None, folder: Path | None, *, rows: bool) -> _Checked:
    from noisette.curator.described import Described, described_data
    from noisette.curator.new_project import files, source_of
    from noisette.curator.row_check import check_rows
    from noisette.policy.check import problems
    from noisette.policy.toml import gaps

    made = None if file is not None and folder is None else project_of(folder)
    path = file if file is not None else _file_of(made)
    places = files(data) if data else made.data if made is not None else None
    if places is None and rows:
        raise InputError("Name the data whose rows are counted: --data visits.parquet.")
    with patience("Checking the policy"):
        if places is None:
            return _Checked(path, False, problems(path))
        source = source_of(places)
        described: list[Described] = []  # as the last reading of the file has it
        found = problems(path, lambda given: described.append(described_data(source, policy=given)))
        if found:
            return _Checked(path, True, found, rows=_rows_all_the_same(source, path) if rows else None)
        [opened] = described
        counted = check_rows(opened) if rows else None
        return _Checked(path, True, [], gaps(opened.schema), opened.policy.tables, counted)


def _rows_all_the_same(source: Any, path: Path) -> "list[TableCheck] | None":
    """The rows that do not meet a policy with problems, such as repeated keys; None where it cannot be read."""
    from noisette.curator.described import described_data
    from noisette.curator.row_check import check_rows

    try:
        return check_rows(described_data(source, policy=path, repeated_keys=True))
    except InputError:
        return None


# For machines


def _record(found: _Checked) -> dict[str, Any]:
    from noisette.curator.row_check import FOR_THE_OWNER

    record = {
        "policy": found.file.name,
        "against_data": found.against_data,
        "problems": [problem._asdict() for problem in found.problems],
        "missing": [vars(gap) for gap in found.missing],
    }
    if found.rows is None:
        return record
    return {**record, "rows": {"note": FOR_THE_OWNER, "tables": [_counts(table) for table in found.rows]}}


def _counts(check: "TableCheck") -> dict[str, Any]:
    years = {"years_of": check.date, "years": [year._asdict() for year in check.periods]} if check.date else {}
    findings = [finding._asdict() for finding in check.findings]
    return {"table": check.table, "rows": check.rows, "units": check.units, "findings": findings, **years}


# For people


def _show(found: _Checked) -> None:
    for problem in found.problems:
        echo(in_options(str(problem)), err=True)
    if not found.problems:
        echo(_well(found))
    if found.rows is not None:
        _show_rows(found.rows)


def _well(found: _Checked) -> str:
    if not found.against_data:
        against = "by itself; --data holds it against the data"
    elif found.rows is None:
        against = "and fits the columns of the data; rows were not looked at: say --rows"
    else:
        against = "and fits the columns of the data"
    missing = [undeclared(found.file.name, found.missing, found.tables)] if found.missing else []
    return "\n".join([f"{found.file.name} is in order, {against}.", *missing])


def _show_rows(checks: "list[TableCheck]") -> None:
    from noisette.curator.row_check import FOR_THE_OWNER

    shown = console(soft_wrap=True)
    shown.print(f"\n{FOR_THE_OWNER}")
    for check in checks:
        units = "" if check.units is None else f" of {check.units:,} units"
        well = "" if check.findings else ", all of which meet the policy"
        shown.print(f"\n{check.table}: {check.rows:,} rows{units}{well}")
        if check.findings:
            grid = table_of(">rows", ">of all", "column", "what")
            for column, what, rows, looks in check.findings:
                mostly = f" (most look like {looks})" if looks else ""
                grid.add_row(f"{rows:,}", _share(rows, check.rows), column or "", what + mostly)
            shown.print(grid)
        if check.periods:
            grid = table_of(f">{check.date}", ">rows", ">beyond its bounds", ">beyond limits, about")
            for year, *numbers in check.periods:
                grid.add_row("no date" if year is None else str(year), *(f"{n:,}" for n in numbers))
            shown.print(grid)


def _share(rows: int, total: int) -> str:
    """A share in percent that is 0 or 100 only where it is exactly that.

    >>> _share(1, 100_000), _share(99_999, 100_000), _share(1, 8), _share(8, 8)
    ('< 0.1%', '> 99.9%', '12.5%', '100.0%')
    """
    exact = 100 * rows / total
    if rows < total and exact > 99.9:
        return "> 99.9%"
    return "< 0.1%" if exact < 0.1 else f"{exact:.1f}%"


def _file_of(made: "Project | None") -> Path:
    if made is None:
        raise InputError("Name the policy file: noisette policy check visits.policy.toml.")
    return made.policy_file
