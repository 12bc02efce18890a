"""The commands of one shell: what was asked for, what it gave, and what was typed by hand.

The id of a command and a digest of its text are on disk before it is typed. So after any death it is known whether
the command may have begun. The text and the output stay in memory (the live folder), where they outlive
the keeper.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from perdure.keeper.core import untrusted

MOST_KEPT = 1000
LARGEST_OUTPUT = 1 << 20


@dataclass
class Command:
    id: str
    number: int
    text: str = ""
    was_asked: bool = False  # by `run`, rather than typed
    asked_at: float = 0.0
    begun_at: float = 0.0
    ended_at: float = 0.0
    start: int = 0  # its output's place
    end: int = 0
    code: int | None = None
    cwd: str = ""

    @property
    def has_ended(self) -> bool:
        return self.code is not None


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class Commands:
    def __init__(self, journal: Path, live: Path) -> None:
        """`journal` outlives the machine's running, `live` the keeper."""
        self._live = live
        untrusted.make_folder(live)
        self.known: dict[str, dict[str, Any]] = _read_journal(journal)
        self.all: dict[str, Command] = {}
        found = [_read_command(file) for file in live.glob("*.json")]
        for command in sorted((one for one in found if one is not None), key=lambda one: one.number):
            self.all[command.id] = command
        self._is_torn = False  # the last line was not written whole
        self._journal = untrusted.open_file(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for command in self.all.values():
            if command.was_asked and command.id not in self.known:
                self._note(command)

    def write_again(self) -> None:
        """The live folder was removed: the outputs in it are lost."""
        untrusted.make_folder(self._live)
        for command in self.all.values():
            self.save(command)

    def ask(self, id: str, text: str, now: float) -> Command:
        """A command that will be typed; once this returns, that is recorded permanently."""
        command = self._new(id, text, now)
        command.was_asked = True
        try:
            self.save(command)  # first: a keeper that dies in between has asked for nothing yet
            self._note(command)
        except OSError:  # a full disk: it was not asked for, and is not typed
            self.forget(command)
            raise
        return command

    def _note(self, command: Command) -> None:
        known = {"id": command.id, "digest": digest(command.text), "code": None}
        self._write(known)
        self.known[command.id] = known

    def withdraw(self, command: Command) -> None:
        """Withdraw a command that was asked for and has not begun."""
        self.forget(command)
        if self.known.pop(command.id, None) is not None:
            self._write({"id": command.id, "withdrawn": True})

    def typed(self, offset: int, now: float) -> Command:
        """A command typed by a person, known by its place in the output; its text is learnt later."""
        id = f"typed-{offset}"
        return self.all.get(id) or self._new(id, "", now)

    def _new(self, id: str, text: str, now: float) -> Command:
        number = max((one.number for one in self.all.values()), default=0) + 1
        command = self.all[id] = Command(id, number, text, asked_at=now)
        while len(self.all) > MOST_KEPT:
            self.forget(next(iter(self.all.values())))
        return command

    def forget(self, command: Command) -> None:
        self.all.pop(command.id, None)
        for ending in ("json", "out"):
            (self._live / f"{_name(command.id)}.{ending}").unlink(missing_ok=True)

    def ended(self, command: Command, output: bytes) -> None:
        if command.was_asked:
            self._keep(command, "out", output[-LARGEST_OUTPUT:])
            size = max(0, command.end - command.start)
            self.known[command.id] |= {"code": command.code, "cwd": command.cwd, "size": size}
            self._write(self.known[command.id])
        self.save(command)

    def _keep(self, command: Command, ending: str, data: bytes) -> None:
        path = self._live / f"{_name(command.id)}.{ending}"
        try:
            untrusted.write(path, data)
        except FileNotFoundError:  # the folder was removed while the command ran
            untrusted.make_folder(self._live)
            untrusted.write(path, data)

    def output(self, command: Command) -> bytes:
        try:
            return untrusted.read(self._live / f"{_name(command.id)}.out", LARGEST_OUTPUT)
        except OSError:
            return b""

    def save(self, command: Command) -> None:
        self._keep(command, "json", json.dumps(asdict(command)).encode())

    def _write(self, line: dict[str, Any]) -> None:
        data = json.dumps(line).encode() + b"\n"
        if self._is_torn:
            data = b"\n" + data
        self._is_torn = True
        if os.write(self._journal, data) == len(data):
            self._is_torn = False
        else:
            raise OSError(errno.ENOSPC, "the disk is full")
        os.fsync(self._journal)

    def close(self) -> None:
        os.close(self._journal)


def ledger(known: Iterable[object]) -> bytes:
    """The journal of commands that another keeper knew; it is read as every journal is, and so believed no more."""
    return b"".join(json.dumps(one).encode() + b"\n" for one in known)[-untrusted.MOST_JOURNAL :]


def _name(id: str) -> str:
    return hashlib.sha256(id.encode()).hexdigest()[:24]


def _read_command(file: Path) -> Command | None:
    """One command as it was saved; None when it was damaged since."""
    try:
        command = Command(**untrusted.read_json(file))
    except (OSError, ValueError, TypeError):
        return None
    numbers = (command.number, command.start, command.end, command.asked_at, command.begun_at, command.ended_at)
    is_sound = (
        all(isinstance(text, str) for text in (command.id, command.text, command.cwd))
        and all(type(number) in (int, float) for number in numbers)
        and type(command.code) in (int, type(None))
    )
    return command if is_sound else None


def _read_journal(path: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    try:
        text = untrusted.read_text(path, untrusted.MOST_JOURNAL)
    except FileNotFoundError:
        return found
    for line in text.splitlines():
        try:
            told = untrusted.json_of(line)
            if told.get("withdrawn"):
                found.pop(told["id"], None)
            elif isinstance(told["id"], str) and isinstance(told["digest"], str) and "code" in told:
                found[told["id"]] = told
        except (ValueError, KeyError, TypeError, AttributeError):
            continue  # the last line, cut off by a power cut
    return found
