"""The rows that queries return, one class for each kind: named columns instead of numbers.

An engine returns plain tuples. `Store.rows` and `Store.row` make them into these classes, and a test compares `ROWS`
with the columns of the SQL.
"""

# No `from __future__ import annotations` here: a NamedTuple compiles each annotation that is text, when it is made.
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

Row = tuple[Any, ...]
Params = Mapping[str, Any]


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
    hidden: int = 0  # 1 of a part of another task, which lists leave out


class SummaryRow(NamedTuple):
    """The columns of a task in a list; the last three belong to a durable function, None for other tasks."""

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
    hidden: int
    function: str | None
    function_version: int | None
    queue: str | None


class SituationRow(NamedTuple):
    """The single rows that describe a task's situation: its own, its call's, its lease's, its last attempt's."""

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
    """The durable function a task carries out; `line` and `position` are the end of its journal."""

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
    part_of: str | None  # the task that it is a hidden part of


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
    part_of: str | None


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


class JournalRow(NamedTuple):
    """One entry of a journal, as it is stored."""

    position: int
    entry: bytes


class LineRow(NamedTuple):
    """One line of a journal: its first and last position, and its first entry."""

    line: int
    first: int
    last: int
    entry: bytes


class HoldingRow(NamedTuple):
    """A task whose lease a process holds."""

    uid: str
    id: str
    namespace: str
    status: str
    version: int
    epoch: int
    line: int
    seq: int
    position: int
    updated_at: int
    function: str | None
    losses: int | None
    lost_position: int | None
    config: bytes | None


class LeaseRow(NamedTuple):
    """A lease that is held, and its task."""

    worker: str
    task_uid: str
    namespace: str
    id: str
    status: str


class ChildRow(NamedTuple):
    """A task that another one started."""

    uid: str
    id: str
    status: str


class DueTask(NamedTuple):
    """A paused task without questions that is due."""

    uid: str
    due_at: int


class DueQuestion(NamedTuple):
    """An open question of a durable function that is due."""

    uid: str
    id: str
    status: str
    path: str
    reason: str
    topic: str | None
    question: bytes
    asked_at: int
    due_at: int


class ListedQuestion(NamedTuple):
    """An open question of a durable function, beside its task."""

    uid: str
    id: str
    path: str
    reason: str
    topic: str | None
    question: bytes
    asked_at: int
    due_at: int | None


class TaskQuestion(NamedTuple):
    """An open question, beside the uid of its task."""

    task_uid: str
    path: str
    reason: str
    topic: str | None
    question: bytes
    asked_at: int
    due_at: int | None


class StoredQuestion(Protocol):
    """The columns that every row of a question has."""

    @property
    def path(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def topic(self) -> str | None: ...
    @property
    def question(self) -> bytes: ...
    @property
    def asked_at(self) -> int: ...
    @property
    def due_at(self) -> int | None: ...


class EndedWait(NamedTuple):
    """A question that waits for another task, which has ended."""

    uid: str
    id: str
    path: str
    question: bytes
    other_uid: str
    other_status: str


class OverdueTask(NamedTuple):
    """A task whose deadline lies after a moment."""

    uid: str
    id: str
    deadline_at: int


class OutsideWait(NamedTuple):
    """A paused task that waits for something outside."""

    uid: str
    due_at: int
    pause: bytes


class RateLimitRow(NamedTuple):
    """The number of times a provider has asked us to slow down."""

    provider: str
    hits: int
    streak: int
    reset_at: int | None
    hit_at: int | None


class MemoryRow(NamedTuple):
    """One value of a memory layer."""

    version: int
    at: int
    expires_at: int | None
    value: bytes


class RecentEvent(NamedTuple):
    """One event of a task, beside the task it is of."""

    task_uid: str
    number: int
    at: int
    kind: str
    author: str
    body: bytes


class MigrationRow(NamedTuple):
    """A migration that the store has had."""

    name: str
    at: int


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
    "summaries_of": SummaryRow,
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
    "read_checkpoints": FrameRow,
    "read_chain": FrameRow,
    "read_frame": FrameRow,
    "get_value": ValueRow,
    "list_values": ValueRow,
    "due_values": ValueRow,
    "read_holder": HolderRow,
    "read_journal": JournalRow,
    "read_journal_page": JournalRow,
    "read_lines": LineRow,
    "read_held": LeaseRow,
    "children_of": ChildRow,
    "due_tasks": DueTask,
    "due_pauses": DueQuestion,
    "list_questions": ListedQuestion,
    "open_pauses_of": TaskQuestion,
    "find_overdue": OverdueTask,
    "outside_waits": OutsideWait,
    "read_rate_limits": RateLimitRow,
    "get_memory": MemoryRow,
    "recent_events_of": RecentEvent,
    "read_migrations": MigrationRow,
}
