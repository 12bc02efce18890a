"""DBOS Transact. Every step is committed before the next one begins, so `chain` and `waited` are one measurement.

The SQLite file is put into WAL mode before DBOS opens it. The queue is polled ten times as often as by default. The
workflows of `crowd` are coroutines, which is the faster of the two ways here.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy
from dbos import DBOS, SetWorkflowID
from dbos._dbos import _get_dbos_instance
from kit import STEPS_IN_CROWD, WARM, Clock, LastStep, Place, answer, postgres_durability, sqlite_durability

LOADED_AT = time.time()
QUEUE, POLLED_EVERY_SECONDS = "errands", 0.1
_LOOK_SECONDS = 0.02
last: LastStep


@DBOS.step()
def small(number: int) -> int:
    return number


@DBOS.step()
async def small_async(number: int) -> int:
    return number


@DBOS.workflow()
def steps(many: int) -> int:
    for number in range(many):
        small(number)
    return many


@DBOS.workflow()
async def crowded(many: int) -> int:
    for number in range(many):
        await small_async(number)
    return many


@DBOS.workflow()
def errand(number: int) -> int:
    return small(number)


@DBOS.step()
def one_more() -> None:
    last.reached()
    while not last.resumes:
        time.sleep(1)


@DBOS.workflow()
def recorded(many: int) -> None:
    for number in range(many):
        small(number)
    one_more()


@contextmanager
def launched(place: Place, *, works: bool = True) -> Iterator[None]:
    if place.is_sqlite:
        place.file.parent.mkdir(parents=True, exist_ok=True)
        with sqlite3.connect(place.file) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
        url = f"sqlite:///{place.file}"
    else:
        url = place.url.replace("postgresql:", "postgresql+psycopg:")
    DBOS(config={"name": "peers", "system_database_url": url, "log_level": "ERROR", "application_version": "1"})
    if not works:
        DBOS.listen_queues([])
    DBOS.launch()
    try:
        yield
    finally:
        DBOS.destroy()


def chain(place: Place) -> float:
    with launched(place):
        steps(WARM)
        with Clock() as clock:
            steps(place.size)
    return clock.ms


def crowd(place: Place) -> float:
    async def all_at_once() -> float:
        await crowded(WARM)
        with Clock() as clock:
            handles = await asyncio.gather(
                *(DBOS.start_workflow_async(crowded, STEPS_IN_CROWD) for _ in range(place.size))
            )
            await asyncio.gather(*(handle.get_result() for handle in handles))
        return clock.rate(place.size * STEPS_IN_CROWD)

    with launched(place):
        return asyncio.run(all_at_once())


def worker(place: Place) -> float:
    with launched(place, works=False):
        DBOS.register_queue(QUEUE, polling_interval_sec=POLLED_EVERY_SECONDS)
        for number in range(place.size):
            DBOS.enqueue_workflow(QUEUE, errand, number)
    with launched(place), Clock() as clock:
        while finished(place) < place.size:
            time.sleep(_LOOK_SECONDS)
    return clock.rate(place.size)


def finished(place: Place) -> int:
    table = "workflow_status" if place.is_sqlite else "dbos.workflow_status"
    with engine().connect() as connection:
        found = connection.execute(sqlalchemy.text(f"SELECT count(*) FROM {table} WHERE status = 'SUCCESS'"))  # noqa: S608
        return int(found.scalar_one())


def engine() -> sqlalchemy.Engine:
    return _get_dbos_instance()._sys_db.engine


def size(place: Place) -> None:
    with launched(place):
        steps(place.size)


def fill(place: Place) -> None:
    global last
    last = LastStep(resumes=False, loaded_at=LOADED_AT)
    with launched(place), SetWorkflowID("recorded"):
        recorded(place.size)


def resume(place: Place) -> None:
    """A launch recovers the workflows of the process that has died."""
    global last
    last = LastStep(resumes=True, loaded_at=LOADED_AT)
    with launched(place):
        DBOS.retrieve_workflow("recorded").get_result()


def durability(place: Place) -> str:
    with launched(place), engine().connect() as connection:
        if place.is_sqlite:
            return sqlite_durability(lambda name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())
        return postgres_durability(lambda name: connection.exec_driver_sql(f"SHOW {name}").scalar_one())


LINES = {
    "chain": chain,
    "waited": chain,
    "crowd": crowd,
    "worker": worker,
    "size": size,
    "fill": fill,
    "resume": resume,
}

if __name__ == "__main__":
    answer(LINES, durability, ["dbos", "sqlalchemy"])
