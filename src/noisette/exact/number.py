"""Numbers as people write them, read exactly.

A parameter may be an int, float, str, Fraction or Decimal; `"1/10"`, `"0.1"` and `0.1` all mean one tenth: a float is
read as the shortest decimal that prints it, because that is what its author typed. Data is never read this way.
"""

import math
import numbers
import re
import sys
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import TypeAlias

from noisette.errors import InputError

__all__ = ["Number", "float_of", "fraction", "fraction_of", "inside", "level_of", "positive", "whole", "whole_of"]

Number: TypeAlias = int | float | str | Fraction | Decimal

_LONGEST = 400  # characters; longer texts would take too long to read
_LARGEST_EXPONENT = 310
_RATIO = re.compile(r"\s*[-+]?\d+\s*/\s*\d+\s*")
_MOST_DIGITS = 4300  # Python writes and reads no longer whole numbers
_WRITTEN = re.compile(rf"[-+]?[0-9]{{1,{_MOST_DIGITS}}}(/[0-9]{{1,{_MOST_DIGITS}}})?")


def fraction(value: Number, name: str) -> Fraction:
    """Read a number exactly; `name` is what the error calls it.

    >>> fraction("0.1", "epsilon"), fraction(0.1, "epsilon"), fraction("1/10", "epsilon")
    (Fraction(1, 10), Fraction(1, 10), Fraction(1, 10))
    """
    if type(value) is int:
        return Fraction(value)
    given: object = value  # callers may pass other types, such as numpy's scalars
    if type(given).__name__ in ("bool", "bool_"):
        raise InputError(f"{name} must be a number, not a truth value: write 1 or 0 if you mean it.")
    if isinstance(given, Fraction):
        return given
    if isinstance(given, numbers.Integral):
        return Fraction(int(given))
    if isinstance(given, numbers.Real):
        return _from_text(str(given), name)
    if isinstance(given, Decimal | str):
        return _from_text(str(given), name)
    raise InputError(f"{name} must be a number such as 1, 0.5 or '1/10', not {type(given).__name__}.")


def _from_text(text: str, name: str) -> Fraction:
    problem = f"{name} must be a finite number such as 1, 0.5 or '1/10'."
    if len(text) > _LONGEST:
        raise InputError(problem)
    if _RATIO.fullmatch(text):
        numerator, denominator = (int(part) for part in text.split("/"))
        if denominator == 0:
            raise InputError(problem)
        return Fraction(numerator, denominator)
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise InputError(problem) from None
    if not number.is_finite() or (number and abs(number.adjusted()) > _LARGEST_EXPONENT):
        raise InputError(problem)
    return Fraction(number)


# Numbers that programs wrote: parts of records, ledgers and files, of which a stranger may have written any


def fraction_of(written: object, name: str) -> Fraction:
    """Read an exact number as `str` writes an int, a Fraction or a Decimal; it may be longer than people's.

    >>> fraction_of("-1/3", "scale"), fraction_of("7" * 1000, "scale") == int("7" * 1000)
    (Fraction(-1, 3), True)
    """
    if isinstance(written, str) and _WRITTEN.fullmatch(written):
        numerator, _, denominator = written.partition("/")
        if int(denominator or 1) == 0:
            raise InputError(f"{name} must be a finite number such as 1, 0.5 or '1/10'.")
        return Fraction(int(numerator), int(denominator or 1))
    if isinstance(written, str | Fraction | int):
        return fraction(written, name)
    raise InputError(f"{name} must be a text such as '1', '0.5' or '1/10'.")


def whole_of(written: object, name: str) -> int:
    """Read a whole number as `str` writes it.

    >>> whole_of("-12", "k"), whole_of(3, "k")
    (-12, 3)
    """
    if type(written) is int:
        return written
    if not (isinstance(written, str) and _WRITTEN.fullmatch(written) and "/" not in written):
        raise InputError(f"{name} must be a whole number.")
    return int(written)


def float_of(written: object, name: str) -> float:
    """Read a float as `str` writes it; an infinite one too.

    >>> float_of("1e-05", "x"), float_of("inf", "x")
    (1e-05, inf)
    """
    try:
        if isinstance(written, str) and len(written) <= _LONGEST:
            return float(written)
    except ValueError:
        pass
    raise InputError(f"{name} must be a number such as 0.5.")


def positive(value: Number, name: str, *, most: int | None = None, least: Fraction | None = None) -> Fraction:
    """Read a number that must be above zero and, where given, between `least` and `most`.

    >>> positive("1/3", "scale")
    Fraction(1, 3)
    """
    number = fraction(value, name)
    if number <= 0:
        raise InputError(f"{name} must be above 0: noise for {name} = 0 or less does not exist.")
    if most is not None and number > most:
        raise InputError(f"{name} must be at most {most:,}: choose a smaller one.")
    if least is not None and number < least:
        raise InputError(f"{name} must be at least {float(least):g}: there would be no noise at all.")
    return number


def inside(value: Number, name: str) -> Fraction:
    """Read a number that must lie strictly between 0 and 1.

    >>> inside("1e-6", "delta")
    Fraction(1, 1000000)
    """
    number = fraction(value, name)
    if not 0 < number < 1:
        raise InputError(f"{name} must lie strictly between 0 and 1.")
    return number


def whole(value: int, name: str, *, least: int = 1, most: int | None = None) -> int:
    """Read a whole number that is at least `least` and, where given, at most `most`.

    >>> whole(3, "k")
    3
    """
    given: object = value
    if isinstance(given, bool) or not isinstance(given, numbers.Integral) or int(given) < least:
        raise InputError(f"{name} must be a whole number, at least {least}.")
    if most is not None and int(given) > most:
        raise InputError(f"{name} must be a whole number, at most {most:,}.")
    return int(given)


def floor_log2(value: Fraction) -> int:
    """Return the largest k with 2^k <= value, for value > 0.

    >>> floor_log2(Fraction(1, 3)), floor_log2(Fraction(8))
    (-2, 3)
    """
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if Fraction(2) ** guess <= value else guess - 1


def nearest_float(value: Fraction, *, up: bool) -> float:
    """Round to a float that is not below (`up`) or not above the value.

    >>> nearest_float(Fraction(1, 3), up=True) > nearest_float(Fraction(1, 3), up=False)
    True
    """
    try:
        near = float(value)
    except OverflowError:  # beyond the largest float
        near = math.inf if value > 0 else -math.inf
    if math.isinf(near):
        return near if (near > 0) == up else math.copysign(sys.float_info.max, near)
    if up and Fraction(near) < value:
        return math.nextafter(near, math.inf)
    if not up and Fraction(near) > value:
        return math.nextafter(near, -math.inf)
    return near


def level_of(level: float) -> float:
    """Return the level of an error bar; it lies strictly between 0 and 1.

    >>> level_of(0.95)
    0.95
    """
    if not isinstance(level, float | Fraction) or not 0 < level < 1:
        raise InputError("level must lie strictly between 0 and 1: a usual one is 0.95.")
    return level
