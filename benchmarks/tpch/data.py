"""The tables of TPC-H as Parquet files, made once for each scale by `tpchgen-cli`; nothing of them is committed."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
CACHE = Path(tempfile.gettempdir()) / "noisette-tpch"
MISSING = "tpchgen-cli is not installed, so there is no data: run make bench-tpch, or pip install tpchgen-cli."


def generator() -> Path | None:
    """The program that makes the data: beside this interpreter, or on the PATH."""
    beside = Path(sys.executable).parent / "tpchgen-cli"
    found = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    return None if found is None else Path(found)


def tables(scale: str, cache: Path = CACHE) -> dict[str, Path]:
    """The files of one scale, made now if they are not there; an unfinished folder never has the final name."""
    folder = cache / f"scale-{scale}"
    if not folder.exists():
        program = generator()
        if program is None:
            raise FileNotFoundError(MISSING)
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as unfinished:
            arguments = ["parquet", "--quiet", "--scale-factor", scale, "--output-dir", f"{unfinished}/made"]
            subprocess.run([str(program), *arguments], check=True)
            Path(unfinished, "made").rename(folder)
    return files(folder)


def files(folder: Path) -> dict[str, Path]:
    """The tables in a folder, one Parquet file each."""
    return {table: folder / f"{table}.parquet" for table in TABLES}
