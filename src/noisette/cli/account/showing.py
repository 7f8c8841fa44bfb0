"""Tables of what releases cost."""

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["show"]

_LETTERS = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}


def show(found: dict[str, Any], console: "Console") -> None:
    """Print the terms, what they cost together, and delta at each epsilon that was asked for."""
    under = f" under {found['neighbours']}" if found["neighbours"] else ""
    number = f"{found['releases']:,} releases" if found["releases"] > 1 else "One release"
    console.print(f"{number}{under}\n")
    console.print(_terms_table(found["terms"]))
    console.print(_totals_table(found))
    for at in found["delta"]:
        ways = [f"{_digits(at['tight'])} by tight composition", f"{_digits(at['zcdp'])} by zCDP"]
        console.print(f"delta at epsilon = {at['epsilon']}: " + ", ".join(ways[: 1 if at["zcdp"] is None else 2]))


def _terms_table(terms: list[dict[str, Any]]) -> Any:
    table = _table("release", ">times", "one of them", ">ε alone", ">ε saved without it")
    table.title = f"What each costs at δ = {terms[0]['delta']}"
    for term in terms:
        one = ", ".join(f"{_LETTERS[name]} = {_digits(value)}" for name, value in term["one"].items())
        costs = [_digits(term["alone"]), _digits(term["saved_without"])]
        table.add_row(term["release"], f"{term['count']:,}", one or "–", *costs)
    return table


def _totals_table(found: dict[str, Any]) -> Any:
    table = _table("by", ">ε", ">δ")
    table.title = "What they cost together"
    zcdp = "zCDP" if found["rho"] is None else f"zCDP, ρ = {_digits(found['rho'])}"
    for at in found["epsilon"]:
        table.add_row("basic addition", _digits(at["basic"]["epsilon"]), _digits(at["basic"]["delta"]))
        table.add_row(zcdp, _digits(at["zcdp"]), at["delta"])
        table.add_row("tight composition", _digits(at["tight"]), at["delta"], style="bold", end_section=True)
    return table


def _table(*columns: str) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE, pad_edge=False, title_justify="left", title_style="")
    for column in columns:
        table.add_column(column.lstrip(">"), justify="right" if column.startswith(">") else "left", overflow="fold")
    return table


def _digits(value: float | None) -> str:
    """Six digits, rounded up except for a relative 1e-8, which is what a fine grid costs; JSON has all of them.

    >>> _digits(4.7745675), _digits(100.00000001), _digits(None), _digits(1.2e-9)
    ('4.77457', '100', 'no bound', '1.2e-9')
    """
    if value is None:
        return "no bound"
    if value == 0:
        return "0"
    unit = Fraction(10) ** (math.floor(math.log10(value)) - 5)
    text = f"{float(math.ceil(Fraction(value) * (1 - Fraction(1, 10**8)) / unit) * unit):.6g}"
    return text.replace("e-0", "e-").replace("e+0", "e+")
