"""What an engine must do, and the rows it answers with.

An engine knows SQL (or, for the oracle, dictionaries) and nothing of Python values: payloads are
sealed bytes, moments are milliseconds. It has two doors. `commit` takes writes and makes them durable
as one transaction; a write whose condition does not hold changes nothing and answers None. `query`
reads. The verbs and queries are named alike in both engines, one file each; the files of
`sqlite/queries` are the plainest to read.

| verb              | changes                                                 | answers None when                    |
|-------------------|---------------------------------------------------------|--------------------------------------|
| register_worker   | this process's row                                      | (never)                              |
| beat              | this process's count of beats                           | the row is gone                      |
| announce          | what this process says it can carry on                  | the row is gone                      |
| ask_worker        | what somebody wants of a process                        | the row is gone                      |
| create_task       | a new task with state 0, a free lease, event 1          | the id is in use                     |
| import_task       | a task with all its rows, as another store gave them    | its id or its uid is in use          |
| restart_task      | the same, and the finished one before it is history     | that one is not finished or current  |
| claim             | epoch + 1, this process holds the lease, a new attempt  | the lease or the status has changed  |
| claim_free        | the same, of a running task whose lease nobody has      | as above, or its rows are locked     |
| release           | nobody holds the lease, the attempt has ended           | the lease is not ours any more       |
| stand_down        | how an attempt ended: nothing of it runs any more       | it has not ended, or has said so     |
| postpone          | when a task begins, and with what                       | somebody has begun it                |
| reap              | a dead process's lease is free, the loss is counted     | lease changed, or a beat since       |
| flag_attempt      | one more event: something is said of the attempt        | lease or version has changed since   |
| take_slot         | one of a limit's slots is this attempt's                | it was taken meanwhile               |
| free_slot         | a slot is gone                                          | it is another's by now               |
| checkpoint        | one more checkpoint, which is the state                 | lease lost, wrong status, other base |
| move_task         | the status, perhaps with a checkpoint; ends the attempt | lease lost, wrong status, other base |
| mark_progress     | the progress                                            | lease lost, wrong status             |
| rollback          | an earlier checkpoint is the state; epoch + 1           | wrong status, changed since          |
| invalidate        | checkpoints no longer valid; the state falls back       | changed since it was read            |
| pin               | whether a checkpoint is kept by gc                      | no such checkpoint                   |
| append_entry      | one more entry of the journal                           | lease lost, or the position is taken |
| complete_function | a durable function's result; its task has completed     | lease lost, not running              |
| begin_line        | a new line of the journal, with new arguments           | lease lost, not running              |
| rearm_pause       | when an open question is looked at next                 | answered, or looked at meanwhile     |
| remind_pause      | the same, with an event                                 | answered, or looked at meanwhile     |
| rearm_task        | when a paused task is looked at next                    | not paused, or looked at meanwhile   |
| note_rate_limit   | how often a provider asked for patience, and until when | (never)                              |
| put_memory        | what a memory layer keeps under a key                   | lease lost, or changed since read    |
| write_memory      | the same of many keys, all of them or none              | lease lost, or one changed since     |
| record_memory     | one value, with the journal entry that tells of it      | lease lost, or the position is taken |
| drop_memory       | nothing is kept under that key                          | nothing was                          |
| fork_function     | a new durable function's task, with entries of another  | the id is in use                     |
| set_switch        | whether a task, or all, are stopped from outside        | (never)                              |
| put_chunk         | a part of bytes too large for one row                   | (never)                              |
| archive           | whether the task is out of sight                        | not finished                         |
| delete_task       | the task is gone but for its tombstone                  | changed since it was read            |
| rebase            | a delta becomes a keyframe with the same content        | the checkpoint is gone               |
| prune             | a checkpoint is gone                                    | it is the state, pinned, or a base   |
| drop_chunks       | chunks that no checkpoint names are gone                | a checkpoint names them              |
| reseal_task       | a task's sealed columns, under another key              | changed since it was read            |
| reseal_checkpoint | the same frame under another key                        | changed since it was read            |
| reseal_event      | the same body under another key; the chain holds        | changed since it was read            |
| reseal_entry      | the same entry under another key                        | changed since it was read            |
| reseal_call       | a durable function's arguments, under another key       | changed since it was read            |
| reseal_pause      | a question and its answer, under another key            | changed since it was read            |
| reseal_signal     | what a signal carries, under another key                | changed since it was read            |
| add_value         | a named value of a task or a namespace                  | the name is taken                    |
| change_value      | another value under the name                            | changed since it was read            |
| drop_value        | the value is gone                                       | changed since it was read            |
| reseal_value      | the same value under another key                        | changed since it was read            |
| deliver           | how many of a task's events a handler has had           | it has had as many                   |
| reseal_memory     | what a memory layer keeps, under another key            | changed since it was read            |
| add_webhook       | where events of a namespace are sent to                 | the id is taken                      |
| change_webhook    | another record of it                                    | changed since it was read            |
| mark_webhook      | which process sends to it; since when all tries failed  | another process has the post         |
| drop_webhook      | it is gone, with its messages                           | changed since it was read            |
| add_delivery      | one message for a webhook                               | it is there already, or no webhook   |
| record_delivery   | how a try ended, and when the next is due               | the try is recorded already          |
| drop_deliveries   | messages from before a moment are gone                  | there are none                       |
| reseal_webhook    | the same record under another key                       | changed since it was read            |
| reseal_delivery   | the same message under another key                      | changed since it was read            |
| forget_worker     | a dead process's row is gone                            | it holds a lease                     |
"""

