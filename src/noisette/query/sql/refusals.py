"""What SQL has and a query has not: one sentence each, on what to write instead."""

import re

from sqlglot import exp

from noisette.errors import InputError
from noisette.names import closest

__all__ = ["FUNCTIONS", "refusal", "shown"]

FUNCTIONS = (
    "ABS, ROUND, FLOOR, LEAST, GREATEST, COALESCE, NULLIF, LOWER, TRIM, SUBSTR, LENGTH, REPLACE, BIN, EXTRACT, "
    "DATE_TRUNC, STRFTIME and CASE"
)
"""What can be computed from the columns of a row."""
AGGREGATES = "COUNT, SUM, AVG, VARIANCE, STDDEV, MEDIAN, QUANTILE, MIN, MAX, CORR"
_ALSO = """UPPER LEFT RIGHT CONCAT SPLIT_PART CONTAINS STARTS_WITH ENDS_WITH REGEXP_MATCHES DATE_DIFF YEAR QUARTER
MONTH WEEK DAY HOUR MINUTE SECOND DAYNAME MONTHNAME SIGN SQRT LN LOG POWER WIDTH_BUCKET TRY_CAST"""
_KNOWN = re.findall("[A-Z_]+", f"{FUNCTIONS} {AGGREGATES} {_ALSO}")
"""What may have been meant by a function that is unknown."""

_SUBQUERY = "A sub-query stands only after FROM or JOIN: write it there, or name it with WITH."
_SAMPLE = "Sampling is the curator's business: leave it out, the question is asked of all rows."
_WINDOW = (
    "A window looks at rows of other units: use GROUP BY, a sub-query that groups by the unit, or a total of results, "
    "SUM(COUNT(*)) OVER ()."
)
_SETS = (
    "UNION ALL joins rows of one table in a sub-query: write FROM (SELECT a FROM t UNION ALL SELECT b FROM t) AS name, "
    "or join conditions with OR."
)
_FROM = "Rows come from tables alone: write the name of a table or (SELECT ...) AS name after FROM."
_JOIN = "Tables meet on equal columns: write JOIN b ON a.key = b.key or LEFT JOIN b USING (key)."
_TRUNCATE = "Group a date by its parts: write DATE_TRUNC('month', d), YEAR(d) or EXTRACT(quarter FROM d)."
_CLOCK = "The clock and chance are no part of a question: write the date itself, DATE '2020-01-31'."
_PATTERN = (
    "Patterns are compared, nothing is cut out of them: write x ILIKE 'a%', REGEXP_MATCHES(x, '^a') or SPLIT_PART."
)
_CAST = "Types are written without numbers in brackets: write CAST(x AS DOUBLE), VARCHAR or BIGINT."
_RANK = "Released rows come in order: write ORDER BY COUNT(*) DESC LIMIT 10 in place of a rank."
_TOP = "The most frequent values are a question of their own: ask nz.Top('x', 3)."
_SHAPE = "Of a distribution write VARIANCE(x), or QUANTILE(x, [0.1, 0.5, 0.9]), which shows its shape."
_BITS = "Bits are not added up: write SUM(x = 1), or GROUP BY x and COUNT(*)."
_PAIRS = "Of two columns write CORR(y, x), COVAR_POP(y, x), REGR_SLOPE(y, x), REGR_INTERCEPT(y, x) or REGR_COUNT(y, x)."
_PRODUCT = "Products over rows have no bounds that hold: write AVG(LN(x)), the logarithm of the geometric mean."
_CONDITIONS = "Conditions are counted: write COUNT_IF(condition) or AVG(condition)."
_MODE = "The most frequent value is a question of its own: ask nz.Mode('x'), or nz.Top('x', 3) for several."
_LIST = "Values of single rows are never shown: write GROUP BY x, or ask nz.Top('x', 10) for the most frequent ones."
_GROUPS = "Totals stand in the last GROUP BY of a query: write GROUP BY ROLLUP (a, b), CUBE (a, b) or GROUPING SETS."
_COLLATE = "Texts are compared as they are stored: write LOWER(x) = 'abc' in place of COLLATE."
_PARAMETER = "Parameters have no value here: write the value itself."
_NESTED = "Columns hold single values: use one column for each part of a list or structure."
_SELECT = "Only a SELECT can be asked: write SELECT ... FROM ... or WITH ... SELECT ...."

