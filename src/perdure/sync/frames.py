"""Inside a durable function: lines of thought that are set aside and taken up again.

The same as perdure.frames, without await. Written by tools/make_sync.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from perdure import frames as _frames
from perdure._durable import waited
from perdure._ground.durations import Duration
from perdure.frames import Frame

__all__ = ["Frame", "acknowledge", "drop", "push", "resume"]


def acknowledge(name: str) -> None:
    """Note that the interruption is dealt with."""
    waited(_frames.acknowledge(name))


def drop(name: str, *, why: str) -> None:
    """Give a frame up, with a reason that is stored."""
    waited(_frames.drop(name, why=why))


def push(
    name: str,
    *,
    goal: str,
    done: Sequence[str] = (),
    next: Sequence[str] = (),
    because: str = "",
    expires: Duration | None = "1d",
) -> Frame:
    """Set a line of thought aside, with its finished steps and its next ones."""
    return waited(_frames.push(name, goal=goal, done=done, next=next, because=because, expires=expires))


def resume(name: str | None = None) -> Frame | None:
    """Take up a frame again: the named one, or the newest; None when there is none."""
    return waited(_frames.resume(name))
