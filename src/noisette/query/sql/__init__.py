"""SQL as a front end: text in, a plan out, and a sentence for everything that is not on the list."""

from noisette.query.sql.statement import parse

__all__ = ["parse"]
