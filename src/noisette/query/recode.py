"""Messy categories: how the texts of a column become the values that its owner means, before anything else sees them.

text   as it is stored · without blanks at its ends (`trim`) · in lower case, letter by letter (`fold`)
value  the name under which that text is listed, or else `other`, or else the text itself
"""

from dataclasses import dataclass
from functools import cached_property

from noisette.query.texts import letter_by_letter

__all__ = ["Recode"]

_lower = letter_by_letter(str.lower)


@dataclass(frozen=True)
class Recode:
    """What stands for each text of a column; `names` are values, each with the plain texts that mean it.

    >>> ward = Recode(trim=True, fold=True, names=(("ICU", ("icu", "intensive care")),), other="other")
    >>> [ward(text) for text in (" Icu", "Intensive Care", "north", "")]
    ['ICU', 'ICU', 'other', 'other']
    """

    trim: bool = False
    fold: bool = False
    names: tuple[tuple[str, tuple[str, ...]], ...] = ()
    other: str | None = None

    def plain(self, text: str) -> str:
        """A text without what does not count."""
        text = text.strip(" ") if self.trim else text
        return _lower(text) if self.fold else text

    @cached_property
    def _values(self) -> dict[str, str]:
        return {text: value for value, texts in self.names for text in texts}

    def __call__(self, text: str) -> str:
        """The value of a text."""
        plain = self.plain(text)
        return self._values.get(plain, plain if self.other is None else self.other)
