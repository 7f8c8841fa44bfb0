"""A small clinic on disk, and the command line to ask it with."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow
import pyarrow.csv
import pyarrow.parquet
from typer.testing import CliRunner

from noisette.cli import app

CANARY, NUMBER = "canaryqx", 314159265  # what only one patient's row holds
COUNT = "SELECT ward, count(*) AS n, avg(age) AS age FROM visits GROUP BY ward"
POLICY = """
[budget]
epsilon = "2"
delta = "1e-6"
[tables.visits]
unit = "patient_id"
rows = 4
[tables.visits.columns]
patient_id = { type = "text" }
ward = { type = "text", keys = ["north", "south"] }
age = { type = "integer", bounds = [0, 110] }
note = { type = "text" }
cost = { type = "integer" }
"""


def table():
    """Three visits of forty patients, and one of the canary."""
    rows = [(f"p{i:02}", ["north", "south"][i % 2], 20 + i, "usual", i) for i in range(40) for _ in range(3)]
    columns = zip(*[*rows, (CANARY, "north", 50, CANARY, NUMBER)], strict=True)
    return pyarrow.table(dict(zip(("patient_id", "ward", "age", "note", "cost"), map(list, columns), strict=True)))


def write_data(folder):
    pyarrow.parquet.write_table(table(), folder / "visits.parquet")
    pyarrow.csv.write_csv(table(), folder / "visits.csv")
    (folder / "rules.toml").write_text(POLICY)


def run(*arguments, **options):
    """The command line in this process."""
    return CliRunner().invoke(app, [str(a) for a in arguments], **options)


def well(*arguments):
    """What a command prints that ends well, with nothing on the error stream."""
    found = run(*arguments)
    assert (found.exit_code, found.stderr) == (0, ""), found.output
    return found.stdout


def refused(code, *arguments):
    """The one sentence of a command that is refused."""
    found = run(*arguments)
    assert found.exit_code == code, found.output
    assert found.stdout == ""
    assert found.stderr.endswith((".\n", "?\n"))
    assert "Traceback" not in found.stderr
    return found.stderr


def process(*arguments, folder):
    """The command line in a process of its own."""
    command = [sys.executable, "-W", "error", "-m", "noisette", *map(str, arguments)]
    environment = {**os.environ, "PYTHONUTF8": "1"}
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, env=environment, check=False
    )


def texts(folder):
    """Everything that lies in a folder, but for the data."""
    files = [
        path for path in Path(folder).rglob("*") if path.is_file() and path.name not in ("visits.parquet", "visits.csv")
    ]
    return b"\n".join(path.read_bytes() for path in files)
