"""Database sessions that outlive the process, PostgreSQL and SQLite.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._runtime.sessions.kept_sessions import place_of, refuse_own_store
from perdure._runtime.sessions.lone_statements import forget_lone
from perdure._runtime.sessions.postgres import PostgresSession, StatementOutcome, open_postgres
from perdure._runtime.sessions.postgres_verdicts import NEW_SESSION
from perdure._runtime.sessions.session_processes import SessionPlace, ask
from perdure._runtime.sessions.sqlite import SqliteOutcome, SqliteResult, SqliteSession, open_sqlite
from perdure._runtime.sessions import postgres_verdicts
__all__ = [
    "place_of",
    "refuse_own_store",
    "forget_lone",
    "PostgresSession",
    "StatementOutcome",
    "open_postgres",
    "NEW_SESSION",
    "SessionPlace",
    "ask",
    "SqliteOutcome",
    "SqliteResult",
    "SqliteSession",
    "open_sqlite",
    "postgres_verdicts",
]
