"""Made-up visits to ask about, in a Parquet file: about ten rows a user, keys of few, some and many values."""

from dataclasses import dataclass
from pathlib import Path

import duckdb

KEYS = {"ward": 10, "street": 1_000, "postcode": 1_000_000}
HIGHEST = 100  # of `cost`, a real number, and of `score`, a whole one
GROUPS, ROWS_PER_GROUP = 3, 1  # how much of one user is counted


@dataclass(frozen=True)
class Visits:
    """A file and how many rows it has."""

    path: Path
    rows: int

    @property
    def table(self) -> str:
        """The file as DuckDB reads it."""
        return f"read_parquet('{self.path}')"


def written(folder: Path, rows: int) -> Visits:
    """Write that number of visits; every run makes the same ones.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     visits = written(Path(folder), 1000)
    ...     duckdb.sql(f"SELECT count(*), count(DISTINCT user_id) <= 100, max(ward) FROM {visits.table}").fetchall()
    [(1000, True, 9)]
    """
    columns = [
        f"{_below(max(1, rows // 10), 'user')} AS user_id",
        *(f"{_below(count, name)} AS {name}" for name, count in KEYS.items()),
        "'street ' || street AS address",
        f"{_below(100 * HIGHEST + 1, 'cost')} / 100.0::DOUBLE AS cost",
        f"{_below(HIGHEST + 1, 'score')} AS score",
    ]
    path = folder / f"visits{rows}.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT {', '.join(columns)} FROM range({rows}) t(i)) TO '{path}' (FORMAT parquet)")
    return Visits(path, rows)


def _below(count: int, name: str) -> str:
    """A whole number below the count; hashed twice, since hashes of one value with two names share their last bit."""
    return f"(hash(hash(i, '{name}')) % {count})::BIGINT"


# The same work as SQL


def plain(visits: Visits, key: str, value: str) -> str:
    """The group-by that everything is compared with."""
    return f"SELECT {key}, count(*), sum({value}) FROM {visits.table} GROUP BY {key}"


def windows(visits: Visits, key: str, value: str) -> str:
    """The same of one row of each user in each of three groups, by window functions as one would write them."""
    one = f"row_number() OVER (PARTITION BY user_id, {key} ORDER BY hash({value}))"
    some = f"row_number() OVER (PARTITION BY user_id ORDER BY hash(user_id, {key}))"
    rows = f"SELECT user_id, {key}, {value} FROM {visits.table} QUALIFY {one} <= {ROWS_PER_GROUP}"
    kept = f"SELECT * FROM ({rows}) QUALIFY {some} <= {GROUPS}"
    return f"SELECT {key}, count(*), sum({value}) FROM ({kept}) GROUP BY {key}"


def thresholds(visits: Visits, key: str, value: str) -> str:
    """The same by aggregates and a join: the groups of a user whose hash is at most its third smallest."""
    return f"""
        WITH pairs AS MATERIALIZED (
            SELECT user_id, {key}, min_by({value}, hash({value})) AS x, hash(user_id, {key}) AS h
            FROM {visits.table} GROUP BY user_id, {key}),
        ends AS (SELECT user_id, list_max(min(h, {GROUPS})) AS last FROM pairs GROUP BY user_id)
        SELECT {key}, count(*), sum(x) FROM pairs JOIN ends USING (user_id) WHERE h <= last GROUP BY {key}"""
