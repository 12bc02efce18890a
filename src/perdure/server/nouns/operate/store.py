"""The store: its facts, and the long work that keeps it in order, as jobs; the audit; the keeper."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct

from perdure._ground.clock import moment
from perdure._runtime import keeper_checkup, keeper_control, tidy_cuts
from perdure._tasks import (
    Finding,
    Policy,
    StoreFacts,
    collect,
    current_row,
    examine,
    export_heads,
    rotate,
    store_facts,
    store_of,
    verify,
)
from perdure.errors import Conflict, InvalidInput, NotFound
from perdure.server.aside import aside
from perdure.server.desk import Desk
from perdure.server.http import Answer, Ask
from perdure.server.jobs import Job, Progress, Work
from perdure.server.shapes.tasks import Strict
from perdure.server.table import Nothing, Route

Json = Any
_LONGEST = 100 * 365 * 24 * 3600.0  # seconds
_HEADS_LIMIT = 64 * 1024 * 1024  # bytes
_MOST_TASKS = 10_000
_SHOWN = 1000


class GcPolicy(Strict, frozen=True, kw_only=True):
    """What to keep; lengths of time in seconds. What is left out keeps everything."""

    keep_last: int | None = None
    keep_for: float | None = None
    keep_bytes: int | None = None
    finished_for: float | None = None
    archived_for: float | None = None


class Gc(Strict, frozen=True, kw_only=True):
    policy: GcPolicy = GcPolicy()
    dry_run: bool = True
    shrink: bool | None = None


class AuditQuestion(Strict, frozen=True, kw_only=True):
    """Which tasks to check, all by default; against `heads` that were exported before."""

    tasks: tuple[str, ...] | None = None
    heads: dict[str, Json] | None = None


class Checkup(Struct, frozen=True):
    """What the last look by `doctor` found. `at` and `problems` are null as long as there was none."""

    at: datetime | None
    items: Sequence[Finding]
    problems: int | None


class KeeperStop(Strict, frozen=True, kw_only=True):
    units: bool = False  # end the units too; without it, a keeper that holds units is not stopped


async def facts(ask: Ask[Nothing, None]) -> Answer:
    return Answer(await aside(lambda: store_facts(store_of(ask.app.tasks))))


# ── jobs ─────────────────────────────────────────────────────────────────────────────────────────


async def gc(ask: Ask[Nothing, Gc]) -> Answer:
    how = ask.body
    policy = _policy(how.policy)

    async def work(progress: Progress) -> Json:
        store = store_of(ask.app.tasks)
        report = await collect(store, policy, dry_run=how.dry_run, shrink=how.shrink, tell=progress.tell)
        cuts = [] if report.stopped else await tidy_cuts(store, dry_run=how.dry_run)
        counts = ("checkpoints", "tasks", "chunks", "forgotten", "workers", "bytes", "rebased", "file_bytes", "dry_run")
        lists = ("pruned", "deleted", "held_back")
        return {
            **{name: getattr(report, name) for name in counts},
            **{name: [one._asdict() for one in getattr(report, name)[:_SHOWN]] for name in lists},
            "cuts": len(cuts),
        }

    return await _begin(ask, "gc", work)


def _policy(given: GcPolicy) -> Policy:
    return Policy(
        keep_last=given.keep_last,
        keep_bytes=given.keep_bytes,
        **{name: _length(name, getattr(given, name)) for name in ("keep_for", "finished_for", "archived_for")},
    )


def _length(name: str, seconds: float | None) -> timedelta | None:
    if seconds is None:
        return None
    if not 0 <= seconds <= _LONGEST:
        raise InvalidInput(f"{name} is {seconds}; it is a number of seconds")
    return timedelta(seconds=seconds)


async def doctor(ask: Ask[Nothing, None]) -> Answer:
    shelf = ask.server.part(Desk).vault.shelf("checkup", Checkup)

    async def work(progress: Progress) -> Json:
        store = store_of(ask.app.tasks)
        found = [*await examine(store, tell=progress.tell), *await keeper_checkup.examine(store)]
        found = _told_to(ask.caller.namespace, found)
        told = Checkup(moment(store.clock.now_ms()), found, sum(one.level == "problem" for one in found))
        await shelf.update(ask.caller.namespace, lambda _: (told, None))
        return told

    return await _begin(ask, "doctor", work)


async def last_checkup(ask: Ask[Nothing, None]) -> Answer:
    kept = await ask.server.part(Desk).vault.shelf("checkup", Checkup).get(ask.caller.namespace)
    return Answer(Checkup(None, (), None) if kept is None else kept.value, is_large=True)


def _told_to(namespace: str, found: Sequence[Finding]) -> list[Finding]:
    """The findings for an administrator of one namespace: tasks of others are counted and not named."""
    shown = [one for one in found if one.namespace in (None, namespace)]
    for level in ("problem", "note"):
        if number := sum(one.level == level for one in found) - sum(one.level == level for one in shown):
            what = f"{number} more findings are about tasks of other namespaces"
            shown.append(Finding(level, "other namespaces", what, "`perdure doctor` on the store's machine names them"))
    return shown


async def reseal(ask: Ask[Nothing, None]) -> Answer:
    if store_of(ask.app.tasks).ring.current is None:
        raise Conflict("this server has no key to seal records with", do="start it with PERDURE_KEY")

    async def work(progress: Progress) -> Json:
        done = await rotate(store_of(ask.app.tasks), tell=progress.tell)
        stuck = [one for one in done.stuck if await _is_of(ask, one.uid)]
        told = {"key": done.key, "resealed": done.resealed, "in_use": done.in_use}
        shown = [{"record": one.record, "why": one.why} for one in stuck[:_SHOWN]]
        return {**told, "stuck": shown, "stuck_elsewhere": len(done.stuck) - len(stuck)}

    return await _begin(ask, "reseal", work)


async def _is_of(ask: Ask[Any, Any], owner: str) -> bool:
    """True if a record's owner, a task or the namespace itself, is of the caller's namespace."""
    if owner == f"namespace:{ask.caller.namespace}":
        return True
    try:
        return (await current_row(store_of(ask.app.tasks), "", owner)).namespace == ask.caller.namespace
    except NotFound:
        return False


async def audit(ask: Ask[Nothing, AuditQuestion]) -> Answer:
    asked = ask.body
    if asked.tasks is not None and len(asked.tasks) > _MOST_TASKS:
        raise InvalidInput(f"tasks has {len(asked.tasks):,} ids; at most {_MOST_TASKS:,} are checked by name")

    async def work(progress: Progress) -> Json:
        found = await verify(store_of(ask.app.tasks), asked.tasks, heads=asked.heads, tell=progress.tell)
        return {
            "is_whole": found.is_whole,
            "tasks": found.tasks,
            "events": found.events,
            "tombstones": found.tombstones,
            "heads_compared": found.compared,
            "broken": [one._asdict() for one in found.broken[:_SHOWN]],
            "unseen": found.unseen[:_SHOWN],
        }

    return await _begin(ask, "audit", work)


async def _begin(ask: Ask[Any, Any], verb: str, work: Work) -> Answer:
    return await ask.server.part(Desk).jobs.begin(ask.caller, "store:admin", verb, work)


async def heads(ask: Ask[Nothing, None]) -> Answer:
    return Answer(await aside(lambda: export_heads(store_of(ask.app.tasks))), is_large=True)


# ── the keeper ───────────────────────────────────────────────────────────────────────────────────


class KeeperShown(Struct, frozen=True):
    """The keeper of this server's machine and user; None: none runs."""

    keeper: Json