# No `from __future__ import annotations` here: a NamedTuple compiles each annotation that is text, when it is made.
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from perdure._store.write import Write

Row = tuple[Any, ...]
Params = Mapping[str, Any]
# Of what kind a change was, for those who are told of it: see bell.py.
Kinds = frozenset[str]
ALL_KINDS: Kinds = frozenset({"work", "moved"})


class Line(Protocol):
    """The way to the other processes that use a store."""

    has_to_be_told: bool  # others hear nothing unless they are told
    is_open: bool  # what others say is heard

    def tell(self, kinds: Kinds) -> None:
        """Tell others; if that cannot be done, they find out by themselves."""
        ...

    def hear(self) -> Kinds:
        """Wait until others have said something, a second at most; what it was."""
        ...

    def interrupt(self) -> None:
        """Let `hear` return now. From any thread."""
        ...

    def hang_up(self) -> None:
        """Nobody listens any more; the next `hear` begins anew."""
        ...


class Engine(Protocol):
    kind: str  # "sqlite", "postgres", "memory"
    place: str  # what a person calls this store
    is_local: bool  # every process that uses it runs on this machine

    def commit(self, writes: "Sequence[Write]") -> list[Row | None]:
        """Make a prefix of `writes` durable in one transaction; answer one row (or None) for each of it.

        Raises:
            Again: a passing conflict; nothing was written, send the same writes again.
            StoreUnreachable: no connection; nothing of this call is in, as far as can be known.
            StoreUnavailable: the transaction was rolled back as a whole.
        """
        ...

    def query(self, name: str, params: Params) -> list[Row]:
        """Read; a store that was never written to answers with no rows."""
        ...

    def beat(self, worker: str) -> bool:
        """Have the process's row beat beside its other writes, where none of those can keep it waiting; False where
        they are one queue anyway: there a beat is a write like any other.

        Raises:
            PerdureError: it could not be done now.
        """
        ...

    def line(self) -> Line | None:
        """The way to other processes that use this store, always the same; None where there are none."""
        ...

    def close(self) -> None: ...

    def mark_forked(self) -> None:
        """Called in the child of a fork: leave the parent's connections alone."""
        ...


