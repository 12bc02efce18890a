"""Requests with an Idempotency-Key: the answer of the first one is given to those that repeat it.

The key goes into the write itself where the verb has a place for it; this is the shortcut beside it. An answer is kept
for 24 h, up to 64 kB. An answer that holds a secret is not kept: who repeats the request is told that it was done.

A server that dies between the write and the answer keeps none. The request is then carried out again, and may be
refused because it was done: the version has moved on, the task is cancelled, the trigger is there already. `look_back`
then tells whether the first try has done it, and what it would have answered (second_try.py).
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from msgspec import Struct, structs

from perdure._ground import crash_points as crash
from perdure._ground.ids import Process, is_alive_here, this_process
from perdure.server.credentials import Vault
from perdure.server.http.answer_bytes import to_json
from perdure.server.http.problems import HttpProblem, from_exception
from perdure.server.http.requests import Answer, Streamed

_DAY = 24 * 3600 * 1000  # milliseconds
_PATIENCE = 60_000  # after which a request that never ended counts as lost with its server on another machine
_LONGEST = 64 * 1024  # bytes
_SWEEP = 20
_under_way: set[str] = set()  # the turns that this process carries out now
# From the error of a second try to the answer of the first; None when the first has not done it.
LookBack: TypeAlias = Callable[[Exception], Awaitable[Answer | None]]


class KeptAnswer(Struct, frozen=True):
    """The stored answer of a request. Status 0: it is under way; no value: it is too long or too secret to store."""

    fingerprint: str
    begun_at: int
    by: Process | None = None  # whose process carries it out
    status: int = 0
    value: str | None = None
    etag: str | None = None
    headers: dict[str, str] = {}
    turn: str = ""  # of the process: which of its requests it is
    is_cut_off: bool = False  # it ended, or failed, when it may have written already


class Answers:
    """The answers of a store's servers."""

    def __init__(self, vault: Vault) -> None:
        self._shelf = vault.shelf("answer", KeptAnswer)
        self._clock = vault.clock

    async def give(
        self,
        key: str,
        fingerprint: str,
        carry_out: Callable[[], Awaitable[Answer | Streamed]],
        look_back: LookBack | None = None,
    ) -> Answer | Streamed:
        """The kept answer; without one, carry the request out and keep its answer.

        `look_back` is asked when a request that was cut off is refused on its second try: what the first one has done.

        Raises:
            HttpProblem: the key was used with another body (422), is in use (409), or its answer is not kept (409).
        """
        name, turn = hashlib.sha256(key.encode()).hexdigest(), secrets.token_hex(8)
        _under_way.add(turn)
        try:
            mark = await self._begin(name, KeptAnswer(fingerprint, self._clock.now_ms(), this_process(), turn=turn))
            return _again(mark) if mark.status else await self._first_answer(name, mark, carry_out, look_back)
        finally:
            _under_way.discard(turn)

    async def _first_answer(
        self,
        name: str,
        mark: KeptAnswer,
        carry_out: Callable[[], Awaitable[Answer | Streamed]],
        look_back: LookBack | None,
    ) -> Answer | Streamed:
        crash.place("server.marked")
        try:
            answer = await carry_out()
        except Exception as error:
            done = await look_back(error) if mark.is_cut_off and look_back is not None else None
            if done is None:
                await self._give_up(name, mark, may_be_done=from_exception(error).status >= 500)
                raise
            answer = done
        except BaseException:
            await self._give_up(name, mark, may_be_done=True)
            raise
        if isinstance(answer, Streamed):
            await self._give_up(name, mark)
        else:
            crash.place("server.carried_out")
            await self._keep(name, mark.fingerprint, answer)
            crash.place("server.kept")
        return answer

    async def _begin(self, name: str, mark: KeptAnswer) -> KeptAnswer:
        """Mark the key as in use; an answer that is there already is returned instead of the mark."""
        now = mark.begun_at
        for old in await self._shelf.due(now, limit=_SWEEP):
            await self._shelf.drop(old)
        while not await self._shelf.add(name, mark, due_at=now + _DAY):
            kept = await self._shelf.get(name)
            if kept is None:
                continue
            if kept.value.fingerprint != mark.fingerprint:
                raise HttpProblem(
                    422, "key_reused", "this Idempotency-Key was used for another request", do="use a new key"
                )
            if kept.value.status:
                return kept.value
            if now - kept.value.begun_at < _PATIENCE and not _is_over(kept.value):
                raise HttpProblem(
                    409,
                    "still_running",
                    "a request with this Idempotency-Key is under way",
                    do="wait, and send it again",
                    headers={"Retry-After": "1"},
                )
            second = structs.replace(mark, is_cut_off=True)
            if await self._shelf.change(kept, second, due_at=now + _DAY):
                return second
        return mark

    async def _keep(self, name: str, fingerprint: str, answer: Answer) -> None:
        text = None if answer.is_secret else to_json(answer.value).decode()
        if text is not None and len(text) > _LONGEST:
            text = None
        now = self._clock.now_ms()
        done = KeptAnswer(fingerprint, now, None, answer.status, text, answer.etag, dict(answer.headers))
        await self._shelf.update(name, lambda _: (done, now + _DAY))

    async def _give_up(self, name: str, mark: KeptAnswer, *, may_be_done: bool = False) -> None:
        """The key may be used again. That a try was cut off, or failed when it may have written already, stays known:
        the next one has to look back."""
        if (kept := await self._shelf.get(name)) is None or kept.value.status:
            return
        if mark.is_cut_off or may_be_done:
            left = structs.replace(mark, by=None, begun_at=0, is_cut_off=True)
            await self._shelf.change(kept, left, due_at=kept.due_at)
        else:
            await self._shelf.drop(kept)


def _is_over(mark: KeptAnswer) -> bool:
    """True if nobody carries the request out any more, as far as can be known. If it was this process, it could not
    note so: the store was away. If it was another one of this machine, it has ended."""
    if mark.by is None or mark.by[:3] != this_process()[:3]:
        return False
    return mark.turn not in _under_way if mark.by == this_process() else not is_alive_here(mark.by)


def mark_of(key: str, fingerprint: str) -> str:
    """The mark on everything that a request writes, so that its next try finds it."""
    return hashlib.sha256(f"{key}\0{fingerprint}".encode()).hexdigest()[:32]


def fingerprint_of(path: bytes, query: bytes, body: bytes) -> str:
    return hashlib.sha256(b"\0".join([path, query, hashlib.sha256(body).digest()])).hexdigest()


def answered_before() -> HttpProblem:
    return HttpProblem(
        409,
        "answered_before",
        "this request was carried out before, and its answer is not kept",
        kept="what the first request did",
        do="look at what it made",
    )


def _again(kept: KeptAnswer) -> Answer:
    if kept.value is None:
        raise answered_before()
    value: Any = json.loads(kept.value)
    return Answer(value, kept.status, kept.etag, {**kept.headers, "Perdure-Repeated": "true"})
