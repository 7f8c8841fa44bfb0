"""`noisette generalize`: what theorems promise about a holdout that is looked at more than once. No data are read."""

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from noisette.cli.common import Json, as_json, patience, table_of
from noisette.errors import InputError
from noisette.exact.number import inside
from noisette.terminal import console, echo

if TYPE_CHECKING:
    from noisette.holdout.adaptive_queries import Capacity

__all__ = ["generalize"]

generalize = typer.Typer(help="Say how far a holdout can be trusted that is looked at again.", no_args_is_help=True)

Rows: TypeAlias = Annotated[int, typer.Option("--n", help="Rows of the holdout.")]
Queries: TypeAlias = Annotated[int, typer.Option(help="How many questions are asked, one after the other.")]
Tau: TypeAlias = Annotated[str, typer.Option(help="How far an answer may be from the truth, such as 0.05.")]
Beta: TypeAlias = Annotated[str, typer.Option(help="How likely any of the answers may be further off.")]

_ROUTES = {
    "splitting": "fresh rows for each question",
    "laplace": "all rows, Laplace noise",
    "gaussian": "all rows, Gaussian noise",
}


@generalize.command("queries")
def queries_of(n: Rows, tau: Tau, beta: Beta = "0.05", json: Json = False) -> None:
    """Say how many questions a holdout can answer, if each may depend on the answers before."""
    from noisette.holdout.adaptive_queries import fixed_queries, most_queries

    with patience("Computing"):
        found = most_queries(n, tau, beta)
    most = found[0].queries if found else 0
    said = f"A holdout of {n:,} rows answers {_questions(most)} within {tau}, each asked after the answers before"
    _show(found, said, beta, ("questions", lambda one: f"{one.queries:,}"), fixed_queries(n, tau, beta), json)


@generalize.command()
def size(queries: Queries, tau: Tau, beta: Beta = "0.05", json: Json = False) -> None:
    """Say how many rows a holdout needs to answer a number of questions, each asked after the answers before."""
    from noisette.holdout.adaptive_queries import rows_needed
    from noisette.holdout.bounds import hoeffding_size

    with patience("Computing"):
        found = rows_needed(queries, tau, beta)
    if not found:
        raise InputError("No number of rows up to 10^15 is enough: ask fewer questions, or allow a larger tau.")
    said = f"{_questions(queries)} within {tau} need {found[0].n:,} rows, if each may depend on the answers before"
    fixed = hoeffding_size(tau, inside(beta, "beta") / queries)
    _show(found, said, beta, ("rows", lambda one: f"{one.n:,}"), fixed, json)


@generalize.command()
def accuracy(n: Rows, queries: Queries, beta: Beta = "0.05", json: Json = False) -> None:
    """Say how far answers are from the truth at most, for a number of rows and of questions."""
    from noisette.holdout.adaptive_queries import accuracy as accuracies

    with patience("Computing"):
        found = accuracies(n, queries, beta)
    if not found:
        raise InputError("No route promises anything here: ask fewer questions, or take more rows.")
    said = f"{_questions(queries)} on {n:,} rows are answered within {_up(found[0].tau)}, each asked after those before"
    _show(found, said, beta, ("within", lambda one: _up(one.tau)), None, json)


@generalize.command()
def bound(
    epsilon: Annotated[str, typer.Option(help="The guarantee, under replace, of what chose the question.")],
    n: Rows,
    tau: Tau,
    json: Json = False,
) -> None:
    """Say how likely the mean of a privately chosen question is off by tau or more on the rows that were used."""
    found = _bounds(epsilon, n, tau)
    if json:
        echo(
            as_json({"bounds": [dict(zip(("theorem", "epsilon_up_to", "chance"), one, strict=True)) for one in found]})
        )
        return
    echo(f"A question with values in [0, 1], chosen with epsilon = {epsilon} after seeing {n:,} rows.")
    table = table_of("theorem", ">epsilon up to", f">chance to be off by {tau}")
    for theorem, needs, chance in found:
        table.add_row(
            theorem, "any" if needs is None else f"{needs:.4g}", "does not apply" if chance is None else _up(chance)
        )
    _print(table)


def _bounds(epsilon: str, n: int, tau: str) -> list[tuple[str, float | None, float | None]]:
    """Each theorem, the largest epsilon that it is for, and the chance; None for any, and where it does not apply."""
    from fractions import Fraction

    from noisette.holdout import bounds
    from noisette.holdout.max_information import best_beta, max_information
    from noisette.privacy import Pure

    e, fresh, most = Pure(epsilon).epsilon, bounds.hoeffding(n, tau), bounds.statistical_query_epsilon(n, tau)
    published = bounds.statistical_query(n, tau, e) if e <= Fraction(most) else None
    return [
        ("if it had been fixed in advance", None, fresh),
        ("max-information, rows of every law", None, max_information(e, n).bad_event(fresh)),
        ("max-information, independent rows", None, best_beta(n, tau, Fraction(1, n), e)[0]),
        ("differential privacy, as published", most, published),
        ("differential privacy, by moments", None, bounds.chosen_query(n, tau, e)),
    ]


# Words and tables


def _show(
    found: "tuple[Capacity, ...]",
    said: str,
    beta: str,
    column: "tuple[str, Callable[[Capacity], str]]",
    fixed: int | None,
    json: bool,
) -> None:
    """Print a sentence, a row for each route, and what would do if all questions were fixed in advance."""
    if json:
        echo(as_json(_all(found, fixed)))
        return
    echo(f"{said}; the chance that any is further off is at most {beta}.")
    what, number = column
    table = table_of("route", f">{what}", ">noise on a sum")
    for i, one in enumerate(found):
        letter = "sigma" if one.route == "gaussian" else "scale"
        noise = "none" if one.noise is None else f"{letter} {float(one.noise):g}"
        table.add_row(_ROUTES[one.route], number(one), noise, style=None if i else "bold")
    if found:
        _print(table)
    if fixed is not None:
        echo(f"If all were fixed in advance: {_large(fixed)} {what}.")


def _all(found: "tuple[Capacity, ...]", fixed: int | None) -> dict[str, Any]:
    """What is printed as JSON; a count may be too large for a number there."""
    return {"routes": [_record(one) for one in found], "fixed_in_advance": None if fixed is None else str(fixed)}


def _print(table: Any) -> None:
    console().print(table)


def _record(one: "Capacity") -> dict[str, Any]:
    return asdict(one) | {"beta": str(one.beta), "noise": None if one.noise is None else str(one.noise)}


def _questions(count: int) -> str:
    """A number of questions in words.

    >>> _questions(0), _questions(1), _questions(1000)
    ('no question', '1 question', '1,000 questions')
    """
    return f"{count or 'no'} question" if count < 2 else f"{count:,} questions"


def _large(count: int) -> str:
    """A count in words that fit a line.

    >>> _large(550), _large(10**30)
    ('550', 'about 1e+30')
    """
    return f"{count:,}" if count < 10**9 else f"about {count:.0e}" if count < 10**300 else "more than 1e300"


def _up(value: float) -> str:
    """Four digits, rounded up.

    >>> _up(0.022788), _up(1.0)
    ('0.02279', '1')
    """
    from decimal import ROUND_CEILING, Context, Decimal

    return f"{float(Context(prec=4, rounding=ROUND_CEILING).plus(Decimal(value))):.4g}"
