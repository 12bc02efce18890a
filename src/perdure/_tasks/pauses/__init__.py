"""Pauses of a task: questions, answers, callbacks, checks, and pauses that are due."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "callbacks": ("TOPIC as CALLBACK_TOPIC", "make_token", "topic_of"),
        "decisions": ("end_pause",),
        "due_pauses": (
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
        ),
        "messages": ("INSTRUCTION",),
        "questions": (
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
        ),
    },
    modules=("callbacks", "checks", "decisions", "messages", "pause_write", "resume_write"),
)
