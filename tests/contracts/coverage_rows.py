"""Awkward rows for `test_coverage_of_questions.py`: none, few, ties, clusters with a gap, a spike at an end."""

from datetime import date

import numpy as np
import pyarrow

import noisette as nz
from noisette.questions.best import _Once

SIDE = 32
KEYS = ["a", "b", "c", "d"]


def rows(data):
    """(k, u, x, y) of each row: none, few, all alike, two clusters with a gap, a spike at an end."""
    match data:
        case "empty":
            return []
        case "few":
            return [("a", "u0", 0, 31), ("b", "u1", 2, 3), ("a", "u0", 31, 0)]
        case "ties":
            return [("c", "u7", 13, 21)] * 240
        case "clusters":
            near = [(KEYS[i % 2], f"u{i % 3}", i % 4, (i * 7) % 5) for i in range(150)]
            return near + [(KEYS[i % 3], f"u{9 + i % 2}", 28 + i % 4, 20 + (i * 5) % 9) for i in range(130)]
        case "spike":
            return [("d", "u5", 31, 0)] * 280 + [("a", "u1", 0, 31), ("b", "u2", 7, 31), ("a", "u3", 3, 9)]


class Plain(dict):
    """The rows as arrays by column."""

    def __len__(self):
        return len(self["x"])

    def where(self, chosen):
        return Plain({name: values[chosen] for name, values in self.items()})


def plain(data):
    found = rows(data)
    k, u, x, y = zip(*found, strict=True) if found else ((), (), (), ())
    number = np.arange(len(found))
    parts = {"who": number - (number % 3 == 1), "x": np.array(x, int), "y": np.array(y, int)}  # some have two rows
    parts["day"] = np.datetime64("2024-01-01") + parts["x"] // 8
    return Plain(parts | {"k": np.array(k, dtype="U1"), "u": np.array(u, dtype="U2")})


POLICY = {
    "tables": {
        "t": {
            "unit": "who",
            "rows": 2,
            "columns": {
                "k": {"keys": KEYS, "nullable": False},
                "u": {"nullable": False},
                "day": {"bounds": [date(2024, 1, 1), date(2024, 1, 4)], "nullable": False},
                "x": {"bounds": [0, SIDE - 1], "nullable": False},
                "y": {"bounds": [0, SIDE - 1], "nullable": False},
            },
        }
    }
}


class World(_Once):
    """A curator of these rows, which are read once however often they are asked."""

    def __init__(self, data):
        self.t = plain(data)
        self.curator = opened(self.t)
        super().__init__(self.curator._source)


def opened(there):
    types = {"who": pyarrow.int64(), "k": pyarrow.string(), "u": pyarrow.string()}
    types |= {"x": pyarrow.int64(), "y": pyarrow.int64(), "day": pyarrow.date32()}
    table = pyarrow.table({name: pyarrow.array(there[name].tolist(), kind) for name, kind in types.items()})
    return nz.open({"t": table}, budget=nz.Approx(1_000_000, "1e-1"), policy=POLICY)
