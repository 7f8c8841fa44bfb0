"""Engines compute exact numbers where the data is: `contract` first, `memory` is the specification, then `duckdb`.

`bounding` chooses which rows of a unit are retained · `sql` writes plans for SQL engines · `opening` picks the engine.
"""
