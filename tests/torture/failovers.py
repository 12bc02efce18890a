"""Kill the primary of a synchronous pair of PostgreSQL servers while workers work, and promote its standby.

Each failover ends the primary without a last word. Its standby has every transaction that was acknowledged, and is
promoted. Then the former primary comes back on its own timeline for a moment, as it does when nobody fences it, and is
made the standby of the new one. Workers know both addresses. Nothing acknowledged is lost, nothing is done twice.

python -m tests.torture --part failovers --seeds 0-9
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from tests.sessions.cluster import Cluster
from tests.support.folders import fast_folder
from tests.support.processes import nursery
from tests.torture.kills import Home
from tests.torture.storm import Storm

FAILOVERS = 4


class Pair:
    """Two servers, the second a synchronous standby of the first; a failover makes the second the first."""

    def __init__(self) -> None:
        self.primary = Cluster(connections=100)
        self.standby = self.primary.standby()
        self.primary.wait_for_standby()

    @property
    def url(self) -> str:
        both = (self.primary, self.standby)
        hosts, ports = (",".join(str(getattr(one, name)) for one in both) for name in ("socket", "port"))
        return f"postgresql://postgres@/postgres?host={hosts}&port={ports}"

    def fail_over(self, rng: random.Random) -> None:
        former, heir = self.primary, self.standby
        former.kill()
        time.sleep(rng.uniform(0.0, 0.5))
        heir.promote()
        if rng.random() < 0.7:  # it comes back, and takes itself for the primary
            former.start()
            time.sleep(rng.uniform(0.0, 1.0))
            former.kill()
        former.follow(heir)
        heir.wait_for_standby()
        self.primary, self.standby = heir, former

    def remove(self) -> None:
        self.standby.remove()
        self.primary.remove()


def run(seed: int, *, failovers: int = FAILOVERS) -> None:
    rng = random.Random(seed)
    with fast_folder() as folder, nursery() as children, servers() as pair:
        storm = Storm(rng, Home(pair.url, uuid.uuid4().hex), folder, children)
        storm.rage(failovers, lambda: pair.fail_over(rng))


@contextmanager
def servers() -> Iterator[Pair]:
    pair = Pair()
    try:
        yield pair
    finally:
        pair.remove()
