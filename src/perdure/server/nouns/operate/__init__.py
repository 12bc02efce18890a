"""What an operator looks after: the server itself, sessions, keys, metrics, workers, the store, jobs."""
