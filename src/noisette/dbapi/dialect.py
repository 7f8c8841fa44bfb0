"""Noisette as a dialect of SQLAlchemy: `create_engine("noisette:///folder?spend=0.1&analyst=ann")`.

The path of the URL is what `nz.open` opens, relative to where the process runs: the folder of a project, or data with a
ledger behind the `?` (`ledger=visits.ledger`), since a pool opens connections as it likes and all of them have one
budget. Without a path, `create_engine("noisette://", creator=lambda: connect(curator, spend=0.1))` takes a curator that
is there. A statement may set its own price: `text("SELECT ...").execution_options(spend="0.5")`.
"""

from typing import Any

from sqlalchemy import types
from sqlalchemy.engine import URL, default, reflection
from sqlalchemy.sql import compiler

from noisette import dbapi
from noisette.query.kind import Type

__all__ = ["NoisetteDialect"]

_TYPES: dict[Type, type[types.TypeEngine[Any]]] = {
    "integer": types.BigInteger,
    "real": types.Double,
    "text": types.Text,
    "boolean": types.Boolean,
    "date": types.Date,
    "timestamp": types.DateTime,
}
_ASKED = ("spend", "error", "level", "analyst")


def _number(text: Any, name: str) -> float:
    try:
        return float(text)
    except (TypeError, ValueError):
        raise dbapi.ProgrammingError(f"{name} must be a number: write it once behind the ? of the URL.") from None


class NoisetteDialect(default.DefaultDialect):
    """What SQLAlchemy needs to know: the tables that analysts see, and that nothing is written."""

    name = driver = "noisette"
    statement_compiler = compiler.SQLCompiler
    supports_statement_cache = True
    supports_native_boolean = True
    supports_alter = False
    supports_sane_rowcount = False
    default_paramstyle = dbapi.paramstyle

    @classmethod
    def import_dbapi(cls) -> Any:
        """The module of PEP 249."""
        return dbapi

    def create_connect_args(self, url: URL) -> tuple[list[Any], dict[str, Any]]:
        """What `connect` is given: the path, and the options that stand behind the `?`."""
        options: dict[str, Any] = dict(url.query)
        for name, value in options.items():
            if not isinstance(value, str):
                raise dbapi.ProgrammingError(f"{name} stands twice behind the ? of the URL: name it once.")
        if url.username or url.password or url.host or url.port:
            raise dbapi.ProgrammingError(
                "A URL of Noisette names what to open after three slashes, no server and no account: noisette:///folder."
            )
        for name in ("error", "level"):
            if name in options:
                options[name] = _number(options[name], name)
        if "bars" in options:
            options["bars"] = options["bars"] not in ("0", "false", "no")
        return [url.database], options

    def do_execute(self, cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:
        """Ask; the options of the execution come before those of the connection."""
        given = context.execution_options if context is not None else {}
        cursor.execute(statement, parameters or (), **{name: given[name] for name in _ASKED if name in given})

    def do_ping(self, dbapi_connection: Any) -> bool:
        """Whether a connection can be used; asking costs, so nothing is asked."""
        dbapi_connection.check()
        return True

    def initialize(self, connection: Any) -> None:
        """Nothing is asked of a connection to learn what it can do."""

    # What tables there are

    def _schema(self, connection: Any) -> Any:
        return connection.connection.dbapi_connection.curator.schema

    @reflection.cache
    def get_table_names(self, connection: Any, schema: str | None = None, **_: Any) -> list[str]:
        """The tables that can be asked about."""
        return list(self._schema(connection))

    @reflection.cache
    def get_columns(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> list[Any]:
        """The columns that can be asked about, with their types."""
        return [
            {"name": column.name, "type": _TYPES[column.kind.type](), "nullable": column.kind.nullable, "default": None}
            for column in self._schema(connection)[table_name].columns
        ]

    def has_table(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> bool:
        """Whether a table can be asked about."""
        return table_name in self._schema(connection)

    def get_view_names(self, connection: Any, schema: str | None = None, **_: Any) -> list[str]:
        """None: an owner's views are tables here."""
        return []

    def get_schema_names(self, connection: Any, **_: Any) -> list[str]:
        """None: names of tables stand alone."""
        return []

    def _none(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> list[Any]:
        return []

    def get_pk_constraint(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> Any:
        """None is said."""
        return {"constrained_columns": [], "name": None}

    get_foreign_keys = get_indexes = get_unique_constraints = get_check_constraints = _none
