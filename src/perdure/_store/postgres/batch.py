"""Turn a batch of writes into one transaction: their order, their rounds and their locks. Pure.

Two processes that lock the same rows in different orders wait for each other for ever. So every batch
takes all its row locks before it changes anything, in one order: tasks, then leases, then workers, each
by its key. A lock that a verb needs is therefore held before the verb looks, and what it sees is final.
Rows that are not there yet cannot be locked; two batches that create tasks of the same ids meet at the
unique index instead, and if they meet there twice, in two orders, the server ends one, which is sent again.

Writes of one key stay in the order they were given in. Those of different keys know nothing of each other, so they
are run in rounds: what each key does first, then what each does next; in a round by verb, so that the verbs that
run most often are sent as one statement for many tasks, and then by key. Verbs that look at other keys' rows are not
put in a batch with those.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from perdure._store.write import Write, key_of, params_of, size_of, verb_of

# The most in one transaction: about 50 ms of the server's time, so that nobody waits long for our locks.
BATCH_MICROSECONDS = 50_000
_APPEND_MICROSECONDS, _SET_MICROSECONDS, _VERB_MICROSECONDS = 20, 50, 120
# Of more than this many, one statement does it for all of them.
_FEW = 3
# The verbs that have such a statement, beside append_entry. Payloads go in base64: only small ones.
SETS = {
    "claim_free": "claim_functions",
    "complete_function": "complete_functions",
    "start_function": "start_functions",
}
_SMALL = 16_000
_uid_of, _old_of, _worker_of = itemgetter("uid"), itemgetter("old"), itemgetter("worker")
# What only one write of a statement for many may be about.
place_of_entry = itemgetter("uid", "line", "position")
_PLACES = {"append_entry": place_of_entry, **dict.fromkeys(SETS, _uid_of)}


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
    "claim_free": Touch(worker="share"),
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
    "record_memory": Touch(lease="share"),
    "write_memory": Touch(lease="share"),
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
    "stand_down": _TASK,
    "start_function": Touch(),
    "start_hidden": Touch(),
    "suspend": _HOLDER,
    "take_slot": Touch(),
    "add_webhook": Touch(),
    "change_webhook": Touch(),
    "mark_webhook": Touch(),
    "drop_webhook": Touch(),
    "add_delivery": Touch(),
    "record_delivery": Touch(),
    "drop_deliveries": Touch(),
    "reseal_webhook": Touch(),
    "reseal_delivery": Touch(),
}

# A claim waits for whoever is writing for its task, and must not keep others waiting meanwhile.
# forget_worker looks at leases, which writes of other keys may free.
_APART = {"claim", "forget_worker"}
# claim_free never waits. It locks the rows of its tasks itself, but not that of its worker.
_LOOK_AROUND = {*_APART, "claim_free"}


_MICROSECONDS = {"append_entry": _APPEND_MICROSECONDS, **dict.fromkeys(SETS, _SET_MICROSECONDS)}


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

    @property
    def is_one_task(self) -> bool:
        """True if they are the row of one task, and its lease."""
        return len(self.tasks) == 1 and self.leases == self.tasks and not self.workers


def prefix(writes: Sequence[Write]) -> Sequence[Write]:
    """As many of the first writes as go into one transaction."""
    counts = Counter(map(verb_of, writes))
    in_all = sum(count * _MICROSECONDS.get(verb, _VERB_MICROSECONDS) for verb, count in counts.items())
    if in_all <= BATCH_MICROSECONDS and counts.keys().isdisjoint(_APART):
        return writes
    apart = writes[0].verb if writes[0].verb in _APART else None
    spent = 0
    for n, write in enumerate(writes):
        if (write.verb if write.verb in _APART else None) != apart or (n and spent > BATCH_MICROSECONDS):
            return writes[:n]
        spent += _MICROSECONDS.get(write.verb, _VERB_MICROSECONDS)
    return writes


def arrange(writes: Sequence[Write]) -> list[int]:
    """The order to run them in, as places in `writes`: round by round, each key's own order kept."""
    keys = list(map(key_of, writes))
    given = list(zip(map(verb_of, writes), keys, strict=True))
    if len(set(given)) == len(set(keys)):  # each key has one verb, so there is one round
        return sorted(range(len(writes)), key=given.__getitem__)
    turns: list[tuple[int, str, str]] = []
    last: dict[str, tuple[int, str, str]] = {}
    for verb, key in given:
        turn = last.get(key)
        if turn is None:
            turn = last[key] = (0, verb, key)
        elif turn[1] != verb:
            turn = last[key] = (turn[0] + 1, verb, key)
        turns.append(turn)
    return sorted(range(len(writes)), key=turns.__getitem__)


def locks(writes: Sequence[Write]) -> Locks:
    tasks: set[str] = set()
    leases: set[str] = set()
    workers: set[str] = set()
    changes_leases = changes_workers = looks_around = False
    for verb, neighbours in groupby(writes, verb_of):
        given = list(map(params_of, neighbours))
        looks_around = looks_around or verb in _LOOK_AROUND
        touch = TOUCHES.get(verb, _HOLDER)
        if touch.task:
            tasks.update(map(_old_of if verb == "restart_task" else _uid_of, given))
        if touch.lease:
            leases.update(map(_uid_of, given))
            changes_leases = changes_leases or touch.lease == "change"
        if touch.worker:
            workers.update(map(_worker_of, given))
            changes_workers = changes_workers or touch.worker == "change"
    are_needed = bool(tasks) or len(leases) + len(workers) > 1 or looks_around
    return Locks(list(tasks), list(leases), list(workers), changes_leases, changes_workers, are_needed)


def runs(writes: Sequence[Write]) -> list[list[Write]]:
    """Neighbours of the same verb, to be sent together."""
    return [run for verb, neighbours in groupby(writes, verb_of) for run in _apart(verb, list(neighbours))]


def _apart(verb: str, writes: list[Write]) -> list[list[Write]]:
    """One statement must not meet one place twice: which write is first would be undefined."""
    place_of = _PLACES.get(verb)
    if place_of is None or len(set(map(place_of, map(params_of, writes)))) == len(writes):
        return [writes]
    found: list[list[Write]] = []
    places: set[object] = set()
    for write in writes:
        place = place_of(write.params)
        if not found or place in places:
            found.append([])
            places.clear()
        places.add(place)
        found[-1].append(write)
    return found


def is_only_entries(writes: Sequence[Write]) -> bool:
    """True if the batch only writes entries, each in a place of its own, so that their answers are known beforehand."""
    if set(map(verb_of, writes)) != {"append_entry"}:
        return False
    return len(set(map(place_of_entry, map(params_of, writes)))) == len(writes)


def locks_of_entries(writes: Sequence[Write]) -> Locks:
    """The result of `locks` for a batch of entries only."""
    leases = list(set(map(_uid_of, map(params_of, writes))))
    return Locks([], leases, [], are_needed=len(leases) > 1)


def are_few(run: Sequence[Write]) -> bool:
    return len(run) <= _FEW


def is_appended_at_once(run: Sequence[Write]) -> bool:
    return run[0].verb == "append_entry" and not are_few(run)


def is_done_at_once(run: Sequence[Write]) -> bool:
    return run[0].verb in SETS and not are_few(run) and max(map(size_of, run)) < _SMALL
