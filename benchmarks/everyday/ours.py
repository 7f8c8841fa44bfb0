"""The forty questions, asked of Noisette."""

import datetime
from typing import Any

import pyarrow

import noisette as nz
from benchmarks.everyday.questions import DIAGNOSES, QUESTIONS, WARDS, Asked, tables
from noisette.errors import NoisetteError

__all__ = ["answers"]

_YEAR = [datetime.date(2026, 1, 1), datetime.date(2026, 12, 31)]
_POLICY = {
    "tables": {
        "visits": {
            "unit": "patient",
            "rows": 3,
            "today": datetime.date(2026, 11, 1),
            "columns": {
                "ward": {"keys": WARDS, "nullable": False},
                "sex": {"keys": ["F", "M"], "nullable": False},
                "age": {"bounds": [0, 100], "nullable": False},
                "cost": {"bounds": [0, 5000], "nullable": False},
                "diagnosis": {"keys": DIAGNOSES},
                "admitted": {"bounds": _YEAR},
                "discharged": {"bounds": _YEAR},
            },
        },
        "people": {"unit": "patient", "rows": 1},
        "tests": {"unit": {"through": "visits", "on": {"visit": "visit"}}, "rows": 6},
        "wards": {"public": True},
    },
}
_PYTHON = {
    "the most frequent value": nz.Mode("diagnosis", of="visits"),
    "every range of a column at once": nz.Histogram("age", of="visits"),
    "a made-up table in the form of the input": nz.Synthetic(["ward", "sex", "age"], of="visits"),
}


def answers() -> dict[str, Any]:
    """For each question the rows of its answer, or the sentence that refuses it."""
    held = {name: pyarrow.table(columns) for name, columns in tables().items()}
    curator = nz.open(held, policy=_POLICY, budget=nz.Approx(1000, "1e-3"))
    return {asked.what: _asked(curator, asked) for asked in QUESTIONS}


def _asked(curator: nz.Curator, asked: Asked) -> Any:
    try:
        found = curator.ask(_PYTHON.get(asked.what, asked.sql), spend=nz.Approx(1, "1e-7"))
    except NoisetteError as refused:
        return str(refused)
    numbers = [column.values.to_pylist() for column in found.columns if column.measured]
    rows = list(zip(*numbers, strict=True)) if numbers else [(None,)] * len(found)
    return [(list(row),) for row in rows] if "[" in asked.sql else rows
