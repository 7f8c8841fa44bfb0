"""How CSV files are written, as their owner declares it: the encoding, the delimiter, line breaks within quotes."""

from dataclasses import dataclass
from pathlib import Path

__all__ = ["DELIMITERS", "ENCODINGS", "PLAIN", "Form"]

ENCODINGS = {"utf-8": "utf-8", "latin-1": "latin-1", "iso-8859-1": "latin-1", "windows-1252": "cp1252"}
"""What a file may be written in. A line feed is one byte in each of them, so that a line is decoded by itself."""

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
"""What may separate fields."""


@dataclass(frozen=True)
class Form:
    """How the files of a table are written.

    >>> Form().separator("visits.tsv"), Form(delimiter=";").separator("visits.csv")
    (b'\\t', b';')
    """

    encoding: str = "utf-8"
    delimiter: str | None = None  # a tab in .tsv files, else a comma
    line_breaks: bool = False  # within quotes

    def separator(self, path: str) -> bytes:
        """What separates the fields of a file."""
        return (self.delimiter or ("\t" if Path(path).suffix.lower() == ".tsv" else ",")).encode()

    def is_valid(self, line: bytes) -> bool:
        """Whether all bytes are of the encoding."""
        try:
            line.decode(ENCODINGS[self.encoding])
        except UnicodeDecodeError:
            return False
        return True


PLAIN = Form()
"""As files are written of which nothing is declared."""
