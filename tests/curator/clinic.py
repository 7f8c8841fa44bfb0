"""A clinic to ask about, with or without one patient."""

import datetime

import pyarrow

import noisette as nz
from noisette.engines.contract import Source

WARDS = ["north", "south", "east"]
POLICY = {
    "tables": {
        "visits": {
            "columns": {
                "patient_id": {"nullable": False},
                "ward": {"keys": WARDS},
                "age": {"bounds": [0, 120]},
                "cost": {"bounds": [0, 1000]},
            }
        },
        "labs": {"columns": {"value": {"bounds": [-10, 10]}}},
        "wards": {"public": True, "columns": {"ward": {"keys": WARDS}, "floor": {"bounds": [0, 5]}}},
        "floors": {"public": True, "columns": {"ward": {"keys": WARDS}, "floor": {"bounds": [0, 5]}}},
    }
}
PATIENTS = 60
TYPES = {
    "patient_id": pyarrow.string(),
    "ward": pyarrow.string(),
    "age": pyarrow.int64(),
    "cost": pyarrow.float64(),
    "weight": pyarrow.float64(),  # without bounds
    "note": pyarrow.string(),  # without keys
    "stay": pyarrow.int64(),  # without bounds
    "entered": pyarrow.timestamp("us"),
    "smoker": pyarrow.bool_(),
}


def visits(patients=PATIENTS, extra=()):
    """Two visits of each patient, and some more rows."""
    start = datetime.datetime(2024, 1, 1)
    rows = [
        (f"p{i:03}", WARDS[(i + j) % 3], 20 + i, 10.0 * i, 60.0 + i, "usual", i, start, i % 2 == 0)
        for i in range(patients)
        for j in range(2)
    ]
    columns = list(zip(*(rows + list(extra)), strict=True)) or [()] * len(TYPES)
    return pyarrow.table([pyarrow.array(c, t) for c, t in zip(columns, TYPES.values(), strict=True)], names=list(TYPES))


def labs(patients=PATIENTS, extra=()):
    rows = [(f"p{i:03}", i % 7) for i in range(patients)] + list(extra)
    unit, value = zip(*rows, strict=True) if rows else ((), ())
    return pyarrow.table(
        {"patient_id": pyarrow.array(unit, pyarrow.string()), "value": pyarrow.array(value, pyarrow.int64())}
    )


def opened(budget=None, *, patients=PATIENTS, extra=(), more_labs=(), rows=3, policy=POLICY, **options):
    """A curator of the clinic."""
    wards = pyarrow.table({"ward": WARDS, "floor": [1, 2, 3]})
    floors = pyarrow.table({"ward": [*WARDS, *WARDS], "floor": [1, 2, 3, 3, 4, 5]})
    tables = {"visits": visits(patients, extra), "labs": labs(patients, more_labs), "wards": wards, "floors": floors}
    budget = nz.Approx(100, "1e-3") if budget is None else budget
    return nz.open(tables, unit="patient_id", budget=budget, rows=rows, policy=policy, **options)


class Watched:
    """A source that counts how often data is touched, and may fail."""

    def __init__(self, source, *, fails=False):
        self.source, self.fails, self.computed = source, fails, 0

    def __getattr__(self, name):
        return getattr(self.source, name)

    release = Source.release

    def aggregate(self, *arguments):
        self.computed += 1
        if self.fails:
            raise nz.errors.NoisetteError("The engine could not compute this.")
        return self.source.aggregate(*arguments)


def watch(curator, **options):
    """Count from now on how often a curator touches its data."""
    curator._source = Watched(curator._source, **options)
    return curator._source
