"""Check whether an id says what its task is about. Pure."""

from __future__ import annotations

import re

# Words that say nothing, with or without a number.
_EMPTY_WORDS = {"task", "job", "test", "agent", "run", "work", "workflow", "tmp", "temp", "foo", "bar", "thing", "my"}
_HEX = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}|[0-9a-f]{24,}", re.IGNORECASE)
SHORTEST = 4


def check_task_id(task_id: str) -> str:
    """The fault of an id; empty when it has none."""
    if _HEX.fullmatch(task_id):
        return "is random: it does not say what the task is about, and a restarted program cannot find it"
    words = [word for word in re.split(r"[^A-Za-z]+", task_id) if word]
    if not words and task_id.isascii():
        return "is a number: it does not say what the task is about"
    if words and all(word.lower() in _EMPTY_WORDS for word in words):
        return "does not say what the task is about"
    if len(task_id) < SHORTEST:
        return f"has fewer than {SHORTEST} characters"
    return ""
