"""A project: the folder `.noisette` beside the data, with which every process finds the same ledger again.

visits.parquet            the data
visits.policy.toml        what the owner declares, to be edited by hand
.noisette/project.json    where the data and the policy are, seen from the folder that holds `.noisette`
.noisette/ledger.sqlite   what was spent, and the answers that were given
.noisette/secret          keys the choice of rows where a unit has more than may count; only its owner can read it
.noisette/bought          purchases that earlier versions made; later ones are entries of the ledger
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from noisette.curator.curator import Curator
from noisette.curator.described import Described, described_data
from noisette.curator.new_project import Place, Wanted, files, make, source_of
from noisette.curator.purchases import from_files
from noisette.engines.csv import not_in_encoding
from noisette.engines.csv_form import PLAIN
from noisette.engines.files import files_of, is_csv, is_server
from noisette.errors import InputError, PrivacyError
from noisette.exact.number import Number
from noisette.ledger import Book, accept, elsewhere, open_ledger, rebind
from noisette.policy.policy import Policy, read_policy
from noisette.privacy import Promise, Pure, Spend

__all__ = ["FOLDER", "PROJECT", "Project"]

FOLDER = ".noisette"
PROJECT = f"{FOLDER}/project.json"
_FORMAT = 1
_NONE = (
    "There is no project here: make one with `noisette open visits.parquet --unit patient_id --budget 1`, "
    "or name its folder with --project."
)


@dataclass(frozen=True)
class Project:
    """Data, policy, ledger and secret of a folder; `find` looks for one, `create` makes one."""

    folder: Path
    data: Mapping[str, Place]
    policy_file: Path
    scratch: str | None = None

    # Making and finding

    @staticmethod
    def create(
        sources: Sequence[str | Path],
        *,
        folder: str | Path | None = None,
        budget: Spend | None = None,
        unit: str | None = None,
        rows: int | None = None,
        groups: int | None = None,
        rows_per_group: int | None = None,
        policy: str | Path | None = None,
        start_over: str | None = None,
        keys_delta: Number | None = None,
        engine: str | None = None,
        scratch: str | Path | None = None,
        public: Sequence[str] = (),
    ) -> "Project":
        """Make a project beside the first file, or in `folder`; what is there already is never begun afresh.

        A source is a path, or the address of a PostgreSQL database or of Spark, whose project is made here; `name=path`
        or `name=URL#table` names its table. With an `engine`, sources are tables and paths of that address; `scratch`
        is a folder that Spark's executors share with this machine; tables that are `public` protect nobody. Where these
        data have a project, it is returned if nothing would change, and otherwise this is refused: a second budget for
        the same data would be no budget. Where they had one that is gone, a new one needs a reason to `start_over`,
        which stands in the ledger's first entry.
        """
        data = files(sources, engine)
        home = _beside(data) if folder is None and not _on_server(data) else _home(folder or ".")
        wanted = Wanted(
            data, budget, unit, (rows, groups, rows_per_group), policy, start_over, keys_delta, public=tuple(public)
        )
        if scratch is not None:
            local = "://" not in str(scratch)
            wanted = replace(wanted, scratch=str(Path(scratch).expanduser().resolve()) if local else str(scratch))
        there = _there(home, data)
        if there is not None:
            if folder is not None and there.folder != home:
                raise InputError(
                    "These data have a project already, beside or above them: there is one budget for them."
                )
            if start_over is not None:
                raise InputError(
                    "This project is there and goes on: to start over, move its .noisette away first, and keep it."
                )
            there._check(wanted)
            return there
        make(home, home / FOLDER, wanted, _FORMAT)
        return Project.read(home)

    @staticmethod
    def find(start: str | Path = ".") -> "Project":
        """The project of a folder, or of the nearest one above it."""
        here = _home(start)
        for folder in (here, *here.parents):
            if _holds(folder):
                return Project.read(folder)
        raise InputError(_NONE)

    @staticmethod
    def read(folder: str | Path) -> "Project":
        """The project that a folder holds."""
        home = _home(folder)
        if not _holds(home):
            raise InputError(_NONE)
        said = _said(home / PROJECT)
        data = {name: _absolute(home, p) for name, p in said["data"].items()}
        return Project(home, data, home / said["policy"], said.get("scratch"))

    # Using

    @property
    def policy(self) -> Policy:
        """What the owner declares at present."""
        return read_policy(self.policy_file)

    @property
    def has_csv(self) -> bool:
        """Whether a table is a CSV file, which does not say its types."""
        return any(map(is_csv, self.data.values()))

    def not_in_encoding(self) -> dict[str, str]:
        """The tables whose CSV files hold bytes that are not of their encoding, and that; all rows are read for it."""
        forms = {name: table.form for name, table in self.policy.tables.items()}
        files = {name: files_of(place) for name, place in self.data.items() if is_csv(place)}
        found = {name: forms.get(name, PLAIN) for name in files}
        return {
            name: form.encoding
            for name, form in found.items()
            if any(not_in_encoding(file, form) for file in files[name])
        }

    @property
    def ledger_file(self) -> Path:
        """Where the ledger is."""
        return self.folder / FOLDER / "ledger.sqlite"

    def described(self) -> Described:
        """The data as the policy describes them; of rows it is read how often foreign keys and public values repeat."""
        return described_data(source_of(self.data, self.scratch), policy=self.policy)

    def ledger(self, *, about: Described | None = None, keys_delta: Number | None = None) -> Book:
        """The ledger, verified; never a new one. Other data than it is `about`, or another `keys_delta`, is refused."""
        if not self.ledger_file.exists():
            raise PrivacyError(
                "The ledger of this project is gone: restore a backup and accept it (`noisette ledger accept`)."
            )
        if about is None:
            return open_ledger(self.ledger_file, elsewhere=elsewhere(self.ledger_file), keys_delta=keys_delta)
        return about.ledger(self.ledger_file)

    def curator(self, *, asking: bool = True, analyst: str | None = None) -> Curator:
        """A curator with the project's ledger and secret, for one analyst if named.

        The first one that is `asking` settles which data the ledger is about; before, units may be edited as well.
        """
        found, former = self.described(), from_files(self.folder / FOLDER / "bought")
        book = self.ledger(about=found if asking else None)
        if book.budget != found.policy.budget:
            book.close()
            raise InputError(
                "The policy names another budget than the ledger: take that back, or let the owner record it with "
                "`noisette ledger budget --why '…'`."
            )
        try:
            if analyst is not None:
                book.allows(Pure(0), analyst=analyst)  # raises if there are shares, and none of this analyst
            return found.curator(book, secret=self._secret(), purchases=former, analyst=analyst)
        except BaseException:
            book.close()
            raise

    def _secret(self) -> bytes:
        try:
            secret = (self.folder / FOLDER / "secret").read_bytes()
        except OSError:
            secret = b""
        if len(secret) != 16:
            raise PrivacyError("The secret of this project cannot be read or is damaged: restore it from a backup.")
        return secret

    # What the owner does; each becomes an entry of the ledger

    def change_budget(self, *, why: str) -> None:
        """Make the budget that the policy names now the ledger's."""
        book = self.ledger()
        book.raise_budget(self.policy.budget, why=why)
        book.close()

    def share(self, shares: Mapping[str, Promise], *, why: str) -> None:
        """Give analysts shares of the budget, or other ones; from then on only those with a share are answered."""
        book = self.ledger()
        book.share(shares, why=why)
        book.close()

    def accept(self, *, why: str) -> None:
        """Go on with a ledger that was copied, moved or restored."""
        accept(self.ledger_file, why=why)

    def rebind(self, *, why: str) -> None:
        """Let the next question say which data the ledger is about: they moved, or have another column."""
        rebind(self.ledger_file, why=why)

    def _check(self, wanted: Wanted) -> None:
        """Refuse to open the same data again with anything else than what is settled."""
        if dict(self.data) != dict(wanted.data):
            raise InputError(
                f"{self.folder.name} holds a project about other data: name another folder with --project."
            )
        book = self.ledger(keys_delta=wanted.keys_delta)
        settled = book.budget
        book.close()
        wanted.check(self.policy_file, self.policy, settled)


