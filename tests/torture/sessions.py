"""Sessions: client, proxy or both killed at a random point of a transaction, over and over in one session.

python -m tests.torture --part sessions --seeds 0-2999
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import tempfile
from functools import lru_cache
from pathlib import Path

from tests.sessions.killing import Rounds
from tests.sessions.kit import Stage
from tests.support import postgres
from tests.support.processes import nursery


@lru_cache(maxsize=1)
def _rounds() -> Rounds:
    """One server, one parking, one session for all seeds of this process."""
    things = contextlib.ExitStack()
    folder = Path(things.enter_context(tempfile.TemporaryDirectory(prefix="pds-")))
    children = things.enter_context(nursery())
    atexit.register(things.close)  # after the nursery's own, so that it comes before it
    url = things.enter_context(postgres.fresh_database())
    rounds = Rounds(things.enter_context(Stage(children, folder, url)))
    things.callback(rounds.close)
    return rounds


def run(seed: int) -> None:
    asyncio.run(_rounds().round(seed))
