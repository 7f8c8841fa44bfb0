"""A made-up hospital to try things with: the same visits every time, none of them anybody's."""

import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from noisette.curator.curator import Curator
from noisette.curator.opening import open
from noisette.privacy import Approx, Spend

if TYPE_CHECKING:
    import pyarrow

__all__ = ["BUDGET", "CITY", "CITY_POLICY", "OLDEST", "POLICY", "RARE", "TOUR", "city", "homes", "hospital", "tables"]

OLDEST, _SECRET = 104, "depression"  # the age of one patient, and what she is treated for

_SHARES = {  # of visits by age: below 16, 45, 65, and above
    "cardiology": (0.01, 0.06, 0.24, 0.33),
    "emergency": (0.34, 0.42, 0.33, 0.27),
    "maternity": (0.00, 0.26, 0.01, 0.00),
    "oncology": (0.01, 0.05, 0.18, 0.20),
    "orthopaedics": (0.06, 0.21, 0.24, 0.20),
    "paediatrics": (0.58, 0.00, 0.00, 0.00),
}
_USUAL_COST = (520, 190, 640, 860, 410, 160)
_DIAGNOSES = {  # of a ward, the more frequent ones first
    "cardiology": ("hypertension", "arrhythmia", "heart failure", "angina", "stroke"),
    "emergency": ("injury", "influenza", "back pain", "depression", "appendicitis"),
    "maternity": ("check-up", "birth", "anaemia", "gestational diabetes", "pre-eclampsia"),
    "oncology": ("breast cancer", "lung cancer", "lymphoma", "melanoma", "leukaemia"),
    "orthopaedics": ("arthrosis", "fracture", "back pain", "sprain", "scoliosis"),
    "paediatrics": ("cough", "influenza", "asthma", "otitis", "allergy"),
}
_FREQUENT = (0.38, 0.25, 0.18, 0.12, 0.07)
RARE = {"Fabry disease": 3, "porphyria": 5, "Wilson disease": 9, "Gaucher disease": 1}
"""Diagnoses of a few patients each."""

_REGIONS = {"north": ("cardiology", "oncology"), "centre": ("emergency", "maternity"), "south": ()}

POLICY: dict[str, Any] = {
    "tables": {
        "visits": {
            "unit": "patient_id",
            "rows": 8,
            "columns": {
                "ward": {"keys": list(_SHARES), "nullable": False},
                "age": {"bounds": [0, 100], "nullable": False},
                "cost": {"bounds": [0, 2000]},
            },
        },
        "wards": {"public": True, "columns": {"region": {"keys": list(_REGIONS), "nullable": False}}},
    }
}
"""What its owner declares, for small examples."""

CITY = (10.0, 50.0, 10.32, 50.2)
"""West, south, east and north of a made-up city."""

CITY_POLICY: dict[str, Any] = {
    "tables": {
        "homes": {
            "unit": "person_id",
            "rows": 1,
            "columns": {
                "lon": {"bounds": [CITY[0], CITY[2]], "nullable": False},
                "lat": {"bounds": [CITY[1], CITY[3]], "nullable": False},
            },
        }
    }
}
_LIVING = (0.34, 0.16, 0.12, 0.14, 0.1, 0.14)  # shares of people in three towns, along a road, a ring, and anywhere
_TOWNS, _SIZES = ((0.48, 0.52), (0.2, 0.78), (0.83, 0.72)), (0.06, 0.035, 0.025)  # as parts of the city's width

BUDGET = {"epsilon": "3", "delta": "1e-6"}
TOUR: dict[str, Any] = {
    "budget": BUDGET,
    "tables": {
        "visits": {
            "unit": "patient_id",
            "rows": 16,
            "columns": {
                "patient_id": {"nullable": False},
                "day": {"bounds": [datetime.date(2025, 1, 1), datetime.date(2025, 12, 31)], "nullable": False},
                "ward": {"keys": list(_SHARES), "nullable": False},
                "diagnosis": {"nullable": False},
                "age": {"bounds": [0, 109], "nullable": False},
                "cost": {"bounds": [0, 3000], "grid": "0.01", "nullable": False},
            },
        },
        "wards": POLICY["tables"]["wards"],
    },
}
"""What its owner declares for `noisette demo`: all of it."""


def hospital(budget: Spend | None = None) -> Curator:
    """The hospital, opened with a budget, (4, 1e-6) by default.

    >>> sorted(hospital().schema)
    ['visits', 'wards']
    """
    return open(tables(), policy=POLICY, budget=Approx(4, "1e-6") if budget is None else budget)


def tables(patients: int = 5_000) -> dict[str, "pyarrow.Table"]:
    """The tables: `visits`, with a few rows of most patients and many of some, and `wards`, which is public.

    Rare diagnoses are given where there are at least 400 patients.

    >>> made = tables(1_000)
    >>> made["visits"].num_rows, made["visits"].column_names
    (4638, ['patient_id', 'day', 'ward', 'diagnosis', 'age', 'cost'])
    """
    import pyarrow

    person = np.arange(patients)
    oldest = patients // 2
    times = 1 + np.floor(4.65 * (-np.log1p(-_uniform(person, 1))) ** 0.6).astype(int)
    times[19_997::19_997] = 60
    times[oldest] = 7
    who = np.repeat(person, times)
    age = np.where(who == oldest, OLDEST, _ages(person)[who])
    visit = np.arange(len(who))
    ward = _wards(visit, age)
    first = np.cumsum(times) - times
    columns = {
        "patient_id": who + 100_000,
        "day": pyarrow.array(_days(visit)),
        "ward": np.array(list(_SHARES))[ward],
        "diagnosis": _diagnoses(visit, ward, first, oldest),
        "age": age,
        "cost": _costs(visit, ward),
    }
    regions = [next((region for region, its in _REGIONS.items() if w in its), "south") for w in _SHARES]
    return {"visits": pyarrow.table(columns), "wards": pyarrow.table({"ward": list(_SHARES), "region": regions})}


