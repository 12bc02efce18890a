"""Remove data that is no longer needed, while tasks are running.

Four kinds of data are removed: checkpoints past a policy's limits, finished tasks past their time (a tombstone stays),
chunks whose row was never written, and the rows of processes that are proven dead. Every removal is a verb with its
condition inside: if a live attempt, a pin or another gc was first, the verb changes nothing, and the data stays until
the next time.

Why a concurrent writer cannot be harmed: a checkpoint is inserted only while the one it builds on is the state, in the
same transaction; and the state is never pruned, nor is a checkpoint that another one builds on. A checkpoint that stays
is made a keyframe, read back and compared before its predecessors are removed.

Owns what is removed and in which order. retention.py decides which checkpoints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple

from perdure._ground import crash_points as crash
from perdure._ground.bridge import Call
from perdure._ground.encoding import codec
from perdure._ground.encoding.codec import stored_json
from perdure._ground.ids import new_uid
from perdure._model import FINISHED, Config, Pause, Plan, open_entry, starts_a_task
from perdure._store import EndedWait, EventRow, FrameRow, Store, TaskRow, Write, apart
from perdure._tasks.checkpoints import Policy, retention
from perdure._tasks.state import snapshots
from perdure._tasks.task_parts import is_part, parts_of
from perdure._tasks.task_walk import SLICE, every_task, has_functions, has_memory, has_shelf, in_slices, outline
from perdure._tasks.upkeep.dead_processes import see_workers
from perdure._tasks.upkeep.steps import Steps, StopUpkeep, Tell
from perdure._tasks.values import Shelf, drop_expired
from perdure.errors import KeyMissing, NotFound, RecordDamaged

# A chunk is written milliseconds before its row. After an hour its writer has died or was refused.
ORPHANED_AFTER = timedelta(hours=1)
# Free space below this, or below a tenth of the store, will soon be used again.
WORTH_SHRINKING = 1_000_000
# The beginning of a uid that is time alone, to 8 ms.
_TIME = 9
_ALL = 1_000_000_000


class Pruned(NamedTuple):
    """Checkpoints of one task that went."""

    task_id: str
    uid: str
    seqs: tuple[int, ...]


class Deleted(NamedTuple):
    """A task that went, but for its tombstone."""

    task_id: str
    uid: str
    status: str


class HeldBack(NamedTuple):
    """A task that was left alone, and why."""

    task_id: str
    uid: str
    why: str


@dataclass(slots=True, kw_only=True)
class Report:
    """The numbers of removed things; after a dry run, of those that would be removed."""

    dry_run: bool
    pruned: list[Pruned] = field(default_factory=list)
    deleted: list[Deleted] = field(default_factory=list)
    held_back: list[HeldBack] = field(default_factory=list)
    rebased: int = 0
    chunks: int = 0
    workers: int = 0
    forgotten: int = 0  # what memory layers kept for a time that is over
    bytes: int = 0  # of what was stored; a dry run can only tell about how many
    file_bytes: int = 0  # given back to the disk
    stopped: bool = False  # by `tell`; a later run does the rest

    @property
    def checkpoints(self) -> int:
        return sum(len(pruned.seqs) for pruned in self.pruned)

    @property
    def tasks(self) -> int:
        return len(self.deleted)


async def collect(
    store: Store,
    policy: Policy | None = None,
    *,
    dry_run: bool = False,
    shrink: bool | None = False,
    tell: Tell | None = None,
) -> Report:
    """Remove what the policy and the tasks' own configs no longer keep.

    Without a policy, only what a task's config says, orphaned chunks and dead workers are removed. Work in other
    processes continues. If gc is killed in the middle, the store stays whole. `shrink` returns free space to the disk,
    for which writers wait; None does so when it is worth their while. `tell` is called for every task, and stops the
    work by returning False (steps.py).
    """
    report = Report(dry_run=dry_run)
    try:
        await _collect(store, policy or Policy(), report, Steps(tell), shrink)
    except StopUpkeep:
        report.stopped = True
    return report


async def _collect(store: Store, policy: Policy, report: Report, steps: Steps, shrink: bool | None) -> None:
    dry_run = report.dry_run
    before = await bytes_used(store)
    # Looked for first and removed last: a writer that has just woken up meanwhile sends the row they wait for.
    orphans = await find_orphans(store)
    await _delete_finished(store, policy, report, steps)
    going = {deleted.uid for deleted in report.deleted}
    async for row in every_task(store, store.namespace):
        if row.uid not in going:
            await _prune_task(store, row, policy, report)
            steps.take("checkpoints", row.id)
    await _drop_orphans(store, orphans, report)
    await _forget_dead_workers(store, report)
    if await has_memory(store):
        report.forgotten = await drop_expired(store, dry_run=dry_run)
    if not dry_run and (_is_worth_shrinking(report.bytes, before) if shrink is None else shrink):
        await give_back_space(store)
        report.file_bytes = max(0, before - await bytes_used(store))


# ── checkpoints ──────────────────────────────────────────────────────────────────────────────────


async def _prune_task(store: Store, row: TaskRow, policy: Policy, report: Report) -> None:
    try:
        config = store.unseal(row.uid, "config", row.config, Config) if row.config is not None else Config()
        own = policy.of_task(config)
        if not own.limits_checkpoints:
            return
        rows = await outline(store, row.uid)
        plan = retention.plan(rows, row.state_seq, own, store.clock.now_ms())
        if not plan.prune:
            return
        # While its state cannot be read, every checkpoint might save the task.
        await snapshots.materialise(store, row.uid, row.state_seq)
    except (KeyMissing, RecordDamaged, NotFound) as error:
        report.held_back.append(HeldBack(row.id, row.uid, error.what))
        return
    if report.dry_run:
        report.pruned.append(Pruned(row.id, row.uid, plan.prune))
        report.rebased += len(plan.rebase)
        report.bytes += plan.bytes_freed
        return
    for seq in plan.rebase:
        await _rebase(store, row, seq, report)
    by_seq = {frame.seq: frame for frame in rows}
    await _prune(store, row, [by_seq[seq] for seq in plan.prune], report)


async def _rebase(store: Store, row: TaskRow, seq: int, report: Report) -> None:
    """Make a checkpoint a keyframe, and check that it can be read as one. Its predecessor can be removed afterwards."""
    try:
        before, frame = await snapshots.materialise(store, row.uid, seq)
    except NotFound:
        return  # it went meanwhile
    except RecordDamaged as error:
        # It stays a delta, so pruning its base is refused: everything stays as it is, for inspection.
        report.held_back.append(HeldBack(row.id, row.uid, error.what))
        return
    keyframe = snapshots.build(store, row.uid, before.raw, None)
    await snapshots.put_chunks(store, row.uid, keyframe, row.id)
    crash.place("gc.before_rebase")
    params = {name: value for name, value in keyframe.columns().items() if name in ("stored", "chunks", "frame")}
    if await store.verb("rebase", row.uid, {**params, "target": seq}, key=row.id) is None:
        return
    crash.place("gc.after_rebase")
    report.rebased += 1
    report.bytes -= keyframe.stored - frame.stored
    after, _ = await snapshots.materialise(store, row.uid, seq)
    if after.raw != before.raw:
        raise RecordDamaged(
            f"checkpoint {row.uid}.{seq}",
            "made a keyframe, it reads differently",
            kept="all checkpoints before it; nothing more was removed",
        )
    if frame.chunks:
        await store.verb("drop_chunks", row.uid, {"owner": snapshots.owner_of(row.uid, frame)}, key=row.id)


async def _prune(store: Store, row: TaskRow, going: list[FrameRow], report: Report) -> None:
    try:
        owners = [snapshots.owner_of(row.uid, frame) for frame in going]
    except RecordDamaged as error:
        report.held_back.append(HeldBack(row.id, row.uid, error.what))
        return

    def writes() -> Iterable[Write]:
        for frame, owner in zip(going, owners, strict=True):
            crash.place("gc.prune")
            yield store.verb("prune", row.uid, {"target": frame.seq, "owner": owner}, key=row.id)

    answers = await in_slices(store, writes())
    gone = [frame for frame, answer in zip(going, answers, strict=True) if answer is not None]
    if gone:
        report.pruned.append(Pruned(row.id, row.uid, tuple(frame.seq for frame in gone)))
        report.bytes += sum(frame.stored for frame in gone)


# ── finished tasks ───────────────────────────────────────────────────────────────────────────────


async def _delete_finished(store: Store, policy: Policy, report: Report, steps: Steps) -> None:
    if policy.finished_for is None and policy.archived_for is None:
        return
    now = store.clock.now_ms()
    old = [row async for row in every_task(store, store.namespace) if _is_past_its_time(row, policy, now)]
    for at in range(0, len(old), SLICE):
        # Asked again for each slice: a task that begins to wait for one of these keeps it from going.
        needed = await _needed_by_others(store, report)
        if needed is None:
            return
        for row in old[at : at + SLICE]:
            is_needed = row.uid in needed or (row.is_current and row.id in needed)
            if not is_needed and not await is_part(store, row):
                await _delete_whole(store, row, report)
            steps.take("finished tasks", row.id)


def _is_past_its_time(row: TaskRow, policy: Policy, now_ms: int) -> bool:
    if row.status not in FINISHED:
        return False
    limits = ((policy.finished_for, row.finished_at), (policy.archived_for, row.archived_at))
    return any(
        limit is not None and since is not None and since <= now_ms - limit // timedelta(milliseconds=1)
        for limit, since in limits
    )


async def _needed_by_others(store: Store, report: Report) -> set[str] | None:
    """Ids and uids of finished tasks that something open still asks for: unfinished tasks that depend on them or wait
    for them, by any of their questions; their parents, and forks of those; schedules, for what the next run begins
    with. None when that cannot be told."""
    needed: set[str] = set()
    if await has_functions(store):
        needed.update(uid for (uid,) in await store.query("read_children", namespace=store.namespace))
        # A function can wait for several at once, and the task's own pause names only one of them.
        asked = await store.rows(EndedWait, "due_after_tasks", namespace=store.namespace, limit=_ALL)
        needed.update(wait.other_uid for wait in asked)
    if await has_shelf(store):
        try:
            schedules = await Shelf(store, "schedule", Plan).all(limit=_ALL)
        except (KeyMissing, RecordDamaged) as error:
            why = f"no finished task was deleted, because a schedule may name one: {error.what}"
            report.held_back.append(HeldBack("", "", why))
            return None
        needed.update(id for schedule in schedules for id in schedule.value.open)
    async for row in every_task(store, store.namespace):
        if row.status in FINISHED:
            continue
        try:
            needed.update(_waits_for(store, row))
            needed.update(await _children_of_the_original(store, row))
        except (KeyMissing, RecordDamaged) as error:
            why = f"no finished task was deleted, because it may wait for one: {error.what}"
            report.held_back.append(HeldBack(row.id, row.uid, why))
            return None
    return needed


async def _children_of_the_original(store: Store, row: TaskRow) -> list[str]:
    """The uids of tasks started by the source of this fork. The fork's journal names them, and it can still ask for
    their results, although their recorded parent is the source.

    Raises:
        RecordDamaged, KeyMissing: they cannot be read.
    """
    first = await store.rows(EventRow, "read_events", uid=row.uid, after=0, limit=1)
    if not first or "forked_from" not in (store.unseal(row.uid, "event", first[0].body) or {}):
        return []
    rows = await store.query("read_journal", uid=row.uid, line=row.line)
    entries = [open_entry(sealed, row.uid, position, store.ring) for position, sealed in rows]
    return [str(codec.decode(entry.value)) for entry in entries if starts_a_task(entry) and entry.value is not None]


def _waits_for(store: Store, row: TaskRow) -> Iterator[str]:
    """The ids of the tasks that this row names.

    Raises:
        RecordDamaged, KeyMissing: they cannot be read.
    """
    yield from stored_json(row.depends_on, f"what task {row.id!r} depends on", list)
    if row.pause is not None and row.pause_reason == "external_dependency":
        waits_for = store.unseal(row.uid, "pause", row.pause, Pause).payload.get("task")
        if waits_for is not None:
            yield waits_for


async def _delete_whole(store: Store, row: TaskRow, report: Report) -> None:
    """Delete a task with its hidden parts; leave it if one of them has not ended."""
    parts = await parts_of(store, row.uid)
    live = [part.id for part in parts if part.status not in FINISHED]
    if live:
        report.held_back.append(HeldBack(row.id, row.uid, f"its part {live[0]!r} has not ended"))
        return
    for one in [*parts, row]:
        await _delete(store, one, report)


async def _delete(store: Store, row: TaskRow, report: Report) -> None:
    stored = sum(frame.stored for frame in await outline(store, row.uid))
    if not report.dry_run:
        params: dict[str, Any] = {**store.event(row.uid, "deleted", {}), "version": row.version}
        crash.place("gc.delete")
        if await store.verb("delete_task", row.uid, params, key=row.id) is None:
            return  # resumed or changed meanwhile
    report.deleted.append(Deleted(row.id, row.uid, row.status))
    report.bytes += stored


# ── what dead processes left behind ──────────────────────────────────────────────────────────────


class Orphan(NamedTuple):
    """Chunks that no checkpoint names."""

    uid: str
    owner: str
    chunks: int
    bytes: int


async def find_orphans(store: Store) -> list[Orphan]:
    """Chunks written an hour ago or longer, whose row cannot follow any more."""
    before = new_uid(store.clock.now_ms() - ORPHANED_AFTER // timedelta(milliseconds=1))[:_TIME]
    found = []
    for uid, owner, count, size, worker, taken_at in await store.query("read_orphans", before=before):
        # A process that has held the lease since before they were written may be their writer, asleep before it writes
        # the row.
        if worker is None or (taken_at is not None and owner[:_TIME] < new_uid(taken_at)[:_TIME]):
            found.append(Orphan(uid, owner, count, size))
    return found


async def _drop_orphans(store: Store, orphans: list[Orphan], report: Report) -> None:
    writes = (store.verb("drop_chunks", found.uid, {"owner": found.owner}, key=found.uid) for found in orphans)
    answers = [()] * len(orphans) if report.dry_run else await in_slices(store, writes)
    for orphan, answer in zip(orphans, answers, strict=True):
        if answer is not None:
            report.chunks += orphan.chunks
            report.bytes += orphan.bytes


async def _forget_dead_workers(store: Store, report: Report) -> None:
    dead = [worker.id for worker in await see_workers(store) if worker.is_dead and not worker.leases]
    writes = (Write(store.committer, "forget_worker", {"worker": id}, key=f"worker {id}") for id in dead)
    answers = [()] * len(dead) if report.dry_run else await in_slices(store, writes)
    report.workers += sum(answer is not None for answer in answers)


def bytes_used(store: Store) -> Call[int]:
    """The size of the store on its disk; 0 where that is unknown."""
    used: Callable[[], int] = getattr(store.engine, "bytes_used", lambda: 0)
    return Call(used)


def _is_worth_shrinking(freed: int, used: int) -> bool:
    return freed >= WORTH_SHRINKING and freed * 10 >= used


def give_back_space(store: Store) -> Call[None]:
    """Have free pages go back to the disk. Writers wait meanwhile."""
    return Call(lambda: apart(lambda: _shrink(store)))


def _shrink(store: Store) -> None:
    shrink: Callable[[], None] | None = getattr(store.engine, "shrink", None)
    path = getattr(store.engine, "path", None)
    if shrink is None or (path is not None and not path.exists()):
        return  # nothing to give back, or nothing was ever written
    with store.committer.stopped():  # the engine has one writing connection, and the committer uses it
        shrink()
