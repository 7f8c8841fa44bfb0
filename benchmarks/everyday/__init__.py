"""Which of forty everyday questions work: here, and in four peers."""
