"""Two policies for the same tables: customers as units, and suppliers as units.

What they declare stands in the specification of TPC-H (ranges of columns, code lists, rows of each supplier), or is the
limit that all systems of the comparison were given (1 customer, 30 orders, 100 lines of one customer). Nothing was
looked up in the data.
"""

from datetime import date
from typing import Any

PRIORITIES = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"]
SEGMENTS = ["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"]
MODES = ["AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"]
REGIONS = {
    "AFRICA": ["ALGERIA", "ETHIOPIA", "KENYA", "MOROCCO", "MOZAMBIQUE"],
    "AMERICA": ["ARGENTINA", "BRAZIL", "CANADA", "PERU", "UNITED STATES"],
    "ASIA": ["CHINA", "INDIA", "INDONESIA", "JAPAN", "VIETNAM"],
    "EUROPE": ["FRANCE", "GERMANY", "ROMANIA", "RUSSIA", "UNITED KINGDOM"],
    "MIDDLE EAST": ["EGYPT", "IRAN", "IRAQ", "JORDAN", "SAUDI ARABIA"],
}
NATIONS = sorted(nation for nations in REGIONS.values() for nation in nations)


def _money(low: float, high: float) -> dict[str, Any]:
    return {"type": "real", "bounds": [str(low), str(high)], "grid": "0.01", "nullable": False}


def _keys(*values: str) -> dict[str, Any]:
    return {"keys": list(values), "nullable": False}


_SURE = {"nullable": False}
_DATE = {"bounds": [date(1992, 1, 1), date(1998, 12, 31)], "nullable": False}
_COUNT = {"type": "integer", "bounds": [1, 50], "nullable": False}

COLUMNS: dict[str, dict[str, Any]] = {
    "customer": {
        "c_nationkey": {"bounds": [0, 24], "nullable": False},
        "c_acctbal": _money(-1000, 10000),
        "c_mktsegment": _keys(*SEGMENTS),
        "c_phone": _SURE,
    },
    "orders": {
        "o_orderstatus": _keys("F", "O", "P"),
        "o_totalprice": _money(0, 500000),
        "o_orderdate": _DATE,
        "o_orderpriority": _keys(*PRIORITIES),
        "o_shippriority": {"bounds": [0, 1], "nullable": False},
        "o_comment": _SURE,
    },
    "lineitem": {
        "l_quantity": _COUNT,
        "l_extendedprice": _money(0, 105000),
        "l_discount": _money(0, 0.1),
        "l_tax": _money(0, 0.08),
        "l_returnflag": _keys("A", "N", "R"),
        "l_linestatus": _keys("F", "O"),
        "l_shipdate": _DATE,
        "l_commitdate": _DATE,
        "l_receiptdate": _DATE,
        "l_shipinstruct": _keys("COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN"),
        "l_shipmode": _keys(*MODES),
    },
    "part": {
        "p_mfgr": _keys(*(f"Manufacturer#{i}" for i in range(1, 6))),
        "p_brand": _keys(*(f"Brand#{i}{j}" for i in range(1, 6) for j in range(1, 6))),
        "p_size": _COUNT,
        "p_name": _SURE,
        "p_type": _SURE,
        "p_container": _SURE,
    },
    "partsupp": {
        "ps_availqty": {"bounds": [1, 9999], "nullable": False},
        "ps_supplycost": _money(1, 1000),
    },
    "supplier": {
        "s_nationkey": {"bounds": [0, 24], "nullable": False},
        "s_acctbal": _money(-1000, 10000),
        "s_comment": _SURE,
    },
    "nation": {"n_name": _keys(*NATIONS)},
    "region": {"r_name": _keys(*REGIONS)},
}

UNITS: dict[str, dict[str, dict[str, Any]]] = {
    "customers": {
        "customer": {"unit": "c_custkey", "rows": 1},
        "orders": {"unit": "o_custkey", "rows": 30},
        "lineitem": {"unit": {"through": "orders", "on": {"l_orderkey": "o_orderkey"}}, "rows": 100},
    },
    "suppliers": {
        "supplier": {"unit": "s_suppkey", "rows": 1},
        "partsupp": {"unit": "ps_suppkey", "rows": 80},
        "lineitem": {
            "unit": {"through": "partsupp", "on": {"l_suppkey": "ps_suppkey", "l_partkey": "ps_partkey"}},
            "rows": 700,
        },
    },
}
"""For each project its private tables; the others are public."""


CHOSEN = {"rows": "each question", "most_rows": 1024}
"""In place of a limit above 1: each question chooses one, for a share of what it spends."""


def policy(project: str, *, chosen: bool = False) -> dict[str, Any]:
    """The policy of a project, as `nz.open` takes it; with limits as declared, or chosen by each question."""
    units = {
        name: {**rules, **(CHOSEN if chosen and rules["rows"] > 1 else {})} for name, rules in UNITS[project].items()
    }
    tables = {name: {**units.get(name, {"public": True}), "columns": columns} for name, columns in COLUMNS.items()}
    return {"budget": {"epsilon": 10**6, "delta": "0.1"}, "tables": tables}
