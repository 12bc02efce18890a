"""Checks of the world outside that a task can wait for: an address, a command, a file.

    await pause.poll(checks.url("https://ci.example/jobs/812", expect={"state": "success"}), every=…)

A check runs and returns what it found, or None while there is nothing yet. Its description is stored with the question,
so any worker can run it without the task's code. A command is the exception: a process runs only commands that its own
code names (`checks.command(…)` in a durable function), or, with PERDURE_POLL_COMMANDS=1, those of stored pauses.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import stat
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from urllib.request import OpenerDirector

log = logging.getLogger("perdure.checks")

Json = Any
# A check that takes longer has found nothing.
TIMEOUT_SECONDS = 20.0
ALLOWED = "PERDURE_POLL_COMMANDS"
# Ids of tasks for which this process has logged that it must not run the command.
_told: set[str] = set()
_MOST_TOLD = 1_000
_MOST_BYTES = 1_000_000


class Described(Struct, frozen=True):
    """A check that can be told in data."""

    what: str
    description: Mapping[str, Json]

    async def __call__(self) -> Json:
        """Return what was found, or None. An error on the way counts as "not yet"."""
        return await make(self.description)


def url(address: str, *, expect: Mapping[str, Json] | int | None = None) -> Described:
    """There when a GET answers with 2xx (or with the status `expect`); with a mapping, when the JSON that comes
    back has these values. Answers with the JSON, or with the text."""
    return Described(address, {"url": address, **({} if expect is None else {"expect": expect})})


def command(*words: str) -> Described:
    """There when the command ends with 0. Answers with what it printed. No shell reads the words."""
    return Described(" ".join(words), {"command": list(words)})


def file(path: str | os.PathLike[str]) -> Described:
    """There when the file is. Answers with its path, size and the moment it was changed last."""
    return Described(os.fspath(path), {"file": os.path.abspath(os.fspath(path))})


def may_run_anywhere(description: Mapping[str, Json]) -> bool:
    """True if this process may run the check although it knows it only from the store."""
    return "command" not in description or may_run_commands()


def may_run_commands() -> bool:
    """True if this process runs commands of stored pauses."""
    return os.environ.get(ALLOWED) == "1"


def tell_not_allowed(id: str) -> None:
    """Say, once for each task, that this process leaves its command alone."""
    if id not in _told:
        if len(_told) >= _MOST_TOLD:
            _told.clear()
        _told.add(id)
        log.warning("task %s waits for a command, which this worker may not run; start one with %s=1", id, ALLOWED)


async def make(description: Mapping[str, Json]) -> Json:
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            if "url" in description:
                return await asyncio.to_thread(_fetch, str(description["url"]), description.get("expect"))
            if "command" in description:
                return await _run(description["command"])
            if "file" in description:
                return await asyncio.to_thread(_look, str(description["file"]))
    except Exception as problem:  # whatever it was, nothing was found; the next look is due soon
        log.info("a check of %s has found nothing: %s: %s", description, type(problem).__name__, problem)
    return None


def _fetch(address: str, expect: Json) -> Json:
    from urllib.error import HTTPError
    from urllib.request import Request

    if not address.lower().startswith(("http://", "https://")):
        return None
    request = Request(address, headers={"User-Agent": "perdure", "Accept": "application/json, */*"})
    try:
        with _web().open(request, timeout=TIMEOUT_SECONDS) as response:
            status, body = response.status, response.read(_MOST_BYTES)
    except HTTPError as refused:
        status, body = refused.code, refused.read(_MOST_BYTES)
    return judged(status, body.decode("utf-8", "replace"), expect)


def _web() -> OpenerDirector:
    """Only the web: a redirect cannot lead to a file or to another kind of server."""
    from urllib import request

    opener = request.OpenerDirector()
    for handler in (
        request.ProxyHandler(),
        request.HTTPHandler(),
        request.HTTPSHandler(),
        request.HTTPDefaultErrorHandler(),
        request.HTTPRedirectHandler(),
        request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener


def judged(status: int, text: str, expect: Json) -> Json:
    """The meaning of a server's answer: the value, or None for "not yet"."""
    if isinstance(expect, int) and not isinstance(expect, bool):
        return _value(text, status) if status == expect else None
    if not 200 <= status < 300:
        return None
    value = _value(text, status)
    if isinstance(expect, Mapping):
        has_all = isinstance(value, Mapping) and all(value.get(name) == one for name, one in expect.items())
        return value if has_all else None
    return value


def _value(text: str, status: int) -> Json:
    try:
        found = json.loads(text)
    except ValueError:
        found = text
    return {"status": status} if found in (None, "") else found


async def _run(words: Sequence[str]) -> Json:
    process = await asyncio.create_subprocess_exec(
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        output, _ = await process.communicate()
    except asyncio.CancelledError:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # with all that it has started
        raise
    if process.returncode != 0:
        return None
    return {"output": output[:_MOST_BYTES].decode("utf-8", "replace")}


def _look(path: str) -> Json:
    try:
        found = os.stat(path)
    except OSError:
        return None
    kind = "folder" if stat.S_ISDIR(found.st_mode) else "file"
    return {"path": path, "kind": kind, "size": found.st_size, "changed_at": found.st_mtime}
