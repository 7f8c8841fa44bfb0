"""Algorithms that release many numbers."""
