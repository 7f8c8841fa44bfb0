"""Counts of a huge table of which few cells are filled: read `counts` first."""
