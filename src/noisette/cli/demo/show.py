"""The tour on a terminal: what fits on a few screens; the rest is in the report."""

from itertools import groupby
from typing import Any

from noisette.answers.figures import promise
from noisette.answers.rendering import shown
from noisette.cli.demo.tour import AGAIN, Answer, Tour
from noisette.curator.demo import OLDEST
from noisette.report.page import true_texts

__all__ = ["show"]

_ROWS, _BAR = 3, 24


def show(tour: Tour, console: Any) -> None:
    """Print the tour."""
    from rich.text import Text

    noise = ": a small noise around every answer, so that no person shows through."
    console.print(Text.assemble("\n", ("Noisette", "bold"), noise))
    all_of = f"{tour.rows:,} visits of {tour.patients:,} patients"
    console.print(f"{all_of}, all invented: so the truth may be shown.", style="dim")
    _attack(tour, console)
    for number, (question, group) in enumerate(groupby(tour.answers, key=lambda answer: answer.question), 1):
        answers = list(group)
        _rule(console, f"{number}. {question.title}", promise(answers[0].release.guarantee))
        for answer in answers:
            _answer(answer, console)
        if answers[0].release.columns[0].name == "diagnosis":
            rare = list(tour.hidden.items())[:3]
            console.print(f"not released: {', '.join(f'{name} ({n})' for name, n in rare)}, …", style="dim")
    _curves(tour, console)
    _budget(tour, console)


def _rule(console: Any, title: str, note: str = "") -> None:
    from rich.text import Text

    console.print(Text.assemble("\n", (title, "bold"), (f"  {note}" if note else "", "dim")))


def _table(head: list[str], right: int) -> Any:
    """A table without lines; columns from `right` on stand to the right."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for i, name in enumerate(head):
        table.add_column(name, justify="right" if i >= right else "left", no_wrap=True)
    return table


def _attack(tour: Tour, console: Any) -> None:
    from rich.text import Text

    attack = tour.attack
    _rule(console, "An attack")
    console.print(
        f"One patient is {OLDEST} years old. Is she treated for depression? Subtract two harmless counts of visits:"
    )
    table = _table(["", "everyone", "all but her", "difference", ""], 1)
    for who, counts in (("exact answers", attack.exact), ("through Noisette", attack.private)):
        open_ = counts.reveals(attack.most)
        verdict = Text("revealed", "red") if open_ else Text(f"0 to {attack.most} visits fit", "green")
        table.add_row(who, *counts.texts, verdict)
    console.print(table)
    console.print(
        f"The exact answers are the demo's own, from its invented rows. Asked {AGAIN} times more, the curator "
        f"says the same. A fifty-fifty guess becomes right with at most {attack.ceiling:.0%}.",
        style="dim",
    )


def _answer(answer: Answer, console: Any) -> None:
    from rich.text import Text

    release, head, laid = answer.release, [], []
    for column in release.columns:
        head.append(column.name)
        laid.append([Text(f"{value} ± {half}" if half else value) for value, half in shown(column)])
        if column.measured:
            head.append("truth")
            laid.append([Text(text, "dim") for text in true_texts(column, answer.truth[column.name])])
    table = _table(head, sum(not column.measured for column in release.columns))
    for row in list(zip(*laid, strict=True))[:_ROWS]:
        table.add_row(*row)
    console.print(table)
    if len(release) > _ROWS:
        console.print(f"… and {len(release) - _ROWS} more", style="dim")


def _curves(tour: Tour, console: Any) -> None:
    _rule(console, "Error against ε", "known before anything is asked")
    names = list(tour.curves)
    table = _table(["ε", *names], 0)
    for points in list(zip(*tour.curves.values(), strict=True))[1::2]:
        table.add_row(f"{points[0][0]:g}", *(f"± {error:,.0f}" for _, error in points))
    console.print(table)


def _budget(tour: Tour, console: Any) -> None:
    from rich.text import Text

    _rule(console, "The budget and its ledger", f"{promise(tour.budget)} in all, then refusals")
    whole = float(tour.left[0][1])
    for entry, (title, left), (_, before) in zip(tour.entries, tour.left[1:], tour.left, strict=False):
        full = round(_BAR * float(left) / whole)
        bar = ("█" * full, "green"), ("░" * (_BAR - full), "dim")
        cost, rest = f"{entry.number:5d}  −{float(before - left):<5.3g} ", f" {float(left):<5.3g} "
        console.print(Text.assemble(cost, *bar, rest, (title, "dim")))
    for refusal in tour.refusals:
        console.print(Text.assemble(("refused:", "yellow"), f" {refusal}"))
    held, bars = tour.bars
    console.print(
        f"{tour.checked} charges checked, chain verified; {held} of {bars} error bars hold the truth.", style="dim"
    )
