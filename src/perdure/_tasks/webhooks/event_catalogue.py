"""Every event that a webhook can be sent, in a sentence each. The reference page is made from this list. Pure."""

from __future__ import annotations

from perdure._model import EVENT_NAMES, event_kind
from perdure._tasks.webhooks.hook import DISABLED, PING

SENTENCES: dict[str, str] = {
    "task.created": "A task was created.",
    "task.ready": "All tasks that a task depends on have completed; it can begin.",
    "task.paused": "A task was paused. `data.pause.kind` is the reason.",
    "task.resumed": "A paused or failed task goes on.",
    "task.completed": "A task has its result.",
    "task.failed": "A task failed. It can be resumed.",
    "task.cancelled": "A task was cancelled for good.",
    "task.cancel_requested": "Someone asked a running task to cancel; its worker does it.",
    "task.rolled_back": "A task's state is that of an earlier checkpoint again.",
    "task.rollback_requested": "Someone asked for a rollback that a worker carries out.",
    "task.archived": "A finished task was archived or taken out of the archive.",
    "task.deleted": "A task was deleted.",
    "task.signalled": "A signal was sent to a task.",
    "task.postponed": "A task that has not begun will begin at another time.",
    "task.carried_over": "A durable function continues with a new journal.",
    "task.upgraded": "A task continues with another version of its function.",
    "task.moved_away": "A task left for another store.",
    "task.imported": "A task came from another store.",
    "task.restored": "The live units of a task came back.",
    "attempt.started": "A process began to work on a task.",
    "attempt.ended": "An attempt ended; the task may go on in another.",
    "attempt.taken_over": "A process took a task from another one.",
    "attempt.stalled": "An attempt made no progress for a long time.",
    "attempt.lost": "The worker of an attempt died or fell silent.",
    "checkpoint.stored": "A checkpoint was stored.",
    "checkpoint.saved": "The live units of a task were saved with a checkpoint.",
    "checkpoint.damaged": "A checkpoint could not be read; an earlier one is used.",
    "checkpoint.invalidated": "Checkpoints were marked as not valid.",
    "pause.reminded": "A question has been open for so long that it is asked again.",
    "pause.answered": "A question was answered.",
    "pause.approved": "Someone approved.",
    "pause.rejected": "Someone rejected.",
    "pause.called_back": "A callback arrived.",
    "pause.token_made": "A token for a callback was made.",
    "pause.checked": "What a task polls for is there.",
    "pause.due": "The moment that a task waited for has come.",
    "pause.expired": "A question was not answered in time; its default applies.",
    "pause.given_up": "A poll was given up.",
    "pause.withdrawn": "A question is no longer asked.",
    DISABLED: "A webhook was disabled: its receiver answered 410, or failed for three days. Other webhooks are told.",
    PING: "Someone tests a webhook. It is sent to that webhook alone.",
}


def events_page() -> str:
    """docs/reference/events.md."""
    lines = [
        "# Events",
        "",
        "<!-- Made by tools/make_openapi.py from perdure/_tasks/webhooks/event_catalogue.py. -->",
        "",
        "Webhooks, streams and the HTTP API name events as in the first column. `app.on` names them as in the second.",
        "The list is closed. A later version may add events; a receiver ignores those it does not know.",
        "",
        "| event | `app.on` | what happened |",
        "|---|---|---|",
    ]
    for name, sentence in SENTENCES.items():
        kind = event_kind(name)
        lines.append(f"| `{name}` | {f'`{kind}`' if kind in EVENT_NAMES else ''} | {sentence} |")
    return "\n".join([*lines, ""])
