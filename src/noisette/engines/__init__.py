"""Engines: exact aggregates of bounded rows. `contract` says what one must do; DuckDB is the first."""
