"""The id of one pause: opaque to its readers, and never reused for another pause.

A question of a durable function is named by its task's uid, the line of the journal and its path: a later line asks
anew at the same paths. The pause of a task without a question is named by the uid and the number of the event that
paused it: a task is paused again under another number.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import NamedTuple

_LONGEST = 4096
_QUESTION = re.compile(r"q([0-9a-v]{24})([1-9][0-9]{0,17}):(.+)", re.DOTALL)
_TASK = re.compile(r"t([0-9a-v]{24})([1-9][0-9]{0,17})")


class PauseId(NamedTuple):
    """The pause that an id names."""

    uid: str
    number: int  # the line of a question's journal, or the number of the event that paused the task
    path: str = ""  # "" of a task that is paused by itself

    @property
    def is_question(self) -> bool:
        return bool(self.path)


def write_pause_id(pause: PauseId) -> str:
    text = f"q{pause.uid}{pause.number}:{pause.path}" if pause.path else f"t{pause.uid}{pause.number}"
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def read_pause_id(text: object) -> PauseId | None:
    """The pause that the id names; None if it is not a pause id."""
    if not isinstance(text, str) or not 0 < len(text) <= _LONGEST or not text.isascii():
        return None
    try:
        plain = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except (binascii.Error, ValueError):
        return None
    found = _QUESTION.fullmatch(plain) or _TASK.fullmatch(plain)
    if found is None:
        return None
    uid, number, *path = found.groups()
    pause = PauseId(uid, int(number), *path)
    return pause if write_pause_id(pause) == text else None


def is_pause_id(text: object) -> bool:
    """True if this is a pause id; the pause itself need not exist."""
    return read_pause_id(text) is not None
