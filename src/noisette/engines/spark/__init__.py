"""Spark: rows go to the executor of their unit, DuckDB computes there, and exact parts are added up.

`opening` sessions and tables · `trial`: whether executors can run anything · `catalogue` stored types · `routing` which
rows meet on one executor · `executor` what runs there · `totals` that Spark adds up itself · `held` retained rows, for
the next question · `source` the engine · `commit` noises each cell once, on executors · `cells` as they travel ·
`scratch`: where answers are committed · `silence`: errors that PySpark must not log.
"""
