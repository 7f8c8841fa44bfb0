"""`noisette open`: declare who is protected and how much may be spent, and make a project of it."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noisette.cli.common import Folder, Json, amount, as_json, curator_of, patience, undeclared
from noisette.errors import InputError
from noisette.terminal import console, echo
from noisette.text import visible

if TYPE_CHECKING:
    from noisette.curator.project import Project
    from noisette.ledger import KnownError
    from noisette.policy.policy import Policy
    from noisette.policy.toml import Gap
    from noisette.query.schema import Column, Schema, Table

__all__ = ["open_data"]

_UNGUARDED = (
    "the state folder of this user cannot be written, so a ledger that is deleted would not be missed; "
    "name another one with NOISETTE_STATE"
)

_CODED = (
    "Some rows of {name} are not in {encoding}, and question marks stand for such bytes in every answer: below "
    "[tables.{name}] {cure}. As the owner, count them with `noisette policy check --rows`."
)


def open_data(
    data: Annotated[
        list[str] | None, typer.Argument(help="Files (Parquet, CSV, DuckDB) or a PostgreSQL URL; name=FILE.")
    ] = None,
    budget: Annotated[str | None, typer.Option(help="What all answers may cost: 2,1e-6, or 2, or rho=0.5.")] = None,
    unit: Annotated[str | None, typer.Option(help="The column that says whose row it is; else each row.")] = None,
    public: Annotated[
        list[str] | None,
        typer.Option(help="A table that protects nobody, such as a list of wards; may be repeated.", metavar="TABLE"),
    ] = None,
    rows: Annotated[int | None, typer.Option(help="The most rows of one unit that count.")] = None,
    groups: Annotated[int | None, typer.Option(help="The most groups that one unit counts in.")] = None,
    rows_per_group: Annotated[int | None, typer.Option(help="The most rows of one unit in a group.")] = None,
    policy: Annotated[Path | None, typer.Option(help="A policy file that says all of it.", metavar="FILE")] = None,
    keys_delta: Annotated[
        str | None, typer.Option(help="The part of delta for questions with unknown keys; a tenth if left out.")
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            help="Where the data are: sc://host:15002, local[2], postgresql://…; they are its tables.", metavar="URL"
        ),
    ] = None,
    scratch: Annotated[
        str | None, typer.Option(help="A folder that Spark's executors share, for unknown keys.", metavar="DIR")
    ] = None,
    start_over: Annotated[
        bool, typer.Option("--start-over", help="As the owner: begin anew where there was a ledger; needs --why.")
    ] = False,
    why: Annotated[str | None, typer.Option(help="The reason, for those who read the ledger later.")] = None,
    json: Json = False,
    project: Folder = None,
) -> None:
    """Make a project: a policy file to edit, a ledger with the budget, and a secret, beside the data.

    To open the same data again changes nothing: there is one budget for them. If their ledger was deleted, or they have
    one elsewhere, a new start needs the owner's word: at a terminal you are asked, else say --start-over --why.
    """
    from noisette.curator.project import Project
    from noisette.ledger import KnownError
    from noisette.policy.toml import gaps

    if start_over != (why is not None):
        raise InputError("To begin anew where there was a ledger, say --start-over and --why '…', the reason.")

    promise = None if budget is None else amount(budget, "--budget")
    said = partial(
        Project.create,
        data or [],
        engine=engine,
        scratch=scratch,
        folder=project,
        budget=promise,
        unit=unit,
        policy=policy,
        keys_delta=keys_delta,
        public=public or (),
    )
    create = partial(said, rows=rows, groups=groups, rows_per_group=rows_per_group)
    try:
        with patience("Opening"):
            made = create(start_over=why)
    except KnownError as known:
        made = create(start_over=_reason(known))
    with curator_of(made.folder, asking=False) as curator:
        settled, schema = curator.policy, curator.schema
    missing = gaps(schema)
    if json:
        echo(as_json(_record(made, settled, schema, missing)))
    else:
        _show(made, settled, schema, missing)
    with patience("Reading"):
        coded = made.not_in_encoding()
    for name, encoding in coded.items():
        cure = "edit it" if encoding != "utf-8" else 'encoding = "latin-1" or "windows-1252" may be it'
        echo(_CODED.format(name=name, encoding=encoding.upper(), cure=cure), err=True)


def _reason(known: "KnownError") -> str:
    """Why the owner starts over; where nobody can be asked, nothing is begun."""
    if not _terminal():
        raise known
    echo(str(known), err=True)
    if not typer.confirm("Begin a new ledger with a new budget?", default=False, err=True):
        raise known
    return str(typer.prompt("Why, for those who read the ledger later", err=True))


def _terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


# For machines


def _record(made: "Project", policy: "Policy", schema: "Schema", missing: "list[Gap]") -> dict[str, Any]:
    from noisette.answers.record import stated
    from noisette.ledger.heads import guarded

    return {
        "project": str(made.folder),
        "policy": str(made.policy_file),
        "budget": stated(policy.budget),
        "neighbours": str(policy.neighbours),
        "rules": {name: str(value) for name, (value, _) in policy.rules.lines.items()},
        "tables": {name: _table(table) for name, table in schema.items()},
        "missing": [vars(gap) for gap in missing],
        "guarded": guarded(),
    }


def _table(table: "Table") -> dict[str, Any]:
    columns = {column.name: _column(column) for column in table.columns}
    chosen = {"rows": "each question", "most_rows": table.chosen_rows} if table.chosen_rows else {}
    limits = {**vars(table.limits), **({"rows": "private"} if table.private_rows else chosen)}
    limits |= {} if table.per_period is None else {"rows": vars(table.per_period)}
    through = [{"table": link.table, "on": dict(link.on)} for link in table.through]
    return {"unit": table.unit, "through": through, **limits, "public": table.public, "columns": columns}


def _column(column: "Column") -> dict[str, Any]:
    kind = column.kind
    bounds = None if kind.bounds is None else list(kind.bounds)
    keys = None if kind.keys is None else [key if isinstance(key, str | int) else str(key) for key in kind.keys]
    return {"type": kind.type, "bounds": bounds, "keys": keys, "nullable": kind.nullable, "group": column.group}


# For people


def _show(made: "Project", policy: "Policy", schema: "Schema", missing: "list[Gap]") -> None:
    from noisette.answers.figures import promise
    from noisette.ledger.heads import guarded
    from noisette.query.schema import protected

    shown = console(soft_wrap=True)
    shown.print(f"budget   {promise(policy.budget)} for all answers together, {policy.neighbours}")
    shown.print(f"policy   {_near(made.policy_file)}")
    shown.print(f"project  {_near(made.folder / '.noisette')}")
    for name, (value, why) in policy.rules.lines.items():
        shown.print(f"rule     {name} = {value}: {why}")
    if not guarded():
        shown.print(f"note     {_UNGUARDED}")
    for table in schema.values():
        shown.print()
        shown.print(visible(f"{table.name}: {protected(table)}"))
        shown.print(_columns(table))
    if made.has_csv and all(c.kind.type == "text" for t in schema.values() for c in t.columns):
        shown.print(
            f"A CSV file does not say its types: choose them in {made.policy_file.name}, until then all is text."
        )
    if missing:
        shown.print(undeclared(made.policy_file.name, missing, policy.tables))
    where = "" if Path.cwd().is_relative_to(made.folder) else f" --project {_near(made.folder)}"
    shown.print(f'\nThen: noisette explain "SELECT count(*) AS n FROM {next(iter(schema))}" --spend 0.1{where}')


def _columns(table: "Table") -> Any:
    from rich import box
    from rich.table import Table as Grid
    from rich.text import Text

    from noisette.query.schema import COLUMN_HEAD, shown

    grid = Grid(box=box.SIMPLE, pad_edge=False)
    for head in COLUMN_HEAD:
        grid.add_column(head, overflow="fold")
    for column in table.columns:
        grid.add_row(*(Text(visible(text)) for text in shown(column)))
    return grid


def _near(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
