"""What pages of the gallery are made of: the docstring of a module as a card, names of files, and figures."""

import inspect
import re
import sys
from dataclasses import fields
from typing import Any, NamedTuple

__all__ = ["HEAD", "Card", "call", "card_of", "five", "introduction", "linked", "slug"]

HEAD = "*Written from the code by `python -m noisette.report.gallery docs/gallery`; do not edit by hand.*"


class Card(NamedTuple):
    """What a module's docstring says of its mechanism."""

    title: str
    theorem: str
    when: str
    textbook: str


def slug(kind: type) -> str:
    """A class's name as a file's.

    >>> slug(Card), slug(type("PermuteAndFlip", (), {}))
    ('card', 'permute-and-flip')
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind.__name__).lower()


def card_of(kind: type) -> Card:
    """Return what the module of a class says, or that of the first class it inherits from."""
    texts = (inspect.getdoc(sys.modules[base.__module__]) or "" for base in kind.__mro__)
    text = next((text for text in texts if "\nWhen:" in text), "")
    title, _, rest = text.partition("\n")
    labelled = {"When": "", "Textbook": ""}
    theorem = []
    for paragraph in rest.strip().split("\n\n"):
        label, _, said = paragraph.partition(":")
        if label in labelled:
            said, _, textbook = said.partition("\nTextbook:")
            labelled |= {label: _flowing(said)} | ({"Textbook": _flowing(textbook)} if textbook else {})
        else:
            theorem.append(paragraph)
    return Card(title, "\n\n".join(theorem), labelled["When"], labelled["Textbook"])


def _flowing(text: str) -> str:
    return " ".join(text.split())


def introduction(kind: type, usage: list[str]) -> list[str]:
    """Return how a page begins: the card, the law and a runnable example after these lines of `usage`."""
    card = card_of(kind)
    prose, _, example = (inspect.getdoc(kind) or "").partition(">>>")
    return [
        *(f"# {kind.__name__}", "", card.title, "", HEAD, "", prose.strip(), ""),
        *(f"**When to use it:** {card.when}", "", f"**Textbook:** {linked(card.textbook)}", ""),
        *("## Law and guarantee", "", "```text", card.theorem, "```", ""),
        *("## Example", "", "```python", *(f">>> {line}" for line in usage), f">>> {example.strip()}", "```", ""),
    ]


def linked(text: str) -> str:
    """Errata as links."""
    return re.sub(r"\b(E\d+)\b", r"[\1](../errata.md)", text)


def call(m: Any) -> str:
    """A value as the call that makes it."""
    stated = ", ".join(f"{field.name}={getattr(m, field.name)}" for field in fields(m))
    return f"{type(m).__name__}({stated})"


def five(p: float) -> float:
    """Five digits: the rest may differ from machine to machine."""
    return float(f"{p:.5g}")
