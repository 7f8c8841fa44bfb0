"""A ledger in a PostgreSQL database: one row lock, commits that wait for the disk. Needs the extra `postgres`."""

from typing import Any

from noisette.errors import InputError, NoisetteError, PrivacyError
from noisette.ledger.refusal import RESTORE
from noisette.ledger.store import Store

__all__ = ["Postgres"]

_CREATING = 0x6E7A6C67  # an advisory lock, for the time in which there is no row to lock
_THERE = "SELECT to_regclass('ledger_version') IS NOT NULL"
_PLACE = (
    "SELECT (SELECT system_identifier FROM pg_control_system()), (SELECT timeline_id FROM pg_control_checkpoint()), "
    "'ledger_entries'::regclass::oid::bigint"
)
_GUARD = [
    "CREATE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'append only'; END $$",
    "CREATE TRIGGER ledger_entries_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_entries "
    "FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse()",
]


class Postgres(Store):
    """A database by its URL; one ledger in each schema (`?options=-csearch_path%3Dward`)."""

    LOCK = " FOR UPDATE"
    WHOLE, BLOB = "BIGINT", "BYTEA"

    def __init__(self, url: str, *, timeout: float = 30.0) -> None:
        super().__init__()
        self._url, self.timeout = url, timeout

    def _where(self) -> str:
        """The cluster, its timeline and the table: a dump that is restored has another, and so has a promoted copy."""
        return "postgresql:" + "/".join(map(str, self.run(_PLACE)[0]))

    def _connect(self) -> Any:
        try:
            import psycopg
        except ImportError:
            raise InputError("A PostgreSQL ledger needs the extra: pip install 'noisette[postgres]'.") from None
        connection = self._reached(psycopg)
        connection.execute("SELECT set_config('lock_timeout', %s, false)", [f"{int(1000 * self.timeout)}ms"])
        connection.execute("SET default_transaction_isolation TO 'read committed'")
        row = connection.execute("SELECT current_setting('fsync'), current_setting('synchronous_commit')").fetchone()
        if row is None or row[0] != "on":
            connection.close()
            raise InputError("This PostgreSQL server does not write to disk before it answers: set fsync = on.")
        if row[1] == "off":
            connection.execute("SET synchronous_commit TO on")
        return connection

    def _reached(self, psycopg: Any) -> Any:
        """A connection, or a sentence without the error before it: that one may quote the address, password and all."""
        try:
            return psycopg.connect(self._url, autocommit=True, connect_timeout=max(1, int(self.timeout)))
        except psycopg.ProgrammingError:
            said: NoisetteError | None = InputError("The URL of the ledger cannot be read: check how it is written.")
        except psycopg.Error as fault:
            said = self._meaning(fault)
        raise said or NoisetteError("The ledger's database cannot be reached: check its URL.")

    def _begin(self, *, write: bool) -> None:
        self.run("BEGIN" if write else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def _commit(self) -> None:
        if self._connection.execute("COMMIT").statusmessage != "COMMIT":
            raise NoisetteError("The ledger did not commit and nothing was charged: ask again.")

    def run(self, statement: str, *values: Any) -> list[Any]:
        """Run a statement with ? for values; return its rows."""
        cursor = self._connection.execute(statement.replace("?", "%s"), values or None)
        return cursor.fetchall() if cursor.description else []

    def version(self) -> int:
        """Which version of the tables is there; 0 for none."""
        self.run("SELECT pg_advisory_xact_lock(?)", _CREATING)
        if not self.run(_THERE)[0][0]:
            return 0
        return int(self.run("SELECT version FROM ledger_version")[0][0])

    def _set_version(self, version: int) -> None:
        self.run("CREATE TABLE IF NOT EXISTS ledger_version (version INTEGER NOT NULL)")
        self.run("DELETE FROM ledger_version")
        self.run("INSERT INTO ledger_version (version) VALUES (?)", version)

    def _guard(self) -> None:
        for statement in _GUARD:
            self.run(statement)

    def _meaning(self, fault: Exception) -> NoisetteError | None:
        import psycopg

        if not isinstance(fault, psycopg.Error):
            return None
        lost = self._connection is not None and (self._connection.closed or self._connection.broken)
        if lost:
            self._connection = None
        state = fault.sqlstate or ""
        if lost or not state or state.startswith("08") or state.startswith("57P"):
            return NoisetteError(
                "The ledger's database is out of reach, so nothing is drawn: check that it runs, then ask again."
            )
        for start, kind, sentence in _SENTENCES:
            if state.startswith(start):
                return kind(sentence)
        return NoisetteError("The ledger's database refused, so nothing is drawn: look into its log.")


_SENTENCES: list[tuple[str, type[NoisetteError], str]] = [
    ("55P03", NoisetteError, "Others kept the ledger busy too long: ask again."),
    ("40", NoisetteError, "Others kept the ledger busy: ask again."),
    ("53", NoisetteError, "The ledger's database has no room or no connections left: make some, then ask again."),
    ("25006", InputError, "The ledger's database is read-only: name the primary server."),
    ("42501", InputError, "The ledger's tables may not be written: allow this user to read, insert and update them."),
    ("28", InputError, "The ledger's database does not know this user or password: check the URL."),
    ("3D", InputError, "The ledger's database does not exist: create it first."),
    ("XX", PrivacyError, f"The ledger's database is damaged: {RESTORE}."),
]
