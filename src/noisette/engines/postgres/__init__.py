"""Tables of a PostgreSQL server: `catalogue` what is there, `server` a connection, `source` the engine."""
