"""Workers are tested as real processes, on each engine that processes can share."""

from __future__ import annotations

from tests.crash.conftest import children, clock, database, folder, home, sqlite_home

__all__ = ["children", "clock", "database", "folder", "home", "sqlite_home"]
