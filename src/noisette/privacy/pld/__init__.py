"""Privacy-loss distributions: the pairs of laws behind mechanisms, and their exact composition."""
