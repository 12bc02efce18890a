"""Where commands begin and end in a shell's output, by the marks its prompt leaves there. Pure.

The marks are those terminals know (OSC 133), each with this shell's random nonce:

    ESC ] 133 ; A ; p=NONCE BEL                 the prompt comes now: the shell takes a command
    ESC ] 133 ; C ; p=NONCE [; id=ID] BEL       a command begins; with an id, one that `run` asked for
    ESC ] 133 ; D ; CODE ; p=NONCE ; s=N BEL    it has ended with this exit code; state file N was written before

Without the nonce they are plain output: a file that is shown, a nested shell, or the other end of an ssh cannot say
that a command has ended.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

_MARK = re.compile(rb"\x1b\]133;([ACD])((?:;[^\x07\x1b;]*)*)\x07")
_BEGIN = b"\x1b]133;"
# A mark is shorter than this; what is longer and has no end is none.
_LONGEST = 200


@dataclass(frozen=True)
class Mark:
    kind: Literal["A", "C", "D"]
    start: int  # its own place in the output
    end: int
    code: int = 0
    id: str = ""
    state: str = ""


class Marks:
    """Finds marks in output that comes in pieces."""

    def __init__(self, nonce: str, offset: int = 0) -> None:
        self._nonce, self._offset, self._rest = nonce, offset, b""

    @property
    def looked_at(self) -> int:
        """Where the next piece begins."""
        return self._offset + len(self._rest)

    def feed(self, start: int, data: bytes) -> list[Mark]:
        """The marks that are whole now; a piece that does not follow the last one begins anew."""
        if start != self.looked_at:
            self._offset, self._rest = start, b""
        data = self._rest + data
        marks = [self._read(found, self._offset) for found in _MARK.finditer(data)]
        keep = self._unfinished(data)
        self._offset += len(data) - keep
        self._rest = data[len(data) - keep :]
        return [mark for mark in marks if mark is not None]

    def _read(self, found: re.Match[bytes], offset: int) -> Mark | None:
        parts = found[2].decode("ascii", errors="replace").split(";")[1:]
        named = dict(part.split("=", 1) for part in parts if "=" in part)
        if named.get("p") != self._nonce:
            return None
        code = parts[0] if parts and parts[0].isdigit() else "0"
        kind: Literal["A", "C", "D"] = found[1].decode()  # type: ignore[assignment]
        return Mark(
            kind, offset + found.start(), offset + found.end(), int(code), named.get("id", ""), named.get("s", "")
        )

    @staticmethod
    def _unfinished(data: bytes) -> int:
        """How many bytes at the end may be the beginning of a mark."""
        tail = data[-_LONGEST:]
        at = tail.rfind(b"\x1b")
        if at < 0:
            return 0
        last = tail[at:]
        is_open = _BEGIN.startswith(last) or (last.startswith(_BEGIN) and b"\x07" not in last)
        return len(last) if is_open else 0
