"""Carry faults out: processes are killed by what /proc says of them, files and folders are changed by hand."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.honesty.rounds import Round


def carry_out(verb: str, round: Round) -> None:
    _FAULTS[verb](round)


def _kill(role: str, number: int = signal.SIGKILL) -> Callable[[Round], None]:
    def act(round: Round) -> None:
        found = round.family.alive(role)
        copies = {process.pid for process in found}  # a child between fork and exec looks like its parent
        for process in found:
            if process.parent not in copies:
                with suppress(ProcessLookupError):
                    os.kill(process.pid, number)

    return act


def _kill_agent(round: Round) -> None:
    round.agent.kill()


def _kill_shell(round: Round) -> None:
    with suppress(ProcessLookupError):
        os.kill(int(round.said("shell", "pid")), signal.SIGKILL)


def _remove_live(round: Round) -> None:
    shutil.rmtree(round.live, ignore_errors=True)


def _remove_store(round: Round) -> None:
    shutil.rmtree(round.folder / ".perdure", ignore_errors=True)


# ── the database server ──────────────────────────────────────────────────────────────────────────


def _kill_backend(round: Round) -> None:
    with suppress(ProcessLookupError):
        os.kill(int(round.said("postgres", "backend")), signal.SIGKILL)


def _end_backend(round: Round) -> None:
    round.eyes.ask("SELECT pg_terminate_backend(%s)", (int(round.said("postgres", "backend")),))


def _restart_server(round: Round) -> None:
    round.hall.cluster.stop(signal.SIGQUIT)
    round.hall.cluster.start()


# ── files ────────────────────────────────────────────────────────────────────────────────────────


def _removed(name: str) -> Callable[[Round], None]:
    return lambda round: (round.folder / name).unlink(missing_ok=True)


def _replaced(name: str) -> Callable[[Round], None]:
    """Another file of the same content under the same name."""

    def act(round: Round) -> None:
        path = round.folder / name
        other = path.with_name(f"{name}.other")
        other.write_bytes(path.read_bytes() if path.exists() else b"")
        other.rename(path)

    return act


def _moved(name: str) -> Callable[[Round], None]:
    def act(round: Round) -> None:
        with suppress(FileNotFoundError):
            (round.folder / name).rename(round.folder / f"{name}.moved")

    return act


def _overwrite(path: Path) -> None:
    """As many bytes as before, and others: in the first half, which is before every mark."""
    with suppress(FileNotFoundError), path.open("r+b") as file:
        first = file.read(1)
        file.seek(0)
        file.write(b"!" if first != b"!" else b"?")


def _cut(path: Path) -> None:
    with suppress(FileNotFoundError):
        os.truncate(path, path.stat().st_size // 4)


def _spools(round: Round) -> list[Path]:
    return list((round.folder / ".perdure").glob("*.keeper-*/**/body"))


def _on_spools(act: Callable[[Path], object]) -> Callable[[Round], None]:
    def change(round: Round) -> None:
        for path in _spools(round):
            act(path)

    return change


# ── the other end of the socket ──────────────────────────────────────────────────────────────────


def _peer_resets(round: Round) -> None:
    if round.peer is not None:
        round.peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        round.peer.close()
        round.peer = None


def _peer_closes(round: Round) -> None:
    if round.peer is not None:
        round.peer.close()
        round.peer = None


_FAULTS: dict[str, Callable[[Round], None]] = {
    "kill agent": _kill_agent,
    "kill keeper": _kill("keeper"),
    "stop keeper": _kill("keeper", signal.SIGSTOP),
    "kill anchor": _kill("anchor"),
    "remove live": _remove_live,
    "remove store": _remove_store,
    "kill shell": _kill_shell,
    "kill service": _kill("service"),
    "kill proxy": _kill("proxy"),
    "kill holder": _kill("holder"),
    "kill fetcher": _kill("fetcher"),
    "kill backend": _kill_backend,
    "end backend": _end_backend,
    "restart server": _restart_server,
    "database removed": _removed("data.db"),
    "database replaced": _replaced("data.db"),
    "database moved": _moved("data.db"),
    "spool cut": _on_spools(_cut),
    "spool overwritten": _on_spools(_overwrite),
    "spool removed": _on_spools(lambda path: path.unlink(missing_ok=True)),
    "file replaced": _replaced("file"),
    "file rewritten": lambda round: _overwrite(round.folder / "file"),
    "file removed": _removed("file"),
    "file cut": lambda round: _cut(round.folder / "file"),
    "peer resets": _peer_resets,
    "peer closes": _peer_closes,
}
