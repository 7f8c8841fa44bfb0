"""Make a project: check everything first, then write policy, secret, ledger and, last, the file that names them."""

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from noisette.curator.curator import new_secret
from noisette.curator.described import Described, described_data, in_spark, table_name
from noisette.engines.files import is_csv, is_database, is_postgres, is_server, is_spark, no_file
from noisette.errors import InputError
from noisette.exact.number import Number
from noisette.ledger import elsewhere, open_ledger
from noisette.names import closest
from noisette.policy.policy import Policy, read_policy
from noisette.policy.rules import TableRules
from noisette.policy.tables import header
from noisette.policy.toml import gaps, with_gaps, with_types
from noisette.privacy import Promise, Spend, as_promise
from noisette.query.schema import Limits, Link

__all__ = ["Place", "Wanted", "files", "make", "source_of"]


Place: TypeAlias = Path | str
"""A file, or the address of a PostgreSQL database or of Spark, behind which #schema.table may name one table."""


@dataclass(frozen=True)
class Wanted:
    """What the owner says of a project: data by table, and the options it was opened with."""

    data: Mapping[str, "Place"]
    budget: Spend | None = None
    unit: str | None = None
    limits: tuple[int | None, int | None, int | None] = (None, None, None)
    policy: str | Path | None = None
    start_over: str | None = None
    keys_delta: Number | None = None
    scratch: str | None = None
    public: tuple[str, ...] = ()

    def described(self) -> Described:
        """The data as these options describe them; CSV columns that nobody described are text."""
        source: Any = source_of(self.data, self.scratch)
        rules: Any = self.policy
        unknown = [name for name in self.public if isinstance(source, Mapping) and name not in source]
        if unknown:
            raise InputError(f"There is no table {unknown[0]} that could be public: {closest(unknown[0], source)}")
        if rules is None:
            texts = {name: header(path, name) for name, path in self.data.items() if is_csv(path)}
            columns = {name: {c: {"type": "text"} for c in names} for name, names in texts.items()}
            rules = {"tables": {name: {"columns": part} for name, part in columns.items()}}
            for name in self.public:
                rules["tables"].setdefault(name, {})["public"] = True
        elif self.public:
            raise InputError("Say public = true in the policy file: --public is for a project without one.")
        return described_data(source, budget=self.budget, unit=self.unit, limits=self.limits, policy=rules)

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
        named = [rules.unit for rules in tables if not isinstance(rules.unit, Link)]
        unit = self.unit is not None and any(column != self.unit for column in named)
        if unit or (limits != Limits() and any(rules.limits != limits for rules in tables)):
            raise InputError(f"This project is there already, with another unit or other limits: edit {file.name}.")
        if any(name not in settled.tables or not settled.tables[name].public for name in self.public):
            raise InputError(f"This project is there already, with other public tables: edit {file.name}.")
        if self.policy is not None and not _same(self.policy, file, settled):
            raise InputError(f"This project is there already, with another policy: edit {file.name}.")


def _same(given: str | Path, file: Path, settled: Policy) -> bool:
    return Path(given).resolve() == file.resolve() or read_policy(given, settled.budget) == settled


# Data


def source_of(data: Mapping[str, Place], scratch: str | None = None) -> Any:
    """What `open` understands: tables by name, or a database that holds them; `scratch` is for Spark."""
    places = list(data.values())
    if is_spark(places[0]):
        named = {name: _pair(place)[1] for name, place in data.items()}
        return in_spark(_pair(places[0])[0], named if "#" in str(places[0]) else None, scratch)
    if scratch is not None:
        raise InputError("A scratch folder is for data in Spark: leave it out, or name the engine.")
    whole = len(places) == 1 and (is_database(places[0]) or (is_postgres(places[0]) and "#" not in str(places[0])))
    return places[0] if whole else {name: _pair(place) for name, place in data.items()}


def _pair(place: Place) -> Any:
    """A table of a server as a pair (URL, table), a file as it is."""
    if not isinstance(place, str):
        return place
    url, _, table = place.partition("#")
    return url, table


