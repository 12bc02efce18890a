"""Artifacts: the files that a task has recorded as its own, listed and downloaded.

What is sent is what was recorded: a file is opened without following links, its bytes are compared with the recorded
hash before the first one leaves, and compared again while they are sent. A browser never shows one: each is an
attachment without a type.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from urllib.parse import quote

from msgspec import UNSET, Struct, UnsetType

from perdure._ground.clock import moment
from perdure._tasks import Task
from perdure.errors import PathRefused
from perdure.memory import RecordedFile
from perdure.server.http import Answer, Ask, HttpProblem, Streamed
from perdure.server.nouns.references import glance_at, no_such
from perdure.server.shapes.tasks import Listed
from perdure.server.table import Nothing, Route

_CHUNK = 256 * 1024  # bytes
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_PAGE = 200  # checkpoints


class ArtifactSummary(Struct, frozen=True, kw_only=True):
    """A recorded file without its bytes."""

    sha256: str
    size: int | None
    at: datetime | None  # when it was recorded
    checkpoint: int | None  # the newest one at that time
    path: str | UnsetType = UNSET  # from the task's folder, with /
    host: str | UnsetType = UNSET  # the machine that it lies on


async def page(ask: Ask[Nothing, None]) -> Answer:
    task, _ = await glance_at(ask)
    found = await RecordedFile.all_of(task)
    taken = await _checkpoints(ask, task) if found else []
    items = [_summary(ask, file, taken) for file in found]
    return Answer(Listed(items, moment(ask.server.clock.now_ms()), None))


def _summary(ask: Ask[Nothing, None], file: RecordedFile, taken: Sequence[tuple[datetime, int]]) -> ArtifactSummary:
    before = 0 if file.at is None else bisect_right(taken, (file.at, 1 << 62))
    shown = {"path": file.path, "host": file.host} if ask.caller.reads_data else {}
    checkpoint = taken[before - 1][1] if before else None
    return ArtifactSummary(sha256=file.sha256, size=file.size, at=file.at, checkpoint=checkpoint, **shown)


async def _checkpoints(ask: Ask[Nothing, None], task: Task) -> Sequence[tuple[datetime, int]]:
    """When each checkpoint of the task was taken."""
    taken: list[tuple[datetime, int]] = []
    after = 0
    while True:
        found = await ask.app.checkpoints.page(task, after=after, limit=_PAGE)
        taken += [(info.timestamp, info.seq) for info in found.items]
        if found.cursor is None:
            return sorted(taken)
        after = int(found.cursor)


async def download(ask: Ask[Nothing, None]) -> Streamed:
    task, _ = await glance_at(ask)
    wanted = ask.parts["sha256"].lower()
    found = [file for file in await RecordedFile.all_of(task) if file.sha256 == wanted]
    if not found:
        raise no_such("artifact")
    here = [file for file in found if file.folder and not file.is_elsewhere]
    if not here:
        host = found[0].host or "a machine that was not noted"
        raise HttpProblem(
            409, "elsewhere", f"the file lies on {host}", do="ask a server there", values={"host": found[0].host}
        )
    sending = await asyncio.to_thread(_first_unchanged, here)
    try:
        return sending.answer(ask.headers)
    except BaseException:
        await sending.aclose()
        raise


def _first_unchanged(files: Sequence[RecordedFile]) -> _Sending:
    """The first of the files, all recorded with one hash, that still has it."""
    for file in files:
        try:
            return _Sending(file)
        except (PathRefused, OSError):
            continue
    raise HttpProblem(
        410,
        "changed",
        "the file is not there any more, or holds something else than what was recorded",
        do="GET …/artifacts lists what was recorded since",
    )


class _Sending:
    """The bytes of one open file, from one place to another. They are compared with the hash once more as they go."""

    def __init__(self, file: RecordedFile) -> None:
        self._file, self._open = file, ExitStack()
        self._descriptor, self.size = self._open.enter_context(file.opened())
        self._written_at = os.fstat(self._descriptor).st_mtime_ns
        self._at, self._end = 0, self.size
        self._is_whole, self._digest = True, hashlib.sha256()

    def answer(self, headers: Mapping[str, str]) -> Streamed:
        """
        Raises:
            HttpProblem: the range lies outside of the file.
        """
        tag = f'"{self._file.sha256}"'
        part = headers.get("range") if headers.get("if-range", tag) == tag else None
        status = 206 if part is not None and self._cut(part) else 200
        name = quote(self._file.path.rpartition("/")[2], safe="")
        told = {
            "Content-Disposition": f"attachment; filename*=UTF-8''{name}",
            "Content-Length": str(self._end - self._at),
            "Accept-Ranges": "bytes",
            "ETag": tag,
        }
        if status == 206:
            told["Content-Range"] = f"bytes {self._at}-{self._end - 1}/{self.size}"
        return Streamed(self, status=status, headers=told)

    def _cut(self, text: str) -> bool:
        """True if the header names one range; several, or another unit, count as none, as RFC 9110 allows."""
        if (named := _RANGE.fullmatch(text.strip())) is None or not any(named.groups()):
            return False
        first, last = named.groups()
        if first:
            self._at, self._end = int(first), min(int(last) + 1 if last else self.size, self.size)
        else:
            self._at = max(0, self.size - int(last))
        self._is_whole = False
        if self._at >= self._end:
            raise HttpProblem(
                416, "bad_range", f"the file has {self.size} bytes", headers={"Content-Range": f"bytes */{self.size}"}
            )
        return True

    def __aiter__(self) -> _Sending:
        return self

    async def __anext__(self) -> bytes:
        if self._at >= self._end:
            raise StopAsyncIteration
        block = await asyncio.to_thread(os.pread, self._descriptor, min(_CHUNK, self._end - self._at), self._at)
        self._at += len(block)
        if self._is_whole:
            self._digest.update(block)
        is_over = self._at == self._end
        if not block or self._was_written() or (is_over and self._is_whole and not self._is_as_recorded()):
            raise ConnectionAbortedError("a file was changed while it was sent")  # cuts the connection
        return block

    def _was_written(self) -> bool:
        return os.fstat(self._descriptor).st_mtime_ns != self._written_at

    def _is_as_recorded(self) -> bool:
        return self._digest.hexdigest() == self._file.sha256

    async def aclose(self) -> None:
        self._open.close()


ROUTES = (
    Route(
        method="GET",
        path="/v1/tasks/{task}/artifacts",
        handler=page,
        does="The files that a task has recorded as its own, in order.",
        scopes=("tasks:read",),
        answer=Listed[ArtifactSummary],
    ),
    Route(
        method="GET",
        path="/v1/tasks/{task}/artifacts/{sha256}",
        handler=download,
        does="The bytes of a recorded file, if it still holds them. One `Range` is served.",
        scopes=("data:read",),
        headers={"Range": "may", "If-Range": "may"},
        statuses=(206, 409, 410, 416),
        answers="application/octet-stream",
        streams=True,
    ),
)
