"""The savings of a resumed task: steps, effects, model calls, tokens, money and time it did not have to repeat.

Computed from the journal alone: an attempt does not repeat what it found recorded when it began.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from perdure._ground.encoding import codec
from perdure._model import Entry, scope_of


class Savings(Struct, frozen=True, kw_only=True):
    """The work that was not repeated."""

    steps: int = 0
    effects: int = 0
    calls: int = 0  # to models; each is a step too
    characters: int = 0  # of streams that were under way
    tokens: int = 0
    money: float = 0.0
    time: timedelta = timedelta(0)

    @property
    def is_nothing(self) -> bool:
        return self == Savings()

    def as_event(self) -> dict[str, Any]:
        """For the data of a task's last event."""
        return {**asdict(self), "time": self.time.total_seconds()}

    def __str__(self) -> str:
        parts = [
            _count(self.steps, "step"),
            _count(self.effects, "effect"),
            _count(self.calls, "model call"),
            _count(self.tokens, "token"),
            _count(self.characters, "streamed character"),
            f"{self.money:.4f} of money" if self.money else "",
            f"{self.time.total_seconds():.1f} s" if self.time else "",
        ]
        return "not repeated: " + (", ".join(filter(None, parts)) or "nothing")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}" if number else ""


def savings_of(entries: Iterable[Entry]) -> Savings:
    """The work that an attempt beginning with these entries does not repeat."""
    listed = list(entries)
    ended = {entry.path for entry in listed if entry.kind == "result"}
    steps = effects = calls = tokens = characters = ms = 0
    money = 0.0
    for entry in listed:
        if entry.kind != "result":
            continue
        if entry.op == "model":
            # A call without a recorded reply is made again.
            if scope_of(entry.path) in ended:
                note = entry.note or {}
                calls += 1
                tokens += int(note.get("spent_tokens") or 0)
                money += float(note.get("spent_money") or 0)
        elif entry.op == "stream":
            # A finished stream, or one whose step has ended, would not be requested again anyway.
            path = scope_of(entry.path)
            if entry.value is not None and not ended & {path, scope_of(path)}:
                characters += sum(map(len, codec.decode(entry.value)))
        elif "|" not in scope_of(entry.path):
            steps += entry.op in ("step", "inline", "streamed")
            effects += entry.op in ("effect", "effect.inline", "transaction")
            ms += entry.took_ms
    return Savings(
        steps=steps,
        effects=effects,
        calls=calls,
        tokens=tokens,
        characters=characters,
        money=round(money, 8),
        time=timedelta(milliseconds=ms),
    )


def savings_in(data: Any) -> Savings | None:
    """The savings in the data of a task's last event; None if it has none."""
    saved = data.get("saved") if isinstance(data, dict) else None
    if not isinstance(saved, dict):
        return None
    return Savings(**{**saved, "time": timedelta(seconds=saved["time"])})
