"""Kill workers at random while they work, twenty in a seed, and check that nothing was lost or done twice.

python -m tests.torture --part storm --seeds 0-99        2,000 kills; even seeds on SQLite, odd ones on PostgreSQL
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from perdure import Perdure
from perdure._durable import where
from perdure._ground.bridge import drive
from tests.support import postgres
from tests.support.folders import fast_folder
from tests.support.processes import Child, ChildDied, Nursery, nursery
from tests.torture import storm_work
from tests.torture.invariants import Story, check
from tests.torture.kills import Home
from tests.torture.storm_work import PATIENT, journey, journey_of, recorded

KILLS = 20
WORKERS = 3
JOURNEYS = 4
PATIENCE = 120.0


def run(seed: int, *, home: Home | None = None, kills: int = KILLS) -> None:
    with fast_folder() as folder, nursery() as children, home_of(seed, folder, home) as chosen:
        Storm(random.Random(seed), chosen, folder, children).rage(kills)


@contextmanager
def home_of(seed: int, folder: Path, home: Home | None) -> Iterator[Home]:
    if home is not None:
        yield home
    elif seed % 2:
        postgres.ensure_server()
        with postgres.fresh_database() as url:
            yield Home(url, uuid.uuid4().hex)
    else:
        yield Home(f"sqlite://{folder}/p.db")


class Storm:
    """Workers and writers at work on journeys and plain tasks, while something happens to them."""

    def __init__(
        self, rng: random.Random, home: Home, folder: Path, children: Nursery, *, worked_at: Home | None = None
    ) -> None:
        self._rng, self._children = rng, children
        self._home = worked_at or home
        self._recorder = str(folder / "recorder")
        self._story = Story()
        self._app: Perdure = home.open()
        self._wave = 0
        self._workers: list[Child] = []
        self._writers: dict[str, Child] = {}

    def rage(
        self, times: int, trouble: Callable[[], None] | None = None, before_calm: Callable[[], None] | None = None
    ) -> None:
        """Make trouble so often (kill somebody, if nothing else is said), then let all come to its end, and check."""
        self._workers = [self._worker() for _ in range(WORKERS)]
        self._writers = {f"plain-{n}": self._writer(f"plain-{n}") for n in range(2)}
        self._more_journeys()
        for _ in range(times):
            time.sleep(self._rng.uniform(0.0, 0.15))
            (trouble or self._kill_somebody)()
            if self._rng.random() < 0.3:
                self._story.look(self._app)
            if not self._unfinished():
                self._more_journeys()
        if before_calm is not None:
            before_calm()
        self._calm()
        for worker in self._workers:
            worker.tell()
            worker.wait()
        check(self._app, self._story, recorded(self._recorder))
        drive(self._app.close())

    def _kill_somebody(self) -> None:
        if self._rng.random() < 0.8:
            victim = self._rng.randrange(WORKERS)
            self._workers[victim].kill()
            self._workers[victim] = self._worker()
        else:
            id = self._rng.choice(sorted(self._writers))
            self._bury(id, self._writers[id])
            self._writers[id] = self._writer(id)

    def _worker(self) -> Child:
        return self._children.start(storm_work.work, self._home, {"concurrency": self._rng.choice((2, 100))})

    def _writer(self, id: str) -> Child:
        return self._children.start(storm_work.write, self._home, id)

    def _bury(self, id: str, writer: Child) -> None:
        writer.kill()
        with suppress(ChildDied):
            while True:
                self._story.acknowledged[id] = writer.heard()

    def _more_journeys(self) -> None:
        self._wave += 1
        for number in range(JOURNEYS):
            name, length = f"journey-{self._wave}-{number}", self._rng.randint(4, 12)
            drive(self._app.start(name, journey.options(config=PATIENT), self._recorder, name, length))
            said, sent = journey_of(name, length)
            self._story.started[name] = said
            self._story.sent.update(sent)

    def _unfinished(self) -> list[str]:
        found = {row[2]: row[4] for row in self._app._store.engine.query("list_all", self._all())}
        return [id for id in self._story.started if found.get(id) not in ("completed", "failed", "cancelled")]

    def _told(self, id: str) -> str:
        """Where it stands, for whoever looks for the fault."""
        place = drive(where(self._app.tasks, id))
        return f"{id} {place.status}, worked on by {place.holder or 'nobody'}, next {place.next!r}, {place.frames}"

    def _all(self) -> dict[str, object]:
        return {"namespace": self._home.namespace, "after": "", "limit": 1_000_000}

    def _calm(self) -> None:
        """Nobody is troubled any more: all has to come to its end."""
        for id, writer in self._writers.items():
            self._bury(id, writer)
        end = time.monotonic() + PATIENCE
        while left := self._unfinished():
            assert time.monotonic() < end, f"these do not end: {[self._told(id) for id in left]}"
            time.sleep(0.02)
