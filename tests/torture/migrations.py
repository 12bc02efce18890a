"""Migrations: the naive one, on both engines, killed with and without its session until it has ended.

python -m tests.torture --part migrations --seeds 0-399        about 200 kills of the agent on each engine

Even seeds are PostgreSQL, odd ones SQLite.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import tempfile
from functools import lru_cache
from pathlib import Path

from tests.sessions.kit import Stage
from tests.sessions.migration import Engine, Migrations
from tests.support import postgres
from tests.support.processes import nursery


@lru_cache(maxsize=2)
def _rounds(engine: Engine) -> Migrations:
    """One server, one parking, one store for all seeds of this process."""
    things = contextlib.ExitStack()
    folder = Path(things.enter_context(tempfile.TemporaryDirectory(prefix="pds-")))
    data = Path(things.enter_context(tempfile.TemporaryDirectory(prefix="pds-")))
    children = things.enter_context(nursery())
    atexit.register(things.close)  # after the nursery's own, so that it comes before it
    url = things.enter_context(postgres.fresh_database()) if engine == "postgres" else ""
    return Migrations(things.enter_context(Stage(children, folder, url)), engine, data)


def run(seed: int) -> None:
    asyncio.run(_rounds("sqlite" if seed % 2 else "postgres").round(seed))
