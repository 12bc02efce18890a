"""Checkpoints of a task: listed without what they hold, looked into, compared, pinned, set aside."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from perdure._ground.ids import is_uid
from perdure._model import Diff
from perdure._tasks import CheckpointPart, Task
from perdure.errors import InvalidInput
from perdure.server.aside import aside
from perdure.server.http import Answer, Ask, HttpProblem, listed, page_limit, version_tag
from perdure.server.nouns.references import address_of, glance_at, no_such, require_version, task_of
from perdure.server.shapes.cuts import brief, read_path
from perdure.server.shapes.past import CheckpointSummary, checkpoint_for
from perdure.server.shapes.tasks import Listed, Strict, seen_by
from perdure.server.table import Nothing, Route
from perdure.types import TaskRecord

Json = Any
_MOST_CHANGES, _MOST_NUMBERS = 10_000, 1000


class Range(Strict, frozen=True, kw_only=True):
    after: int = 0
    limit: int = 50


class PartQuery(Strict, frozen=True, kw_only=True):
    """`path` is a JSON list of keys and positions: ["files",16,"name"]. `brief` gives the outer levels only."""

    part: CheckpointPart | None = None
    brief: bool = False
    path: str = "[]"


class DiffQuery(Strict, frozen=True, kw_only=True):
    """`from` and `to` are numbers, `now`, or `~uid:n` for a checkpoint of another task."""

    from_: str = field(name="from")
    to: str = "now"
    limit: int = 500
    brief: bool = False


class Contents(Struct, frozen=True):
    """What a checkpoint holds: all its parts by their names, or the value that was asked for."""

    seq: int
    part: str | None
    path: list[str | int]
    value: Json


class Numbers(Strict, frozen=True, kw_only=True):
    numbers: tuple[int, ...]


async def page(ask: Ask[Range, None]) -> Answer:
    task, _ = await glance_at(ask)
    found = await ask.app.checkpoints.page(task, after=ask.query.after, limit=page_limit(ask, ask.query.limit))
    return listed(ask, [checkpoint_for(ask.caller, one) for one in found.items], found.cursor)


async def contents(ask: Ask[PartQuery, None]) -> Answer:
    task, row = await glance_at(ask)
    seq, path, part = _seq(ask), read_path(ask.query.path), ask.query.part
    base = f"{address_of(row.id, row.uid)}/checkpoints/{seq}?"

    async def look() -> Contents:
        value = await ask.app.checkpoints.get(task, seq, part=part, path=path)
        if ask.query.brief and part is not None:
            value = brief(value, f"{base}part={part}&brief=true&path=", tuple(path))
        elif ask.query.brief:
            value = {name: brief(one, f"{base}part={name}&brief=true&path=") for name, one in value.items()}
        return Contents(seq, part, path, value)

    return Answer(await aside(look), is_large=True)


async def diff(ask: Ask[DiffQuery, None]) -> Answer:
    task, row = await glance_at(ask)
    query = ask.query
    if not 1 <= query.limit <= _MOST_CHANGES:
        raise HttpProblem(400, "bad_request", f"limit is {query.limit}; it lies between 1 and {_MOST_CHANGES:,}")
    a, b = _named(query.from_), _named(query.to)

    async def look() -> Any:
        found = await ask.app.checkpoints.diff(task, a, b, limit=query.limit)
        return _brief(found, address_of(row.id, row.uid), a, b) if query.brief else found

    return Answer(await aside(look), is_large=True)


def _brief(found: Diff, base: str, a: str, b: str) -> Any:
    """The changes with the outer levels of their values, and links into those of the two that have numbers."""

    def shown(value: Json, side: str, path: Any) -> Json:
        if not (side.isascii() and side.isdecimal()):
            return brief(value, "", path)
        return brief(value, f"{base}/checkpoints/{side}?part=state&brief=true&path=", path)

    changes = [
        {
            "path": change.path,
            "kind": change.kind,
            "before": shown(change.before, a, change.moved_from or change.path),
            "after": shown(change.after, b, change.path),
            "moved_from": change.moved_from,
            "place": change.place,
        }
        for change in found.changes
    ]
    return {"changes": changes, "total": found.total, "left_off": found.left_off}


async def pin(ask: Ask[Nothing, None]) -> Answer:
    return await _pin(ask, pinned=True)


async def unpin(ask: Ask[Nothing, None]) -> Answer:
    return await _pin(ask, pinned=False)


async def _pin(ask: Ask[Nothing, None], *, pinned: bool) -> Answer:
    task, _ = await glance_at(ask)
    seq = str(_seq(ask))
    await aside(lambda: task.pin(seq, pinned=pinned))
    return Answer(None, 204)


async def invalidate(ask: Ask[Nothing, Numbers]) -> Answer:
    task = await task_of(ask)
    require_version(ask, task.id, (await task.record()).version)
    numbers = set(ask.body.numbers)
    if not numbers or len(numbers) > _MOST_NUMBERS:
        raise InvalidInput(f"numbers has {len(numbers)} checkpoints; it has 1 to {_MOST_NUMBERS:,}")
    missing = numbers - await aside(lambda: _all_numbers(ask, task))
    if missing:
        raise HttpProblem(404, "not_found", f"there is no checkpoint {min(missing)}", do="GET the list of them")
    await aside(lambda: task.invalidate_if(lambda checkpoint: checkpoint.seq in numbers))
    record = await task.record()
    return Answer(seen_by(ask.caller, record), etag=version_tag(record.version), is_large=True)


async def _all_numbers(ask: Ask[Any, Any], task: Task) -> set[int]:
    found: set[int] = set()
    after: int | None = 0
    while after is not None:
        some = await ask.app.checkpoints.page(task, after=after, limit=1000)
        found |= {one.seq for one in some.items}
        after = int(some.cursor) if some.cursor is not None else None
    return found


def _seq(ask: Ask[Any, Any]) -> int:
    given = ask.parts["n"]
    if not (given.isascii() and given.isdecimal() and len(given) <= 18):
        raise no_such("checkpoint")
    return int(given)


def _named(text: str) -> str:
    """A checkpoint as the library names it."""
    if text.startswith("~"):
        uid, colon, number = text[1:].partition(":")
        if colon and is_uid(uid) and number.isascii() and number.isdecimal():
            return f"{uid}.{number}"
        raise HttpProblem(400, "bad_request", f"{text[:80]!r} is not a checkpoint", do="write 12, now, or ~uid:12")
    return text


def _route(method: Any, name: str, does: str, handler: Any, **more: Any) -> Route:
    return Route(method=method, path=f"/v1/tasks/{{task}}/{name}", handler=handler, does=does, **more)


_CONTROL: dict[str, Any] = {"scopes": ("tasks:control",), "once": "may"}
ROUTES = (
    _route(
        "GET",
        "checkpoints",
        "The checkpoints of a task, oldest first, without what they hold.",
        page,
        scopes=("tasks:read",),
        query=Range,
        answer=Listed[CheckpointSummary],
    ),
    _route(
        "GET",
        "checkpoints/{n}",
        "What a checkpoint holds, or one part of it.",
        contents,
        scopes=("data:read",),
        query=PartQuery,
        answer=Contents,
    ),
    _route(
        "GET",
        "diff",
        "What changed in the state from one checkpoint to another.",
        diff,
        scopes=("data:read",),
        query=DiffQuery,
        answer=Diff,
    ),
    _route("PUT", "checkpoints/{n}/pin", "Keep a checkpoint from gc.", pin, status=204, **_CONTROL),
    _route("DELETE", "checkpoints/{n}/pin", "Let gc remove a checkpoint again.", unpin, status=204, **_CONTROL),
    _route(
        "POST",
        "invalidate",
        "Set checkpoints aside; the newest one left is the state.",
        invalidate,
        body=Numbers,
        match="must",
        answer=TaskRecord,
        statuses=(409, 412),
        **_CONTROL,
    ),
)
