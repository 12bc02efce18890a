"""What tests lean on: a real PostgreSQL, the `req` mark, async tests, the results of a run."""
