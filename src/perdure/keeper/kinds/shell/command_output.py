"""The state of one command of a shell, and its output by offsets of its own. Pure.

The output of a running command is in the shell's log, that of an ended one is stored with the command.
"""

from __future__ import annotations

from typing import Any

from perdure.keeper.core import Answer, Refused
from perdure.keeper.kinds.output_log import OutLog
from perdure.keeper.kinds.shell.shell_commands import Command

# Bytes of one answer.
_MOST_AT_ONCE = 1 << 18


def forgotten_output(known: dict[str, Any], offset: int) -> Answer:
    """From before the machine was restarted: the output is gone."""
    state = "uncertain" if known["code"] is None else "ended"
    size = int(known.get("size") or 0)
    told = {"state": state, "code": known["code"], "cwd": known.get("cwd", ""), "text": "", "waiting": None}
    return Answer({**told, "start": size, "gap": max(0, size - offset), "end": size})


def forgotten_result(known: dict[str, Any]) -> Answer:
    """The result of such a command, without its output.

    Raises:
        Refused: it is unknown whether it ended.
    """
    if known["code"] is None:
        raise Refused("uncertain", id=known["id"])
    told = {"code": known["code"], "cwd": known.get("cwd", ""), "text": "", "is_bare": True}
    return Answer({**told, "start": 0, "end": known.get("size", 0), "size": known.get("size")})


def ended_output(command: Command, kept: bytes, offset: int) -> Answer:
    """`kept` is the last part of its output."""
    size = max(0, command.end - command.start)
    before = size - len(kept)
    offset = min(offset, size)
    first = max(offset, before)
    told = {"state": "ended", "code": command.code, "cwd": command.cwd, "text": command.text, "waiting": None}
    place = {"start": first, "gap": first - offset, "end": size}
    return Answer({**told, **place}, kept[first - before :][:_MOST_AT_ONCE])


def running_output(command: Command, log: OutLog, offset: int, waiting: str | None, cwd: str) -> Answer:
    told = {"code": None, "cwd": cwd, "text": command.text, "waiting": waiting}
    if not command.begun_at or not command.start:
        return Answer({**told, "state": "asked", "start": 0, "gap": 0, "end": 0})
    part = log.read(min(command.start + offset, log.end), _MOST_AT_ONCE)
    place = {"start": part.start - command.start, "gap": part.gap, "end": log.end - command.start}
    return Answer({**told, "state": "running", **place}, part.data)


def told_command(command: Command) -> dict[str, Any]:
    return {
        "id": command.id,
        "text": command.text,
        "was_asked": command.was_asked,
        "code": command.code,
        "cwd": command.cwd,
        "seconds": max(0.0, command.ended_at - command.begun_at) if command.has_ended else 0.0,
        "start": command.start,
        "end": command.end,
        "begun_at": command.begun_at,
        "ended_at": command.ended_at,
    }
