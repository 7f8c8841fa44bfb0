"""Aggregates of what blocks give: means, medians and votes that keep a promise for one unit."""
