"""What SQL has and a query has not: one sentence each, on what to write instead."""

from sqlglot import exp

from noisette.errors import InputError

__all__ = ["FUNCTIONS", "refusal", "shown"]

FUNCTIONS = "ABS, FLOOR, CEIL, LEAST, GREATEST, COALESCE, NULLIF, LOWER, UPPER, TRIM, BIN, EXTRACT and CASE"
"""What can be computed from the columns of a row."""

_SUBQUERY = "A sub-query stands only after FROM or JOIN: write it there, or name it with WITH."
_SAMPLE = "Sampling is the curator's business: leave it out, the question is asked of all rows."
_WINDOW = "A window looks at rows of other units: use GROUP BY, or a sub-query that groups by the unit."
_SETS = "UNION, INTERSECT and EXCEPT are not answered: ask each part by itself, or join its conditions with OR."
_FROM = "Rows come from tables alone: write the name of a table or (SELECT ...) AS name after FROM."
_JOIN = "Tables meet on equal columns: write JOIN b ON a.key = b.key or LEFT JOIN b USING (key)."
_TRUNCATE = "Group a date by its parts: write YEAR(d), MONTH(d) or EXTRACT(quarter FROM d)."
_CLOCK = "The clock and chance are no part of a question: write the date itself, DATE '2020-01-31'."
_PATTERN = "Patterns are written with LIKE, % and _: use LOWER(x) LIKE 'a%' to ignore the case."
_REMAINDER = "There is no remainder and no power: write x - FLOOR(x / n) * n, or x * x."
_CAST = "Casts that can fail are refused: leave the cast out, declared columns have a type."
_GROUPS = "Each question has one set of groups: write GROUP BY a, b and ask for totals by themselves."
_PARAMETER = "Parameters have no value here: write the value itself."
_NESTED = "Columns hold single values: use one column for each part of a list or structure."
_NULL_SAFE = "IS DISTINCT FROM is not answered: write a <> b OR a IS NULL."
_SELECT = "Only a SELECT can be asked: write SELECT ... FROM ... or WITH ... SELECT ...."

_BY_CLASS = {
    _SUBQUERY: "Subquery Select Exists Any All",
    _SAMPLE: "TableSample",
    _WINDOW: "Window WindowSpec Qualify RowNumber Rank Lag Lead",
    _SETS: "Union Intersect Except SetOperation",
    _FROM: "Lateral Unnest Values Pivot From ReadCSV Explode Posexplode Table HistoricalData",
    _TRUNCATE: "TimestampTrunc DateTrunc Week Minute Second DayOfYear DayOfWeek",
    _CLOCK: "CurrentDate CurrentTimestamp CurrentTime Rand Randn Uuid",
    _PATTERN: "ILike RegexpLike RegexpILike SimilarTo Escape Glob StartsWith Contains",
    _REMAINDER: "Mod Pow",
    _CAST: "TryCast DataTypeParam",
    _GROUPS: "Rollup Cube GroupingSets Grouping",
    _PARAMETER: "Placeholder Parameter SessionParameter PositionalColumn",
    _NESTED: "Bracket Struct Array Lambda JSONExtract JSONExtractScalar Map ToMap Comprehension PropertyEQ Explode",
    _NULL_SAFE: "NullSafeEQ NullSafeNEQ",
    _SELECT: "Command Copy Create Drop Insert Update Delete Merge",
    "Values are compared one by one: write a = 1 AND b = 2 in place of (a, b).": "Tuple",
    "Functions and columns are called by one name, or table.column: leave out the rest.": "Dot",
    "Write LIMIT with a number after it in place of FETCH.": "Fetch LimitOptions",
    "Texts are compared, not joined together: group by the columns one by one.": "DPipe Concat",
    "Dates are compared, not calculated with: write the other date itself.": "DateDiff DateAdd DateSub Interval",
    "COLUMNS stands for many columns: name them one by one.": "Columns",
}
_CLASSES = {name: sentence for sentence, names in _BY_CLASS.items() for name in names.split()}

_PARTS = {
    ("Select", "offset"): "OFFSET is not answered: use ORDER BY and LIMIT.",
    ("Select", "into"): "A question writes nothing: leave INTO out.",
    ("Select", "locks"): "A question locks nothing: leave FOR UPDATE out.",
    ("Select", "hint"): "Hints are not answered: leave them out.",
    ("Select", "windows"): _WINDOW,
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
    ("In", "query"): _SUBQUERY,
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
    "to_date": "Write a date as DATE '2020-01-31'.",
}


def refusal(node: exp.Expr, part: str | None = None) -> InputError:
    """Why a node, or a part of it, cannot be answered, and what to write instead."""
    name = type(node).__name__
    if part is not None:
        return InputError(_PARTS.get((name, part)) or f"{_title(node)} takes no {part.strip('_')} here: leave it out.")
    if isinstance(node.parent, exp.Table):
        return InputError(_FROM)
    if isinstance(node, exp.Anonymous):
        return InputError(_NAMES.get(str(node.this).lower()) or _unknown(node))
    if name in _CLASSES:
        return InputError(_CLASSES[name])
    if isinstance(node, exp.AggFunc | exp.IgnoreNulls | exp.RespectNulls):
        return InputError(
            f"{_title(node)} is not answered: use COUNT, SUM, AVG, VARIANCE, STDDEV, MEDIAN, QUANTILE, MIN or MAX."
        )
    if isinstance(node, exp.Func):
        return InputError(_unknown(node))
    return InputError(f"{_title(node)} has no place here: write columns, constants, operators and {FUNCTIONS}.")


def _unknown(node: exp.Expr) -> str:
    return f"{_title(node)} is not among the functions of a query: use {FUNCTIONS}."


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
