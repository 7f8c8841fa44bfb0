"""Selection: one or several of many candidates, by their scores."""