class Happened(Struct, frozen=True):
    """Whether there was a keeper."""

    was_there: bool


async def keeper(ask: Ask[Nothing, None]) -> Answer:
    return Answer(KeeperShown(await aside(lambda: keeper_control.status(store_of(ask.app.tasks)))))


async def restart_keeper(ask: Ask[Nothing, None]) -> Answer:
    return Answer(Happened(await aside(lambda: keeper_control.replace(store_of(ask.app.tasks)))))


async def stop_keeper(ask: Ask[Nothing, KeeperStop]) -> Answer:
    units = ask.body.units
    return Answer(Happened(await aside(lambda: keeper_control.stop(store_of(ask.app.tasks), units_too=units))))


def _look(path: str, does: str, handler: Any, answer: Any, scope: Any = "tasks:read") -> Route:
    return Route(method="GET", path=path, handler=handler, does=does, scopes=(scope,), answer=answer)


def _act(path: str, does: str, handler: Any, body: Any = None, **more: Any) -> Route:
    settings: dict[str, Any] = {"answer": Job, "status": 202, "once": "may", **more}
    return Route(method="POST", path=path, handler=handler, does=does, body=body, scopes=("store:admin",), **settings)


_AT_ONCE: dict[str, Any] = {"answer": Happened, "status": 200, "statuses": (409,)}
ROUTES = (
    _look("/v1/store", "The store at a glance: where it lies, its size, its keys.", facts, StoreFacts),
    _act("/v1/store/gc", "Remove old checkpoints and finished tasks; by default only say which.", gc, Gc),
    _act("/v1/store/doctor", "Look for problems in the store and its keeper.", doctor),
    _look("/v1/store/doctor", "What the last look found.", last_checkup, Checkup, "store:admin"),
    _act("/v1/store/reseal", "Seal every record under the current key.", reseal),
    _act(
        "/v1/audit/verify",
        "Check that recorded events were not changed.",
        audit,
        AuditQuestion,
        body_limit=_HEADS_LIMIT,
    ),
    _look("/v1/audit/heads", "The heads of event chains, to be kept elsewhere.", heads, dict[str, Any], "store:admin"),
    _look("/v1/keeper", "Where the keeper runs, what it holds, and what would end it.", keeper, KeeperShown),
    _act("/v1/keeper/restart", "Replace the keeper; units keep running.", restart_keeper, **_AT_ONCE),
    _act("/v1/keeper/stop", "Stop the keeper.", stop_keeper, KeeperStop, **_AT_ONCE),
)
