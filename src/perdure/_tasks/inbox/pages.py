"""Pages of the inbox: the soonest to expire first, then the oldest.

Questions of durable functions and tasks that pause by themselves are two lists in the same order, merged here. Whether
a task's pause is about a credential is sealed, so that is decided after reading.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from functools import partial
from typing import NamedTuple

from perdure._model import INBOX_KINDS, InboxItem, InboxKind, Page, PauseKind
from perdure._store import AskingTask, Engine, QuestionRow, Store
from perdure._tasks.inbox.items import question_item, task_item
from perdure.errors import InvalidInput

MOST = 1000
_NEVER = 9007199254740991  # as in the SQL: later than every moment
_REASONS = {"approval": "human_approval", "input": "human_input", "credential": "human_input"}
_KINDS: dict[str, InboxKind] = {
    "human_approval": "approval",
    "human_input": "input",
    **{kind: kind for kind in INBOX_KINDS},
}


class Place(NamedTuple):
    """A place in the order of the inbox."""

    expires: int
    asked: int
    uid: str
    path: str


_FIRST = Place(-_NEVER, 0, "", "")


async def read_page(
    store: Store, kinds: Collection[InboxKind], only: str | None, limit: int, cursor: str | None
) -> Page[InboxItem]:
    """One page of what waits for people, of one task if `only` is its uid.

    Raises:
        InvalidInput: a kind, the limit or the cursor is not one.
    """
    check_kinds(kinds)
    if type(limit) is not int or not 1 <= limit <= MOST:
        raise InvalidInput(f"limit is {limit}; it lies between 1 and {MOST:,}")
    after, items = _place_of(cursor), list[InboxItem]()
    while True:
        found = await store.read(partial(_read, store, kinds, only, after, limit + 1))
        for place, item in found:
            if item.kind in kinds:
                if len(items) == limit:
                    return Page(items, _cursor(after))
                items.append(item)
            after = place
        if len(found) <= limit:
            return Page(items, None)


def check_kinds(kinds: Collection[object]) -> None:
    """
    Raises:
        InvalidInput: one of them is not a kind of the inbox.
    """
    unknown = [kind for kind in kinds if kind not in INBOX_KINDS]
    if unknown or isinstance(kinds, str):
        shown = kinds if isinstance(kinds, str) else unknown[0]
        raise InvalidInput(f"{shown!r} is not a list of kinds", do=f"choose from {', '.join(INBOX_KINDS)}")


def _read(
    store: Store, kinds: Collection[InboxKind], only: str | None, after: Place, limit: int, engine: Engine
) -> Sequence[tuple[Place, InboxItem]]:
    """The next rows of both lists in their common order."""
    here = {"namespace": store.namespace, "only": only, "limit": limit, **after._asdict()}
    asked = engine.query("inbox_questions", {**here, "kinds": " ".join(kinds)})
    reasons = " ".join(sorted({_REASONS[kind] for kind in kinds if kind in _REASONS}))
    paused = engine.query("inbox_tasks", {**here, "reasons": reasons}) if reasons else []
    questions = [QuestionRow(*row) for row in asked]
    tasks = [AskingTask(*row) for row in paused]
    places: list[tuple[Place, QuestionRow | AskingTask]] = [
        *((Place(_or_never(row.expires_at), row.asked_at, row.uid, row.path), row) for row in questions),
        *((Place(_or_never(row.due_at), row.updated_at, row.uid, ""), row) for row in tasks),
    ]
    places.sort(key=lambda pair: pair[0])
    return [(place, _item(store, row)) for place, row in places[:limit]]


def _item(store: Store, row: QuestionRow | AskingTask) -> InboxItem:
    return question_item(store, row) if isinstance(row, QuestionRow) else task_item(store, row)


def _or_never(moment: int | None) -> int:
    return _NEVER if moment is None else moment


async def count(store: Store) -> dict[InboxKind, int]:
    """The number of open items of each kind. For tasks that pause by themselves for an input, the kind is sealed: the
    first thousand are opened, and the rest count as inputs."""
    found: dict[InboxKind, int] = dict.fromkeys(INBOX_KINDS, 0)
    rows = await store.query("count_inbox", namespace=store.namespace)
    for name, number in rows:
        found[_KINDS[name]] += number
    if any(name == "human_input" for name, _ in rows):
        for kind in await store.read(lambda engine: _kinds_of_inputs(store, engine)):
            found["input"] -= kind != "input"
            if kind == "credential":
                found["credential"] += 1
    return found


def _kinds_of_inputs(store: Store, engine: Engine) -> list[PauseKind]:
    here = {"namespace": store.namespace, "only": None, "limit": MOST, **_FIRST._asdict()}
    rows = [AskingTask(*row) for row in engine.query("inbox_tasks", {**here, "reasons": "human_input"})]
    return [task_item(store, row).kind for row in rows]


# ── cursors ──────────────────────────────────────────────────────────────────────────────────────


def _cursor(place: Place) -> str:
    return json.dumps(place, separators=(",", ":"))


def _place_of(cursor: str | None) -> Place:
    if cursor is None:
        return _FIRST
    try:
        expires, asked, uid, path = json.loads(cursor)
    except (TypeError, ValueError, RecursionError):
        raise _no_cursor(cursor) from None
    are_numbers = all(type(one) is int and abs(one) <= _NEVER for one in (expires, asked))
    are_texts = all(type(one) is str and one.isprintable() for one in (uid, path))
    if not are_numbers or not are_texts:
        raise _no_cursor(cursor)
    return Place(expires, asked, uid, path)


def _no_cursor(cursor: object) -> InvalidInput:
    return InvalidInput(f"{cursor!r:.80} is not a cursor of the inbox", do="give the cursor of the page before")
