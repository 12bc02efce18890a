"""Cut the workers off from PostgreSQL while they work: at a COMMIT, in between, for a while. Nothing is done twice.

The workers go through a proxy; whoever checks goes to the server itself.

python -m tests.torture --part cuts --seeds 0-19        each with an outage of 40 seconds
"""

from __future__ import annotations

import random
import time
import uuid

from tests.support import postgres
from tests.support.folders import fast_folder
from tests.support.processes import nursery
from tests.support.proxy import Proxy, proxy_to
from tests.torture.kills import Home
from tests.torture.storm import Storm

CUTS = 12
OUTAGE = 40.0  # seconds, real ones: longer than any lease
_LOOK = 0.05


def run(seed: int, *, cuts: int = CUTS, outage: float = OUTAGE) -> None:
    rng = random.Random(seed)
    postgres.ensure_server()
    with (
        fast_folder() as folder,
        nursery() as children,
        postgres.fresh_database() as url,
        proxy_to(url) as proxy,
    ):
        namespace = uuid.uuid4().hex
        storm = Storm(rng, Home(url, namespace), folder, children, worked_at=Home(proxy.url, namespace))
        storm.rage(cuts, lambda: _trouble(rng, proxy), before_calm=lambda: _be_away(proxy, outage))


def _trouble(rng: random.Random, proxy: Proxy) -> None:
    if proxy.holds_back:
        proxy.deliver()  # its sender has long sent it again
    what = rng.randrange(3)
    if what == 0:
        proxy.cut()
    elif what == 1:
        proxy.cut_next_commit(rng.choice(("before", "after", "late")))
    else:
        proxy.refuse_next(rng.randint(1, 4))
        proxy.cut()


def _be_away(proxy: Proxy, seconds: float) -> None:
    """The server cannot be reached for so long, whoever tries."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        proxy.refuse_next(1_000_000)
        proxy.cut()
        time.sleep(_LOOK)
    proxy.be_calm()
    proxy.refuse_next(0)