def homes(people: int = 50_000) -> "pyarrow.Table":
    """Where the people of a made-up city live: one row each, denser in its centre and along its roads, none in a lake.

    >>> homes(1_000).column_names
    ['person_id', 'lon', 'lat']
    """
    import pyarrow

    person = np.arange(people)
    x, y = _dry(*_places(person))
    west, south, east, north = CITY
    lon, lat = (low + (high - low) * at.clip(0, 1 - 1e-9) for low, high, at in ((west, east, x), (south, north, y)))
    return pyarrow.table({"person_id": person, "lon": lon, "lat": lat})


def _places(person: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Homes as parts of the city's width and height: in three towns, along a road and a ring, and anywhere."""
    part = _chosen(_uniform(person, 11), np.tile(np.cumsum(_LIVING), (len(person), 1)))
    far, turn = np.sqrt(-2 * np.log1p(-_uniform(person, 12))), 2 * np.pi * _uniform(person, 13)
    along, beside = _uniform(person, 14), (_uniform(person, 15) - 0.5) / 90
    (x, y), size = np.array(_TOWNS)[np.minimum(part, 2)].T, np.array(_SIZES)[np.minimum(part, 2)] * far
    across = [x + size * np.cos(turn), along, 0.48 + (0.3 + beside) * np.cos(turn), along]
    up = [y + size * np.sin(turn), 0.2 + 0.55 * along + beside, 0.52 + (0.26 + beside) * np.sin(turn)]
    which = np.maximum(part - 2, 0)
    return np.choose(which, across), np.choose(which, [*up, _uniform(person, 16)])


def _dry(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nobody lives in the lake: they live across the city instead."""
    lake = ((x - 0.76) / 0.13) ** 2 + ((y - 0.3) / 0.09) ** 2 < 1
    return np.where(lake, 1 - x, x), np.where(lake, 1 - y, y)


def city(budget: Spend = 20, people: int = 50_000) -> Curator:
    """The homes, opened with a budget: each person has one row.

    >>> sorted(city(people=100).schema)
    ['homes']
    """
    return open({"homes": homes(people)}, policy=CITY_POLICY, budget=budget)


def _ages(person: NDArray[np.int64]) -> NDArray[np.int64]:
    """Ages up to 97, more of the young and of the old."""
    u = _uniform(person, 2)
    return np.floor(98 * (u + 0.055 * np.sin(4 * np.pi * u) / (1 + u))).clip(0, 97).astype(int)


def _wards(visit: NDArray[np.int64], age: NDArray[np.int64]) -> NDArray[np.int64]:
    """The ward of each visit, by age."""
    shares = np.array(list(_SHARES.values())).T
    ends = np.cumsum(shares, axis=1) / shares.sum(axis=1, keepdims=True)
    return _chosen(_uniform(visit, 3), ends[np.digitize(age, [16, 45, 65])])


def _days(visit: NDArray[np.int64]) -> NDArray[np.datetime64]:
    """Days of 2025, more of them in winter."""
    u = _uniform(visit, 4)
    day = np.floor(365 * (u - 0.035 * np.sin(2 * np.pi * u))).clip(0, 364).astype(int)
    return np.datetime64("2025-01-01") + day


def _diagnoses(visit: NDArray[np.int64], ward: NDArray[np.int64], first: NDArray[np.int64], oldest: int) -> Any:
    """The diagnosis of each visit: usual ones of the ward, rare ones of a few patients, and the secret of one."""
    names = np.array([_DIAGNOSES[w] for w in _SHARES], dtype=object)
    found = names[ward, _chosen(_uniform(visit, 5), np.tile(np.cumsum(_FREQUENT), (len(visit), 1)))]
    for which, (name, patients) in enumerate(RARE.items() if len(first) >= 400 else ()):
        found[first[[101 * which + 7 * i + 1 for i in range(patients)]]] = name
    start = first[oldest]
    found[start : start + 7] = "arthrosis"
    found[start : start + 5] = _SECRET
    return found.astype(str)


def _costs(visit: NDArray[np.int64], ward: NDArray[np.int64]) -> NDArray[np.float64]:
    """What each visit cost, to the cent; a few cost far more than most."""
    normal = np.sqrt(-2 * np.log1p(-_uniform(visit, 6))) * np.cos(2 * np.pi * _uniform(visit, 7))
    costs: NDArray[np.float64] = np.round(np.array(_USUAL_COST)[ward] * np.exp(0.42 * normal), 2)
    return costs


def _chosen(u: NDArray[np.float64], ends: NDArray[np.float64]) -> NDArray[np.int64]:
    """Which part of the unit interval each number falls into."""
    part: NDArray[np.int64] = np.minimum((u[:, None] >= ends).sum(axis=1), ends.shape[1] - 1)
    return part


def _uniform(number: NDArray[np.int64], which: int) -> NDArray[np.float64]:
    """Numbers in [0, 1) that look random and are always the same (the last step of splitmix64)."""
    mixed = number.astype(np.uint64) + np.uint64(which * 0x9E3779B97F4A7C15 % 2**64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed = mixed ^ (mixed >> np.uint64(31))
    result: NDArray[np.float64] = (mixed >> np.uint64(11)).astype(float) / 2.0**53
    return result
