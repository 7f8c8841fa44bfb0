"""Small tables whose policy leaves the limit on rows to each question."""

import numpy as np
import pyarrow
import pytest

import noisette as nz
from noisette.questions.sql import Sql

ADD_REMOVE, REPLACE = nz.Neighbours.ADD_REMOVE, nz.Neighbours.REPLACE
ONE, BUDGET = nz.Pure(1), nz.Approx(1000, "1e-3")
BOTH = pytest.mark.parametrize("neighbours", [ADD_REMOVE, REPLACE], ids=str)
COUNT, SUM = "SELECT COUNT(*) AS n FROM visits", "SELECT SUM(x) AS s FROM visits"
COLUMNS = {"x": {"bounds": [-2, 3], "nullable": False}, "y": {"bounds": [0, 8]}, "g": {"keys": ["a", "b"]}}


def table(f, x=None):
    """A unit for each number of rows, whose values of x are 1, or those given one by one."""
    who = np.repeat(np.arange(len(f)), f)
    values = np.ones(len(who), int) if x is None else np.array(x, int)
    return pyarrow.table({"who": who, "x": values, "y": values, "g": ["a"] * len(who)})


def opened(data=None, budget=BUDGET, house=None, **rules):
    given = {"unit": "who", "rows": "each question", "columns": COLUMNS, **rules}
    policy = {"tables": {"visits": given}, "rules": house or {}}
    return nz.open({"visits": table([1]) if data is None else data}, budget=budget, policy=policy)


def offer(sql, spend=ONE, neighbours=ADD_REMOVE, curator=None, **rules):
    data = opened(**rules) if curator is None else curator
    return Sql(sql).offer(data.schema, spend, neighbours, 0.95)
