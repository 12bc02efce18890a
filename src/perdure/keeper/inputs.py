"""What was sent to a unit, by id, so that nothing is sent twice.

An id is on record before its first byte is written, and again when its last one was. After the keeper's death an
id that was begun and not done is uncertain: part of it may have been read. It is never sent again. Of the text
itself nothing is kept but its length. The file is in the live folder: it outlives the keeper, not the machine's
running, and then the unit is gone too.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Literal

from perdure.keeper import untrusted

State = Literal["begun", "done"]
_MOST = 20_000
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND


class Inputs:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._states: dict[str, State] = {}
        self.last_at = 0  # where the output was when something was last sent
        with contextlib.suppress(FileNotFoundError):
            for line in untrusted.read_text(path, untrusted.MOST_JOURNAL).splitlines():
                self._read(line)
        self._file = untrusted.open_file(path, _APPEND)

    def _read(self, line: str) -> None:
        with contextlib.suppress(ValueError, TypeError):  # the last line, cut off
            id, state, _, offset = untrusted.json_of(line)
            if isinstance(id, str) and state in ("begun", "done"):
                self._states[id], self.last_at = state, int(offset)

    def state(self, id: str) -> State | None:
        return self._states.get(id)

    def begin(self, id: str, length: int, offset: int) -> None:
        """It will be written now; the output has come to `offset`."""
        self.last_at = offset
        self._note(id, "begun", length)

    def end(self, id: str) -> None:
        self._note(id, "done", 0)

    def _note(self, id: str, state: State, length: int) -> None:
        self._states[id] = state
        os.write(self._file, f'["{id}","{state}",{length},{self.last_at}]\n'.encode())
        if len(self._states) > _MOST:
            self._shorten()

    def _shorten(self) -> None:
        self._states = dict(list(self._states.items())[-_MOST // 2 :])
        self.write_again()

    def write_again(self) -> None:
        """All that is known, instead of the file as it is, or where it was removed."""
        lines = (json.dumps([id, state, 0, self.last_at]) + "\n" for id, state in self._states.items())
        untrusted.write(self._path, "".join(lines).encode())
        os.close(self._file)
        self._file = untrusted.open_file(self._path, _APPEND)

    def close(self) -> None:
        os.close(self._file)