_BY_CLASS = {
    _SUBQUERY: "Subquery Select Exists Any All",
    _SAMPLE: "TableSample",
    _COLLATE: "Collate",
    _WINDOW: "Window WindowSpec Qualify Lag Lead FirstValue LastValue NthValue",
    _RANK: "RowNumber Rank DenseRank PercentRank CumeDist Ntile",
    _SETS: "Union Intersect Except SetOperation",
    _FROM: "Lateral Unnest Values Pivot From ReadCSV Explode Posexplode Table HistoricalData",
    _TRUNCATE: "DateTrunc LastDay UnixToTime DateFromParts",
    _CLOCK: "CurrentTimestamp CurrentTime Rand Randn Uuid",
    _PATTERN: "RegexpILike RegexpExtract RegexpReplace RegexpSplit Glob StrPosition",
    _CAST: "DataTypeParam",
    _MODE: "Mode",
    _LIST: "GroupConcat ArrayAgg ArrayUniqueAgg AnyValue First Last List ArgMax ArgMin IgnoreNulls RespectNulls "
    "JSONArrayAgg JSONObjectAgg",
    _TOP: "ApproxTopK ApproxTopSum",
    _SHAPE: "Kurtosis Skewness",
    _BITS: "BitwiseAndAgg BitwiseOrAgg BitwiseXorAgg",
    _PAIRS: "RegrAvgx RegrAvgy RegrSxx RegrSxy RegrSyy",
    "COUNT(DISTINCT x) is answered with noise anyway: write it in place of an approximation.": "ApproxDistinct",
    _CONDITIONS: "LogicalAnd LogicalOr",
    "EXP has no bounds that hold: write LN(x), POWER(x, 2) or SQRT(x).": "Exp",
    _GROUPS: "Rollup Cube GroupingSets Grouping GroupingId",
    _PARAMETER: "Placeholder Parameter SessionParameter PositionalColumn",
    _NESTED: "Bracket Struct Array Lambda JSONExtract JSONExtractScalar Map ToMap Comprehension PropertyEQ Explode",
    _SELECT: "Command Copy Create Drop Insert Update Delete Merge",
    "Values are compared one by one: write a = 1 AND b = 2 in place of (a, b).": "Tuple",
    "Functions and columns are called by one name, or table.column: leave out the rest.": "Dot",
    "Write LIMIT with a number after it in place of FETCH.": "Fetch LimitOptions",
    "Texts are joined by ||: write a || '-' || b.": "ConcatWs Pad Repeat",
    "Dates take intervals: write d + INTERVAL 3 DAY, or DATE_DIFF('day', a, b) of two.": "DateAdd DateSub TimestampAdd",
    "COLUMNS stands for many columns: name them one by one.": "Columns",
}
_CLASSES = {name: sentence for sentence, names in _BY_CLASS.items() for name in names.split()}

_PARTS = {
    ("Union", "distinct"): _SETS,
    ("Select", "offset"): "OFFSET is not answered: use ORDER BY and LIMIT.",
    ("Select", "into"): "A question writes nothing: leave INTO out.",
    ("Select", "locks"): "A question locks nothing: leave FOR UPDATE out.",
    ("Select", "hint"): "Hints are not answered: leave them out.",
    ("Select", "windows"): _WINDOW,
    ("Window", "order"): "Released rows are added up in any order: write SUM(COUNT(*)) OVER () without ORDER BY.",
    ("Window", "spec"): _WINDOW,
    ("Window", "alias"): _WINDOW,
    ("Select", "qualify"): _WINDOW,
    ("Select", "sample"): _SAMPLE,
    ("Table", "sample"): _SAMPLE,
    ("Subquery", "sample"): _SAMPLE,
    ("Select", "laterals"): _FROM,
    ("Table", "pivots"): _FROM,
    ("Subquery", "pivots"): _FROM,
    ("Table", "db"): "Tables are called by one name: leave out what stands before the dot.",
    ("Table", "joins"): "Joins stand in a row: write a JOIN b ON ... JOIN c ON ... without brackets.",
    ("Column", "db"): "Columns are called by one name, or table.column: leave out the rest.",
    ("Column", "fields"): "Columns are called by one name, or table.column: leave out the rest.",
    ("TableAlias", "columns"): "Name the columns within the sub-query: SELECT x AS name.",
    ("With", "recursive"): "WITH RECURSIVE is not answered: write WITH name AS (SELECT ...).",
    ("CTE", "materialized"): "Leave MATERIALIZED out: write WITH name AS (SELECT ...).",
    ("Distinct", "on"): "DISTINCT ON picks rows of a unit: use GROUP BY, or a sub-query that groups by the unit.",
    ("Join", "method"): _JOIN,
    ("Group", "rollup"): _GROUPS,
    ("Group", "cube"): _GROUPS,
    ("Group", "grouping_sets"): _GROUPS,
    ("Ordered", "nulls_first"): "NULL comes last: leave NULLS FIRST out.",
    ("Limit", "limit_options"): "LIMIT needs a whole number of rows: write LIMIT 10.",
    ("Order", "this"): "Aggregates take their rows in any order: leave ORDER BY out of the brackets.",
    ("Star", "except_"): "Name the columns one by one: * takes no EXCLUDE.",
    ("Star", "replace"): "Name the columns one by one: * takes no REPLACE.",
    ("Trim", "expression"): "TRIM takes blanks only: write TRIM(x).",
    ("Trim", "position"): "TRIM takes blanks on both sides: write TRIM(x).",
    ("In", "query"): "IN (SELECT ...) is answered among the conditions of WHERE alone: write it after WHERE or AND.",
    ("In", "unnest"): _NESTED,
    ("Min", "count"): "MIN takes one value: write MIN(x), or LEAST(x, y) for the smaller of two.",
    ("Max", "count"): "MAX takes one value: write MAX(x), or GREATEST(x, y) for the larger of two.",
    ("Between", "symmetric"): "Write BETWEEN low AND high, the lower end first.",
}