def _home(folder: str | Path) -> Path:
    """The folder that holds `.noisette`, which may be named itself."""
    path = Path(folder).expanduser().resolve()
    return path.parent if path.name == FOLDER else path


def _on_server(data: Mapping[str, Place]) -> bool:
    return any(isinstance(place, str) for place in data.values())


def _beside(data: Mapping[str, Place]) -> Path:
    return Path(next(iter(data.values()))).parent


def _holds(folder: Path) -> bool:
    return os.path.isfile(folder / PROJECT)


def _there(home: Path, data: Mapping[str, Place]) -> Project | None:
    """The project in a folder, or one beside or above the data that is about them."""
    if _holds(home):
        return Project.read(home)
    for path in [place for place in data.values() if isinstance(place, Path)]:
        for folder in path.parents:
            if _holds(folder) and set(Project.read(folder).data.values()) & set(data.values()):
                return Project.read(folder)
    return None


def _absolute(home: Path, path: str) -> Place:
    if is_server(path):
        return path
    return Path(os.path.normpath(home / path))


def _said(path: Path) -> dict[str, Any]:
    try:
        said: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        known = said["format"] == _FORMAT and bool(said["data"]) and isinstance(said["policy"], str)
        known = known and all(isinstance(part, str) for part in [*said["data"].values(), said.get("scratch", "")])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        known = False
    if not known:
        raise InputError(
            f"{path.name} of this project cannot be read by this version of Noisette: restore or update it."
        )
    return said
