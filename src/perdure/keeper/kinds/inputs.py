"""Inputs sent to a unit, by id, so that none is sent twice.

An id is recorded before its first byte is written, and again after its last one. After the keeper's death an id that
was begun and not done is uncertain: part of it may have been read. It is never sent again. Of the text only its length
is kept, and whether it ended inside a key (keystrokes.py). The file is in the live folder: it outlives the keeper, not
a restart of the machine, which ends the unit too.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Literal

from perdure.keeper.core import untrusted
from perdure.keeper.kinds import keystrokes

State = Literal["begun", "done"]
_MOST = 20_000
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND
# The prefix of ids for the keeper's own input.
OWN = "run-"


class Inputs:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._states: dict[str, State] = {}
        self.last_at = 0  # where the output was when something was last sent
        self.typed_at = -1  # … and the offset of input by others than the keeper; -1: none
        self.keys: str = keystrokes.BETWEEN  # what the next byte would be part of
        self.is_typed_last = False  # another one typed after the keeper did
        self._typed = ""
        with contextlib.suppress(FileNotFoundError):
            for line in untrusted.read_text(path, untrusted.MOST_JOURNAL).splitlines():
                self._read(line)
        if self._states.get(self._typed) == "begun":  # a former keeper died over it
            self.keys = keystrokes.UNKNOWN
        self._file = untrusted.open_file(path, _APPEND)

    def _read(self, line: str) -> None:
        with contextlib.suppress(ValueError, TypeError):  # the last line, cut off
            id, state, _, offset, *rest = untrusted.json_of(line)
            if isinstance(id, str) and state in ("begun", "done"):
                self._states[id], self.last_at = state, int(offset)
                if state == "begun":
                    self._take(id, str(rest[0]) if rest else keystrokes.BETWEEN)

    def _take(self, id: str, keys: str) -> None:
        self.is_typed_last = not id.startswith(OWN)
        if self.is_typed_last:
            self._typed, self.typed_at, self.keys = id, self.last_at, keys

    def state(self, id: str) -> State | None:
        return self._states.get(id)

    def has_any(self, prefix: str) -> bool:
        return any(id.startswith(prefix) for id in self._states)

    def begin(self, id: str, data: bytes, offset: int) -> None:
        """It is about to be written; the output has reached `offset`."""
        self.last_at = offset
        self._take(id, keystrokes.after(self.keys, data))
        self._note(id, "begun", len(data))

    def end(self, id: str) -> None:
        self._note(id, "done", 0)

    def _note(self, id: str, state: State, length: int) -> None:
        self._states[id] = state
        os.write(self._file, self._row(id, state, length))
        if len(self._states) > _MOST:
            self._shorten()

    def _row(self, id: str, state: State, length: int = 0, offset: int | None = None) -> bytes:
        return (json.dumps([id, state, length, self.last_at if offset is None else offset, self.keys]) + "\n").encode()

    def _shorten(self) -> None:
        self._states = dict(list(self._states.items())[-_MOST // 2 :])
        self.write_again()

    def write_again(self) -> None:
        """All that is known, instead of the file as it is, or where it was removed."""
        rows = [self._row(id, state) for id, state in self._states.items()]
        if self._typed:  # in its place before or after what the keeper typed
            rows.append(self._row(self._typed, "begun", 0, self.typed_at))
            rows.append(self._row(self._typed, self._states.get(self._typed, "done"), 0, self.typed_at))
        if not self.is_typed_last:
            rows.append(self._row(f"{OWN}again", "begun"))
        untrusted.write(self._path, b"".join(rows))
        os.close(self._file)
        self._file = untrusted.open_file(self._path, _APPEND)

    def close(self) -> None:
        os.close(self._file)
