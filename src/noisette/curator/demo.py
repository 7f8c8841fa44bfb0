"""A made-up hospital to try things with: the same rows every time, none of them about anybody."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from noisette.curator.curator import Curator
from noisette.curator.opening import open
from noisette.privacy import Approx, Spend

if TYPE_CHECKING:
    import pyarrow

__all__ = ["POLICY", "hospital", "tables"]

_WARDS = ("east", "north", "south", "west")
_COMPLAINTS = ("asthma", "back pain", "cough", "fever", "flu", "migraine", "rash", "sprain")

POLICY: dict[str, Any] = {
    "tables": {
        "visits": {
            "unit": "patient_id",
            "rows": 8,
            "columns": {
                "ward": {"keys": list(_WARDS), "nullable": False},
                "age": {"bounds": [0, 100], "nullable": False},
                "cost": {"bounds": [0, 2000]},
            },
        },
        "wards": {"public": True, "columns": {"floor": {"bounds": [1, 3], "nullable": False}}},
    }
}


def hospital(budget: Spend | None = None) -> Curator:
    """The hospital, opened with a budget of (4, 1e-6) unless said otherwise.

    >>> sorted(hospital().schema)
    ['visits', 'wards']
    """
    return open(tables(), policy=POLICY, budget=Approx(4, "1e-6") if budget is None else budget)


def tables(patients: int = 5_000, rows: int = 20_000) -> dict[str, "pyarrow.Table"]:
    """The tables: `visits`, some of every patient, and `wards`, which is public.

    >>> tables()["visits"].column_names
    ['patient_id', 'age', 'ward', 'complaint', 'cost']
    """
    import pyarrow

    visit = np.arange(rows, dtype=np.uint64)
    patient = _scattered(visit, 1) % np.uint64(patients)
    complaint = np.minimum(_scattered(visit, 2) % np.uint64(11), np.uint64(7)).astype(int)
    ward = (_scattered(patient, 3) % np.uint64(4)).astype(int)
    cost = 40.0 + (_scattered(visit, 4) % np.uint64(40_000)).astype(float) ** 1.5 / 8_000
    visits = {
        "patient_id": patient.astype(np.int64),
        "age": (18 + _scattered(patient, 5) % np.uint64(75)).astype(np.int64),
        "ward": np.array(_WARDS)[ward],
        "complaint": np.array(_COMPLAINTS)[complaint],
        "cost": pyarrow.array(np.round(cost, 2), mask=_scattered(visit, 6) % np.uint64(50) == 0),
    }
    wards = {"ward": list(_WARDS), "floor": [1, 2, 2, 3]}
    return {"visits": pyarrow.table(visits), "wards": pyarrow.table(wards)}


def _scattered(number: NDArray[np.uint64], which: int) -> NDArray[np.uint64]:
    """Whole numbers that look like random ones and are not (the finish of splitmix64)."""
    start = np.uint64(which * 0x9E3779B97F4A7C15 % 2**64)
    mixed: NDArray[np.uint64] = (number + start) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(31))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(29))
