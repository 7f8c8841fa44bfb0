"""Stored texts as what their owner declares: recoded (`query.recode`), or read as another type; neither can fail."""

import datetime

from sqlglot import exp

from noisette.engines.sql.functions import read_text
from noisette.engines.sql.syntax import choose, constant, is_null, try_cast
from noisette.query import formats, texts
from noisette.query.kind import Type
from noisette.query.recode import Recode

__all__ = ["as_moment", "as_type", "recoded"]

_BLANK = exp.Literal.string(" ")


def _trimmed(text: exp.Expr) -> exp.Expr:
    return exp.Trim(this=text.copy(), expression=_BLANK.copy())


def recoded(text: exp.Expr, how: Recode) -> exp.Expr:
    """The values of texts; NULL stays NULL.

    >>> recoded(exp.column("x"), Recode(trim=True, names=(("a", ("a", "A")),), other="?")).sql("duckdb")
    "CASE WHEN (x IS NULL) THEN NULL WHEN TRIM(x, ' ') IN ('a', 'A') THEN 'a' ELSE '?' END"
    """
    plain = _trimmed(text) if how.trim else text
    plain = exp.Lower(this=plain.copy()) if how.fold else plain
    if not how.names and how.other is None:
        return plain
    found = [(_among(plain, listed), constant(value)) for value, listed in how.names]
    rest = plain.copy() if how.other is None else constant(how.other)
    return choose((is_null(text), exp.null()), *found, otherwise=rest)


def _among(text: exp.Expr, listed: tuple[str, ...]) -> exp.Expr:
    return exp.In(this=text.copy(), expressions=[exp.Literal.string(each) for each in listed])


def as_type(text: exp.Expr, type: Type, format: str | None = None) -> exp.Expr:
    """What texts say as another type, in a format or in the forms of `query.texts`; NULL where they do not."""
    if format is not None:
        return as_moment(text, format, type.upper())
    plain = _trimmed(text)
    match type:
        case "integer":
            return read_text(plain, texts.INTEGER, "BIGINT")
        case "real":
            return read_text(plain, texts.REAL, "DOUBLE")
        case "boolean":
            word = exp.Lower(this=plain)
            return choose(
                (_among(word, texts.TRUE), exp.true()), (_among(word, texts.FALSE), exp.false()), otherwise=exp.null()
            )
        case "date":
            return _from_year_1(read_text(plain, texts.DATE, "DATE"), datetime.date.min)
        case "timestamp":
            return _from_year_1(read_text(plain, texts.TIMESTAMP, "TIMESTAMP"), datetime.datetime.min)
        case "text":
            return text


def as_moment(text: exp.Expr, format: str, to: str) -> exp.Expr:
    """The DATE or TIMESTAMP that texts say in a format (`query.formats`); NULL where they do not."""
    plain = _trimmed(text)

    def read(pattern: str, order: str) -> tuple[exp.Expr, exp.Expr]:
        form, parts = exp.Literal.string(pattern), exp.Literal.string(order)
        written = exp.RegexpReplace(this=plain.copy(), expression=form, replacement=parts)
        return exp.RegexpLike(this=plain.copy(), expression=form.copy()), try_cast(written, to)

    forms = formats.forms_of(format, time=to != "DATE")
    return choose(*(read(*form) for form in forms), otherwise=exp.null())


def _from_year_1(moment: exp.Expr, first: datetime.date) -> exp.Expr:
    """A moment that Python has, too."""
    return choose((exp.GTE(this=moment.copy(), expression=constant(first)), moment), otherwise=exp.null())
