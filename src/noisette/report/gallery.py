"""The gallery: a page for every mechanism, written from its code: `python -m noisette.report.gallery docs/gallery`.

A module's docstring states the law and the theorem, or that of the class it inherits them from; its paragraphs `When:`
and `Textbook:` say when to use it and where it is taught. The class has the runnable example, `examples` the figures
and the picture.
"""

import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from noisette.audit.contract import checks_of
from noisette.audit.discover import discovered
from noisette.audit.twins import scaled
from noisette.errors import InputError
from noisette.privacy import Pure
from noisette.report.lines import lines

__all__ = ["pages"]

_DELTA = 1e-6
_FACTORS = [Fraction(2) ** k for k in range(-4, 5)]
_STYLE = (
    "<style>text{font:12px sans-serif;fill:#555}.grid{stroke:#ddd;stroke-width:1}"
    ".line{fill:none;stroke:#b45309;stroke-width:2}.name{fill:#b45309}svg{background:#fff}</style>"
)
_HEAD = "*Written from the code by `python -m noisette.report.gallery docs/gallery`; do not edit by hand.*"


class Card(NamedTuple):
    """What a module's docstring says of its mechanism."""

    title: str
    theorem: str
    when: str
    textbook: str


def pages() -> dict[str, str]:
    """Return all files of the gallery by name: README.md, and a page and a picture for each mechanism.

    >>> "## Law and guarantee" in pages()["geometric.md"]
    True
    """
    kinds: dict[type, list[Any]] = {}
    for _, example in discovered():
        kinds.setdefault(type(example), []).append(example)
    files = {"README.md": _index(list(kinds))}
    for kind, examples in kinds.items():
        picture = _picture(kind, examples[0])
        files[f"{_slug(kind)}.md"] = _page(kind, examples, drawn=picture is not None)
        if picture is not None:
            files[f"{_slug(kind)}.svg"] = picture
    return files


def _slug(kind: type) -> str:
    """A class's name as a file's.

    >>> _slug(Pure), _slug(type("PermuteAndFlip", (), {}))
    ('pure', 'permute-and-flip')
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind.__name__).lower()


def _card(kind: type) -> Card:
    told_by = (inspect.getdoc(sys.modules[base.__module__]) or "" for base in kind.__mro__)
    text = next((text for text in told_by if "\nWhen:" in text), "")
    title, _, rest = text.partition("\n")
    told = {"When": "", "Textbook": ""}
    theorem = []
    for paragraph in rest.strip().split("\n\n"):
        label, _, said = paragraph.partition(":")
        if label in told:
            said, _, textbook = said.partition("\nTextbook:")
            told |= {label: _flowing(said)} | ({"Textbook": _flowing(textbook)} if textbook else {})
        else:
            theorem.append(paragraph)
    return Card(title, "\n\n".join(theorem), told["When"], told["Textbook"])


def _flowing(text: str) -> str:
    return " ".join(text.split())


def _index(kinds: list[type]) -> str:
    rows = [f"| [{kind.__name__}]({_slug(kind)}.md) | {_card(kind).title} | {_card(kind).when} |" for kind in kinds]
    return "\n".join(["# Mechanisms", "", _HEAD, "", "| | what it does | when to use it |", "|---|---|---|", *rows, ""])


def _page(kind: type, examples: list[Any], *, drawn: bool) -> str:
    card = _card(kind)
    prose, _, usage = (inspect.getdoc(kind) or "").partition(">>>")
    return "\n".join(
        [
            *(f"# {kind.__name__}", "", card.title, "", _HEAD, "", prose.strip(), ""),
            *(f"**When to use it:** {card.when}", "", f"**Textbook:** {_linked(card.textbook)}", ""),
            *("## Law and guarantee", "", "```text", card.theorem, "```", ""),
            *("## Example", "", "```python", ">>> import math", ">>> from noisette import *"),
            *(">>> from noisette.mechanisms import *", f">>> {usage.strip()}", "```", ""),
            *("## Error", ""),
            *((f"![error against epsilon]({_slug(kind)}.svg)", "") if drawn else ()),
            *("| example | guarantee, one step apart | 95 % |", "|---|---|---|"),
            *(f"| `{_call(m)}` | {m.guarantee()} | ± {m.interval(0.95):.4g} |" for m in examples),
            "",
            f"Checked by the audit for every example: {', '.join(checks_of(examples[0]))}.",
            "",
        ]
    )


def _linked(text: str) -> str:
    """Errata as links."""
    return re.sub(r"\b(E\d+)\b", r"[\1](../errata.md)", text)


def _call(m: Any) -> str:
    stated = ", ".join(f"{field.name}={getattr(m, field.name)}" for field in fields(m))
    return f"{type(m).__name__}({stated})"


def _picture(kind: type, example: Any) -> str | None:
    points = sorted(_points(example))
    if len(points) < 3:
        return None
    title = f"{kind.__name__}: error at 95 % against epsilon"
    figure = lines({"± at 95 %": points}, {}, axis="epsilon, one step apart", title=title)
    drawn = figure.partition("<figure>")[2].partition("<figcaption>")[0]
    return drawn.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" width="660" ').replace(">", f">{_STYLE}", 1)


def _points(example: Any) -> Iterator[tuple[float, float]]:
    """(epsilon, error) of the example with noise of other sizes."""
    for factor in _FACTORS:
        try:
            m = scaled(example, factor)
            promise, error = m.guarantee(), float(m.interval(0.95))
        except (InputError, TypeError):
            continue
        epsilon = float(promise.epsilon) if isinstance(promise, Pure) else float(promise.epsilon_at(_DELTA))
        if epsilon > 0 and error > 0:
            yield float(f"{epsilon:.4g}"), error


def main(folder: str) -> None:
    """Write all files of the gallery, and remove those that belong to nothing any more."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    files = pages()
    for old in place.iterdir():
        if old.name not in files:
            old.unlink()
    for name, content in files.items():
        (place / name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
