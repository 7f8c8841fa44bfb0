"""Counts of the cells of a map: strategies by name, and what goes on answering from what they released."""
