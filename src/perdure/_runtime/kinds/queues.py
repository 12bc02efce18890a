"""Requests that are queued and not sent yet: each is sent once, also by the next process.

Every step is on disk before the next: queued, being sent, sent. A request that was being sent when its process died
is not known to have arrived: it is sent again only where the other side honours its key, else it stays uncertain and
is named. A request made for another version of the API is not sent; it can be made again.

Owns a small file of its own beside the store, so that no save is needed between two requests; sealed, if the store has
a key.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal
from zlib import crc32

import msgspec

from perdure._ground import crash_points as crash
from perdure._ground.bridge import Call
from perdure._ground.ids import check_id
from perdure._ground.secrets import envelope
from perdure._ground.secrets.crypto import KeyRing
from perdure._model import Verdict
from perdure._runtime.context import Place, UnitType
from perdure._runtime.secrets import resolve
from perdure.errors import InvalidInput, RecordDamaged

Stage = Literal["queued", "sending", "sent", "refused", "dropped"]


class QueuedRequest(msgspec.Struct, frozen=True):
    """One request; its id is the key the other side can know it by. Headers may be references to secrets."""

    id: str
    method: str
    url: str
    headers: dict[str, str] = {}
    body: bytes = b""
    api_version: str = ""


class _Line(msgspec.Struct, array_like=True):
    stage: Stage
    id: str
    request: QueuedRequest | None = None


Send = Callable[[QueuedRequest], "Any | Awaitable[Any]"]


class RequestQueue:
    """A queue of requests in one file."""

    path: Path
    is_new: bool

    def __init__(self, path: str | Path, ring: KeyRing | None = None) -> None:
        """
        Raises:
            RecordDamaged: a record in the middle of its file is not what was written.
            KeyMissing: it is sealed with a key that is not here.
        """
        self.path, self._ring = Path(path), ring or KeyRing()
        self.is_new = not self.path.exists()
        self._requests: dict[str, QueuedRequest] = {}
        self._stages: dict[str, Stage] = {}
        self._read()

    # ── queueing ────────────────────────────────────────────────────────────────────────────────

    def add(self, request: QueuedRequest) -> None:
        """Queue a request; once this returns, it outlives the process. The same id again changes nothing."""
        check_id(request.id, "id of a request")
        if request.id not in self._requests:
            self._write(_Line("queued", request.id, request))

    @property
    def waiting(self) -> list[str]:
        """The ids that were not sent yet, in order."""
        return [id for id, stage in self._stages.items() if stage == "queued"]

    @property
    def uncertain(self) -> list[str]:
        """The ids that were being sent when their process died."""
        return [id for id, stage in self._stages.items() if stage == "sending"]

    @property
    def refused(self) -> list[str]:
        """The ids that were made for another version of the API."""
        return [id for id, stage in self._stages.items() if stage == "refused"]

    def told(self) -> list[dict[str, Any]]:
        """The messages that are not sent yet, as plain data."""
        ids = [*self.uncertain, *self.waiting]
        plain = {id: msgspec.to_builtins(self._requests[id], builtin_types=(bytes,)) for id in ids}
        return [{"stage": self._stages[id], **plain[id]} for id in ids]

    def settle(self, id: str, *, happened: bool) -> None:
        """Say of an uncertain request whether it arrived; if not, it is queued again."""
        if self._stages.get(id) != "sending":
            raise InvalidInput(f"request {id!r} is not uncertain")
        self._write(_Line("sent" if happened else "queued", id))

    def remake(self, id: str, request: QueuedRequest) -> None:
        """Put a request for the present version in the place of a refused one."""
        if self._stages.get(id) != "refused":
            raise InvalidInput(f"request {id!r} was not refused")
        self._write(_Line("dropped", id))
        self.add(request)

    # ── sending ─────────────────────────────────────────────────────────────────────────────────

    async def send_all(self, send: Send, *, api_version: str = "", keyed: bool = False) -> list[str]:
        """Send what is queued, in order; the ids that were sent now.

        With `keyed` the other side knows a request by its id, so uncertain ones are sent again too. If `send`
        raises, that request is uncertain, and the error is the caller's.
        """
        sent = []
        for id in [*(self.uncertain if keyed else ()), *self.waiting]:
            request = self._requests[id]
            if request.api_version != api_version:
                self._write(_Line("refused", id))
                continue
            self._write(_Line("sending", id))
            crash.place("queue.sending")
            headers = {name: resolve(value) for name, value in request.headers.items()}
            answer = send(msgspec.structs.replace(request, headers={**headers, "Idempotency-Key": id}))
            if inspect.isawaitable(answer):
                await answer
            crash.place("queue.sent")
            self._write(_Line("sent", id))
            sent.append(id)
        return sent

    # ── the file ────────────────────────────────────────────────────────────────────────────────

    def _read(self) -> None:
        data = b"" if self.is_new else self.path.read_bytes()
        at = 0
        while at < len(data):
            end = at + 8 + int.from_bytes(data[at : at + 4])
            body = data[at + 8 : end]
            if end > len(data):
                os.truncate(self.path, at)  # torn by a death: it never returned to its caller
                break
            if crc32(body) != int.from_bytes(data[at + 4 : at + 8]):
                raise RecordDamaged(f"the queue {self.path}", f"the record at byte {at} is not what was written")
            told = envelope.unseal(body, kind="queue", bound_to=self.path.name, ring=self._ring)
            self._note(msgspec.msgpack.decode(told, type=_Line))
            at = end

    def _write(self, line: _Line) -> None:
        told = msgspec.msgpack.encode(line)
        body = envelope.seal(told, kind="queue", bound_to=self.path.name, ring=self._ring)
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(self.path, "ab", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(len(body).to_bytes(4) + crc32(body).to_bytes(4) + body)
            file.flush()
            os.fsync(file.fileno())
        self._note(line)

    def _note(self, line: _Line) -> None:
        if line.request is not None:
            self._requests[line.id] = line.request
        self._stages[line.id] = line.stage


class QueueType(UnitType):
    kind = "queue"

    async def capture(self, live: RequestQueue, place: Place) -> Any:
        return {"path": str(live.path), "requests": live.told()}

    async def validate(self, recipe: Any, place: Place) -> Verdict:
        queue = await Call(lambda: RequestQueue(recipe["path"], place.ring))
        if queue.is_new:
            return Verdict("rebuilt", f"{len(recipe['requests'])} requests from the checkpoint")
        unsure = tuple(f"whether {id} was sent is not known" for id in queue.uncertain)
        return Verdict("kept", f"{len(queue.waiting)} requests wait to be sent", do_not_assume=unsure)

    async def restore(self, recipe: Any, place: Place) -> RequestQueue:
        return await Call(lambda: _restored(recipe, place.ring))

    async def rollback(self, live: RequestQueue, place: Place) -> None:
        if live.is_new:
            live.path.unlink(missing_ok=True)


def _restored(recipe: Any, ring: KeyRing) -> RequestQueue:
    """The queue from its own file, which knows best; where that is gone, from the checkpoint."""
    queue = RequestQueue(recipe["path"], ring)
    for told in recipe["requests"] if queue.is_new else ():
        request = msgspec.convert(told, QueuedRequest)
        queue.add(request)
        if told["stage"] == "sending":
            queue._write(_Line("sending", request.id))
    return queue
