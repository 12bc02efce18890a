"""The commands of one shell: what was asked for, what it gave, and what was typed by hand.

That a command was asked for is on disk before it is typed, by its id and a digest of its text: so after any death
it is known whether it may have begun. The text and the output stay in memory (the live folder), where they outlive
the keeper.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

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
        live.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.known: dict[str, dict[str, Any]] = _read_journal(journal)
        self.all: dict[str, Command] = {}
        found = [Command(**json.loads(file.read_text())) for file in live.glob("*.json")]
        for command in sorted(found, key=lambda one: one.number):
            self.all[command.id] = command
        self._is_torn = False  # the last line was not written whole
        self._journal = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for command in self.all.values():
            if command.was_asked and command.id not in self.known:
                self._note(command)

    def write_again(self) -> None:
        """The folder of what is live was removed: the outputs in it are gone."""
        self._live.mkdir(mode=0o700, exist_ok=True)
        for command in self.all.values():
            self.save(command)

    def ask(self, id: str, text: str, now: float) -> Command:
        """A command that will be typed; once this returns, that is known for ever."""
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

    def typed(self, offset: int, now: float) -> Command:
        """One that somebody has typed, known by its place in the output; what it says is learnt later."""
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
            (self._live / f"{_name(command.id)}.out").write_bytes(output[-LARGEST_OUTPUT:])
            self.known[command.id] |= {"code": command.code, "cwd": command.cwd}
            self._write(self.known[command.id])
        self.save(command)

    def output(self, command: Command) -> bytes:
        try:
            return (self._live / f"{_name(command.id)}.out").read_bytes()
        except OSError:
            return b""

    def save(self, command: Command) -> None:
        fresh = self._live / "new"
        fresh.write_text(json.dumps(asdict(command)))
        fresh.replace(self._live / f"{_name(command.id)}.json")

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


def _name(id: str) -> str:
    return hashlib.sha256(id.encode()).hexdigest()[:24]


def _read_journal(path: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    if path.exists():
        for line in path.read_text(errors="replace").splitlines():
            try:
                told = json.loads(line)
                found[told["id"]] = told
            except (ValueError, KeyError, TypeError):
                continue  # the last line, cut off by a power cut
    return found
