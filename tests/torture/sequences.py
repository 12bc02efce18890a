"""Random sequences of verbs: both engines do what the oracle in memory does, at every step.

The sequences and the comparison are those of tests/store.
"""

from __future__ import annotations

import uuid
from contextlib import ExitStack

from perdure._store import Engine
from perdure._store.memory import MemoryEngine
from perdure._store.postgres import PostgresEngine
from perdure._store.sqlite import SqliteEngine
from tests.support import postgres
from tests.support.folders import fast_folder

# A database of its own takes longer than the sequence.
_POSTGRES_EVERY = 10


def run(seed: int) -> None:
    from tests.store.sequences import run_sequence

    with ExitStack() as stack:
        folder = stack.enter_context(fast_folder())
        engines: list[Engine] = [MemoryEngine(uuid.uuid4().hex), SqliteEngine(folder / "p.db")]
        if seed % _POSTGRES_EVERY == 0:
            engines.append(PostgresEngine(stack.enter_context(postgres.fresh_database())))
        for engine in reversed(engines):
            stack.callback(engine.close)
        run_sequence(seed, engines)
