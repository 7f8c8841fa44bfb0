"""The small hospital that questions are asked about: declared keys, unknown keys, bounds and a public table."""

import numpy as np
import pyarrow

import noisette as nz

WARDS = ["east", "north", "south"]
N = 3_000
VISITS = pyarrow.table(
    {
        "patient": np.arange(N) // 3,
        "age": np.arange(N) % 90,
        "ward": [WARDS[i % 3] for i in range(N)],
        "illness": [f"illness {i % 7}" for i in range(N)],
    }
)
PLACES = pyarrow.table({"ward": WARDS, "floor": [1, 2, 2]})
COLUMNS = {
    "age": {"bounds": [0, 100], "nullable": False},
    "ward": {"keys": WARDS, "nullable": False},
    "patient": {"nullable": False},
}
RULES = {"unit": "patient", "rows": 3, "groups": 2, "rows_per_group": 2, "columns": COLUMNS}
PUBLIC = {"public": True, "columns": {"floor": {"bounds": [1, 3]}, "ward": {"keys": WARDS}}}


def opened():
    """A curator of the tables with a large budget."""
    tables = {"tables": {"visits": RULES, "places": PUBLIC}}
    return nz.open({"visits": VISITS, "places": PLACES}, budget=nz.Approx(1000, "1e-4"), policy=tables)
