"""Say below a traceback what the failure means for the task, and how to go on."""

from __future__ import annotations

from shlex import quote


def add_failure_note(error: BaseException, task_id: str, what: str) -> None:
    """Add the note once; an exception that passes through two tasks keeps that of the first."""
    if any(note.startswith("perdure: task ") for note in getattr(error, "__notes__", ())):
        return
    error.add_note(f"perdure: task {task_id!r} {what}; its finished steps are kept")
    error.add_note(f"  do:   `perdure resume {quote(task_id)}` begins a new attempt with the current code")
