"""How a batch of writes becomes one transaction: how many of them, in which order, behind which locks. Pure.

Two processes that lock the same rows in different orders wait for each other for ever. So every batch
takes all its row locks before it changes anything, in one order: tasks, then leases, then workers, each
by its key. A lock that a verb needs is therefore held before the verb looks, and what it sees is final.
Rows that are not there yet cannot be locked; two batches that create tasks of the same ids meet at the
unique index instead, which is why the writes themselves are run in the order of their keys too.

Writes of one key stay in the order they were given in. Verbs that look at other keys' rows are not
put in a batch with those.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from perdure._store.write import Write

# The most of one transaction: about 50 ms of the server's time, so that nobody waits long for our locks.
BATCH_MICROSECONDS = 50_000
_APPEND_MICROSECONDS, _VERB_MICROSECONDS = 20, 120
# From this many on, entries are appended by one statement.
_FEW = 3


class Touch(NamedTuple):
    """The rows that exist before a verb and that it changes, or depends on not being changed."""

    task: bool = False
    lease: str = ""  # "share" while it has to stay as it is, "change"
    worker: str = ""


_TASK = Touch(task=True)
_FENCED = Touch(task=True, lease="share")
_HOLDER = Touch(task=True, lease="change")

TOUCHES = {
    "add_value": Touch(),
    "announce": Touch(worker="change"),
    "answer_pause": _TASK,
    "append_entry": Touch(lease="share"),
    "archive": _TASK,
    "ask_worker": Touch(worker="change"),
    "beat": Touch(worker="change"),
    "begin_line": _FENCED,
    "change_value": Touch(),
    "checkpoint": _FENCED,
    "claim": Touch(task=True, lease="change", worker="share"),
    "complete_function": _HOLDER,
    "create_task": Touch(),
    "delete_task": _HOLDER,
    "deliver": _TASK,
    "drop_chunks": _TASK,
    "drop_value": Touch(),
    "drop_memory": Touch(),
    "flag_attempt": _FENCED,
    "forget_worker": Touch(worker="change"),
    "free_slot": Touch(),
    "fork_function": Touch(),
    "import_task": Touch(),
    "invalidate": _TASK,
    "mark_progress": _FENCED,
    "move_task": _HOLDER,
    "note_rate_limit": Touch(),
    "open_pause": _FENCED,
    "pin": _TASK,
    "postpone": _FENCED,
    "prune": _TASK,
    "put_chunk": Touch(),
    "rearm_pause": _TASK,
    "rearm_task": _TASK,
    "put_memory": Touch(lease="share"),
    "reap": _HOLDER,
    "rebase": _TASK,
    "register_worker": Touch(worker="change"),
    "release": _HOLDER,
    "remind_pause": _TASK,
    "reseal_call": _TASK,
    "reseal_checkpoint": _TASK,
    "reseal_entry": _TASK,
    "reseal_event": _TASK,
    "reseal_memory": Touch(),
    "reseal_pause": _TASK,
    "reseal_signal": _TASK,
    "reseal_task": _TASK,
    "reseal_value": Touch(),
    "restart_task": _TASK,
    "rollback": _HOLDER,
    "send_signal": _TASK,
    "set_switch": Touch(),
    "start_function": Touch(),
    "suspend": _HOLDER,
    "take_slot": Touch(),
}

# A claim waits for whoever is writing for its task, and must not keep others waiting meanwhile.
# forget_worker looks at leases, which writes of other keys may free.
_APART = {"claim", "forget_worker"}


class Locks(NamedTuple):
    """The rows to lock, table by table; of a table that is changed anywhere, all rows are locked to change.

    One mode per table, because two statements in two modes would be two passes over the keys.
    """

    tasks: list[str]
    leases: list[str]
    workers: list[str]
    changes_leases: bool = False
    changes_workers: bool = False
    are_needed: bool = False  # not for a verb that locks its only row itself and looks at nothing else


def prefix(writes: Sequence[Write]) -> Sequence[Write]:
    """As many of the first writes as go into one transaction."""
    apart = writes[0].verb if writes[0].verb in _APART else None
    spent = 0
    for n, write in enumerate(writes):
        if (write.verb if write.verb in _APART else None) != apart or (n and spent > BATCH_MICROSECONDS):
            return writes[:n]
        spent += _APPEND_MICROSECONDS if write.verb == "append_entry" else _VERB_MICROSECONDS
    return writes


def arrange(writes: Sequence[Write]) -> list[int]:
    """The order to run them in, as places in `writes`: by key, each key's own order kept."""
    return sorted(range(len(writes)), key=lambda place: writes[place].key)


def locks(writes: Iterable[Write]) -> Locks:
    tasks: set[str] = set()
    leases: set[str] = set()
    workers: set[str] = set()
    changes_leases = changes_workers = looks_around = False
    for write in writes:
        looks_around = looks_around or write.verb in _APART
        touch, params = TOUCHES.get(write.verb, _HOLDER), write.params
        if touch.task:
            tasks.add(params["old"] if write.verb == "restart_task" else params["uid"])
        if touch.lease:
            leases.add(params["uid"])
            changes_leases = changes_leases or touch.lease == "change"
        if touch.worker:
            workers.add(params["worker"])
            changes_workers = changes_workers or touch.worker == "change"
    are_needed = bool(tasks) or len(leases) + len(workers) > 1 or looks_around
    return Locks(list(tasks), list(leases), list(workers), changes_leases, changes_workers, are_needed)


def runs(writes: Iterable[Write]) -> list[list[Write]]:
    """Neighbours of the same verb, to be sent together."""
    found: list[list[Write]] = []
    positions: set[tuple[object, ...]] = set()
    for write in writes:
        same = bool(found) and found[-1][0].verb == write.verb
        if write.verb == "append_entry":
            # One statement may not meet one position twice: which entry came first would be open.
            position = (write.params["uid"], write.params["line"], write.params["position"])
            if not same or position in positions:
                same = False
                positions.clear()
            positions.add(position)
        if same:
            found[-1].append(write)
        else:
            found.append([write])
    return found


def is_appended_at_once(run: Sequence[Write]) -> bool:
    return run[0].verb == "append_entry" and len(run) > _FEW
