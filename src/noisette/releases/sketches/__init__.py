"""Small summaries of many values: each states what one unit can change, merged or not, and goes on answering."""
