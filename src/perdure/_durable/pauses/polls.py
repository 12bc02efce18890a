"""`pause.poll`: look now and then whether something is there, with no process held in between.

A check of perdure.checks is described with the question, and any worker makes it. Any other callable is known only
to this code: when it is due, the task is carried on up to here, which looks once and pauses again.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from perdure._durable.attempt import Attempt, Scope, current, short_name
from perdure._durable.pauses.questions import Open, answer_to, close_question, question_of
from perdure._durable.values import Signature
from perdure._ground.clock import moment
from perdure._model import Asked, from_stored, next_check, to_stored
from perdure._tasks import POLL_TOPIC, WAS_DUE, checks
from perdure.errors import InvalidInput, TimedOut


class Poll:
    """One call of pause.poll."""

    def __init__(
        self,
        check: Callable[[], Awaitable[Any]],
        every: timedelta,
        backoff: float,
        limit: timedelta | None,
        what: str,
    ) -> None:
        if not 1 <= backoff <= 10:
            raise InvalidInput(f"backoff is {backoff}; it is the factor the interval grows by, from 1 to 10")
        self._check = check
        self._every_ms, self._backoff = every // timedelta(milliseconds=1), backoff
        self._limit = limit
        self._described = check if isinstance(check, checks.Described) else None
        self.what = what or (self._described.what if self._described else short_name(check))
        self.returns = Any if self._described else _returns_of(check)

    async def put(self, attempt: Attempt, path: str) -> Any:
        """Record what was found.

        Raises:
            TimedOut: nothing was, within the limit.
        """
        if path in attempt.answers:
            return self._found(attempt.answers[path])
        now, opened = await attempt.store.wall_ms(), attempt.unwinding.asked.get(path)
        if opened is None:
            found, asked = await self._look(attempt, path), self._first(now)
        else:
            asked = from_stored(opened.question.get("asked")) or self._first(now)
            found = await self._look_again(attempt, path, asked, opened, now)
        if found is not None:
            close_question(attempt, path, "checked", {"value": found})
            return found
        return self._found(await self._wait(attempt, path, asked, now))

    def _first(self, now: int) -> Asked:
        limit = None if self._limit is None else now + self._limit // timedelta(milliseconds=1)
        check = self._described.description if self._described else None
        every, backoff = self._every_ms, self._backoff
        return Asked(kind="poll", every_ms=every, backoff=backoff, expires_at=limit, check=check)

    async def _look_again(self, attempt: Attempt, path: str, asked: Asked, opened: Open, now: int) -> Any:
        """Look if it is time; the next look is on record before this one begins."""
        due = opened.question.get(WAS_DUE, opened.due_at)
        if due is not None and due > now:
            return None
        if asked.expires_at is not None and asked.expires_at <= now:
            raise self._nothing()
        again = replace(asked, checks=asked.checks + 1)
        due_at = next_check(again, now, random.random())  # noqa: S311
        question = {name: value for name, value in opened.question.items() if name != WAS_DUE}
        question["asked"] = to_stored(again)
        params = {
            "path": path,
            "seen_due_at": opened.due_at,
            "due_at": due_at,
            "question": attempt.store.seal(attempt.uid, "pause", question),
        }
        if await attempt.store.verb("rearm_pause", attempt.uid, params, key=attempt.task_id) is None:
            # A worker was quicker, and looks at it itself; or it only made room for others.
            newer = await self._open_now(attempt, path)
            return None if newer is None else await self._look_again(attempt, path, asked, newer, now)
        attempt.unwinding.asked[path] = Open(question, opened.asked_at, due_at)
        return await self._look(attempt, path)

    async def _open_now(self, attempt: Attempt, path: str) -> Open | None:
        """The question as it is now; None when it has its answer."""
        for at, _, _, question, asked_at, due_at, answer, *_ in await attempt.store.query(
            "read_pauses", uid=attempt.uid
        ):
            if at == path and answer is None:
                return Open(attempt.store.unseal(attempt.uid, "pause", question), asked_at, due_at)
        return None

    async def _look(self, attempt: Attempt, path: str) -> Any:
        attempt.activity.bodies -= 1  # as long as it must not start
        try:
            await attempt.may_start()
        finally:
            attempt.activity.bodies += 1
        token = current.set(Scope(attempt, path, is_body=True))
        try:
            found: Any = self._check()  # a plain function will do
            return await found if inspect.isawaitable(found) else found
        finally:
            current.reset(token)

    async def _wait(self, attempt: Attempt, path: str, asked: Asked, now: int) -> Any:
        due_at = next_check(asked, now, random.random())  # noqa: S311
        expires = None if asked.expires_at is None else moment(asked.expires_at)
        details = {**(asked.check or {}), "every": timedelta(milliseconds=asked.every_ms), "expires": expires}
        question = question_of(self.what, asked, **details)
        topic = POLL_TOPIC if self._described else None
        return await answer_to(attempt, path, "external_dependency", question, due_at, topic=topic, counts=True)

    def _found(self, answer: dict[str, Any]) -> Any:
        if answer.get("expired"):
            raise self._nothing()
        return answer["value"]

    def _nothing(self) -> TimedOut:
        return TimedOut(f"{self.what} was not there within {self._limit}", kept="the task goes on")


def _returns_of(check: Callable[[], Awaitable[Any]]) -> Any:
    try:
        return Signature(check).returns
    except (TypeError, ValueError):  # a callable that does not tell
        return Any