class Again(Exception):
    """A passing conflict (deadlock, serialisation): the batch was rolled back and may be sent again."""


class TaskRow(NamedTuple):
    """The columns of get_task.sql, list_tasks.sql and the like, in this order."""

    uid: str
    namespace: str
    id: str
    is_current: bool
    status: str
    version: int
    line: int
    seq: int
    state_seq: int
    name: str
    description: str
    agent: str
    tags: str
    config: bytes | None
    depends_on: str
    pause_reason: str | None
    pause: bytes | None
    due_at: int | None
    progress: bytes | None
    result: bytes | None
    error: bytes | None
    attempts: int
    event_count: int
    event_head: bytes
    created_at: int
    started_at: int | None
    updated_at: int
    finished_at: int | None
    archived_at: int | None


class SummaryRow(NamedTuple):
    """What a list shows of a task; the last three are a durable function's, None for other tasks."""

    uid: str
    id: str
    status: str
    version: int
    name: str
    agent: str
    tags: str
    pause_reason: str | None
    due_at: int | None  # of a durable function: when the first of its open questions is
    progress: bytes | None
    attempts: int
    created_at: int
    started_at: int | None
    updated_at: int
    finished_at: int | None
    archived_at: int | None
    function: str | None
    function_version: int | None
    queue: str | None


class SituationRow(NamedTuple):
    """What is known of a task from the rows it has one of: its own, its call's, its lease's, its last attempt's."""

    uid: str
    id: str
    status: str
    line: int
    pause_reason: str | None
    pause: bytes | None
    due_at: int | None
    progress: bytes | None
    result: bytes | None  # None also if it is long
    error: bytes | None
    config: bytes | None
    depends_on: str
    attempts: int
    event_count: int
    created_at: int
    started_at: int | None
    updated_at: int
    finished_at: int | None
    function: str | None
    version: int | None
    queue: str | None
    not_before: int | None
    epoch: int | None
    worker: str | None
    taken_at: int | None
    attempt: int | None
    host: str | None
    pid: int | None
    attempt_user: str | None
    ended: str | None


class FrameRow(NamedTuple):
    """One checkpoint's row; `base` is the checkpoint its frame is a delta of, None for a keyframe."""

    seq: int
    line: int
    parent: int | None
    base: int | None
    at: int
    label: str
    cause: str
    depth: int
    author: str
    size: int
    stored: int
    chain_size: int
    chain_length: int
    position: int
    valid: bool
    superseded: bool
    pinned: bool
    chunks: int
    frame: bytes


class CheckpointHead(NamedTuple):
    """One checkpoint's row without its bytes."""

    seq: int
    line: int
    parent: int | None
    at: int
    label: str
    cause: str
    depth: int
    author: str
    size: int
    stored: int
    valid: bool
    superseded: bool
    pinned: bool


class ValueRow(NamedTuple):
    """One value of the shelf: what is kept under a name, beside tasks or for one of them."""

    key: str
    version: int
    due_at: int | None
    changed_at: int
    author: str
    value: bytes


class AttemptRow(NamedTuple):
    number: int
    worker: str
    host: str
    pid: int
    user: str
    agent: str
    started_at: int
    ended_at: int | None
    ended: str


class EventRow(NamedTuple):
    number: int
    at: int
    kind: str
    author: str
    body: bytes
    digest: bytes
    hash: bytes


class OldReader(NamedTuple):
    """Somebody who reads the store as it was some time ago, so that nothing written since can be tidied away."""

    who: str  # the process, or the server's
    what: str  # since when, and what follows from it
    do: str


class HolderRow(NamedTuple):
    epoch: int
    worker: str | None
    beats: int | None
    host: str | None
    boot_id: str | None
    pid_ns: str | None
    pid: int | None
    pid_start: int | None
    user: str | None
    lease_ms: int | None


