"""Questions about data that is described, never seen: schema, expressions, plans, and what one unit can change."""
