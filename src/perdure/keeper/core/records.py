"""Read and write the records of units, sealed once a client has given a key.

The keeper has no cryptography. A small child process does the sealing (_ground/record_sealer.py) and ends with
the keeper. A client that has the store's key sends one derived from it, which opens the keeper's records and nothing
else. The anchor holds the key in memory for the next keeper; it is never written to disk.

A sealed record is left alone until its key is given. It counts neither as lost nor as damaged.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import json
import logging
import os
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from struct import Struct
from typing import Any

from perdure.keeper.core import untrusted
from perdure.keeper.core.anchor_client import Anchored, NotHeld
from perdure.keeper.process import memory_file

log = logging.getLogger("perdure.keeper")

# The format of a unit's record that is sealed; keepers that do not know it leave it alone.
SEALED_FORMAT = 2
_MARK = b"perdure sealed\n"
_KEYS = "record-keys"
_START = "import sys; sys.path.insert(0, sys.argv[1]); from perdure._ground.record_sealer import main; main()"
_SOURCE = str(Path(__file__).parents[3])
_PATIENCE_SECONDS = 30.0
# The same in record_sealer.py: the verb or the result, and the lengths of the parts.
ASKED, ANSWERED = Struct(">cII"), Struct(">cI")


class NoKey(ValueError):
    """A record is sealed, and its key is not here."""


class Records:
    def __init__(self, anchored: Anchored, python: str) -> None:
        self._anchored, self._python = anchored, python
        self._child: tuple[socket.socket, subprocess.Popen[bytes]] | None = None
        self._keys = ""
        with contextlib.suppress(NotHeld):
            fd, _ = anchored.get(_KEYS)
            self._keys = os.pread(fd, os.fstat(fd).st_size, 0).decode()
            os.close(fd)

    def learn(self, keys: str) -> bool:
        """Seal with the first of these keys from now on. The others, and those known before, open existing records.
        Returns False when no key is new."""
        known = self._keys.split(",") if self._keys else []
        given = keys.split(",") if keys else []
        if all(key in known for key in given):
            return False
        self._keys = ",".join([*given, *(key for key in known if key not in given)])
        fd = memory_file()
        try:
            os.write(fd, self._keys.encode())
            self._anchored.put(_KEYS, fd)
        finally:
            os.close(fd)
        self.close()
        return True

    @property
    def has_key(self) -> bool:
        return bool(self._keys)

    # ── files ───────────────────────────────────────────────────────────────────────────────────

    def write(self, path: Path, data: bytes) -> None:
        """Replace a file of a unit's folder. Without a key it is as it was given."""
        untrusted.write(path, _MARK + self._ask(b"S", _bound(path), data) if self._keys else data)

    def read(self, path: Path, most: int) -> bytes:
        """The content that was written.

        Raises:
            ValueError: it is sealed and does not open.
            OSError: it cannot be read.
        """
        data = untrusted.read(path, most + (most >> 8) + 4096)
        return self._ask(b"O", _bound(path), data[len(_MARK) :]) if data.startswith(_MARK) else data

    def reseal(self, folder: Path, names: tuple[str, ...]) -> None:
        """Have files that are there sealed by the key that is used now."""
        for name in names:
            with contextlib.suppress(FileNotFoundError, NoKey):
                self.write(folder / name, self.read(folder / name, untrusted.MOST_JOURNAL))

    # ── records of units ────────────────────────────────────────────────────────────────────────

    def sealed(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """A unit's record as it is written: sealed, all but which process it is."""
        if not self._keys:
            return dict(told)
        shown = {name: told[name] for name in ("uid", "boot", "pid_ns", "pid", "start", "ended")}
        sealed = self._ask(b"S", f"unit {told['uid']}", json.dumps(told).encode())
        return {"format": SEALED_FORMAT, **shown, "sealed": base64.b64encode(sealed).decode()}

    def opened(self, told: object) -> Any:
        """The record as it was given.

        Raises:
            NoKey: its key is not here.
            ValueError: it does not open.
        """
        if not isinstance(told, dict) or told.get("format") != SEALED_FORMAT or "sealed" not in told:
            return told
        data = base64.b64decode(str(told["sealed"]), validate=True)
        return untrusted.json_of(self._ask(b"O", f"unit {told.get('uid')}", data))

    # ── the program that seals ──────────────────────────────────────────────────────────────────

    def _ask(self, what: bytes, bound_to: str, data: bytes) -> bytes:
        if not self._keys:
            raise NoKey("it is sealed, and no key was given yet: open the store with its key")
        question = ASKED.pack(what, len(bound_to.encode()), len(data)) + bound_to.encode() + data
        try:
            how, answer = self._told(question)
        except (OSError, EOFError):
            self.close()
            try:
                how, answer = self._told(question)  # it was ended from outside: another one does it
            except (OSError, EOFError) as error:
                self.close()
                raise OSError(errno.EIO, f"records cannot be sealed or opened: {error}") from error
        if how == b"K":
            raise NoKey(f"it is sealed by a key that was not given: {answer.decode(errors='replace')}")
        if how != b"+":
            raise ValueError(answer.decode(errors="replace"))
        return answer

    def _told(self, question: bytes) -> tuple[bytes, bytes]:
        link, _ = self._child = self._child or self._started()
        link.sendall(question)
        how, length = ANSWERED.unpack(_exactly(link, ANSWERED.size))
        return how, _exactly(link, length)

    def _started(self) -> tuple[socket.socket, subprocess.Popen[bytes]]:
        ours, theirs = socket.socketpair()
        with theirs:
            argv = [self._python, "-I", "-c", _START, _SOURCE]
            child = subprocess.Popen(argv, stdin=theirs.fileno(), stdout=theirs.fileno())
        ours.settimeout(_PATIENCE_SECONDS)
        keys = self._keys.encode()
        ours.sendall(len(keys).to_bytes(4) + keys)
        return ours, child

    def close(self) -> None:
        """End the program; the next question starts another."""
        if self._child is not None:
            link, child = self._child
            self._child = None
            link.close()
            child.kill()
            child.wait()


def _bound(path: Path) -> str:
    """A file belongs to its unit and has its name."""
    return f"{path.name} {path.parent.name}"


def _exactly(link: socket.socket, length: int) -> bytes:
    parts = bytearray()
    while len(parts) < length:
        part = link.recv(min(length - len(parts), 1 << 20))
        if not part:
            raise EOFError("the program that seals has ended")
        parts += part
    return bytes(parts)
