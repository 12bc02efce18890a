"""Every kind of event that a task can have, and the name that each has outside of the store.

A chain keeps the kind as it was first written: the kind is part of each event's digest, so these words never change.
HTTP, streams and webhooks use the dotted name. Both lists are closed: an event of any other kind is a defect, and
`Store.event` refuses it. A bundle written by a later version can contain kinds that this one does not know; outside
they are all `task.other`.
"""

from __future__ import annotations

from collections.abc import Mapping

OTHER = "task.other"

EVENT_NAMES: Mapping[str, str] = {
    # a task's life
    "created": "task.created",
    "ready": "task.ready",
    "paused": "task.paused",
    "resumed": "task.resumed",
    "completed": "task.completed",
    "failed": "task.failed",
    "cancelled": "task.cancelled",
    "cancel asked for": "task.cancel_requested",
    "rolled back": "task.rolled_back",
    "rollback asked for": "task.rollback_requested",
    "archived": "task.archived",
    "deleted": "task.deleted",
    "signalled": "task.signalled",
    "postponed": "task.postponed",
    "carried over": "task.carried_over",
    "upgraded": "task.upgraded",
    "moved away": "task.moved_away",
    "imported": "task.imported",
    "restored": "task.restored",
    # who works on it
    "attempt started": "attempt.started",
    "attempt ended": "attempt.ended",
    "attempt taken over": "attempt.taken_over",
    "stalled": "attempt.stalled",
    "worker_lost": "attempt.lost",
    # what it has kept
    "checkpoint": "checkpoint.stored",
    "saved": "checkpoint.saved",
    "damaged": "checkpoint.damaged",
    "invalidated": "checkpoint.invalidated",
    # what it has asked
    "reminded": "pause.reminded",
    "answered": "pause.answered",
    "approved": "pause.approved",
    "rejected": "pause.rejected",
    "called back": "pause.called_back",
    "token made": "pause.token_made",
    "checked": "pause.checked",
    "due": "pause.due",
    "expired": "pause.expired",
    "given up": "pause.given_up",
    "withdrawn": "pause.withdrawn",
}
ENDING = frozenset({"completed", "failed", "cancelled", "moved away"})  # kinds that can end a task
_KINDS: Mapping[str, str] = {name: kind for kind, name in EVENT_NAMES.items()}


def event_name(kind: str) -> str:
    """The name for events of this kind outside: `task.paused`."""
    return EVENT_NAMES.get(kind, OTHER)


def event_kind(name: str) -> str:
    """The kind that has this name outside; a name of a later version is its own kind."""
    return _KINDS.get(name, name)
