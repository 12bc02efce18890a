"""Lose power at a random moment: every acknowledged write is still there.

A seed makes a workload of tasks, checkpoints and journal entries by two threads, a place in its trace
where power is lost, and what became of the unsynced sectors. Half of the seeds go on from what was left
and lose power again, perhaps while SQLite was still recovering.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest import mock

import apsw

from perdure import Perdure
from perdure._ground.bridge import drive
from perdure._model import Entry, seal_entry
from perdure._store.sqlite import SqliteEngine
from perdure._tasks import leases
from perdure.errors import PerdureError
from perdure.types import Task
from tests.support.folders import fast_folder
from tests.support.powerloss import Disk
from tests.torture.checks import check_rows

FILE = "p.db"
# SQLite copies its log into the file after so many pages: few, so that a small workload meets it often.
_LOG_PAGES = 12


class Lost(AssertionError):
    """Something that was acknowledged is not there, or the store is damaged."""


Known = dict[str, tuple[int, int]]  # by task: the last checkpoint acknowledged, and how many entries were


def run(seed: int, **options: str) -> None:
    """One seed; `options` are those of the engine, which are its own when none are given."""
    rng = random.Random(seed)
    files: dict[str, bytes] = {}
    known: Known = {}
    for boot in range(rng.choice((1, 1, 2))):
        disk = Disk(files)
        try:
            with _booted(f"{seed}.{boot}"):
                _work(disk, rng, options)
        except (PerdureError, apsw.Error) as error:
            raise Lost(f"the store cannot be used: {error}") from error
        position = rng.randrange(len(disk.trace) + 1)
        files = disk.cut(position, rng)
        for task, n, entries in disk.marks(position):
            before = known.get(task, (0, 0))
            known[task] = (max(before[0], n), max(before[1], entries))
    with _booted(f"{seed}.last"):
        _check(files, known)


def _booted(name: str) -> Any:
    """As if the machine had been started anew: no process of before can be alive."""
    return mock.patch("perdure._ground.ids.boot_id", return_value=name)


# ── working ──────────────────────────────────────────────────────────────────────────────────────


def _work(disk: Disk, rng: random.Random, options: Mapping[str, str]) -> None:
    writers = [random.Random(rng.random()) for _ in range(rng.choice((1, 2)))]
    closes = rng.random() < 0.3
    with fast_folder() as folder, disk.vfs() as vfs:
        engine = SqliteEngine(folder / FILE, vfs=vfs, **options)
        engine._open_writer().wal_autocheckpoint(_LOG_PAGES)
        with mock.patch("perdure._store.store.make_engine", return_value=engine):
            app = Perdure(folder / FILE)
        with ThreadPoolExecutor(len(writers)) as pool:
            done = [pool.submit(_write, app, disk, own, f"task-{n}") for n, own in enumerate(writers)]
        before = len(disk.trace)
        drive(app.close())
        if not closes:
            del disk.trace[before:]  # power was lost before the process came to closing
        for writer in done:
            writer.result()


def _write(app: Perdure, disk: Disk, rng: random.Random, name: str) -> None:
    task = drive(app.tasks.open(name, state={"n": 0}))
    n = task.state["n"]
    disk.mark((name, n, 0))
    drive(leases.take(app._store, task.id, task.uid, ""))
    entries = len(app._store.engine.query("read_journal", {"uid": task.uid, "line": 1}))
    for _ in range(rng.randrange(1, 7)):
        if rng.random() < 0.5:
            n += 1
            drive(task.checkpoint({"n": n, "text": rng.randbytes(rng.choice((10, 300, 9000))).hex()}))
        else:
            entries = _journal(app, task, rng, entries)
        disk.mark((name, n, entries))


def _journal(app: Perdure, task: Task, rng: random.Random, position: int) -> int:
    """A few entries nobody waits for, then all of them made durable; the position after them."""
    hold = leases.held(app._store, task.uid)
    assert hold is not None
    committer = app._store.committer
    for _ in range(rng.randrange(1, 5)):
        entry = Entry("result", "step", f"|read#{position}", b"", rng.randbytes(rng.choice((20, 2000))))
        sealed = seal_entry(entry, task.uid, position, app._store.ring)
        params = {"line": 1, "position": position, "entry": sealed}
        write = app._store.verb("append_entry", task.uid, params, key=task.id, fence=hold.fence)
        write.ordered = True
        committer.submit(write, urgent=False)
        position += 1
    committer.flush()
    hold.fence.check()
    return position


# ── looking ──────────────────────────────────────────────────────────────────────────────────────


def _check(files: dict[str, bytes], known: Known) -> None:
    """Open what is left with SQLite's own VFS, as the next process would."""
    with fast_folder() as folder:
        for name, data in files.items():
            (folder / name).write_bytes(data)
        app = Perdure(folder / FILE)
        try:
            _look(app, known)
        except PerdureError as error:
            raise Lost(f"the store cannot be used: {error.what}") from error
        finally:
            drive(app.close())


def _look(app: Perdure, known: Known) -> None:
    engine = app._store.engine
    assert isinstance(engine, SqliteEngine)
    if damage := engine.damage():
        raise Lost(f"the file is damaged: {damage[:3]}")
    for name, (n, entries) in known.items():
        record = drive(app.tasks.get(name))
        if record is None or record.state["n"] < n:
            raise Lost(f"{name}: checkpoint {n} was acknowledged, and the state is {record and record.state['n']}")
        found = engine.query("read_journal", {"uid": record.uid, "line": 1})
        if len(found) < entries:
            raise Lost(f"{name}: {entries} journal entries were acknowledged, and {len(found)} are there")
        if record.damaged:
            raise Lost(f"{name}: damaged checkpoints {record.damaged}")
    check_rows(app)
