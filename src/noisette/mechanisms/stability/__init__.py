"""Stability: exact values that few changes of the table would alter."""
