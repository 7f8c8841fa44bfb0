"""Dates and times in texts of a declared format, such as `31.12.2023 14:05` by `%d.%m.%Y %H:%M`.

A part that stands beside no other part may lack its leading zero. A year of two digits lies in 1969 to 2068, as in
Python. Blanks around a text do not count. What has another form, or is no date, is NULL: no text can fail.
"""

import datetime
import re
from collections.abc import Callable, Mapping

__all__ = ["fault", "forms_of", "reader"]

_PARTS = {"Y": "year", "y": "year", "m": "month", "d": "day", "H": "hour", "M": "minute", "S": "second"}
_YEAR_1 = "(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"  # or a later one
_DIGITS = {  # beside another part, and alone
    "Y": (_YEAR_1, _YEAR_1),
    "m": ("[0-9]{2}", "[0-9]{1,2}"),
    "d": ("[0-9]{2}", "[0-9]{1,2}"),
    "H": ("(?:[01][0-9]|2[0-3])", "(?:[01]?[0-9]|2[0-3])"),
    "M": ("[0-5][0-9]", "[0-5][0-9]"),
    "S": ("[0-5][0-9]", "[0-5][0-9]"),
}
_CENTURIES = {"20": "(?:[0-5][0-9]|6[0-8])", "19": "(?:69|[7-9][0-9])"}
_WRITTEN = re.compile(r"(?:%[YymdHMS]|[ .,:/_T-])*")
_HOURS = ["hour", "minute", "second"]


def fault(format: str, *, time: bool) -> str | None:
    """What is wrong with a format of dates, or of dates with a time; None if nothing is.

    >>> fault("%d.%m.%Y", time=False), fault("%d.%m", time=False)
    (None, 'must name the year, the month and the day, each once: "%d.%m.%Y".')
    """
    if not _WRITTEN.fullmatch(format):
        return "may hold %d, %m, %Y or %y, %H, %M and %S, and blanks and .,:/_-T between them."
    named = [_PARTS[letter] for letter in re.findall("%(.)", format)]
    if {"year", "month", "day"} - set(named) or len(set(named)) < len(named):
        return 'must name the year, the month and the day, each once: "%d.%m.%Y".'
    hours = [name for name in _HOURS if name in named]
    if hours != _HOURS[: len(hours)]:
        return "must name hours before minutes, and minutes before seconds: %H:%M:%S."
    return "names a time, which a date has not: declare the type timestamp." if hours and not time else None


def forms_of(format: str, *, time: bool) -> tuple[tuple[str, str], ...]:
    """Patterns of the texts of a format, each with what its groups say in the order of year, month, day and time.

    >>> forms_of("%d.%m.%y", time=False)[1]
    ('^([0-9]{1,2})\\\\.([0-9]{1,2})\\\\.((?:69|[7-9][0-9]))$', '19\\\\3-\\\\2-\\\\1')
    """
    letters = "".join(re.findall("%(.)", format))
    places = {letter: f"\\{i}" for i, letter in enumerate(letters, start=1)}
    hours = " " + ":".join(places.get(letter, "00") for letter in "HMS") if time else ""
    if "Y" in places:
        return ((_pattern(format, _DIGITS), f"{places['Y']}-{places['m']}-{places['d']}{hours}"),)
    return tuple(
        (
            _pattern(format, {**_DIGITS, "y": (digits, digits)}),
            f"{century}{places['y']}-{places['m']}-{places['d']}{hours}",
        )
        for century, digits in _CENTURIES.items()
    )


def _pattern(format: str, digits: Mapping[str, tuple[str, str]]) -> str:
    written = re.findall("%.|[^%]", format)
    pieces = []
    for i, piece in enumerate(written):
        alone = all(len(other) == 1 for other in (*written[max(i - 1, 0) : i], *written[i + 1 : i + 2]))
        pieces.append(f"({digits[piece[1]][alone]})" if len(piece) == 2 else re.escape(piece))
    return f"^{''.join(pieces)}$"


def reader(format: str, *, time: bool) -> Callable[[str], datetime.date | None]:
    """Reads texts of a format as dates, or with their time.

    >>> [reader("%d.%m.%y", time=False)(text) for text in (" 1.2.24 ", "31.02.24", "2024-02-01")]
    [datetime.date(2024, 2, 1), None, None]
    """
    forms = [(re.compile(pattern), order) for pattern, order in forms_of(format, time=time)]

    def read(text: str) -> datetime.date | None:
        said = next((m.expand(order) for pattern, order in forms if (m := pattern.fullmatch(text.strip(" ")))), None)
        if said is None:
            return None
        try:
            numbers = [int(number) for number in re.split("[-: ]", said)]
            return datetime.datetime(*numbers) if time else datetime.date(*numbers)  # type: ignore[arg-type]
        except ValueError:
            return None

    return read
