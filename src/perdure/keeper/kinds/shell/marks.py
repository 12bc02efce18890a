"""Find the beginning and end of commands in a shell's output, by the marks of its prompt. Pure.

The marks are those terminals know (OSC 133), each with a number of its own:

    ESC ] 133 ; A ; k=1 ; p=NUMBER BEL            the prompt comes now; k=0: without a line editor
    ESC ] 133 ; C [; id=ID] ; p=NUMBER BEL        a command begins; with an id, one that `run` asked for
    ESC ] 133 ; D ; CODE ; s=N ; p=NUMBER BEL     it has ended with this exit code; state file N was written before
    ESC ] 133 ; K ; busy ; p=NUMBER BEL           the keeper's key was pressed, and the line was not empty

They only say where something was. The shell's line to the keeper (shell_line.py) confirms it: a displayed file, a
nested shell, a program, or the other end of an ssh can write such marks, and theirs are plain output.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

_MARK = re.compile(rb"\x1b\]133;(([ACDK])((?:;[^\x07\x1b;]*)*))\x07")
_BEGIN = b"\x1b]133;"
# A mark is shorter than this; a longer sequence without an end is not a mark.
_LONGEST = 300
_MOST_DIGITS = 9


@dataclass(frozen=True)
class Mark:
    kind: Literal["A", "C", "D", "K"]
    start: int  # its own place in the output
    end: int
    said: str  # all that is in it
    code: int = 0
    id: str = ""
    state: str = ""
    number: str = ""
    has_keys: bool = False


class Marks:
    """Finds possible marks in output that arrives in pieces."""

    def __init__(self, offset: int = 0) -> None:
        self._offset, self._rest = offset, b""

    @property
    def looked_at(self) -> int:
        """The start of the next piece."""
        return self._offset + len(self._rest)

    def feed(self, start: int, data: bytes) -> list[Mark]:
        """The marks that are whole now; a piece that does not follow the last one begins anew."""
        if start != self.looked_at:
            self._offset, self._rest = start, b""
        data = self._rest + data
        marks = [_read(found, self._offset) for found in _MARK.finditer(data)]
        keep = self._unfinished(data)
        self._offset += len(data) - keep
        self._rest = data[len(data) - keep :]
        return marks

    @staticmethod
    def _unfinished(data: bytes) -> int:
        """The number of bytes at the end that can be the beginning of a mark."""
        tail = data[-_LONGEST:]
        at = tail.rfind(b"\x1b")
        if at < 0:
            return 0
        last = tail[at:]
        is_open = _BEGIN.startswith(last) or (last.startswith(_BEGIN) and b"\x07" not in last)
        return len(last) if is_open else 0


def _read(found: re.Match[bytes], offset: int) -> Mark:
    parts = found[3].decode("ascii", errors="replace").split(";")[1:]
    named = dict(part.split("=", 1) for part in parts if "=" in part)
    code = parts[0] if parts and parts[0].isascii() and parts[0].isdigit() and len(parts[0]) <= _MOST_DIGITS else "0"
    kind: Literal["A", "C", "D", "K"] = found[2].decode()  # type: ignore[assignment]
    return Mark(
        kind,
        offset + found.start(),
        offset + found.end(),
        found[1].decode("ascii", errors="replace"),
        int(code),
        named.get("id", ""),
        named.get("s", ""),
        named.get("p", ""),
        named.get("k") == "1",
    )
