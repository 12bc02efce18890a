"""Looking at the team of S4 from outside: who works, who holds what, what the model was asked."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from perdure import Perdure
from perdure._ground.bridge import drive
from perdure._store import Engine
from tests.torture import s4_team as team

PATIENCE = 300.0


def workers(app: Perdure, *, busy: bool = False) -> list[int]:
    """The pids of living worker processes; `busy` ones hold a lease."""
    me = app._store.presence.process.pid
    rows = engine(app).query("read_workers", {})
    return [row[5] for row in rows if row[5] != me and is_alive(row[5]) and (row[10] or not busy)]


def holder(app: Perdure, task_id: str) -> int | None:
    uid = record(app, task_id).uid
    rows = engine(app).query("read_holder", {"uid": uid})
    return rows[0][6] if rows and rows[0][6] and is_alive(rows[0][6]) else None


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def engine(app: Perdure) -> Engine:
    return app._store.engine


def record(app: Perdure, task_id: str) -> Any:
    found = drive(app.tasks.get(task_id))
    assert found is not None
    return found


def within(seconds: float, is_so: Callable[[], Any]) -> bool:
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def until(is_so: Callable[[], Any]) -> Any:
    """What it answers once it is something; PATIENCE only turns a hang into an error."""
    give_up = time.monotonic() + PATIENCE
    while not (found := is_so()):
        assert time.monotonic() < give_up, "it does not come to its end"
        time.sleep(0.05)
    return found


def git(folder: Path, *words: str) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True, env=env)
    return done.stdout


def is_over(app: Perdure) -> bool:
    return bool(record(app, team.COORDINATOR).is_finished)


def open_calls(work: team.Work) -> list[dict[str, Any]]:
    """What was asked of the model by processes that live, and is not answered yet."""
    calls = [json.loads(line) for line in team.lines(team.log_of(work, "model"))]
    answered = {call["token"] for call in calls if call["what"] == "answered"}
    return [call for call in calls if call["token"] not in answered and is_alive(call["pid"])]


def children_of(pid: int) -> set[int]:
    return set(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def is_writing(pid: int) -> bool:
    """True if a process holds a lock for writing on some file, as on a SQLite store in the middle of a transaction."""
    locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    return any("WRITE" in words and str(pid) in words for words in locks)
