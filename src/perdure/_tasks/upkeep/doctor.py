"""Look for what is wrong, or soon will be, and say what to do about it. Changes nothing.

A problem is something that does not work as promised: a damaged record, a broken chain, a missing key, a full
disk. A note is worth knowing and mends itself, or is mended by a command it names.

Owns what is looked at. gc.py, audit.py and rotation.py know how.
"""

from __future__ import annotations

import importlib.util
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal

from perdure._ground.bridge import Call
from perdure._ground.clock import moment
from perdure._ground.config import is_there
from perdure._ground.ids import Process
from perdure._model import FINISHED, Entry, missing_in, open_entry
from perdure._store import FrameRow, MigrationRow, OldReader, Store, TaskRow
from perdure._tasks.state import snapshots
from perdure._tasks.task_walk import every_task, has_functions, outline
from perdure._tasks.upkeep import audit, gc, rotation
from perdure._tasks.upkeep.dead_processes import left_by_the_dead, see_workers
from perdure._tasks.upkeep.steps import Steps, StopUpkeep, Tell
from perdure.errors import JournalDamaged, KeyMissing, NotFound, PerdureError, RecordDamaged

Level = Literal["ok", "note", "problem"]

LITTLE_SPACE, HARDLY_ANY_SPACE = 1_000_000_000, 100_000_000
LARGE_WAL = 64_000_000
# Clocks of two machines differ by less; with more than that, pauses end at the wrong time.
CLOCK_TOLERANCE = timedelta(seconds=30)
_RELEASED_MS = 1_735_689_600_000  # 2025; no store is older
_EXTRAS = {"postgres": "psycopg", "rich": "rich", "keyring": "keyring"}
_NAMED_AT_MOST = 5
# Pages without checksums: what follows from it, and what to do.
_UNCHECKED = {
    "sqlite": (
        "the pages of this file have none, as an older perdure has made it: a flipped bit in a number or a name is not "
        "noticed",
        "nothing has to be done; `perdure export` and `import` take tasks into a new store, which has them",
    ),
    "postgres": (
        "this server keeps none: a flipped bit on its disk is not noticed outside of sealed records",
        "stop the server and run `pg_checksums --enable` on its data",
    ),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check, and what to do about it."""

    level: Level
    subject: str
    what: str
    do: str = ""
    namespace: str | None = None  # whose tasks it is about; None: the store's as a whole; empty: not known


async def examine(store: Store, *, tell: Tell | None = None) -> list[Finding]:
    """Everything worth telling about a store and where it runs, in the order of its parts. `tell` hears of every task
    or page of records, and stops the look by returning False (steps.py); the last finding then says so."""
    findings = [_extras()]
    try:
        async for finding in _examine(store, Steps(tell)):
            findings.append(finding)
    except StopUpkeep:
        findings.append(Finding("note", "stopped", "the look was stopped; the rest of the store was not looked at"))
    except PerdureError as error:
        findings.append(Finding("problem", "store", error.what, error.do))
    except OSError as error:
        do = "check the disk, and that you may read and write the file and its folder"
        findings.append(Finding("problem", "store", f"cannot use {store.engine.place}: {error.strerror}", do))
    return findings


async def _examine(store: Store, steps: Steps) -> AsyncIterator[Finding]:
    for finding in await Call(lambda: _engine(store)):
        yield finding
    for finding in await Call(lambda: _readers(store)):
        yield finding
    async for finding in _schema(store):
        yield finding
    yield await _clock(store)
    yield await _keys(store)
    async for finding in _states(store, steps):
        yield finding
    async for finding in _records(store, steps):
        yield finding
    async for finding in _journals(store, steps):
        yield finding
    async for finding in _chains(store, steps):
        yield finding
    async for finding in _workers(store):
        yield finding
    yield await _orphans(store)


# ── the place ────────────────────────────────────────────────────────────────────────────────────


def _extras() -> Finding:
    have = [name for name, module in _EXTRAS.items() if importlib.util.find_spec(module) is not None]
    return Finding("ok", "extras", f"installed: {', '.join(have) or 'none'}")


def _engine(store: Store) -> list[Finding]:
    engine = store.engine
    found = [Finding("ok", "store", f"{engine.kind} at {engine.place}")]
    path: Path | None = getattr(engine, "path", None)
    if path is not None:
        from importlib.metadata import version

        found.append(Finding("ok", "sqlite", f"apsw {version('apsw')}, which carries its own SQLite; new enough"))
        found += _files(path)
    has_checksums: Callable[[], bool] = getattr(engine, "has_checksums", lambda: True)
    if not has_checksums():
        found.append(Finding("note", "checksums", _UNCHECKED[engine.kind][0], _UNCHECKED[engine.kind][1]))
    damage = getattr(engine, "damage", None)
    if damage is not None:
        lines: list[str] = damage()
        found.append(
            Finding(
                "problem",
                "integrity",
                f"the database is damaged: {_some(lines)}",
                "stop all writers, copy the file away, and restore it from a backup",
            )
            if lines
            else Finding("ok", "integrity", "the database finds itself whole")
        )
    return found


def _readers(store: Store) -> list[Finding]:
    """The readers that keep deleted or overwritten data from being cleaned up."""
    find: Callable[[], list[OldReader]] = getattr(store.engine, "old_readers", list)
    return [Finding("note", "readers", f"{found.who} {found.what}", found.do) for found in find()]


def _files(path: Path) -> list[Finding]:
    if not is_there(path):
        return [Finding("note", "file", f"{path} is not there yet; the first write makes it")]
    found = []
    if path.stat().st_mode & (stat.S_IROTH | stat.S_IWOTH) and path.parent.stat().st_mode & stat.S_IXOTH:
        found.append(Finding("note", "file", f"others can read {path}", f"chmod 600 {path}"))
    wal = path.with_name(path.name + "-wal")
    size = wal.stat().st_size if wal.exists() else 0
    if size > LARGE_WAL:
        what = f"the write-ahead log has {size:,} bytes: some process has been reading for very long, or had been"
        do = "end the process that is named under readers, if there is one; then `perdure gc --shrink` takes them back"
        found.append(Finding("note", "wal", what, do))
    free = _free_bytes(path.parent)
    if free < LITTLE_SPACE:
        level: Level = "problem" if free < HARDLY_ANY_SPACE else "note"
        found.append(Finding(level, "disk", f"{free:,} bytes are free", "`perdure gc --shrink`, or a larger disk"))
    else:
        found.append(Finding("ok", "disk", f"{free:,} bytes are free"))
    return found


def _free_bytes(folder: Path) -> int:
    import shutil

    return shutil.disk_usage(folder).free


async def _schema(store: Store) -> AsyncIterator[Finding]:
    rows = await store.rows(MigrationRow, "read_migrations")
    if rows:
        yield Finding("ok", "schema", f"{len(rows)} migrations, the last is {rows[-1].name}")


async def _clock(store: Store) -> Finding:
    now, newest = store.clock.now_ms(), 0
    async for row in every_task(store, None):
        newest = max(newest, row.updated_at)
    if now < _RELEASED_MS:
        return Finding("problem", "clock", f"it says {moment(now):%Y-%m-%d %H:%M}", "set the clock of this machine")
    ahead = timedelta(milliseconds=newest - now)
    if ahead > CLOCK_TOLERANCE:
        what = f"the store was last written {ahead} from now: this clock is slow, or another one fast"
        return Finding("problem", "clock", what, "compare the clocks of all machines that use the store (NTP)")
    return Finding("ok", "clock", f"it says {moment(now):%Y-%m-%d %H:%M:%S} UTC")


async def _keys(store: Store) -> Finding:
    counts = await rotation.keys_in_use(store)
    sealed = {name: count for name, count in counts.items() if name != rotation.NO_KEY}
    missing = {name: count for name, count in sealed.items() if name not in store.ring.ids}
    if missing:
        named = ", ".join(f"{name!r} ({count:,} records)" for name, count in missing.items())
        return Finding("problem", "keys", f"not here: {named}", "give it by PERDURE_KEY, a key file or the keyring")
    current = store.ring.current
    plain = counts.get(rotation.NO_KEY, 0)
    if current is not None and (plain or len(sealed) > 1):
        what = f"{plain:,} records are not sealed" if plain else f"{len(sealed)} keys are in use"
        return Finding("note", "keys", what, "`perdure keys rotate` seals all records under the current key")
    return Finding("ok", "keys", f"all records sealed under {current.id!r}" if current else "records are not sealed")


# ── the tasks ────────────────────────────────────────────────────────────────────────────────────


async def _states(store: Store, steps: Steps) -> AsyncIterator[Finding]:
    tasks, checkpoints, sealed, is_whole = 0, 0, 0, True
    async for row in every_task(store, None):
        try:
            rows, damaged = await _damaged(store, row)
        except KeyMissing:
            sealed += 1  # the owner of the key is told under keys
            steps.take("checkpoints", row.id)
            continue
        tasks, checkpoints = tasks + 1, checkpoints + len(rows)
        if damaged:
            is_whole = False
            yield _about_damage(row, rows, damaged)
        steps.take("checkpoints", row.id)
    if sealed:
        yield Finding("note", "checkpoints", f"those of {sealed:,} tasks could not be checked without their keys")
    if is_whole:
        yield Finding("ok", "checkpoints", f"{checkpoints:,} of {tasks:,} tasks can be read")


async def _damaged(store: Store, row: TaskRow) -> tuple[list[FrameRow], dict[int, str]]:
    """A task's checkpoints, and which of them cannot be read, with the reason."""
    rows = await outline(store, row.uid)
    damaged: dict[int, str] = {}
    if row.state_seq not in {frame.seq for frame in rows}:
        now = await store.row(TaskRow, "get_task_by_uid", uid=row.uid)
        if now is not None and now.state_seq == row.state_seq:
            damaged[row.state_seq] = "it is the state, and is not there"
    before: tuple[int, bytes | None] = (-1, None)
    for frame in rows:
        raw: bytes | None = None
        try:
            if frame.base is not None and frame.base == before[0] and before[1] is not None:
                raw = await _extend(store, row.uid, frame, before[1])
            if raw is None:
                raw = (await snapshots.materialise(store, row.uid, frame.seq))[0].raw
            snapshots.contents(raw)
        except NotFound:
            continue  # gc took it while we were reading
        except RecordDamaged as error:
            damaged[frame.seq], raw = error.problem, None
        before = (frame.seq, raw)
    return rows, damaged


async def _extend(store: Store, uid: str, frame: FrameRow, before: bytes) -> bytes | None:
    """A delta on the snapshot just read; None when it has to be read from its keyframe after all."""
    found = await store.rows(FrameRow, "read_frame", uid=uid, target=frame.seq)
    if not found or found[0].base != frame.base:
        return None
    try:
        return await snapshots.extend(store, uid, found[0], before)
    except RecordDamaged:
        return None


def _about_damage(row: TaskRow, rows: list[FrameRow], damaged: dict[int, str]) -> Finding:
    good = [frame.seq for frame in rows if frame.seq not in damaged and frame.valid and not frame.superseded]
    usable = [seq for seq in good if seq <= row.state_seq]
    named = _some([f"{seq} ({why})" for seq, why in damaged.items()])
    what = f"{len(damaged)} of {len(rows)} checkpoints cannot be read: {named}"
    known_bad = {frame.seq for frame in rows if not frame.valid}
    if not usable:
        do = "restore the store from a backup"
        return Finding("problem", f"task {row.id}", f"{what}; no good one is left", do, row.namespace)
    if row.state_seq in damaged:
        do = f"its next attempt goes on from checkpoint {usable[-1]}, the newest good one"
        if row.status in FINISHED:
            do = f"checkpoint {usable[-1]} is the newest good one: `perdure fork {row.id}` begins there"
        return Finding("problem", f"task {row.id}", what, do, row.namespace)
    level: Level = "note" if set(damaged) <= known_bad else "problem"
    do = "nothing: they are never resumed from"
    return Finding(level, f"task {row.id}", f"{what}; its state is good", do, row.namespace)


async def _records(store: Store, steps: Steps) -> AsyncIterator[Finding]:
    """All else that is kept: pauses, progress, results, journals, arguments, signals, memories."""
    named = {row.uid: row async for row in every_task(store, None)}
    first: dict[str, int] = {}  # the first damaged entry of a task's journal
    is_whole = True
    async for uid, record, why in rotation.unreadable(store, steps):
        is_whole = False
        kind, _, place = record.partition(" ")
        _, *parts = place.split(".")
        row = named.get(uid)
        subject = "records" if row is None else f"task {row.id}"
        do = "restore it from a backup of the store"
        if kind == "entry" and row is not None and parts[:1] == [str(row.line)]:
            do = JournalDamaged(row.id, first.setdefault(uid, int(parts[1])), why).do
        elif kind == "entry" and row is not None:
            do = "nothing: the task has gone on from another line of its journal"
        namespace = "" if row is None else row.namespace
        yield Finding("problem", subject, f"{record} cannot be read: {why}", do, namespace)
    if is_whole:
        yield Finding("ok", "records", "all that can be opened here can be read")


async def _journals(store: Store, steps: Steps) -> AsyncIterator[Finding]:
    """Whether every journal has all of its entries, and every entry a task."""
    if not await has_functions(store):
        return
    lines: dict[tuple[str, int], list[int]] = {}
    ends: dict[tuple[str, int], int] = {}  # read first: more can be added meanwhile
    is_whole = True
    async for task in every_task(store, None):
        for *_, line, position in await store.query("get_call", uid=task.uid):
            if line > task.line or (0 < line < task.line and not await _has_entries(store, task)):
                (now,) = await store.rows(TaskRow, "get_task_by_uid", uid=task.uid)
                if now.line == task.line:
                    is_whole = False
                    what = f"its row says that it is on line {task.line:,} of its journal, which ends on line {line:,}"
                    do = "restore the store from a backup"
                    yield Finding("problem", f"task {task.id}", what, do, task.namespace)
            if position:
                ends[task.uid, line], lines[task.uid, line] = position, []
        steps.take("journals", task.id)
    async for uid, line, position in rotation.places_of_entries(store):
        lines.setdefault((uid, line), []).append(position)
    named = {row.uid: row async for row in every_task(store, None)}
    for (uid, line), positions in lines.items():
        row, least = named.get(uid), ends.get((uid, line), 0)
        if row is None or line > row.line:
            if not await store.query("read_journal", uid=uid, line=line):
                continue  # its task was deleted while we were reading
            is_whole = False
            what = f"entries {_some([str(position) for position in positions])} of line {line} of {uid} have no journal"
            do = "restore the store from a backup: a task lacks these entries"
            yield Finding("problem", "journals", what, do, "" if row is None else row.namespace)
            continue
        if positions == list(range(1, len(positions) + 1)) and len(positions) >= least:
            continue
        for position, why in await _missing(store, uid, line, least):
            is_whole = False
            damaged = JournalDamaged(row.id, position, why)
            do = damaged.do if line == row.line else "nothing: the task has gone on from another line of its journal"
            yield Finding("problem", f"task {row.id}", damaged.what, do, row.namespace)
    if is_whole:
        yield Finding("ok", "journals", f"{len(lines):,} have all of their entries")


async def _has_entries(store: Store, task: TaskRow) -> bool:
    return bool(await store.query("read_journal", uid=task.uid, line=task.line))


async def _missing(store: Store, uid: str, line: int, least: int) -> list[tuple[int, str]]:
    found: list[tuple[int, Entry | None]] = []
    for position, sealed in await store.query("read_journal", uid=uid, line=line):
        entry = None
        with suppress(RecordDamaged, KeyMissing):  # told under records, and under keys
            entry = open_entry(sealed, uid, position, store.ring)
        found.append((position, entry))
    return missing_in(found, least)


async def _chains(store: Store, steps: Steps) -> AsyncIterator[Finding]:
    namespaces = {row.namespace async for row in every_task(store, None)}
    events, is_whole = 0, True
    for namespace in sorted(namespaces):
        found = await audit.verify(Store(store._shared, store.ring, namespace), tell=steps.tell)
        if found.stopped:
            raise StopUpkeep
        events += found.events
        for broken in found.broken:
            is_whole = False
            do = f"compare with a backup; `perdure audit verify {broken.task_id}` checks it again"
            yield Finding("problem", f"audit of {broken.task_id}", broken.problem, do, namespace)
        for unseen in found.unseen:
            if unseen != audit.WITHOUT_HEADS:
                yield Finding("note", "audit", f"not seen: {unseen}", namespace=namespace)
    if is_whole:
        yield Finding("ok", "audit", f"the chains of {events:,} events are whole")


async def _workers(store: Store) -> AsyncIterator[Finding]:
    workers = await see_workers(store)
    held: dict[tuple[Process, str], list[str]] = {}
    for left in await left_by_the_dead(store):
        held.setdefault((left.by.process, left.namespace), []).append(left.task_id)
    for (process, namespace), ids in held.items():
        what = f"pid {process.pid} on {process.host} has died and holds {_some(ids)}"
        do = "nothing: a worker, or the next process that opens the task, takes it over at once"
        yield Finding("note", "workers", what, do, namespace)
    idle = sum(worker.is_dead and not worker.leases for worker in workers)
    if idle:
        yield Finding("note", "workers", f"{idle} rows of dead processes", "`perdure gc` removes them")
    yield Finding("ok", "workers", f"{sum(not worker.is_dead for worker in workers)} may be alive")


async def _orphans(store: Store) -> Finding:
    orphans = await gc.find_orphans(store)
    if not orphans:
        return Finding("ok", "chunks", "none is orphaned")
    count, size = sum(orphan.chunks for orphan in orphans), sum(orphan.bytes for orphan in orphans)
    return Finding("note", "chunks", f"{count} chunks ({size:,} bytes) belong to no checkpoint", "`perdure gc`")


def _some(items: list[str]) -> str:
    more = len(items) - _NAMED_AT_MOST
    return ", ".join(items[:_NAMED_AT_MOST]) + (f" and {more} more" if more > 0 else "")
