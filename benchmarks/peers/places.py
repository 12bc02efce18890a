"""A new, empty place for each measurement: an SQLite file, a database, or a server of the peer's own."""

from __future__ import annotations

import socket
import sqlite3
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers import environments
from benchmarks.peers.contestants import POSTGRES, Contestant
from perdure.bench.stage import PostgresStage

_PATIENCE_SECONDS = 120.0


@dataclass(frozen=True)
class Place:
    url: str
    durability: str  # of a server; empty where the program says it itself
    bytes_stored: Callable[[], int]


@contextmanager
def place_for(contestant: Contestant, folder: Path, postgres: str) -> Iterator[Place]:
    """The place, gone at the end. `postgres` is a server where databases may be made."""
    if contestant.server:
        servers = {"temporal": _temporal, "restate": _restate}
        with tempfile.TemporaryDirectory(dir=folder) as name, servers[contestant.server](Path(name)) as place:
            yield place
    elif contestant.store == POSTGRES:
        with PostgresStage(postgres, folder).plot() as plot:
            yield Place(plot.url, "", plot.bytes_stored)
    else:
        with tempfile.TemporaryDirectory(dir=folder) as name:
            file = Path(name) / "store" / "store.db"
            yield Place(f"sqlite://{file}", "", lambda: _size_of(file.parent))


def _size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@contextmanager
def _temporal(folder: Path) -> Iterator[Place]:
    port, file = _free_port(), folder / "temporal.db"
    command = [str(environments.temporal_server()), "server", "start-dev", "--headless", "--log-level", "error"]
    command += ["--db-filename", str(file), "--port", str(port)]
    command += ["--sqlite-pragma", "journal_mode=wal", "--sqlite-pragma", "synchronous=2"]
    # The default, 20 looks a second, would be all that a chain of activities measures.
    command += ["--dynamic-config-value", "history.transferProcessorMaxPollRPS=2000"]

    def size() -> int:
        with sqlite3.connect(file) as connection:  # what stands in the log only
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        return file.stat().st_size

    with _server(command, folder, lambda: _listens(port)):
        is_logged = file.with_name(f"{file.name}-wal").exists()
        assert is_logged, "Temporal's server does not use a write-ahead log"
        yield Place(f"127.0.0.1:{port}", "SQLite, journal_mode=wal, synchronous=FULL (options of the server)", size)


@contextmanager
def _restate(folder: Path) -> Iterator[Place]:
    node, admin, ingress, service = (_free_port() for _ in range(4))
    settings = folder / "restate.toml"
    settings.write_text(
        f'base-dir = "{folder}/data"\nnode-name = "peers"\ndisable-telemetry = true\nbind-port = {node}\n'
        f"[admin]\nbind-port = {admin}\n[ingress]\nbind-port = {ingress}\n",
        encoding="utf-8",
    )
    program = str(environments.restate_server())
    dumped = subprocess.run([program, "--dump-config", "-c", settings], capture_output=True, text=True, check=True)
    kept = [line for line in dumped.stdout.splitlines() if line.startswith("rocksdb-disable-wal-fsync")]
    assert kept and set(kept) == {"rocksdb-disable-wal-fsync = false"}, kept
    command = [program, "--no-logo", "--listen-mode", "tcp", "-c", str(settings)]
    with _server(command, folder, lambda: _is_healthy(admin)):
        url = f"restate://127.0.0.1:{ingress}?admin={admin}&service={service}"
        yield Place(url, "RocksDB, rocksdb-disable-wal-fsync=false", lambda: _size_of(folder / "data"))


@contextmanager
def _server(command: list[str], folder: Path, is_up: Callable[[], bool]) -> Iterator[None]:
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=folder)
    try:
        end = time.monotonic() + _PATIENCE_SECONDS
        while not is_up():
            if process.poll() is not None or time.monotonic() > end:
                raise environments.Missing(f"{Path(command[0]).name} did not start: {_end_of(folder / 'output')}")
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _end_of(output: Path) -> str:
    return output.read_text(encoding="utf-8", errors="replace")[-300:].strip().replace("\n", " | ")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def _is_healthy(admin: int) -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{admin}/health", timeout=1).close()
    except (OSError, urllib.error.HTTPError):
        return False
    return True
