"""Which live things blocking code sees through a face of their own: see `perdure.sync`."""

from __future__ import annotations

from perdure._runtime.kinds import RequestQueue
from perdure._runtime.restore import Restored
from perdure._runtime.sessions import PostgresSession, SqliteSession
from perdure._runtime.units import Unit


def awaited_types() -> tuple[type, ...]:
    """Those with methods that are awaited."""
    return (Unit, PostgresSession, SqliteSession, Restored, RequestQueue)
