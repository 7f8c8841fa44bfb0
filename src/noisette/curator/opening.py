"""Open data: a file, a frame, a database or a project, as a curator."""

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from noisette.curator.curator import Curator
from noisette.curator.described import described_data, in_spark
from noisette.curator.project import FOLDER, PROJECT, Project
from noisette.errors import InputError
from noisette.exact.number import Number
from noisette.ledger import Memory
from noisette.policy.policy import Policy
from noisette.privacy import Spend

__all__ = ["open", "open_again"]

_ONCE = (
    "start_over is said once, by the owner, and connections are opened again and again: open the data with "
    "nz.open(…, start_over=…), and leave it out here."
)
_FRESH = (
    'Without a ledger each connection would begin with a fresh budget: name one, ledger="visits.ledger", or open the '
    "folder of a project that `noisette open` made."
)


def open(
    source: Any,
    *,
    tables: Mapping[str, Any] | None = None,
    scratch: str | Path | None = None,
    budget: Spend | None = None,
    unit: str | None = None,
    rows: int | None = None,
    groups: int | None = None,
    rows_per_group: int | None = None,
    policy: Policy | Mapping[str, Any] | str | Path | None = None,
    ledger: str | Path | None = None,
    keys_delta: Number | None = None,
    start_over: str | None = None,
    analyst: str | None = None,
) -> Curator:
    """Open data for questions that protect each unit.

    `source` is a path (Parquet, CSV, DuckDB), a frame (Arrow, pandas, Polars), the URL of a PostgreSQL database, or a
    dictionary of names to paths, frames or pairs (URL, table); one frame is called `data`, a file by its name. Of a
    Spark session or its URL (sc://host:15002), `tables` gives frames, names of stored tables or paths by name, and
    `scratch` a folder that executors share with this process: unknown keys are then noised by the executors. `unit`
    names the column that says whose row it is, in every table that has it; without one each row is a unit. `rows`,
    `groups` and `rows_per_group` limit how much of one unit is used. All of that and more may stand in a `policy`
    instead; what a policy says of a table comes first. `ledger` is where charges are kept, a file or a PostgreSQL URL;
    without one they are gone with the process. `keys_delta` is the part of the budget's delta for questions with
    unknown keys, a tenth by default: it is settled when the ledger begins. Where these data were charged to a ledger
    that is gone, `start_over` says why a new one may begin all the same. `analyst` says who asks, for all questions.

    A folder with a project that `noisette open` made is opened with its own policy and ledger: `nz.open("clinic")`.

    >>> import noisette as nz, pyarrow
    >>> people = pyarrow.table({"age": [34, 51, 68], "ward": ["north", "south", "north"]})
    >>> wards = {"ward": {"keys": ["north", "south"]}}
    >>> data = nz.open(people, budget=1, policy={"tables": {"data": {"columns": wards}}})
    >>> len(data.sql("SELECT ward, count(*) FROM data GROUP BY ward", spend="0.5"))
    3
    """
    if isinstance(source, str | Path) and _is_project(source):
        _alone(budget, unit, rows, groups, rows_per_group, policy, ledger, keys_delta, start_over)
        return Project.read(source).curator(analyst=analyst)
    source = source if tables is None and scratch is None else in_spark(source, tables, scratch)
    found = described_data(source, budget=budget, unit=unit, limits=(rows, groups, rows_per_group), policy=policy)
    budget = found.policy.budget
    if ledger is None:
        return found.curator(Memory(budget, keys_delta=keys_delta), analyst=analyst)
    book = found.ledger(ledger, budget=budget, keys_delta=keys_delta, start_over=start_over)
    return found.curator(book, analyst=analyst)


def open_again(source: Any, *, ledger: str | Path | None = None, **opening: Any) -> Curator:
    """`open` for what opens the same data again and again, as connections do: all of them charge one lasting ledger.

    A ledger in memory is refused, as a budget would hold for one connection and not for the data.
    """
    if ledger is None and not (isinstance(source, str | Path) and _is_project(source)):
        raise InputError(_FRESH)
    if "start_over" in opening:
        raise InputError(_ONCE)
    known = inspect.signature(open).parameters
    if unknown := sorted(set(opening) - set(known)):
        raise InputError(f"A connection has no option {unknown[0]}: it takes those of nz.open, and spend, error, bars.")
    return open(source, ledger=ledger, **opening)


def _is_project(folder: str | Path) -> bool:
    path = Path(folder).expanduser()
    return (path / PROJECT).is_file() or (path.name == FOLDER and (path / "project.json").is_file())


def _alone(*options: object) -> None:
    """Refuse options beside a project, which has all of them."""
    if any(option is not None for option in options):
        raise InputError("This folder holds a project with a budget, a policy and a ledger: name nothing but analyst=.")