def files(sources: Sequence[str | Path], engine: str | None = None) -> dict[str, Place]:
    """Absolute paths, or URLs, by the names of their tables; with an `engine`, sources are tables or paths of it.

    >>> sorted(files(["visits-*.parquet", "labs=results-*.parquet"]))
    ['labs', 'visits']
    >>> files(["v=clinic.visits", "clinic.labs"], "sc://host:15002")
    {'v': 'sc://host:15002#clinic.visits', 'labs': 'sc://host:15002#clinic.labs'}
    """
    found: dict[str, Place] = {}
    for source in sources if engine is None else _of_engine(sources, engine):
        name, path = _named(str(source))
        if name in found:
            raise InputError(f"Two files are called {name}: name a table with {name}_2=path.")
        found[name] = path
    if not found:
        raise InputError("Name the data: a Parquet, CSV or DuckDB file.")
    urls = [place for place in found.values() if isinstance(place, str)]
    if urls and (len(urls) < len(found) or (len(found) > 1 and not all("#" in url for url in urls))):
        raise InputError("Name tables of one database: visits=postgresql://host/clinic#public.visits for each of them.")
    if any(map(is_spark, urls)) and len({_pair(url)[0] for url in urls}) > 1:
        raise InputError("Name tables of one Spark server: visits=sc://host:15002#clinic.visits for each of them.")
    for path in found.values():
        if isinstance(path, Path) and not path.exists() and not any(letter in str(path) for letter in "*?["):
            raise no_file(path.name)
    if len(found) > 1 and any(is_database(path) for path in found.values()):
        raise InputError("A DuckDB file holds tables of its own: open it alone.")
    return found


def _of_engine(sources: Sequence[str | Path], engine: str) -> list[str]:
    """Tables and paths with the address of the engine that reads them; without any, the engine itself."""
    if not is_server(engine):
        raise InputError("An engine is an address: sc://host:15002, spark://host:7077, local[2] or postgresql://….")
    made = []
    for source in map(str, sources):
        name, equals, rest = source.partition("=")
        if not (equals and name.isidentifier()):
            name, equals, rest = "", "", source
        here = Path(rest).expanduser()
        place = str(here.resolve()) if not engine.startswith(_ELSEWHERE) and here.exists() else rest
        made.append(f"{name}{equals}{engine}#{place}")
    return made or [engine]


_ELSEWHERE = ("sc://", "postgres")  # whose paths, if any, are on other machines


def _named(source: str) -> tuple[str, Place]:
    name, equals, rest = source.partition("=")
    named = bool(equals) and name.isidentifier()
    if is_server(rest if named else source):
        return _of_server(rest if named else source, name if named else None)
    path = Path(rest if named else source).expanduser()
    return (name if named else table_name(path.absolute())), path.resolve()  # a link is not other data


def _of_server(url: str, name: str | None) -> tuple[str, Place]:
    parts = urlsplit(url)
    if parts.password or "password=" in parts.query:
        raise InputError(
            "Leave the password out of the address, which is kept: PostgreSQL reads PGPASSWORD or ~/.pgpass."
        )
    if "token=" in url:
        raise InputError(
            "Leave the token out of the address, which is kept: open the session in Python, nz.open(spark)."
        )
    own = parts.fragment.rpartition(".")[2] or parts.path.strip("/")
    if "/" in parts.fragment:
        own = table_name(Path(parts.fragment))
    return name or re.sub(r"\W+", "_", own).strip("_") or "data", url


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
            said |= {} if wanted.scratch is None else {"scratch": wanted.scratch}
            (folder / "project.json").write_text(json.dumps(said, indent=2, ensure_ascii=False) + "\n", "utf-8")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        if policy is not None and new:
            policy.unlink(missing_ok=True)
        raise


def _begin(where: Path, wanted: Wanted, found: Described) -> None:
    """Begin the ledger; the first question says which data it is about, so that the policy may be edited until then."""
    begun = partial(open_ledger, where, budget=found.policy.budget, keys_delta=wanted.keys_delta)
    begun(elsewhere=elsewhere(where, found.contents), start_over=wanted.start_over).close()


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
    drafted = {name for name, place in wanted.data.items() if wanted.policy is None and is_csv(place)}
    path.write_text(with_types(text, drafted), "utf-8")
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


def _relative(path: Place, home: Path) -> str:
    if isinstance(path, str):
        return path
    try:
        return Path(os.path.relpath(path, home)).as_posix()
    except ValueError:  # another drive
        return str(path)
