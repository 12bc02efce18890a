"""Speak to a keeper that speaks another version, or does not speak at all.

The questions that replace, stop or inspect a keeper are the same in every version, so every keeper can be
replaced or stopped. A keeper that hangs is killed. Its anchor starts another one, and its units notice nothing.
"""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path
from typing import Any

from perdure import keeper
from perdure._runtime.keeper_client import keeper_place as places
from perdure._runtime.keeper_client import refusals
from perdure.errors import KeeperUnavailable

# A keeper that does not answer within this time hangs. It tests a new program before it executes it.
PATIENCE_SECONDS = 25.0


def ask(home: Path, verb: str, **args: Any) -> dict[str, Any]:
    """Ask one of the questions that every version understands.

    Raises:
        PerdureError: it refuses.
        TimeoutError: it does not answer.
        OSError: no keeper listens there.
    """
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(PATIENCE_SECONDS)
        sock.connect(os.path.join((places.anchor_of(home) or {})["live"], "sock"))
        hello = keeper.Request(1, "hello", {"versions": list(keeper.VERSIONS)})
        sock.sendall(keeper.encode(hello) + keeper.encode(keeper.Request(2, verb, args)))
        decoder = keeper.Decoder()
        while True:
            data, fds = keeper.receive(sock)
            if not data:
                raise ConnectionResetError("it hung up")
            for answer in decoder.feed(data, fds):
                if isinstance(answer, keeper.Refusal) and (answer.id == 2 or answer.error != "version"):
                    raise refusals.error_of(answer, None)
                if isinstance(answer, keeper.Reply) and answer.id == 2:
                    return answer.args


def replace(home: Path, argv: list[str]) -> None:
    """Make a keeper of any version execute this program; kill one that hangs."""
    try:
        ask(home, "replace", argv=argv)
    except TimeoutError:
        kill_keeper(home)
    except OSError as error:
        raise KeeperUnavailable(f"the keeper in {home} cannot be reached: {error}") from None


def kill_keeper(home: Path) -> None:
    """kill -9. The anchor starts the same program again."""
    anchor = int((places.anchor_of(home) or {}).get("pid", 0))
    for pid in _children(anchor):
        if _is_keeper(pid, home):
            os.kill(pid, signal.SIGKILL)
            return
    raise KeeperUnavailable(f"the keeper in {home} does not answer, and its process was not found")


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()]
    except OSError:
        return []


def _is_keeper(pid: int, home: Path) -> bool:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return os.fsencode(home) in command and any(b"perdure.keeper.daemon" in part for part in command)
