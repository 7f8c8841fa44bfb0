"""Make a project: check everything first, then write policy, secret, ledger and, last, the file that names them."""

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from noisette.curator.curator import new_secret
from noisette.curator.fingerprints import contents
from noisette.curator.opening import Described, described_data, table_name
from noisette.engines.files import is_csv, is_database
from noisette.errors import InputError
from noisette.ledger import elsewhere, open_ledger
from noisette.policy.policy import Policy, read_policy
from noisette.policy.rules import TableRules
from noisette.policy.tables import header
from noisette.policy.toml import gaps, with_gaps
from noisette.privacy import Promise, Spend, as_promise
from noisette.query.schema import Limits

__all__ = ["Wanted", "files", "make", "source_of"]

_TYPES = (
    "# A CSV file does not say what its columns are: where one is not text, write integer, real, boolean, date or\n"
    "# timestamp. A column that is taken out cannot be asked for.\n"
)


@dataclass(frozen=True)
class Wanted:
    """What the owner says of a project: data by table, and the options it was opened with."""

    data: Mapping[str, Path]
    budget: Spend | None = None
    unit: str | None = None
    limits: tuple[int | None, int | None, int | None] = (None, None, None)
    policy: str | Path | None = None
    start_over: str | None = None

    def described(self) -> Described:
        """The data as these options describe them; CSV columns that nobody described are text."""
        rules: Any = self.policy
        if rules is None:
            texts = {name: header(path) for name, path in self.data.items() if is_csv(path)}
            columns = {name: {c: {"type": "text"} for c in names} for name, names in texts.items()}
            rules = {"tables": {name: {"columns": part} for name, part in columns.items()}}
        return described_data(
            source_of(self.data), budget=self.budget, unit=self.unit, limits=self.limits, policy=rules
        )

    def check(self, file: Path, settled: Policy, budget: Promise) -> None:
        """Refuse what differs from a project that is there."""
        asked = None if self.budget is None else as_promise(self.budget, "budget")
        if asked is not None and asked != budget:
            raise InputError(
                "The budget of this project is settled, and opening it again gives no other: its owner can write "
                f"another one into {file.name} and record it with `noisette ledger budget --why '…'`."
            )
        tables = [rules for rules in settled.tables.values() if not rules.public]
        limits = Limits(*self.limits)
        unit = self.unit is not None and any(rules.unit != self.unit for rules in tables)
        if unit or (limits != Limits() and any(rules.limits != limits for rules in tables)):
            raise InputError(f"This project is there already, with another unit or other limits: edit {file.name}.")
        if self.policy is not None and not _same(self.policy, file, settled):
            raise InputError(f"This project is there already, with another policy: edit {file.name}.")


def _same(given: str | Path, file: Path, settled: Policy) -> bool:
    return Path(given).resolve() == file.resolve() or read_policy(given, settled.budget) == settled


# Data


def source_of(data: Mapping[str, Path]) -> Any:
    """What `open` understands: tables by name, or a database that holds them."""
    paths = list(data.values())
    return paths[0] if len(paths) == 1 and is_database(paths[0]) else dict(data)


def files(sources: Sequence[str | Path]) -> dict[str, Path]:
    """Absolute paths by the names of their tables.

    >>> sorted(files(["visits-*.parquet", "labs=results-*.parquet"]))
    ['labs', 'visits']
    """
    found: dict[str, Path] = {}
    for source in sources:
        name, path = _named(str(source))
        if name in found:
            raise InputError(f"Two files are called {name}: name a table with {name}_2=path.")
        found[name] = path
    if not found:
        raise InputError("Name the data: a Parquet, CSV or DuckDB file.")
    for path in found.values():
        if not path.exists() and not any(letter in str(path) for letter in "*?["):
            raise InputError(f"There is no file {path.name}.")
    if len(found) > 1 and any(is_database(path) for path in found.values()):
        raise InputError("A DuckDB file holds tables of its own: open it alone.")
    return found


def _named(source: str) -> tuple[str, Path]:
    name, equals, rest = source.partition("=")
    named = bool(equals) and name.isidentifier()
    path = Path(rest if named else source).expanduser()
    return (name if named else table_name(path.absolute())), path.resolve()  # a link is not other data


# Writing


def make(home: Path, folder: Path, wanted: Wanted, version: int) -> None:
    """Write all files of a project, or none."""
    found = wanted.described()
    with _writing(home):
        home.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700)
    policy: Path | None = None
    try:
        with _writing(home):
            policy, new = _policy(home, wanted, found)
            _write_secret(folder / "secret")
            _begin(folder / "ledger.sqlite", wanted, found)
            paths = {name: _relative(path, home) for name, path in wanted.data.items()}
            said = {"format": version, "data": paths, "policy": _relative(policy, home)}
            (folder / "project.json").write_text(json.dumps(said, indent=2, ensure_ascii=False) + "\n", "utf-8")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        if policy is not None and new:
            policy.unlink(missing_ok=True)
        raise


def _begin(where: Path, wanted: Wanted, found: Described) -> None:
    """Begin the ledger; the first question says which data it is about, so that the policy may be edited until then."""
    away = elsewhere(where, contents(found.tables, found.schema))
    open_ledger(where, budget=found.policy.budget, elsewhere=away, start_over=wanted.start_over).close()


@contextmanager
def _writing(home: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError:
        raise InputError(
            f"{home.name} holds a .noisette that is not whole: if nothing was asked there, remove it and open again."
        ) from None
    except OSError:
        raise InputError(
            f"Nothing can be written into {home.name or home}: allow it, or name another folder with --project."
        ) from None


def _policy(home: Path, wanted: Wanted, found: Described) -> tuple[Path, bool]:
    """The policy file: the one that was given if it says everything, else a new one; and whether it is new."""
    if wanted.policy is not None and _says_all(wanted.policy, found.policy):
        return Path(wanted.policy).resolve(), False
    path = home / f"{next(iter(wanted.data))}.policy.toml"
    if path.exists():
        raise InputError(
            f"{path.name} is there already: let it say unit, limits and budget and name it with --policy, or move it."
        )
    text = with_gaps(found.policy.to_toml(), gaps(found.schema))
    drafted = wanted.policy is None and any(map(is_csv, wanted.data.values()))
    path.write_text(text + (f"\n{_TYPES}" if drafted else ""), "utf-8")
    return path, True


def _says_all(path: str | Path, complete: Policy) -> bool:
    try:
        said = read_policy(path)
    except InputError:
        return False
    tables = {name: said.tables.get(name, TableRules()) for name in complete.tables}
    return replace(said, tables=tables) == complete


def _write_secret(path: Path) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(file, new_secret())
        os.fsync(file)
    finally:
        os.close(file)


def _relative(path: Path, home: Path) -> str:
    try:
        return Path(os.path.relpath(path, home)).as_posix()
    except ValueError:  # another drive
        return str(path)
