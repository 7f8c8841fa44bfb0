"""Numbers that are published again and again: running counts, windows and alarms, each charged once for its horizon."""
