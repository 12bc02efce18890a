"""Kill workers at random while they work, twenty in a seed, and check that nothing was lost or done twice.

python -m tests.torture --part storm --seeds 0-99        2,000 kills; even seeds on SQLite, odd ones on PostgreSQL
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from perdure import Perdure
from perdure._ground.hop import drive
from tests.support import postgres
from tests.support.processes import Child, ChildDied, Nursery, nursery
from tests.torture import storm_work
from tests.torture.invariants import Story, check
from tests.torture.kills import Home
from tests.torture.powerloss import fast_folder
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
    def __init__(self, rng: random.Random, home: Home, folder: Path, children: Nursery) -> None:
        self._rng, self._home, self._children = rng, home, children
        self._recorder = str(folder / "recorder")
        self._story = Story()
        self._app: Perdure = home.open()
        self._wave = 0

    def rage(self, kills: int) -> None:
        workers = [self._worker() for _ in range(WORKERS)]
        writers = {f"plain-{n}": self._writer(f"plain-{n}") for n in range(2)}
        self._more_journeys()
        for _ in range(kills):
            time.sleep(self._rng.uniform(0.0, 0.15))
            if self._rng.random() < 0.8:
                victim = self._rng.randrange(WORKERS)
                workers[victim].kill()
                workers[victim] = self._worker()
            else:
                id = self._rng.choice(sorted(writers))
                self._bury(id, writers[id])
                writers[id] = self._writer(id)
            if self._rng.random() < 0.3:
                self._story.look(self._app)
            if not self._unfinished():
                self._more_journeys()
        self._calm(writers)
        for worker in workers:
            worker.tell()
            worker.wait()
        check(self._app, self._story, recorded(self._recorder))
        drive(self._app.close())

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

    def _all(self) -> dict[str, object]:
        return {"namespace": self._home.namespace, "after": "", "limit": 1_000_000}

    def _calm(self, writers: dict[str, Child]) -> None:
        """Nobody is killed any more: all has to come to its end."""
        for id, writer in writers.items():
            self._bury(id, writer)
        end = time.monotonic() + PATIENCE
        while left := self._unfinished():
            assert time.monotonic() < end, f"these do not end: {left}"
            time.sleep(0.02)
