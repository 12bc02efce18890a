"""For the tests of gc, audit, rotation and doctor: spoiling a store behind perdure's back, and killing a process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any

from perdure import Perdure
from perdure._ground import crash_points as crash
from perdure._ground.bridge import drive
from perdure._ground.config import find_address
from perdure._store import Store
from perdure._tasks.checkpoints import history
from perdure.types import Task
from tests.support.strangers import open_file

SOURCE = Path(__file__).resolve().parents[2] / "src"


def store_of(app: Perdure) -> Store:
    return app._store


def sql(url: str, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """Run one statement on a store as a stranger would; `{events}` stands for the table, `?` for a value."""
    address = find_address(url)
    names: tuple[str, ...] = ("tasks", "checkpoints", "chunks", "events", "journal", "leases", "workers", "tombstones")
    names += ("calls", "pauses", "signals", "memory")
    if address.engine == "sqlite":
        with closing(open_file(address.target)) as connection:
            connection.set_busy_timeout(10_000)
            return connection.execute(statement.format(**{name: name for name in names}), values).fetchall()
    import psycopg

    text = statement.format(**{name: f"perdure.{name}" for name in names}).replace("?", "%s")
    with psycopg.connect(address.target, autocommit=True) as postgres:
        cursor = postgres.execute(text, values)
        return list(cursor.fetchall()) if cursor.description else []


def flip_a_byte(url: str, uid: str, seq: int) -> None:
    """Damage the frame of one checkpoint, as a bad disk would."""
    ((frame,),) = sql(url, "SELECT frame FROM {checkpoints} WHERE task_uid = ? AND seq = ?", uid, seq)
    spoiled = bytearray(frame)
    spoiled[len(spoiled) // 2] ^= 1
    sql(url, "UPDATE {checkpoints} SET frame = ? WHERE task_uid = ? AND seq = ?", bytes(spoiled), uid, seq)


async def snapshots_of(task: Task) -> dict[int, bytes | None]:
    """Every checkpoint with the bytes it materialises to; None for what cannot be read."""
    return {row.seq: raw async for row, raw in history._walk(task._store, task.uid)}


def is_killed_at(place: str, count: int, work: Callable[[], Coroutine[Any, Any, Any]]) -> bool:
    """Do the work in a child that is killed the `count`th time it passes `place`; whether it came that far."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            crash.arm(place, count)
            drive(work())  # without a loop: the parent's threads are not here
            code = 0
        finally:
            os._exit(code)
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        return os.WTERMSIG(status) == signal.SIGKILL
    assert os.WEXITSTATUS(status) == 0, "the child failed; its traceback is above"
    return False


def run_python(code: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """A process of its own that runs `code`."""
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(SOURCE), **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def start_python(code: str, **environ: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(SOURCE), **environ},
        stdout=subprocess.PIPE,
        text=True,
    )
