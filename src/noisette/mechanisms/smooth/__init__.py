"""Smooth and inverse sensitivity: noise that follows how far records near this table can move the answer."""
