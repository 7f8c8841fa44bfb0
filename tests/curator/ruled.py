"""Visits of people who come once, and a curator with rules of the house."""

import pyarrow

import noisette as nz
from noisette.errors import InputError

WARDS = ["east", "north", "west"]
COUNT = "SELECT COUNT(*) AS n FROM visits"
BY_WARD = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


def visits(people=400):
    """All of them in the north, except five in the east; each comes once."""
    wards = ["east" if i < 5 else "north" for i in range(people)]
    codes = [f"c{i % 2}" for i in range(people)]
    return pyarrow.table({"id": range(people), "ward": wards, "age": [i % 90 for i in range(people)], "code": codes})


def policy(columns=None, **rules):
    known = {
        "id": {"nullable": False},
        "ward": {"keys": WARDS, "nullable": False},
        "age": {"bounds": [0, 100], "nullable": False},
        **(columns or {}),
    }
    return {"tables": {"visits": {"unit": "id", "rows": 1, "columns": known}}, "rules": rules}


def opened(*, budget=None, ledger=None, columns=None, data=None, **rules):
    tables = {"visits": visits() if data is None else data}
    return nz.open(tables, budget=budget or nz.Approx(100, "1e-3"), policy=policy(columns, **rules), ledger=ledger)


def spent(data):
    """The epsilon that was taken from the budget."""
    return data.budget.spent.epsilon


def refusal(data, question, spend):
    """Why a question cannot be asked; None if it can."""
    try:
        data.explain(question, spend=spend)
    except InputError as fault:
        return str(fault)
    return None
