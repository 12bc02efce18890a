"""Restart PostgreSQL while workers work, politely and not, and take it away for 40 seconds. Nothing is done twice.

The server is a real one of this part's own: its processes end, its connections with them, and it recovers from its log.

python -m tests.torture --part restarts --seeds 0-9
"""

from __future__ import annotations

import random
import signal
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from tests.sessions.cluster import Cluster
from tests.support.folders import fast_folder
from tests.support.processes import nursery
from tests.torture.kills import Home
from tests.torture.storm import Storm

RESTARTS = 6
OUTAGE = 40.0  # seconds, real ones: longer than any lease


def run(seed: int, *, restarts: int = RESTARTS, outage: float = OUTAGE) -> None:
    rng = random.Random(seed)
    with fast_folder() as folder, nursery() as children, _server() as server:
        url = f"postgresql://postgres@/postgres?host={server.socket}&port={server.port}"
        storm = Storm(rng, Home(url, uuid.uuid4().hex), folder, children)

        def restart(away: float | None = None) -> None:
            server.stop(rng.choice((signal.SIGINT, signal.SIGQUIT)))
            time.sleep(rng.uniform(0.0, 1.5) if away is None else away)
            server.start()

        storm.rage(restarts, restart, before_calm=lambda: restart(outage))


@contextmanager
def _server() -> Iterator[Cluster]:
    server = Cluster(connections=100)
    try:
        yield server
    finally:
        server.remove()
