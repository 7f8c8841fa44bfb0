"""From text to a checked syntax tree: an allow-list, so that what is not understood is refused and never passed on.

`ALLOWED` lists every class of node and, for each, the parts of it that may be filled. A node or a part that is not on
the list is refused with a sentence that says what to write instead (`refusals`). No sentence quotes a
literal of the query, and none repeats what the parser underneath has to say.
"""

import re
from collections.abc import Iterator

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB as Grammar  # of what analysts write, whichever engine computes
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token, TokenType

from noisette.errors import InputError
from noisette.query.aggregate import AGGREGATES
from noisette.query.sql.functions import FUNCTIONS
from noisette.query.sql.refusals import refusal

__all__ = ["DEEPEST", "LONGEST", "read", "read_clause", "statements"]

LONGEST = 20_000
"""The most characters of a query."""

DEEPEST = 40
"""The most levels of brackets, functions and sub-queries within each other; a chain of AND or OR is one level."""

_UNREADABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Controls, and what turns the order of a text around for those who read it, such as the owner who approves it."""


def _allow(parts: str, *classes: type[exp.Expr]) -> dict[type[exp.Expr], frozenset[str]]:
    return {each: frozenset(parts.split()) for each in classes}


_MARKS: dict[type[exp.Expr], tuple[str, ...]] = {  # of the parser, without a meaning here
    exp.DPipe: ("safe",),
    exp.Concat: ("safe", "coalesce"),
    exp.DateDiff: ("date_part_boundary",),
    exp.Substring: ("zero_start",),
}
_SET = (exp.ILike, exp.SimilarTo)

# fmt: off
ALLOWED = {
    # statements
    **_allow("expressions from_ joins where group having order limit distinct with_", exp.Select),
    **_allow("this", exp.From, exp.Where, exp.Having, exp.TableAlias),
    **_allow("this alias", exp.Table, exp.Subquery, exp.Alias, exp.CTE),
    **_allow("this expression", exp.Union),
    **_allow("this on using side kind", exp.Join),
    **_allow("expressions all", exp.Group),
    **_allow("expressions", exp.Order, exp.With, exp.Distinct),
    **_allow("expressions", exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple, exp.Grouping, exp.GroupingId),
    **_allow("this desc", exp.Ordered),
    **_allow("expression", exp.Limit),
    # names and constants
    **_allow("this table", exp.Column),
    **_allow("this quoted", exp.Identifier),
    **_allow("this is_string", exp.Literal),
    **_allow("this", exp.Boolean, exp.Var, exp.DataType),
    **_allow("", exp.Null, exp.Star, exp.CurrentDate),
    # operations on a row
    **_allow("this", exp.Paren, exp.Neg, exp.Not, exp.Abs, exp.Floor, exp.Ceil),
    **_allow("this expression", exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.And, exp.Or, exp.Is, exp.Nullif),
    **_allow("this expression", exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE),
    **_allow("this expression negate", exp.Like, exp.ILike, exp.SimilarTo),
    **_allow("this expression", exp.Escape),
    **_allow("this low high", exp.Between),
    **_allow("this expressions query", exp.In),
    **_allow("this", exp.Exists),
    **_allow("this expressions", exp.Coalesce, exp.Anonymous),
    **_allow("this expressions ignore_nulls", exp.Least, exp.Greatest),
    **_allow("this ifs default", exp.Case),
    **_allow("this true false", exp.If),
    **_allow("this to", exp.Cast),
    **_allow("this to safe", exp.TryCast),
    **_allow("this", exp.Date),
    **_allow("this expression", exp.Extract),
    **{node: frozenset((*parts, *_MARKS.get(node, ()))) for node, (parts, _) in FUNCTIONS.items() if node not in _SET},
    **_allow("this unit", exp.Interval),
    # aggregates, and what is computed from them
    **_allow("this big_int", exp.Count),
    **_allow("this", exp.CountIf, exp.Min, exp.Max, exp.Median),
    **_allow("this", *(getattr(exp, name) for each in AGGREGATES.values() for name in each.sql if not each.of_pairs)),
    **_allow("this expression", *(getattr(exp, n) for each in AGGREGATES.values() for n in each.sql if each.of_pairs)),
    **_allow("this quantile", exp.Quantile, exp.ApproxQuantile),
    **_allow("expressions value_constructor", exp.Array),
    **_allow("this expression", exp.PercentileCont, exp.PercentileDisc, exp.WithinGroup, exp.Filter),
    **_allow("this decimals", exp.Round),
    **_allow("this partition_by over", exp.Window),
}
# fmt: on

NAMED = frozenset({"bin", "date_part", "datepart", "dow", "doy", "mean", "prefix", "suffix"})
"""The functions that the parser has no class for."""


def read(text: str, skip: int = 0) -> exp.Select:
    """One SELECT statement as a tree in which every node is known.

    `skip` characters at the start are not the analyst's and do not count where a fault is placed.

    >>> read("SELECT COUNT(*) FROM visits -- how many").key
    'select'
    >>> read("DROP TABLE visits")
    Traceback (most recent call last):
    noisette.errors.InputError: Only a SELECT can be asked: write SELECT ... FROM ... or WITH ... SELECT ....
    """
    tree = _parsed(_tokens(text), text, skip)
    _check(tree)
    return tree


def read_clause(before: str, text: str) -> exp.Select:
    """A part of a statement by itself, such as an expression: `before` is the start of the statement it continues."""
    if not isinstance(text, str) or not text.strip():
        raise InputError('Write an expression as text, such as "age >= 18".')
    return read(f"{before} {text}", len(before) + 1)


def _tokens(text: str) -> list[Token]:
    if not isinstance(text, str):
        raise InputError("Write the query as text: SELECT ... FROM ....")
    if len(text) > LONGEST:
        raise InputError(f"The query is too long: write at most {LONGEST} characters.")
    if _UNREADABLE.search(text):
        raise InputError("The query holds characters that are not text: write it with printable ones.")
    try:
        tokens = Grammar().tokenize(text)
    except Exception:
        raise InputError("The query cannot be read: check that every quotation mark is closed.") from None
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    _check_tokens(tokens)
    return tokens


def _check_tokens(tokens: list[Token]) -> None:
    if not tokens or tokens[0].token_type not in (TokenType.SELECT, TokenType.WITH):
        raise refusal(exp.Command())
    if any(token.token_type == TokenType.SEMICOLON for token in tokens):
        raise InputError("Ask one question at a time: write one SELECT and no semicolon within it.")
    if any(map(_nested, [None, *tokens], tokens)):
        raise InputError("Columns hold single values: write round brackets, and one column for each part of a list.")
    for before, token, following in zip([None, *tokens], tokens, tokens[1:], strict=False):
        if before is not None and before.token_type == TokenType.DISTINCT:
            continue  # IS DISTINCT FROM
        if token.token_type in (TokenType.FROM, TokenType.JOIN) and following.token_type == TokenType.STRING:
            raise InputError("Files cannot be read in a query: write the name of a table after FROM.")


def _nested(before: Token | None, token: Token) -> bool:
    """Whether a bracket opens something else than a list."""
    if token.token_type == TokenType.L_BRACKET:
        return before is None or before.token_type not in (TokenType.L_PAREN, TokenType.COMMA, TokenType.ARRAY)
    return token.token_type == TokenType.L_BRACE


def _parsed(tokens: list[Token], text: str, skip: int) -> exp.Select:
    try:
        trees = Grammar().parser().parse(tokens, text)
    except RecursionError:
        raise _too_deep() from None
    except ParseError as error:
        place = _place(error, skip)
        raise InputError(f"The query cannot be read{place}: check the commas, brackets and keywords.") from None
    except Exception:  # whatever the parser underneath stumbles over, its words may quote the query
        raise InputError("The query cannot be read: check the commas, brackets and keywords.") from None
    if len(trees) != 1 or not isinstance(trees[0], exp.Select):
        raise refusal(trees[0]) if len(trees) == 1 and trees[0] else InputError("Write one SELECT.")
    return trees[0]


def _place(error: ParseError, skip: int) -> str:
    for each in error.errors:
        line, column = each.get("line"), each.get("col")
        if line and column:
            return f" at line {line}, column {max(1, column - skip if line == 1 else column)}"
    return ""


def _too_deep() -> InputError:
    return InputError("The query is nested too deeply: use fewer brackets, or name a part with WITH.")


def _check(tree: exp.Expr) -> None:
    for node, depth in _nodes(tree):
        if depth > DEEPEST:
            raise _too_deep()
        if type(node) not in ALLOWED:
            raise refusal(node)
        for part, value in node.args.items():
            if value not in (None, False, []) and part not in ALLOWED[type(node)]:
                raise refusal(node, part)
        if isinstance(node, exp.Anonymous) and str(node.this).lower() not in NAMED:
            raise refusal(node)


def _nodes(tree: exp.Expr) -> Iterator[tuple[exp.Expr, int]]:
    """Every node with its depth, without recursion."""
    stack = [(tree, 0)]
    while stack:
        node, depth = stack.pop()
        yield node, depth
        for child in node.iter_expressions():
            chain = type(child) is type(node) and isinstance(node, exp.And | exp.Or)
            stack.append((child, depth if chain else depth + 1))


# Several statements


def statements(text: str) -> list[str]:
    """The statements of a text, separated by semicolons; those within quotation marks and comments separate nothing.

    >>> statements("SELECT ';'; -- a;b\\nSELECT 2;")
    ["SELECT ';'", 'SELECT 2']
    """
    try:
        tokens = Grammar().tokenize(text)
    except Exception:
        raise InputError("The queries cannot be read: check that every quotation mark is closed.") from None
    found: list[str] = []
    start, last = None, 0
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            found += [] if start is None else [text[start:last]]
            start = None
        else:
            start, last = token.start if start is None else start, token.end + 1
    return found if start is None else [*found, text[start:last]]
