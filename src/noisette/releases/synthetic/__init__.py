"""Synthetic tables: rows in the form of the input, made of noisy one-way and two-way tables alone."""
