"""Database sessions that outlive the process, PostgreSQL and SQLite."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "kept_sessions": ("place_of", "refuse_own_store"),
        "lone_statements": ("forget_lone",),
        "postgres": ("PostgresSession", "StatementOutcome", "open_postgres"),
        "postgres_verdicts": ("NEW_SESSION",),
        "session_processes": ("SessionPlace", "ask"),
        "sqlite": ("SqliteOutcome", "SqliteResult", "SqliteSession", "open_sqlite"),
    },
    modules=("postgres_verdicts",),
)