class CallRow(NamedTuple):
    """What a durable function's task carries out; `line` and `position` are where its journal ends."""

    function: str
    version: int
    arguments: bytes
    queue: str
    priority: int
    parent_uid: str | None
    budget: bytes | None
    key: str
    not_before: int | None
    deadline_at: int | None
    losses: int
    line: int
    position: int


class PauseRow(NamedTuple):
    """One question of a durable function, open while `answer` is None."""

    path: str
    reason: str
    topic: str | None
    question: bytes
    asked_at: int
    due_at: int | None
    answer: bytes | None
    answered_at: int | None
    answered_by: str | None


class QuestionRow(NamedTuple):
    """A row of inbox_questions.sql."""

    uid: str
    id: str
    line: int
    path: str
    reason: str
    topic: str | None
    question: bytes
    asked_at: int
    due_at: int | None
    expires_at: int | None
    function: str | None


class AskingTask(NamedTuple):
    """A row of inbox_tasks.sql."""

    uid: str
    id: str
    pause_reason: str
    pause: bytes
    due_at: int | None
    updated_at: int
    function: str | None
    host: str | None  # of the latest attempt, as the process behind it
    pid: int | None
    number: int | None


class SignalRow(NamedTuple):
    """One signal that was sent to a task."""

    name: str
    number: int
    value: bytes
    sent_at: int
    sent_by: str
    taken_by: str | None
    once: str | None


class WorkerRow(NamedTuple):
    """One process that uses the store; `knows` is what it announced that it can carry on, `wish` what it was asked."""

    id: str
    beats: int
    host: str
    boot_id: str
    pid_ns: str
    pid: int
    pid_start: int
    user: str
    lease_ms: int
    started_at: int
    leases: int
    knows: str | None
    wish: str | None


class HookRow(NamedTuple):
    """One webhook; `record` is sealed, `worker` is the process that sends to it ('': none)."""

    id: str
    version: int
    changed_at: int
    author: str
    record: bytes
    worker: str
    failing_since: int | None
    next_due: int | None


class DeliveryRow(NamedTuple):
    """One message to a webhook, due while `due_at` is there; `body` and `answer` are sealed."""

    id: str
    webhook: str
    task_uid: str
    number: int
    event: str
    made_at: int
    due_at: int | None
    tries: int
    state: str
    status: int | None
    sent_at: int | None
    took_ms: int | None
    body: bytes
    answer: bytes | None


class SwitchRow(NamedTuple):
    """A kill switch that is on; the id is empty for that of all tasks."""

    id: str
    why: str
    at: int
    author: str


# Which row each of these queries answers with. A test holds the columns of their SQL against the fields.
ROWS: Mapping[str, type[NamedTuple]] = {
    "get_task": TaskRow,
    "get_task_by_uid": TaskRow,
    "get_history": TaskRow,
    "list_tasks": TaskRow,
    "list_all": TaskRow,
    "tasks_of": TaskRow,
    "page_by_status": SummaryRow,
    "page_by_archived": SummaryRow,
    "page_by_agent": SummaryRow,
    "page_by_function": SummaryRow,
    "page_by_parent": SummaryRow,
    "page_by_status_changed": SummaryRow,
    "page_by_archived_changed": SummaryRow,
    "page_by_due": SummaryRow,
    "page_by_asked": SummaryRow,
    "page_by_id": SummaryRow,
    "changed_tasks": SummaryRow,
    "situations_of": SituationRow,
    "read_attempts": AttemptRow,
    "read_events": EventRow,
    "find_once": EventRow,
    "get_call": CallRow,
    "read_checkpoint_heads": CheckpointHead,
    "inbox_questions": QuestionRow,
    "inbox_tasks": AskingTask,
    "read_pauses": PauseRow,
    "read_signals": SignalRow,
    "read_workers": WorkerRow,
    "read_switches": SwitchRow,
    "list_webhooks": HookRow,
    "due_deliveries": DeliveryRow,
    "list_deliveries": DeliveryRow,
    "get_delivery": DeliveryRow,
}
