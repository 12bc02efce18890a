"""From the parts of an address to what they name."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from perdure._ground.ids import check_id, is_uid
from perdure._store import TaskRow
from perdure._tasks import Task, current_row, find_row, store_of, task_without_state
from perdure.errors import InvalidInput, NotFound, StaleVersion
from perdure.server.http import Ask, HttpProblem

_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~@:+")


async def task_of(ask: Ask[Any, Any]) -> Task:
    """The task that `{task}` names: by its id, or by `~` and its uid, which also reaches tasks in history.

    Raises:
        HttpProblem: there is no such task here; the same answer for one of another namespace.
    """
    given = ask.parts["task"]
    try:
        uid = uid_in(given)
        tasks = ask.app.tasks
        task = await (tasks.handle_by_uid(uid) if uid else tasks.handle(check_id(given)))
    except (InvalidInput, NotFound):
        raise no_such("task") from None
    ask.about.append(task.uid)
    return task


async def glance_at(ask: Ask[Any, Any]) -> tuple[Task, TaskRow]:
    """The same task and its row, without its state: for routes that only look, and need not read 5 MB to do so."""
    given, store = ask.parts["task"], store_of(ask.app.tasks)
    try:
        uid = uid_in(given)
        row = await current_row(store, "", uid) if uid else await find_row(store, check_id(given))
    except (InvalidInput, NotFound):
        row = None
    if row is None or row.namespace != store.namespace:
        raise no_such("task")
    ask.about.append(row.uid)
    return task_without_state(ask.app.tasks, row), row


def base_of(ask: Ask[Any, Any], given: int | None = None) -> int | None:
    """The checkpoint that the state in the body was made from, as its header says or as was given; None: the newest."""
    text = ask.headers.get("perdure-base")
    if text is None:
        return given
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise HttpProblem(400, "bad_request", "Perdure-Base is the number of a checkpoint")
    return int(text)


def require_version(ask: Ask[Any, Any], task_id: str, version: int) -> None:
    """
    Raises:
        StaleVersion: If-Match names another version.
    """
    if ask.match is not None and version != ask.match:
        raise StaleVersion(task_id, ask.match, version)


def uid_in(part: str) -> str | None:
    return part[1:] if part.startswith("~") and is_uid(part[1:]) else None


def no_such(kind: str) -> HttpProblem:
    return HttpProblem(404, "not_found", f"there is no such {kind}", do="GET the list to see what there is")


def address_of(id: str, uid: str) -> str:
    """How a task is named in links: by its id when that needs no escapes, else by its uid."""
    if id in (".", "..") or id.startswith("~") or not _PLAIN.issuperset(id):
        return f"/v1/tasks/~{uid}"
    return f"/v1/tasks/{quote(id, safe='@:+')}"
