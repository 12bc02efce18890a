"""A line of thought that was interrupted, and the way back to it. Pure.

An agent in the middle of something gets a message. It pushes a frame (its goal, what is done, what is next), handles
the message, and resumes the frame or drops it. Frames stack: the newest is resumed first. The stack has a greatest
depth, and a frame can expire; frames that are gone are remembered for a while, with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from perdure.errors import Conflict, InvalidInput, NotFound

MAX_DEPTH = 8
# So many of those that are gone are remembered.
MAX_GONE = 10
MAX_TEXT = 2_000
MAX_STEPS = 100


class Frame(Struct, frozen=True, kw_only=True):
    """One line of thought: set aside when pushed, taken up again when resumed."""

    name: str
    goal: str
    done: Sequence[str]
    next: Sequence[str]
    because: str = ""  # what it was interrupted by
    pushed_at: datetime
    expires_at: datetime | None = None
    acknowledged_at: datetime | None = None  # when the interruption was dealt with
    resumed_at: datetime | None = None

    @property
    def step(self) -> int:
        """The number of the next step, counted from 1."""
        return len(self.done) + 1

    @property
    def steps(self) -> int:
        return len(self.done) + len(self.next)

    @property
    def announcement(self) -> str:
        """What to tell the next attempt or model: `back to rename the module, step 4/6: update the tests`."""
        if not self.next:
            return f"back to {self.name}, all {self.steps} steps done"
        return f"back to {self.name}, step {self.step}/{self.steps}: {self.next[0]}"

    def is_over(self, now: datetime) -> bool:
        return self.expires_at is not None and self.expires_at <= now


class Gone(Struct, frozen=True, kw_only=True):
    """A frame that will not be resumed."""

    name: str
    why: str
    at: datetime
    step: int
    steps: int


class Frames(Struct, frozen=True, kw_only=True):
    """A task's frames, the newest last. Each method gives them as they are afterwards."""

    frames: Sequence[Frame] = ()
    gone: Sequence[Gone] = ()

    def pushed(self, frame: Frame, now: datetime) -> Frames:
        """With the frame on top. One of the same name is replaced: it was taken up and is set aside again.

        Raises:
            Conflict: the stack is full; no frame is dropped silently.
        """
        stack = self.without_expired(now)
        # The frame taken up before this one was left for something else, or finished.
        kept = [old for old in stack.frames if old.name != frame.name and old.resumed_at is None]
        if len(kept) >= MAX_DEPTH:
            raise Conflict(
                f"{len(kept)} lines of thought are set aside already, and that is the most",
                kept="all of them; this one was not added",
                do=f"resume or drop one first: the oldest is {kept[0].name!r}",
            )
        return replace(stack, frames=[*kept, frame])

    def acknowledged(self, name: str, now: datetime) -> Frames:
        stack = self.without_expired(now)
        stack.find(name)
        changed = [replace(one, acknowledged_at=now) if one.name == name else one for one in stack.frames]
        return replace(stack, frames=changed)

    def resumed(self, name: str | None, now: datetime) -> Frames:
        """With one frame taken up: the named one, or the newest that is set aside. It stays in sight until it is
        finished, or something else is pushed or taken up: who is killed right after this still finds it."""
        stack = self.without_expired(now)
        if name is None and not stack.frames:
            return stack
        waiting = [frame for frame in stack.frames if frame.resumed_at is None]
        chosen = stack.find(name) if name is not None else [*stack.frames, *waiting][-1]
        kept = [frame for frame in waiting if frame.name != chosen.name]
        taken = replace(chosen, resumed_at=now, acknowledged_at=chosen.acknowledged_at or now)
        return replace(stack, frames=[*kept, taken])

    def dropped(self, name: str, why: str, now: datetime) -> Frames:
        stack = self.without_expired(now)
        return stack._without([(stack.find(name), why)], now)

    def without_expired(self, now: datetime) -> Frames:
        return self._without([(frame, "expired") for frame in self.frames if frame.is_over(now)], now)

    def find(self, name: str) -> Frame:
        for frame in self.frames:
            if frame.name == name:
                return frame
        gone = [f"{one.why} at {one.at:%H:%M}" for one in self.gone if one.name == name]
        raise NotFound(
            "frame", name, "this task's frames", do=f"it is gone: {gone[-1]}" if gone else "see what is open"
        )

    def _without(self, leaving: Sequence[tuple[Frame, str]], now: datetime) -> Frames:
        if not leaving:
            return self
        names = {frame.name for frame, _ in leaving}
        gone = [Gone(name=frame.name, why=why, at=now, step=frame.step, steps=frame.steps) for frame, why in leaving]
        kept = [frame for frame in self.frames if frame.name not in names]
        return Frames(frames=kept, gone=[*self.gone, *gone][-MAX_GONE:])


def check_frame(goal: str, done: Sequence[str], following: Sequence[str]) -> None:
    """Raises:
    InvalidInput: it says nothing to continue with, or is too long to be read.
    """
    if isinstance(done, str) or isinstance(following, str):
        raise InvalidInput("done and next are lists of steps, not one text", do="write next=['the next step', …]")
    texts = [goal, *done, *following]
    if not all(isinstance(text, str) for text in texts):
        raise InvalidInput("a frame's goal and steps are text")
    if not goal.strip():
        raise InvalidInput("a frame needs a goal", do="say what the line of thought is after")
    if len(done) + len(following) > MAX_STEPS or any(len(text) > MAX_TEXT for text in texts):
        raise InvalidInput(f"a frame has at most {MAX_STEPS} steps of {MAX_TEXT} characters")
