"""TPC-H as a suite: all 22 queries with customers or suppliers as units (docs/tpch.md)."""
