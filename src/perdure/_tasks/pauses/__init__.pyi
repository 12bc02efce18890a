"""Pauses of a task: questions, answers, callbacks, checks, and pauses that are due.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._tasks.pauses.callbacks import TOPIC as CALLBACK_TOPIC, make_token, topic_of
from perdure._tasks.pauses.decisions import end_pause
from perdure._tasks.pauses.due_pauses import (
    POLL_TOPIC,
    WAS_DUE,
    awaited_task,
    end_of,
    look_after,
    read_resets,
    take_after_end,
    take_after_task,
    take_question,
    take_task,
)
from perdure._tasks.pauses.messages import INSTRUCTION
from perdure._tasks.pauses.questions import (
    EFFECT,
    Question,
    TASK_TOPIC,
    all_questions,
    answer_question,
    as_question,
    choose,
    line_of,
    path_now,
    questions_of,
)
from perdure._tasks.pauses import callbacks
from perdure._tasks.pauses import checks
from perdure._tasks.pauses import decisions
from perdure._tasks.pauses import messages
from perdure._tasks.pauses import pause_write
from perdure._tasks.pauses import resume_write
__all__ = [
    "CALLBACK_TOPIC",
    "make_token",
    "topic_of",
    "end_pause",
    "POLL_TOPIC",
    "WAS_DUE",
    "awaited_task",
    "end_of",
    "look_after",
    "read_resets",
    "take_after_end",
    "take_after_task",
    "take_question",
    "take_task",
    "INSTRUCTION",
    "EFFECT",
    "Question",
    "TASK_TOPIC",
    "all_questions",
    "answer_question",
    "as_question",
    "choose",
    "line_of",
    "path_now",
    "questions_of",
    "callbacks",
    "checks",
    "decisions",
    "messages",
    "pause_write",
    "resume_write",
]
