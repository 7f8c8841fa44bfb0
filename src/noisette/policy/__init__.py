"""What the data's owner declares: who is protected, bounds, keys, limits and the budget."""
