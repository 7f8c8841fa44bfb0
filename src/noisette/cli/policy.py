"""`noisette policy`: check a policy file, by itself and against how the data are stored."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noisette.cli.common import Folder, Json, as_json, in_options, patience, project_of
from noisette.errors import InputError
from noisette.terminal import echo

if TYPE_CHECKING:
    from noisette.curator.project import Project

__all__ = ["policy"]

policy = typer.Typer(help="Check what the owner declares.")


@policy.callback()
def _policy() -> None:
    """Check what the owner declares."""


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
    """Say every problem of a policy file, with its line; nothing is spent, and no private row is read.

    With --data, or for the policy of a project, names and types are held against the columns of the data. A problem
    ends with 2. Lines that are not declared yet are no problem: they are listed as `missing`.
    """
    found = _checked(file, data, project)
    if json:
        echo(as_json(found))
    elif found["problems"]:
        for problem in found["problems"]:
            echo(
                in_options(f"line {problem['line']}: {problem['what']}" if problem["line"] else problem["what"]),
                err=True,
            )
    else:
        echo(_well(found))
    if found["problems"]:
        raise typer.Exit(2)


def _problem(problem: Mapping[str, Any]) -> str:
    return in_options(f"line {problem['line']}: {problem['what']}" if problem["line"] else problem["what"])


def _well(found: Mapping[str, Any]) -> str:
    against = "and fits the data" if found["against_data"] else "by itself; --data holds it against the data"
    lines = [f"[{gap['place']}]\n{gap['line']}  # {gap['why']}" for gap in found["missing"]]
    missing = ["Not declared yet:", *lines] if lines else []
    return "\n".join([f"{found['policy']} is in order, {against}.", *missing])


def _checked(file: Path | None, data: list[str] | None, folder: Path | None) -> dict[str, Any]:
    from noisette.curator.described import described_data
    from noisette.curator.new_project import files, source_of
    from noisette.policy.check import problems
    from noisette.policy.toml import gaps

    made = None if file is not None and folder is None else project_of(folder)
    path = file if file is not None else _file_of(made)
    places = files(data) if data else made.data if made is not None else None
    with patience("Checking the policy"):
        if places is None:
            found, missing = problems(path), []
        else:
            source = source_of(places)
            found = problems(path, lambda given: described_data(source, policy=given))
            missing = [] if found else gaps(described_data(source, policy=path).schema)
    return {
        "policy": path.name,
        "against_data": places is not None,
        "problems": [problem._asdict() for problem in found],
        "missing": [vars(gap) for gap in missing],
    }


def _file_of(made: "Project | None") -> Path:
    if made is None:
        raise InputError("Name the policy file: noisette policy check visits.policy.toml.")
    return made.policy_file
