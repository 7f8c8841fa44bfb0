"""The terminal: what is printed there is text, whatever it says. The one place where a console is made.

Names, keys and literals are written by others: by analysts, in files, in old ledgers. None of it is read as markup, and
what a terminal would obey, hide or turn around is shown as an escape.
"""

import sys
from typing import TYPE_CHECKING, Any

from noisette.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console
    from rich.progress import Progress

__all__ = ["console", "echo", "progress"]

_LAYOUT = "\n\t"


def echo(text: str, *, err: bool = False, nl: bool = True, data: bool = False) -> None:
    """Print a text, or JSON, whose values stay the same; other `data` go as they are into a file or a pipe."""
    import typer

    as_it_is = data and not sys.stdout.isatty()
    typer.echo(text if as_it_is else visible(text, _LAYOUT), err=err, nl=nl)


def console(*, err: bool = False, soft_wrap: bool = False) -> "Console":
    """A console for tables and colours, which are `rich.text.Text` with a style: a plain text has none.

    >>> console().print("a [red]b[/] c")
    a [red]b[/] c
    """
    from rich.console import Console

    made = Console(stderr=err, soft_wrap=soft_wrap, markup=False, highlight=False, emoji=False)
    made.push_render_hook(_Hook())  # type: ignore[arg-type]
    return made


def progress() -> "Progress":
    """A bar on the error stream that goes when it is full."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    what = TextColumn("{task.description}", markup=False)
    return Progress(
        what, BarColumn(), TaskProgressColumn(), TimeRemainingColumn(), console=console(err=True), transient=True
    )


class _Hook:
    """What a console prints goes through here."""

    def process_renderables(self, renderables: list[Any]) -> list[Any]:
        """The same, shown with escapes."""
        return [_Shown(one) for one in renderables]


class _Shown:
    """Whatever is printed, with escapes in the end, when its colours and lines are settled."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __rich_console__(self, console: "Console", options: Any) -> "Iterator[Any]":
        from rich.segment import Segment

        for part in console.render(self.inner, options):
            yield part if part.control else Segment(visible(part.text, _LAYOUT), part.style)
