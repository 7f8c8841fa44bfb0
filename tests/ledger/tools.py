"""What the tests of the ledger share: charges to make, and hands that tamper."""

import sqlite3
from fractions import Fraction

from noisette.ledger.chain import link
from noisette.mechanisms import Geometric
from noisette.privacy import Neighbours
from noisette.privacy.sensitivity import Sensitivity

RELATION = Neighbours.ADD_REMOVE


def counted(scale=10):
    """A count with geometric noise: its guarantee and its record."""
    mechanism, reach = Geometric(Fraction(scale)), Sensitivity(1, 1, 1, 1, neighbours=RELATION)
    part = {
        "mechanism": "Geometric",
        "parameters": {name: str(value) for name, value in vars(mechanism).items()},
        "measure": "count",
        "grid": "1",
        "sensitivity": {"l0": 1, "l1": "1", "l2_squared": "1", "linf": "1"},
    }
    return mechanism.guarantee(reach).under(RELATION), [part]


def tamper(where, *statements):
    """Run statements on the tables behind the ledger's back, with its guards taken away."""
    if where.startswith("postgresql"):
        import psycopg

        with psycopg.connect(where, autocommit=True) as connection:
            connection.execute("DROP TRIGGER IF EXISTS ledger_entries_kept ON ledger_entries")
            for statement in statements:
                connection.execute(statement)
        return
    connection = sqlite3.connect(where, isolation_level=None)
    for name in ("UPDATE", "DELETE"):
        connection.execute(f"DROP TRIGGER IF EXISTS ledger_{name}")
    for statement in statements:
        connection.execute(statement)
    connection.close()


def read(where, statement):
    """Rows of the tables."""
    if where.startswith("postgresql"):
        import psycopg

        with psycopg.connect(where, autocommit=True) as connection:
            return connection.execute(statement).fetchall()
    connection = sqlite3.connect(where)
    rows = connection.execute(statement).fetchall()
    connection.close()
    return rows


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def rehashed(where, first):
    """Statements that make the chain fit again from an entry on, and the head with it: a thorough forger."""
    rows = read(where, "SELECT number, body, hash FROM ledger_entries ORDER BY number")
    statements, previous = [], "0" * 64
    for number, body, old in rows:
        new = link(previous, body) if number >= first else old
        statements.append(f"UPDATE ledger_entries SET hash = '{new}' WHERE number = {number}")
        previous = new
    return [*statements, f"UPDATE ledger_head SET number = {rows[-1][0]}, hash = '{previous}'"]
