"""Workers are tested as real processes, on each engine that processes can share."""

from __future__ import annotations

from tests.crash.conftest import clock, home, sqlite_home

__all__ = ["clock", "home", "sqlite_home"]
