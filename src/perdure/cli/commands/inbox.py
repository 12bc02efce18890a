"""List what waits for a person."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import click

from perdure._ground.encoding.json_values import plain
from perdure._model import INBOX_KINDS, InboxItem, InboxKind
from perdure.cli.base import Invocation, Verb
from perdure.cli.output import Cell, Table, line, words


@click.command(cls=Verb)
@click.option(
    "--kind", "kinds", type=click.Choice(INBOX_KINDS), multiple=True, help="Only this kind; repeatable (default: all)."
)
@click.option("--task", metavar="ID", help="Only what this task asks (default: all tasks).")
@click.option("--limit", default=100, show_default=True, metavar="N", help="List at most N questions.")
@click.option("--cursor", metavar="CURSOR", help="Start after the page that printed this cursor (default: the first).")
@click.pass_obj
async def command(
    call: Invocation, kinds: Sequence[InboxKind], task: str | None, limit: int, cursor: str | None
) -> None:
    """List what waits for a person, the soonest to expire first: approvals, questions, uncertain effects, credentials.

    `perdure approve`, `reject` and `answer` take the id of a question, which names this question and no other.

    \b
    perdure inbox --kind approval
    perdure approve PAUSE --comment "after the demo"
    """
    page = await call.app.inbox.page(kinds=kinds or None, task=task, limit=limit, cursor=cursor)
    block = _table(page.items, call.now) if page.items else line(f"nothing waits for you in {call.place}")
    call.answer({"items": [plain(item) for item in page.items], "cursor": page.cursor}, block)
    if page.cursor:
        call.note(f"more: perdure inbox --cursor '{page.cursor}'")


def _table(items: Sequence[InboxItem], now: datetime) -> Table:
    rows = [
        (
            Cell(f"{item.task_id} in {item.part_of}" if item.part_of else item.task_id, "strong"),
            item.kind,
            words.short(item.text or item.unreadable),
            words.age(item.asked_at, now),
            _expiry(item, now),
            Cell(item.id, "faint"),
        )
        for item in items
    ]
    return Table(("task", "kind", "question", "since", "expires", "id"), rows)


def _expiry(item: InboxItem, now: datetime) -> str:
    if item.expires_at is None or item.otherwise is None:
        return ""
    return f"{words.moment(item.expires_at, now)}: {item.otherwise.say}"
