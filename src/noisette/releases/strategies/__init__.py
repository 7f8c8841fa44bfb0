"""Strategies for linear releases, one file each: what to measure of counts of cells, and how to infer them."""
