"""How DuckDB writes queries: the trees of `engines.sql` as they are."""

from sqlglot import exp

from noisette.engines.contract import Dialect
from noisette.engines.sql import syntax

__all__ = ["DUCKDB", "text_of"]

DUCKDB = Dialect("duckdb")
"""It has TRY_CAST, HASH, ROW, ISNAN and ISFINITE; ROUND takes halves away from 0; LEAST and GREATEST skip NULL."""


def text_of(tree: exp.Expr) -> str:
    """The text that DuckDB reads."""
    return syntax.text_of(tree, DUCKDB)
