"""Database sessions that outlive their clients, on a real PostgreSQL."""
