"""Places on a plane: who is nearest, and how far."""
