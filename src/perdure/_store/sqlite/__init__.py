"""The embedded engine, on apsw."""

from perdure._store.sqlite.engine import SqliteEngine

__all__ = ["SqliteEngine"]
