"""Execution memory: tasks, their checkpoints, pauses and ends, and keeping all of it in order.

What keeps it in order (gc, audit, rotation, doctor) is imported when first used: few processes ever do. So is what
only workers do, and what few tasks ask for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from perdure._tasks.appending import append as append_to_state
from perdure._tasks.appending import causes_of
from perdure._tasks.callbacks import make_token
from perdure._tasks.callbacks import topic_of as callback_topic
from perdure._tasks.checkpointing import all_carried, carried, carry, has_carried, read_own_state
from perdure._tasks.checkpointing import put as put_checkpoint
from perdure._tasks.checkpointing import store_once as checkpoint_once
from perdure._tasks.dependencies import Blocked, blocked_by, blockers, read_blocked
from perdure._tasks.drafts import begin as begin_by_draft
from perdure._tasks.drafts import begun as begun_by_draft
from perdure._tasks.drafts import draft_of
from perdure._tasks.frames import TaskFrames, open_frames
from perdure._tasks.history import read_checkpoint
from perdure._tasks.leases import COULD_NOT_BEGIN, TAKEN_OVER, Hold, in_words, read_holder, release_all
from perdure._tasks.leases import forget as forget_lease
from perdure._tasks.leases import held as held_lease
from perdure._tasks.leases import release as release_lease
from perdure._tasks.leases import take as take_lease
from perdure._tasks.leases import take_free as take_free_leases
from perdure._tasks.leases import taking as take_lease_by
from perdure._tasks.leases import why_over as why_lease_over
from perdure._tasks.moves import explain as explain_refusal
from perdure._tasks.moves import move
from perdure._tasks.overdue import fail_overdue
from perdure._tasks.questions import EFFECT as EFFECT_QUESTION
from perdure._tasks.questions import Question, all_questions, answer_question, questions_of
from perdure._tasks.questions import choose as choose_question
from perdure._tasks.refusals import current_row
from perdure._tasks.shelf import Kept, Shelf
from perdure._tasks.task import Task, read_progress
from perdure._tasks.tasks import Tasks
from perdure._tasks.telling import INSTRUCTION

if TYPE_CHECKING:
    from perdure._tasks import checks, memories
    from perdure._tasks.audit import Audit, export_heads, verify
    from perdure._tasks.beginning import fail_circle
    from perdure._tasks.beginning import settle as settle_blocked
    from perdure._tasks.deaths import left_by_the_dead
    from perdure._tasks.doctor import Finding, examine
    from perdure._tasks.due import (
        POLL_TOPIC,
        TASK_TOPIC,
        WAS_DUE,
        DueQuestion,
        awaited_task,
        end_of,
        look_after,
        read_resets,
        take_after_end,
        take_after_task,
        take_question,
        take_task,
    )
    from perdure._tasks.gc import Report, collect, give_back_space
    from perdure._tasks.handlers import (
        Handler,
        HandlerRecord,
        Undelivered,
        events_after,
        handlers_of,
        has_had,
        make_handler,
        undelivered,
    )
    from perdure._tasks.moving import arrival, check_history, dump, leave, payload, rehearse, take_in
    from perdure._tasks.retention import Policy
    from perdure._tasks.rotation import Rotation, keys_in_use, rotate
    from perdure._tasks.task_rows import read_rows

_HOMES = {
    "beginning": ("fail_circle", "settle as settle_blocked"),
    "due": (
        "POLL_TOPIC",
        "TASK_TOPIC",
        "WAS_DUE",
        "DueQuestion",
        "awaited_task",
        "end_of",
        "look_after",
        "read_resets",
        "take_after_end",
        "take_after_task",
        "take_question",
        "take_task",
    ),
    "handlers": (
        "Handler",
        "HandlerRecord",
        "Undelivered",
        "events_after",
        "handlers_of",
        "has_had",
        "make_handler",
        "undelivered",
    ),
    "audit": ("Audit", "export_heads", "verify"),
    "deaths": ("left_by_the_dead",),
    "doctor": ("Finding", "examine"),
    "moving": ("arrival", "check_history", "dump", "leave", "payload", "rehearse", "take_in"),
    "task_rows": ("read_rows",),
    "gc": ("Report", "collect", "give_back_space"),
    "retention": ("Policy",),
    "rotation": ("Rotation", "keys_in_use", "rotate"),
}
_HOME_OF = {
    name.rpartition(" ")[2]: (module, name.partition(" ")[0]) for module, names in _HOMES.items() for name in names
}
_MODULES = ("checks", "memories")

__all__ = [
    "in_words",
    "append_to_state",
    "awaited_task",
    "causes_of",
    "checkpoint_once",
    "Audit",
    "COULD_NOT_BEGIN",
    "TAKEN_OVER",
    "Blocked",
    "DueQuestion",
    "EFFECT_QUESTION",
    "Finding",
    "Handler",
    "HandlerRecord",
    "Hold",
    "INSTRUCTION",
    "Kept",
    "POLL_TOPIC",
    "Policy",
    "Question",
    "Report",
    "Rotation",
    "Shelf",
    "TASK_TOPIC",
    "Task",
    "TaskFrames",
    "Tasks",
    "Undelivered",
    "all_carried",
    "all_questions",
    "answer_question",
    "arrival",
    "blocked_by",
    "blockers",
    "callback_topic",
    "carried",
    "carry",
    "check_history",
    "checks",
    "choose_question",
    "collect",
    "current_row",
    "dump",
    "end_of",
    "events_after",
    "fail_overdue",
    "examine",
    "explain_refusal",
    "export_heads",
    "fail_circle",
    "forget_lease",
    "give_back_space",
    "handlers_of",
    "begin_by_draft",
    "begun_by_draft",
    "draft_of",
    "has_carried",
    "has_had",
    "held_lease",
    "keys_in_use",
    "leave",
    "left_by_the_dead",
    "WAS_DUE",
    "look_after",
    "make_handler",
    "make_token",
    "memories",
    "move",
    "open_frames",
    "payload",
    "put_checkpoint",
    "read_own_state",
    "questions_of",
    "read_blocked",
    "read_checkpoint",
    "read_holder",
    "read_resets",
    "read_rows",
    "rehearse",
    "release_all",
    "read_progress",
    "release_lease",
    "rotate",
    "settle_blocked",
    "take_after_end",
    "take_after_task",
    "take_free_leases",
    "take_in",
    "take_lease",
    "take_lease_by",
    "take_question",
    "take_task",
    "undelivered",
    "verify",
    "why_lease_over",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, inside = _HOME_OF[name]
    value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), inside)
    return value
