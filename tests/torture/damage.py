"""Flipped bits, flipped bytes and zeroed sectors at every kind of place of a store, and what the next process finds.

A store is made by a process that is killed in an effect. Then something of it is damaged: a column or a key of a row,
on both engines; and the raw files of SQLite, its pages and its write-ahead log. The next process looks at every task
and carries on those that it can. Always:

- each command gives the right answer, or one of our errors, or says of what it shows that it is damaged;
- no effect is repeated;
- damage in a row of one task does not keep the other tasks from being listed and carried on.

python -m tests.torture --part damage --seeds 0-999   one place each; every third seed on PostgreSQL
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import random
import shutil
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import psycopg

from perdure import Perdure, durable, effect, pause, progress, signals, step
from perdure._durable import where
from perdure._runtime.bundles.task_bundle import export
from perdure._tasks import collect, examine
from perdure.effects import DID_NOT_HAPPEN, Happened
from perdure.errors import PerdureError
from tests.support import postgres
from tests.support.folders import fast_folder
from tests.support.journals import calls_of
from tests.support.processes import ChildDied, Link, Nursery, die, nursery
from tests.support.strangers import open_file
from tests.support.waiting import look_again
from tests.torture import flips
from tests.torture.flips import Cell

_POSTGRES_EVERY = 3
_MOST_LOOKS = 600
PAUSED = ("approved", "asleep")
TASKS = ("killed", *PAUSED, "signalled", "plain", "queued", "done", "parent", "large")
PROGRAMS = ("killed", "signalled", "queued", "done")
# Tasks that show something of each other.
GROUP = ("parent", "child", "done", "plain")
DAMAGED = "damaged"  # in place of an answer that says so itself


def run(seed: int) -> None:
    with nursery() as children:
        kind = "postgres" if seed % _POSTGRES_EVERY == 0 else "sqlite"
        scene = _scenes.get(kind)
        if scene is None:
            scene = _scenes[kind] = SCENES[kind](children, _kept.enter_context(fast_folder()))
        scene.check(children, seed)


def end_scenes() -> None:
    _scenes.clear()
    _kept.close()


_scenes: dict[str, Scene] = {}
_kept = contextlib.ExitStack()  # what is made once serves all seeds of a run
atexit.register(end_scenes)


# ── damaging ─────────────────────────────────────────────────────────────────────────────────────


class Scene:
    """A store that was left by a killed process, to be copied and damaged again and again."""

    def __init__(self, children: Nursery, folder: Path) -> None:
        self.folder, self.world, self._first = folder, folder / "world", folder / "first world"
        self.world.mkdir()
        child = children.start(make, self.make_store(), str(self.world))
        try:
            raise AssertionError(f"it was to die, and ended with {child.heard()!r}")
        except ChildDied:
            (self.world / "die").unlink()
        shutil.copytree(self.world, self._first)
        self.right = self._look(children, self.copy())
        assert not self.right.errors and not self.right.answers["doctor"], self.right

    def make_store(self) -> str:
        """The address of an empty store."""
        raise NotImplementedError

    def copy(self) -> str:
        """The address of a copy of the store as it was left."""
        raise NotImplementedError

    def damage(self, rng: random.Random) -> Damage:
        """Damage a new copy."""
        raise NotImplementedError

    def check(self, children: Nursery, seed: int) -> Damage:
        done = self.damage(random.Random(seed))
        found = self._look(children, done.url)
        twice = [what for what, times in Counter(found.sent).items() if times > 1]
        assert not twice, f"{done}: done again: {twice}"
        wrong = [name for name in self._wrong(found) if _is_about(name, done.spares)]
        told = {name: (found.answers[name], self.right.answers.get(name)) for name in wrong}
        assert not wrong, f"{done}: wrong answers {told}"
        failed = {
            name: error for name, error in found.errors.items() if done.is_of_a_row and _is_about(name, done.spares)
        }
        assert not failed, f"{done}: other tasks cannot be used: {failed}"
        return done

    def _look(self, children: Nursery, url: str) -> Found:
        shutil.rmtree(self.world)
        shutil.copytree(self._first, self.world)
        found = children.run(look, url, str(self.world))
        assert isinstance(found, Found)
        return found

    def _wrong(self, found: Found) -> Iterator[str]:
        for name, answer in found.answers.items():
            right: Any = self.right.answers.get(name)
            if name == "list" and isinstance(answer, dict):
                for id in self.right.answers["list"]:
                    if answer.get(id, "missing") not in (None, right[id]):
                        yield f"list {id}"
            elif answer not in (right, DAMAGED) and name != "doctor":
                # What can be read of a damaged journal is shown, and `journal` says that it is damaged.
                journal = found.answers.get(f"journal {name.removeprefix('effects ')}", DAMAGED)
                if not (name.startswith("effects ") and journal == DAMAGED):
                    yield name


class Damage(NamedTuple):
    """What was done to a copy of the store."""

    url: str
    what: str
    is_of_a_row: bool = False
    spares: frozenset[str] = frozenset(TASKS)  # tasks of which everything has to be right, or an error


def _is_about(name: str, tasks: frozenset[str]) -> bool:
    return name.partition(" ")[2] in tasks or " " not in name


class Sqlite(Scene):
    def make_store(self) -> str:
        (self.folder / "live").mkdir()
        return f"sqlite://{self.folder}/live/p.db"

    def copy(self) -> str:
        copy = self.folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.folder / "live", copy)
        return f"sqlite://{copy}/p.db"

    def damage(self, rng: random.Random) -> Damage:
        url, path = self.copy(), self.folder / "copy" / "p.db"
        kind = rng.choice(("page", "page", "log", "log", "cell"))
        if kind == "cell":
            cell, value = flips.pick(flips.sqlite_cells(path), rng)
            flips.change_sqlite(path, cell, value)
            return _of_a_row(url, cell, value, self._uids(path))
        if kind == "page":
            open_file(path).execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            return Damage(url, f"{kind}: {flips.spoil(path, rng)}")
        path = path.with_name("p.db-wal")
        return Damage(url, f"{kind}: {flips.spoil(path, rng, flips.where_damage_is_not_seen(path.read_bytes()))}")

    def _uids(self, path: Path) -> dict[str, str]:
        with contextlib.closing(open_file(path)) as connection:
            return {str(uid): str(id) for uid, id in connection.execute("SELECT uid, id FROM tasks").fetchall()}


class Postgres(Scene):
    _template = ""

    def make_store(self) -> str:
        self._template = _kept.enter_context(postgres.fresh_database())
        return self._template

    def copy(self) -> str:
        self._drop()
        with psycopg.connect(postgres.ensure_server(), autocommit=True) as admin:
            template = urlsplit(self._template).path[1:]
            admin.execute(f"CREATE DATABASE {template}_copy TEMPLATE {template}".encode())
        _kept.callback(self._drop)
        return f"{self._template.partition('?')[0]}_copy?{self._template.partition('?')[2]}"

    def _drop(self) -> None:
        with psycopg.connect(postgres.ensure_server(), autocommit=True) as admin:
            admin.execute(f"DROP DATABASE IF EXISTS {urlsplit(self._template).path[1:]}_copy WITH (FORCE)".encode())

    def damage(self, rng: random.Random) -> Damage:
        url = self.copy()
        with psycopg.connect(url, autocommit=True) as connection:
            uids: dict[str, str] = dict(connection.execute("SELECT uid, id FROM perdure.tasks").fetchall())
            while True:
                cell, value = flips.pick(flips.postgres_cells(connection), rng)
                with contextlib.suppress(psycopg.DataError):  # the server itself refuses what is not JSON
                    flips.change_postgres(connection, cell, value)
                    return _of_a_row(url, cell, value, uids)


SCENES: dict[str, type[Scene]] = {"sqlite": Sqlite, "postgres": Postgres}


def _of_a_row(url: str, cell: Cell, value: Any, ids: dict[str, str]) -> Damage:
    """Only its own task may be harmed, with those that have to do with it; rows of the store itself concern all."""
    own = next((ids.get(cell.row[name]) for name in ("task_uid", "uid", "owner") if name in cell.row), None)
    harmed = {own, *(GROUP if own in GROUP else ())}
    spares = frozenset(TASKS) - harmed if own else frozenset()
    return Damage(url, f"{cell} of {cell.key}: {cell.value!r} -> {value!r}", own is not None, spares)


def sent(folder: str) -> list[str]:
    """What effects have done, outside of the store."""
    path = Path(folder) / "sent"
    return path.read_text().splitlines() if path.exists() else []


@step(flush=True)
async def read(number: int) -> str:
    await progress.mark(done=number, total=4)
    return f"page {number}"


def was_sent(folder: str, who: str, number: int) -> object:
    return Happened(number * 10) if f"{who} {number}" in sent(folder) else DID_NOT_HAPPEN


@effect(verify=was_sent)
async def send(folder: str, who: str, number: int) -> int:
    with (Path(folder) / "sent").open("a") as file:
        file.write(f"{who} {number}\n")
    if (Path(folder) / "die").exists() and (who, number) == ("killed", 3):
        die()
    return number * 10


@durable(name="damage: read and send")
async def deliver(folder: str, who: str) -> int:
    total = 0
    for number in range(3):
        await read(number)
        total += await send(folder, who, number)
    if who == "approved":
        await pause.approval("Send the last one?", expires=timedelta(days=3))
    elif who == "asleep":
        await pause.wait(days=2)
    elif who == "signalled":
        total += await signals.next("more", int)
    return total + await send(folder, who, 3)


@durable(name="damage: parent")
async def parent(folder: str) -> int:
    return await deliver(folder, "child")


async def make(link: Link, url: str, folder: str) -> None:
    """Tasks of every kind; the last thing this process does is to die in an effect."""
    async with Perdure(url) as app:
        done = await app.run("done", deliver, folder, "done")
        assert done == 60
        for who in PAUSED:
            with contextlib.suppress(PerdureError):
                await _until_paused(app, who, folder)
        await _until_paused(app, "signalled", folder)
        await app.run("parent", parent, folder)
        task = await app.tasks.create(
            "plain", state={"log": []}, name="a plain one", tags={"team": "blue"}, depends_on=["done"]
        )
        for number in range(5):
            await task.append("log", f"item {number}")
        await task.checkpoint({"log": ["item"] * 50, "phase": "two"}, label="two")
        await task.signal("more", 7)
        await task.pause("Waiting for review", reason="human_approval")
        large = await app.tasks.open("large", state={"text": "".join(random.Random(1).choices("abcdefgh", k=300_000))})
        await large.checkpoint({"text": "x" * 100_000, "more": 1})
        await large.complete({"fine": True})
        await (await app.tasks.handle("signalled")).signal("more", 5)
        await app.start("queued", deliver, folder, "queued")
        (Path(folder) / "die").touch()
        await app.run("killed", deliver, folder, "killed")


async def _until_paused(app: Perdure, who: str, folder: str) -> None:
    running = asyncio.ensure_future(app.run(who, deliver, folder, who))
    task = None
    while task is None or not task.is_paused:
        await look_again()
        with contextlib.suppress(PerdureError):
            task = await app.tasks.handle(who)
            if (await task.record()).status == "paused":
                break
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError, PerdureError):
        await running


# ── looking ──────────────────────────────────────────────────────────────────────────────────────


class Found(NamedTuple):
    """What a process found: by command and task, an answer, or the name of an error."""

    answers: dict[str, Any]
    errors: dict[str, str]
    sent: list[str]


async def look(link: Link, url: str, folder: str) -> Found:
    answers: dict[str, Any] = {}
    errors: dict[str, str] = {}

    async def ask(name: str, question: Callable[[], Awaitable[Any]]) -> None:
        try:
            answers[name] = await question()
        except PerdureError as error:
            errors[name] = f"{type(error).__name__}: {error.what}"

    async with Perdure(url) as app:
        await ask("list", partial(_list, app))
        for id in TASKS:
            await ask(f"get {id}", partial(_record, app, id))
            await ask(f"where {id}", partial(_where, app, id))
            await ask(f"journal {id}", partial(_journal, app, id))
            await ask(f"effects {id}", partial(_effects, app, id))
            await ask(f"checkpoints {id}", partial(_checkpoints, app, id))
            await ask(f"export {id}", partial(_export, app, id, folder))
        await ask("doctor", partial(_doctor, app))
        await ask("gc", partial(_gc, app))
        for id in PROGRAMS:
            await ask(f"run {id}", partial(_run, app, id, folder))
    return Found(answers, errors, sent(folder))


async def _run(app: Perdure, id: str, folder: str) -> Any:
    """What it returns; "paused" when it waits instead, or would wait for longer than any right answer takes."""
    before = await app.tasks.get(id)
    attempts = len(before.attempts) if before is not None else 0
    running = asyncio.ensure_future(app.run(id, deliver, folder, id))
    looks = 0
    try:
        while not running.done():
            await look_again()
            looks += 1
            record = None
            with contextlib.suppress(PerdureError):
                record = await app.tasks.get(id)
            has_paused = record is not None and record.status == "paused" and len(record.attempts) > attempts
            if not running.done() and (has_paused or looks > _MOST_LOOKS):
                return "paused"
        return running.result()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _list(app: Perdure) -> Any:
    found = {}
    for task in await app.tasks.list():
        found[task.id] = None if task.unreadable or task.damaged else _plain(task)
    return found


def _plain(record: Any) -> Any:
    return {name: repr(getattr(record, name)) for name in record.__struct_fields__}


async def _record(app: Perdure, id: str) -> Any:
    record = await app.tasks.get(id)
    return DAMAGED if record is not None and (record.damaged or record.unreadable) else record and _plain(record)


async def _where(app: Perdure, id: str) -> Any:
    found = await where(app.tasks, id)
    # Its sentences tell how long ago something was; what they are about does not change with time.
    shown = {**_plain(found), "situation": (found.situation.kind, found.situation.cause)}
    return DAMAGED if found.damaged else shown


async def _journal(app: Perdure, id: str) -> Any:
    lines = await calls_of(app, id)
    return DAMAGED if any(line.state == "damaged" for line in lines) else [_plain(line) for line in lines]


async def _effects(app: Perdure, id: str) -> Any:
    return [_plain(one) for one in await app.effects.of(id)]


async def _checkpoints(app: Perdure, id: str) -> Any:
    task = await app.tasks.handle(id)
    return [_plain(one) async for one in task.checkpoints()]


async def _export(app: Perdure, id: str, folder: str) -> str:
    path = Path(folder) / f"{id}.bundle"
    await export(app.tasks, id, path, workspace=False)
    path.unlink()
    return "exported"


async def _doctor(app: Perdure) -> list[str]:
    return [f"{one.subject}: {one.what}" for one in await examine(app._store) if one.level == "problem"]


async def _gc(app: Perdure) -> str:
    report = await collect(app._store)
    return repr((report.held_back, report.deleted))
