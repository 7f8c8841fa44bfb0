"""Ledgers of both sorts; PostgreSQL is a real server, started once."""

import pytest


@pytest.fixture(params=["sqlite", "postgres"])
def where(request, tmp_path):
    """Where a new ledger may be: a path or a URL."""
    if request.param == "sqlite":
        return str(tmp_path / "visits.ledger")
    return request.getfixturevalue("server")()
