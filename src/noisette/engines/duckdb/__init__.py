"""DuckDB: queries as typed syntax trees, rows bounded in NumPy, files opened so that no value can stop a question."""
