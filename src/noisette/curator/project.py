"""A project: the folder `.noisette` beside the data, with which every process finds the same ledger again.

visits.parquet            the data
visits.policy.toml        what the owner declares, to be edited by hand
.noisette/project.json    where the data and the policy are, seen from the folder that holds `.noisette`
.noisette/ledger.sqlite   what was spent, and the answers that were given
.noisette/secret          keys the choice of rows where a unit has more than may count; only its owner can read it
.noisette/bought          bounds, keys and limits that were bought, with their price: used where it says "private"
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from noisette.answers.figures import promise
from noisette.curator.bought import Bought, What, keep, kept, now, with_bought
from noisette.curator.buying import offered
from noisette.curator.buying_rows import for_sale
from noisette.curator.curator import Curator
from noisette.curator.making import Wanted, files, make, source_of
from noisette.curator.opening import Described, described_data
from noisette.errors import InputError, PrivacyError
from noisette.ledger import Book, accept, elsewhere, open_ledger, rebind
from noisette.policy.policy import Policy, read_policy
from noisette.privacy import Promise, Spend
from noisette.query.kind import Value, in_order

__all__ = ["FOLDER", "Project"]

FOLDER = ".noisette"
_FORMAT = 1
_NONE = (
    "There is no project here: make one with `noisette open visits.parquet --unit patient_id --budget 1`, "
    "or name its folder with --project."
)


@dataclass(frozen=True)
class Project:
    """Data, policy, ledger and secret of a folder; `find` looks for one, `create` makes one."""

    folder: Path
    data: Mapping[str, Path]
    policy_file: Path

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
    ) -> "Project":
        """Make a project beside the first file, or in `folder`; what is there already is never begun afresh.

        A source is a path, or `name=path` to name its table. Where these data have a project, it is returned if nothing
        would change, and otherwise this is refused: a second budget for the same data would be no budget. Where they
        had one that is gone, a new one needs a reason to `start_over`, which stands in the ledger's first entry.
        """
        data = files(sources)
        home = _home(folder) if folder is not None else next(iter(data.values())).parent
        wanted = Wanted(data, budget, unit, (rows, groups, rows_per_group), policy, start_over)
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
        said = _said(home / FOLDER / "project.json")
        return Project(home, {name: _absolute(home, p) for name, p in said["data"].items()}, home / said["policy"])

    # Using

    @property
    def policy(self) -> Policy:
        """What the owner declares at present."""
        return read_policy(self.policy_file)

    @property
    def ledger_file(self) -> Path:
        """Where the ledger is."""
        return self.folder / FOLDER / "ledger.sqlite"

    @property
    def bought(self) -> list[Bought]:
        """The bounds, keys and limits that were bought."""
        return kept(self.folder / FOLDER / "bought")

    def described(self) -> Described:
        """The data as the policy and what was bought describe them; no row is read."""
        return self._described(self.bought)

    def _described(self, bought: Sequence[Bought]) -> Described:
        return described_data(source_of(self.data), policy=with_bought(self.policy, bought))

    def ledger(self, *, about: Described | None = None) -> Book:
        """The ledger, verified; never a new one. With data that it is `about`, other data is refused."""
        if not self.ledger_file.exists():
            raise PrivacyError(
                "The ledger of this project is gone: restore a backup and accept it (`noisette ledger accept`)."
            )
        if about is None:
            return open_ledger(self.ledger_file, elsewhere=elsewhere(self.ledger_file))
        return about.ledger(self.ledger_file)

    def curator(self, *, asking: bool = True, analyst: str | None = None) -> Curator:
        """A curator with the project's ledger and secret, for an analyst.

        The first one that is `asking` settles which data the ledger is about; before, units may be edited as well.
        """
        return self._curator(self.described(), asking, analyst)

    def _curator(self, found: Described, asking: bool, analyst: str | None) -> Curator:
        book = self.ledger(about=found if asking else None)
        if book.budget != found.policy.budget:
            book.close()
            raise InputError(
                "The policy names another budget than the ledger: take that back, or let the owner record it with "
                "`noisette ledger budget --why '…'`."
            )
        return found.curator(book, analyst=analyst, secret=self._secret())

    def buy(
        self,
        what: What,
        name: str | None,
        *,
        spend: Promise,
        analyst: str | None = None,
        again: bool = False,
        **terms: Any,
    ) -> tuple[Bought, Promise]:
        """Buy the bounds or keys of a column, or the limit on a table's rows, for all who ask from now on.

        Return it and what is left. The same purchase is free. What was bought for another price, or on other terms, is
        kept, unless it is to be bought `again`. Terms are those of `Curator.rows`.
        """
        every, sold = self.bought, self._sold(what, name)
        said = ", ".join(f"{term} = {value!r}" for term, value in sorted(terms.items()) if value is not None)
        old = next((b for b in every if b.place == (*sold, what)), None)
        if old is not None and not again:
            return _settled(old, spend, said), self._left()
        curator = self._curator(self._described([b for b in every if b is not old]), True, analyst)
        try:
            new = Bought(*sold, what, _values(curator, what, sold, spend, terms), spend, analyst, now(), said)
            keep(self.folder / FOLDER / "bought", new)
            return new, curator.ledger.left
        finally:
            assert isinstance(curator.ledger, Book)
            curator.ledger.close()

    def _sold(self, what: What, name: str | None) -> tuple[str, str | None]:
        """The table, and the column if there is one, of what is to be bought."""
        schema = self._described([]).schema
        if what == "rows":
            return for_sale(schema, name).name, None
        table, column = offered(schema, name or "", what)
        if what == "keys" and column.kind.type == "real":
            raise InputError(
                f"{column.name} holds real numbers, which make no keys: declare it as integer, or its bounds."
            )
        return table.name, column.name

    def _left(self) -> Promise:
        book = self.ledger()
        left = book.left
        book.close()
        return left

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
        book = self.ledger()
        settled = book.budget
        book.close()
        wanted.check(self.policy_file, self.policy, settled)


def _values(
    curator: Curator, what: What, sold: tuple[str, str | None], spend: Promise, terms: Mapping[str, Any]
) -> tuple[Value, ...]:
    if what == "rows":
        return (curator.rows(sold[0], spend=spend, **{term: v for term, v in terms.items() if v is not None}),)
    return in_order((curator.bounds if what == "bounds" else curator.keys)(".".join(map(str, sold)), spend=spend))


def _settled(old: Bought, spend: Promise, terms: str) -> Bought:
    if (old.spend, old.terms) != (spend, terms):
        said = f"{promise(old.spend)}{old.terms and f' ({old.terms})'}"
        raise InputError(
            f"The {old.what} of {old.column or old.table} were bought already, for {said}: use them, or buy others "
            "with --again."
        )
    return old


def _home(folder: str | Path) -> Path:
    """The folder that holds `.noisette`, which may be named itself."""
    path = Path(folder).expanduser().resolve()
    return path.parent if path.name == FOLDER else path


def _holds(folder: Path) -> bool:
    return os.path.isfile(folder / FOLDER / "project.json")


def _there(home: Path, data: Mapping[str, Path]) -> Project | None:
    """The project in a folder, or one beside or above the data that is about them."""
    if _holds(home):
        return Project.read(home)
    for path in data.values():
        for folder in path.parents:
            if _holds(folder) and set(Project.read(folder).data.values()) & set(data.values()):
                return Project.read(folder)
    return None


def _absolute(home: Path, path: str) -> Path:
    return Path(os.path.normpath(home / path))


def _said(path: Path) -> dict[str, Any]:
    try:
        said: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        known = said["format"] == _FORMAT and bool(said["data"]) and isinstance(said["policy"], str)
        known = known and all(isinstance(part, str) for part in said["data"].values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        known = False
    if not known:
        raise InputError(
            f"{path.name} of this project cannot be read by this version of Noisette: restore or update it."
        )
    return said