_NAMES = {
    "iff": "There is no IFF: write CASE WHEN condition THEN a ELSE b END.",
    "isnull": "There is no ISNULL function: write x IS NULL.",
    "weekday": "Weeks begin on Monday here: write ISODOW(d), which is 1 on Mondays and 7 on Sundays.",
    "now": _CLOCK,
    "today": _CLOCK,
    "count_star": "Write COUNT(*).",
    "histogram": "A histogram is a question of its own: ask nz.Histogram('x'), or write GROUP BY BIN(x, 10).",
    "date_sub": "Whole units between two dates are not counted: write DATE_DIFF('day', a, b).",
    "age": "Write the days between two dates as b - a, or DATE_DIFF('year', a, b).",
    "product": _PRODUCT,
    "geomean": _PRODUCT,
    "geometric_mean": _PRODUCT,
    "mad": "Write QUANTILE(x, [0.25, 0.5, 0.75]), or ask nz.Spread('x') for the interquartile range without bounds.",
    "entropy": "Write GROUP BY x with COUNT(*) / SUM(COUNT(*)) OVER (), and compute the entropy from these shares.",
    "every": _CONDITIONS,
    "favg": "Sums are exact here: write AVG(x).",
    "fsum": "Sums are exact here: write SUM(x).",
    "kahan_sum": "Sums are exact here: write SUM(x).",
    "reservoir_quantile": "Write QUANTILE(x, 0.5): it is noised, so no sample is needed.",
    "string_agg": _LIST,
    "json_group_array": _LIST,
    "json_group_object": _LIST,
    "xmlagg": _LIST,
    "arbitrary": _LIST,
    "to_date": "Write a date as DATE '2020-01-31'.",
}


def refusal(node: exp.Expr, part: str | None = None) -> InputError:
    """Why a node, or a part of it, cannot be answered, and what to write instead."""
    name = type(node).__name__
    if isinstance(node, exp.Window) and type(node.this).__name__ in _CLASSES:
        return refusal(node.this)
    if part is not None:
        return InputError(_PARTS.get((name, part)) or f"{_title(node)} takes no {part.strip('_')} here: leave it out.")
    if isinstance(node.parent, exp.Table):
        return InputError(_FROM)
    if isinstance(node, exp.Anonymous):
        return InputError(_NAMES.get(str(node.this).lower()) or _unknown(node))
    if name in _CLASSES:
        return InputError(_CLASSES[name])
    if isinstance(node, exp.AggFunc | exp.IgnoreNulls | exp.RespectNulls):
        return InputError(f"{_title(node)} is not answered: use {AGGREGATES}.")
    if isinstance(node, exp.Func):
        return InputError(_unknown(node))
    return InputError(f"{_title(node)} has no place here: write columns, constants, operators and {FUNCTIONS}.")


def _unknown(node: exp.Expr) -> str:
    title = _title(node)
    return f"{title} is not among the functions of a query: {closest(title, _KNOWN, f'use {FUNCTIONS}', listed=False)}"


def _title(node: exp.Expr) -> str:
    if isinstance(node, exp.Anonymous):
        return shown(str(node.this)).upper()
    return node.sql_name() if isinstance(node, exp.Func) else node.key.upper()


def shown(name: str) -> str:
    """A name from the query, short and printable enough to stand in a sentence.

    >>> shown("ward")
    'ward'
    """
    clean = "".join(character if character.isprintable() else " " for character in name)
    return clean if len(clean) <= 60 else clean[:57] + "..."
