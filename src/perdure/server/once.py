"""Requests with an Idempotency-Key: the answer of the first one is given to those that repeat it.

The key goes into the write itself where the verb has a place for it; this is the shortcut beside it. An answer is kept
for 24 h, up to 64 kB. An answer that holds a secret is not kept: who repeats the request is told that it was done.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from perdure._ground import crash_points as crash
from perdure._ground.ids import Process, is_alive_here, this_process
from perdure._tasks import Kept
from perdure.server.credentials import Vault
from perdure.server.encoding import to_json
from perdure.server.problems import HttpProblem
from perdure.server.requests import Answer, Streamed

_DAY = 24 * 3600 * 1000  # milliseconds
_PATIENCE = 60_000  # after which a request that never ended counts as lost with its server on another machine
_LONGEST = 64 * 1024  # bytes
_SWEEP = 20


class KeptAnswer(Struct, frozen=True):
    """What became of a request. Status 0: it is under way; no value: it is too long or too secret to keep."""

    fingerprint: str
    begun_at: int
    by: Process | None = None  # whose process carries it out
    status: int = 0
    value: str | None = None
    etag: str | None = None
    headers: dict[str, str] = {}


class Answers:
    """The answers of a store's servers."""

    def __init__(self, vault: Vault) -> None:
        self._shelf = vault.shelf("answer", KeptAnswer)
        self._clock = vault.clock

    async def give(
        self, key: str, fingerprint: str, carry_out: Callable[[], Awaitable[Answer | Streamed]]
    ) -> Answer | Streamed:
        """The kept answer; without one, carry the request out and keep its answer.

        Raises:
            HttpProblem: the key was used with another body (422), is in use (409), or its answer is not kept (409).
        """
        name = hashlib.sha256(key.encode()).hexdigest()
        if (kept := await self._begin(name, fingerprint)) is not None:
            return _again(kept.value)
        crash.place("server.marked")
        try:
            answer = await carry_out()
        except BaseException:
            await self._forget(name)
            raise
        if isinstance(answer, Streamed):
            await self._forget(name)
        else:
            crash.place("server.carried_out")
            await self._keep(name, fingerprint, answer)
            crash.place("server.kept")
        return answer

    async def _begin(self, name: str, fingerprint: str) -> Kept[KeptAnswer] | None:
        """Mark the key as in use; an answer that is there already is returned instead."""
        now = self._clock.now_ms()
        for old in await self._shelf.due(now, limit=_SWEEP):
            await self._shelf.drop(old)
        mark = KeptAnswer(fingerprint, now, this_process())
        while not await self._shelf.add(name, mark, due_at=now + _DAY):
            kept = await self._shelf.get(name)
            if kept is None:
                continue
            if kept.value.fingerprint != fingerprint:
                raise HttpProblem(
                    422, "key_reused", "this Idempotency-Key was used for another request", do="use a new key"
                )
            if kept.value.status:
                return kept
            if now - kept.value.begun_at < _PATIENCE and not _is_lost(kept.value.by):
                raise HttpProblem(
                    409,
                    "still_running",
                    "a request with this Idempotency-Key is under way",
                    do="wait, and send it again",
                    headers={"Retry-After": "1"},
                )
            if await self._shelf.change(kept, mark, due_at=now + _DAY):
                return None
        return None

    async def _keep(self, name: str, fingerprint: str, answer: Answer) -> None:
        text = None if answer.is_secret else to_json(answer.value).decode()
        if text is not None and len(text) > _LONGEST:
            text = None
        now = self._clock.now_ms()
        done = KeptAnswer(fingerprint, now, None, answer.status, text, answer.etag, dict(answer.headers))
        await self._shelf.update(name, lambda _: (done, now + _DAY))

    async def _forget(self, name: str) -> None:
        if (kept := await self._shelf.get(name)) is not None and not kept.value.status:
            await self._shelf.drop(kept)


def _is_lost(process: Process | None) -> bool:
    """Whether the process that carried a request out has ended, as far as can be known: it ran on this machine."""
    return process is not None and process[:3] == this_process()[:3] and not is_alive_here(process)


def fingerprint_of(path: bytes, query: bytes, body: bytes) -> str:
    return hashlib.sha256(b"\0".join([path, query, hashlib.sha256(body).digest()])).hexdigest()


def _again(kept: KeptAnswer) -> Answer:
    if kept.value is None:
        raise HttpProblem(
            409,
            "answered_before",
            "this request was carried out before, and its answer is not kept",
            kept="what the first request did",
            do="look at what it made",
        )
    value: Any = json.loads(kept.value)
    return Answer(value, kept.status, kept.etag, {**kept.headers, "Perdure-Repeated": "true"})
