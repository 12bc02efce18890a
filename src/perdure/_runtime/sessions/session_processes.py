"""Find, start and ask the processes of a task's database sessions.

A session is held by a process of its own (perdure.keeper), which outlives this one. It has a folder of its own with
its sockets. A user who may enter the folder may use the session, so it is closed to other users.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from perdure._ground.durations import Duration, require_timedelta
from perdure.errors import InvalidInput, SessionUnavailable

LONGEST_FOLDER = 90  # a socket's path ends at 107 characters
# The patch of a task's journal from which on statements are done once per call.
ONCE = "perdure.statements-once"
_ANSWER_SECONDS = 10.0
START_SECONDS = 90.0
LOOK_SECONDS = 0.02
# The rest of the environment is of no concern to a process that outlives this one.
_NEEDED = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "PYTHONPATH", "PERDURE_TEST_CLOCK")

PROGRAMS = {"postgres": "perdure.keeper.pgproxy", "sqlite": "perdure.keeper.sqlite_holder"}
# Starts the process of a session and returns its answer once it is ready.
Launch = Callable[[str, dict[str, Any], Path], dict[str, Any]]


def launch(program: str, config: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Without a keeper: start a process that outlives this one and is not restarted when it dies."""
    env = {name: os.environ[name] for name in _NEEDED if name in os.environ}
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", PROGRAMS[program]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd="/",
            env=env,
            start_new_session=True,
        )
    # This process does not wait for it: it outlives this one.
    answer, _ = _conversation(process, json.dumps(config).encode() + b"\n")
    process.returncode = 0
    try:
        found: dict[str, Any] = json.loads(answer)
    except ValueError:
        raise SessionUnavailable(config["name"], "its process died at its start", log=str(folder / "log")) from None
    return found


def _conversation(process: subprocess.Popen[bytes], config: bytes) -> tuple[bytes, None]:
    assert process.stdin is not None and process.stdout is not None
    with process.stdin as tell, process.stdout as hear:
        with suppress(BrokenPipeError):
            tell.write(config)
            tell.flush()
        return hear.readline(), None


@dataclass(frozen=True)
class SessionPlace:
    """The place of one task's sessions."""

    folder: Path  # short and private
    parking: Path | None = None  # of sessions without a keeper
    launch: Launch = launch
    task: str = ""

    def of(self, kind: str, name: str) -> Path:
        """A session's own folder, private, made if need be."""
        folder = self.folder / f"{kind}-{sha256(f'{self.task}/{name}'.encode()).hexdigest()[:12]}"
        if len(str(folder)) > LONGEST_FOLDER:
            raise InvalidInput(
                f"the folder {folder} is too long for a socket", do=f"choose one of at most {LONGEST_FOLDER} characters"
            )
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        return folder


def started(place: SessionPlace, program: str, config: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Start or find the session's process and return its first answer. Kind "lost": there is no process.

    Raises:
        SessionUnavailable: the process cannot be started, or does not answer.
    """
    end = time.monotonic() + START_SECONDS
    while True:
        answer = place.launch(program, config, folder)
        kind = answer.get("kind")
        if kind == "lost":
            return answer
        if "error" in answer and kind != "twice":
            raise SessionUnavailable(config["label"], answer["error"])
        if ask(folder, {"ask": "state"}) is not None:
            return {"how": "kept", "lost": ""} if kind == "twice" else answer
        if time.monotonic() > end:
            raise SessionUnavailable(config["label"], "its process does not answer")
        # It died a moment ago, another client is just starting it, or the one before has not quite ended.
        time.sleep(LOOK_SECONDS)


def ask(folder: Path, question: dict[str, Any], seconds: float = _ANSWER_SECONDS) -> dict[str, Any] | None:
    """The answer of the session's process; None when there is no process.

    Raises:
        SessionUnavailable: it does not answer, or answers with an error.
    """
    data = b""
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(seconds)
        try:
            link.connect(str(folder / "control"))
            link.sendall(json.dumps(question).encode() + b"\n")
            while not data.endswith(b"\n"):
                part = link.recv(1 << 16)
                if not part:
                    return None
                data += part
        except TimeoutError:
            raise SessionUnavailable(folder.name, f"its process has not answered for {seconds:.0f} s") from None
        except OSError:
            return None
    answer: dict[str, Any] = json.loads(data)
    if "error" in answer:
        raise SessionUnavailable(folder.name, answer["error"])
    return answer


def seconds_of(name: str, length: Duration) -> float:
    """A limit of a session in seconds."""
    seconds = require_timedelta(name, length, is_positive=True).total_seconds()
    if seconds > 30 * 86400:
        raise InvalidInput(f"{name} is {length}, more than 30 days", do="choose less: an open transaction holds locks")
    return seconds
