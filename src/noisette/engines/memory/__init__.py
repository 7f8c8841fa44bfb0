"""The specification of every engine, in plain Python: slow, short, and what a plan means.

`source` tables, groups and measures · `rows` of a relation · `values` of stored columns and expressions.
"""
