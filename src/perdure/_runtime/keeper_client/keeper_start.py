"""Start a keeper where there is none, so that it outlives the process that starts it.

Under systemd a process belongs to the service or session that started it, and ends with it, however often it has
forked. So there the keeper gets a scope of its own (`systemd-run --scope`). Elsewhere a double fork is enough.
In a container it lives as long as the container's first process does.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from perdure._runtime.keeper_client import keeper_place as places
from perdure.errors import KeeperUnavailable
from perdure.keeper import ANCHOR, keeper_argv

_START_SECONDS = 30
_MORE_STARTS = 3  # of an anchor that was killed while it started
# The keeper needs no more of the environment: each unit brings its own.
_NEEDED = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "XDG_RUNTIME_DIR")
_NEEDED_FOR_BUS = ("DBUS_SESSION_BUS_ADDRESS",)
_NEEDED_IN_TESTS = ("PERDURE_TEST_CLOCK",)


def start(home: Path) -> None:
    """Start a keeper unless one lives there. A process that tries at the same time waits, and finds it.

    Raises:
        KeeperUnavailable: it did not start.
    """
    live = places.make_home(home)
    with open(home / "start.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_anchored(home) and places.living_anchor(home) is None:
            _start(home, live)


def is_anchored(home: Path) -> bool:
    """True if an anchor lives there: it holds a lock while it lives. If the folder was removed, the anchor is looked
    for among the processes; it makes the folder again when a client connects."""
    try:
        with open(home / "anchor.lock", "r+", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return places.has_live(home) and places.living_anchor(home) is not None
    except BlockingIOError:
        return True
    return False


def _start(home: Path, live: Path) -> None:
    config = json.dumps({"home": str(home), "live": str(live), "keeper": keeper_argv(sys.executable)})
    anchor = [sys.executable, "-I", "-S", ANCHOR, config]
    env = {name: os.environ[name] for name in (*_NEEDED, *_NEEDED_FOR_BUS, *_NEEDED_IN_TESTS) if name in os.environ}
    scope = scope_command(home)
    said = _try([*scope, *anchor], env) if scope else None
    if said is None or (said.problem and not is_anchored(home)):
        said = _try(anchor, env)
    for _ in range(_MORE_STARTS):
        if not said.was_killed:
            break
        said = _try(anchor, env)
    if said.problem:
        raise KeeperUnavailable(
            f"the keeper did not start: {said.problem}",
            kept="all that is in the store; nothing was begun",
            do=f"{home / 'keeper.log'} may say more",
        )


class _Said(NamedTuple):
    problem: str = ""  # empty when it went well
    was_killed: bool = False


def _try(command: list[str], env: dict[str, str]) -> _Said:
    try:
        done = subprocess.run(
            command, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=_START_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        return _Said(str(error))
    if done.returncode == 0:
        return _Said()
    problem = done.stderr.decode(errors="replace").strip() or f"exit code {done.returncode}"
    return _Said(problem, was_killed=done.returncode < 0)


def scope_command(home: Path, *, is_systemd: bool | None = None, uid: int | None = None) -> list[str]:
    """The command prefix that keeps systemd from ending the anchor with its starter; empty without systemd."""
    if is_systemd is None:
        is_systemd = os.path.isdir("/run/systemd/system") and shutil.which("systemd-run") is not None
    if not is_systemd:
        return []
    mine = [] if (os.getuid() if uid is None else uid) == 0 else ["--user"]
    return ["systemd-run", *mine, "--scope", "--quiet", "--collect", f"--description=perdure keeper of {home}", "--"]
