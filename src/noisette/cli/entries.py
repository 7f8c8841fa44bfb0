"""Entries of a ledger for people to read."""

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

__all__ = ["as_table", "question"]

_LONGEST = 200
_ARMS = 12  # a CASE with more, such as that of bought bounds, is abbreviated


def as_table(history: Sequence[Mapping[str, Any]]) -> Any:
    """The entries, one a row."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE, pad_edge=False)
    for name, place in (("#", "right"), ("time", "left"), ("what", "left"), ("cost", "left")):
        table.add_column(name, justify=place, overflow="fold")  # type: ignore[arg-type]
    for body in history:
        cells = (str(body["number"]), body["time"][:16].replace("T", " "), _what(body), _cost(body))
        table.add_row(*(Text(cell) for cell in cells))
    return table


def _what(body: Mapping[str, Any]) -> str:
    match body["kind"]:
        case "charge":
            return question(body["question"])
        case "open":
            over = f", starting over: {body['start_over']}" if "start_over" in body else ""
            return f"the ledger was opened{over}"
        case "answer":
            return "its answer was kept"
        case "release":
            return "a record of it was released"
        case "purchase":
            return f"the {body['what']} of {body['column'] or body['table']} were bought"
        case _:
            return f"{body['act']}: {body['why']}"


def _cost(body: Mapping[str, Any]) -> str:
    said = body.get("guarantee" if body["kind"] == "charge" else "budget")
    if not said:
        return ""
    from noisette.answers.figures import rounded

    letters = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}
    parts = [f"{letter} = {rounded(Fraction(said[n]), up=True)}" for n, letter in letters.items() if n in said]
    return ("" if body["kind"] == "charge" else "budget ") + ", ".join(parts)


def question(text: str) -> str:
    """A canonical question in short.

    >>> asked = {"aggregates": [["rows"], ["mean", ["name", "t1.age"]]], "keys": [["name", "t1.ward"]]}
    >>> question(json.dumps({"asked": [json.dumps({**asked, "source": ["scan", "visits", "t1"]})]}))
    'rows, mean(age) by ward from visits'
    """
    try:
        asked = "; ".join(_one(json.loads(one)) for one in json.loads(text)["asked"])
    except (ValueError, KeyError, TypeError, IndexError):
        asked = text
    return asked if len(asked) <= _LONGEST else f"{asked[: _LONGEST - 1]}…"


def _one(asked: Mapping[str, Any]) -> str:
    what = ", ".join(map(_short, asked["aggregates"])) or "keys"
    by = ", ".join(map(_short, asked["keys"]))
    return f"{what}{' by ' if by else ''}{by} from {_short(asked['source'])}"


def _short(part: Any) -> str:
    match part:
        case ["scan", table, *_] | ["number" | "text", table]:
            return str(table)
        case ["name", name]:
            return str(name).rpartition(".")[2]
        case [str(name)]:
            return name
        case ["case", condition, *rest] if len(rest) > _ARMS:
            return f"case({_short(condition)}, …)"
        case [str(name), *arguments]:
            return f"{name}({', '.join(map(_short, arguments))})"
        case _:
            return str(part)
