"""`noisette policy`: check a policy file, by itself and against how the data are stored."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noisette.cli.common import Folder, Json, as_json, in_options, patience, project_of, undeclared
from noisette.errors import InputError

if TYPE_CHECKING:
    from noisette.curator.project import Project
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


@policy.command()
def check(
    file: Annotated[
        Path | None, typer.Argument(help="A policy file; else that of the project.", metavar="FILE")
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option("--data", help="A table to check it against: FILE or name=FILE; may be repeated."),
    ] = None,
    json: Json = False,
    project: Folder = None,
) -> None:
    """Say every problem of a policy file, with its line; nothing is spent.

    With --data, or for the policy of a project, names and types are held against the columns of the data. Of rows it is
    only read whether the key that a foreign key refers to repeats, and how often values of public tables do.

    A problem ends with 2. Lines that are not declared yet are no problem: they are listed as `missing`.
    """
    found = _checked(file, data, project)
    if json:
        typer.echo(as_json(_record(found)))
    elif found.problems:
        for problem in found.problems:
            typer.echo(in_options(str(problem)), err=True)
    else:
        typer.echo(_well(found))
    if found.problems:
        raise typer.Exit(2)


def _record(found: _Checked) -> dict[str, Any]:
    return {
        "policy": found.file.name,
        "against_data": found.against_data,
        "problems": [problem._asdict() for problem in found.problems],
        "missing": [vars(gap) for gap in found.missing],
    }


def _well(found: _Checked) -> str:
    against = (
        "and fits the columns of the data; rows were not looked at: say --rows"
        if found.against_data
        else "by itself; --data holds it against the data"
    )
    missing = [undeclared(found.file.name, found.missing, found.tables)] if found.missing else []
    return "\n".join([f"{found.file.name} is in order, {against}.", *missing])


def _checked(file: Path | None, data: list[str] | None, folder: Path | None) -> _Checked:
    from noisette.curator.described import described_data
    from noisette.curator.new_project import files, source_of
    from noisette.policy.check import problems
    from noisette.policy.toml import gaps

    made = None if file is not None and folder is None else project_of(folder)
    path = file if file is not None else _file_of(made)
    places = files(data) if data else made.data if made is not None else None
    with patience("Checking the policy"):
        if places is None:
            return _Checked(path, False, problems(path))
        source = source_of(places)
        if found := problems(path, lambda given: described_data(source, policy=given)):
            return _Checked(path, True, found)
        described = described_data(source, policy=path)
        return _Checked(path, True, [], gaps(described.schema), described.policy.tables)


def _file_of(made: "Project | None") -> Path:
    if made is None:
        raise InputError("Name the policy file: noisette policy check visits.policy.toml.")
    return made.policy_file
