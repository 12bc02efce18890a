"""`pause.*` inside a durable function: stop for a typed reason without holding a process, and continue with the answer.

Each is a question (questions.py) with one who answers: a person, another system by its token, a timer, a worker that
runs a check, another task that ends. The answer is recorded, so a replay does not ask again.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any, Literal, TypeVar, overload

from msgspec import Struct

from perdure._durable.attempt import Attempt
from perdure._durable.pauses.polls import Poll
from perdure._durable.pauses.questions import answer_to, question_of, recorded
from perdure._durable.values import schema_of
from perdure._ground.clock import moment, to_ms
from perdure._ground.durations import Duration, require_seconds, require_timedelta, shown_length
from perdure._ground.encoding import codec
from perdure._ground.ids import check_id
from perdure._model import FINISHED, Asked, first_look, jitter_ms
from perdure._replay import digest
from perdure._store import TaskRow
from perdure._tasks import TASK_TOPIC, callback_topic, end_of, make_token
from perdure.errors import InvalidInput, RateLimited, Rejected, TaskFailed, TimedOut

T = TypeVar("T")
Json = Any

LONGEST_WAIT = timedelta(days=36_525)
# Without a word of the provider's the first wait, the longest, and after how long it counts as a new beginning.
FIRST_WAIT_MS, LONGEST_WAIT_MS, QUIET_MS = 1_000, 300_000, 600_000


class Approval(Struct, frozen=True, kw_only=True):
    """A person's approval; `edited` is their changed version of what was `editable`."""

    by: str
    comment: str = ""
    edited: Json = None


async def approval(
    question: str,
    *,
    expires: Duration | None = None,
    default: Literal["approve", "reject"] = "reject",
    editable: Json = None,
) -> Approval:
    """Ask a person for a yes. If there is no decision in time, the `default` applies; a reminder is sent half-way.

    Raises:
        Rejected: the answer is no.
    """
    if default not in ("approve", "reject"):
        raise InvalidInput(f"default is {default!r}", do="choose approve or reject")

    async def put(attempt: Attempt, path: str) -> Any:
        due = await _deadline(attempt, expires)
        asked = Asked(kind="approval", **due, default=default, has_default=True, editable=editable)
        details = {"expires": _moment(asked.expires_at), "default": default, "editable": editable}
        return await _ask(attempt, path, "human_approval", question, asked, **details)

    answer = await recorded("pause.approval", digest((question,), {}), put)
    if answer["decision"] != "approve":
        raise Rejected(question, answer["by"], answer["comment"], expired=answer.get("expired", False))
    return Approval(by=answer["by"], comment=answer["comment"], edited=answer["edited"])


async def input(question: str, type: type[T], *, expires: Duration | None = None, default: T | None = None) -> T:
    """A person's answer, as this type. One that does not fit is refused, and the task stays paused.

    Raises:
        TimedOut: no answer arrived in time, and there is no default.
    """

    async def put(attempt: Attempt, path: str) -> Any:
        plain = None if default is None else _default_as(default, type)
        due, has = await _deadline(attempt, expires), default is not None
        asked = Asked(kind="input", **due, schema=schema_of(type), default=plain, has_default=has)
        details: dict[str, Any] = {"expires": _moment(asked.expires_at), "default": plain, "schema": asked.schema}
        return await _typed(attempt, path, "human_input", question, asked, type, **details)

    answer: T = await recorded("pause.input", digest((question,), {}), put, type)
    return answer


@overload
async def callback(
    what: str,
    type: type[T],
    *,
    link: str = "",
    expires: Duration | None = None,
    announce: Callable[[str], Awaitable[None]] | None = None,
) -> T: ...
@overload
async def callback(
    what: str,
    *,
    link: str = "",
    expires: Duration | None = None,
    announce: Callable[[str], Awaitable[None]] | None = None,
) -> Any: ...
async def callback(
    what: str,
    type: Any = Any,
    *,
    link: str = "",
    expires: Duration | None = None,
    announce: Callable[[str], Awaitable[None]] | None = None,
) -> Any:
    """Wait for another system, which answers by a token that `announce` gives to it. `link` shows people where to look.

    `announce` is called before the question is open: an early answer is kept. If the process dies in between, it is
    called again with another token, and both tokens are valid.

    Raises:
        TimedOut: nothing came in time.
    """

    async def put(attempt: Attempt, path: str) -> Any:
        topic = callback_topic(attempt.line, path)
        if announce is not None and path not in attempt.unwinding.asked and path not in attempt.answers:
            await attempt.flush()
            await announce(await make_token(attempt.store, attempt.uid, attempt.task_id, topic))
        asked = Asked(kind="callback", **(await _deadline(attempt, expires)), schema=schema_of(type))
        details = {"system": link or None, "expires": _moment(asked.expires_at)}
        return await _typed(attempt, path, "external_dependency", what, asked, type, topic=topic, **details)

    return await recorded("pause.callback", digest((what,), {}), put, type)


async def poll(
    check: Callable[[], Awaitable[T | None]],
    *,
    every: Duration,
    backoff: float = 1.0,
    limit: Duration | None = None,
    what: str = "",
) -> T:
    """Wait for what `check` finds. It is called now and then until it returns something other than None.

    Between two checks no process is held. Checks of perdure.checks are made by any worker; others by replaying
    the function up to here, so they should not be made every second. An exception ends the polling.

    Raises:
        TimedOut: nothing was found within `limit`.
    """
    apart = require_timedelta("every", every, is_positive=True)
    poll = Poll(check, apart, backoff, require_timedelta("limit", limit), what)
    found: T = await recorded("pause.poll", digest((poll.what,), {}), poll.put, poll.returns)
    return found


async def wait(
    length: Duration = "0s", /, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
) -> None:
    """Let so much time pass, by the clock on the wall; later if the machine was off. `wait("36h")`,
    `wait(timedelta(days=1.5))` and `wait(days=1, hours=12)` are the same; a length and units add up."""
    whole = require_timedelta("the length of a wait", length)
    whole += timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    if not timedelta(0) <= whole <= LONGEST_WAIT:
        raise InvalidInput(f"a wait cannot be {whole} long", do="wait for a length from 0 to a hundred years")

    async def put(attempt: Attempt, path: str) -> Any:
        if path in attempt.answers:
            return attempt.answers[path]
        due_at = await attempt.store.wall_ms() + _ms(whole)
        return await _wait_until(attempt, path, due_at, f"{shown_length(whole)} to pass")

    await recorded("pause.wait", digest((whole,), {}), put)


async def until(moment: datetime) -> None:
    """Continue at this moment, or as soon as possible after it. The moment that was given first counts."""
    if not isinstance(moment, datetime):
        raise InvalidInput(f"the moment is {moment!r}", do="give an aware datetime")
    due_at = to_ms(moment)

    async def put(attempt: Attempt, path: str) -> Any:
        return await _wait_until(attempt, path, due_at, moment.isoformat(timespec="seconds"))

    await recorded("pause.until", b"", put)


async def rate_limit(
    *,
    retry_after: float | Duration | None = None,
    reset_at: datetime | None = None,
    provider: str = "",
    max_wait: Duration | None = None,
) -> None:
    """Wait as a provider has asked: `retry_after` as in its header (a number or "120" is seconds), or until `reset_at`
    (X-RateLimit-Reset); with neither, longer each time. Other tasks that use the same `provider` wait too. A small
    random time is added, so that they do not all continue at once.

    Raises:
        RateLimited: it would be longer than `max_wait`.
    """
    longest = require_timedelta("max_wait", max_wait)

    async def put(attempt: Attempt, path: str) -> Any:
        if path in attempt.unwinding.asked or path in attempt.answers:
            return await _ask(attempt, path, "rate_limit", _limit_text(provider), Asked(kind="rate_limit"))
        now = await attempt.store.wall_ms()
        target = await _patience(attempt, provider, _reset(now, retry_after, reset_at), now)
        if longest is not None and target - now > _ms(longest):
            raise RateLimited(provider, moment(target))
        due_at = target + jitter_ms(target - now, random.random())  # noqa: S311
        asked = Asked(kind="rate_limit", due_at=due_at, provider=provider)
        details: dict[str, Any] = {"provider": provider or None, "reset_at": moment(due_at)}
        return await _ask(attempt, path, "rate_limit", _limit_text(provider), asked, **details)

    await recorded("pause.rate_limit", b"", put)


async def task(id: str, *, on_failure: Literal["raise", "return"] = "raise") -> Json:
    """Wait for another task, which need not exist yet, and get its result. If it fails or is cancelled,
    TaskFailed is raised, or its id, status and error are returned."""
    check_id(id)

    async def put(attempt: Attempt, path: str) -> Any:
        if id == attempt.task_id:
            raise InvalidInput(f"task {id!r} waits for itself", kept="nothing was written")
        if path in attempt.answers:
            return attempt.answers[path]
        store = attempt.store
        other = await store.row(TaskRow, "get_task", namespace=store.namespace, id=id)
        if other is not None and other.status in FINISHED:
            return {"value": await end_of(store, other)}
        text = f"task {id} to end"
        return await _ask(
            attempt, path, "external_dependency", text, Asked(kind="task"), topic=f"{TASK_TOPIC}{id}", task=id
        )

    ended = (await recorded("pause.task", digest((id,), {}), put))["value"]
    if ended is None or ended["status"] == "completed":
        return ended and ended.get("result")
    if on_failure == "raise":
        raise TaskFailed(id, ended["status"], "completed", ended.get("error"))
    return ended


async def yield_now() -> None:
    """Let others have this worker's slot; go on when it is this task's turn again."""

    async def put(attempt: Attempt, path: str) -> Any:
        if path in attempt.answers:
            return attempt.answers[path]
        asked = Asked(kind="yield", due_at=await attempt.store.wall_ms())
        return await _ask(attempt, path, "checkpoint", "its turn among the others", asked)

    await recorded("pause.yield_now", b"", put)


# ── asking ───────────────────────────────────────────────────────────────────────────────────────


async def _ask(
    attempt: Attempt, path: str, reason: str, text: str, asked: Asked, *, topic: str | None = None, **details: Any
) -> Any:
    if path in attempt.answers:
        return attempt.answers[path]
    question = question_of(text, asked, **details)
    due_at = first_look(asked, await attempt.store.wall_ms() if asked.every_ms else 0)
    return await answer_to(attempt, path, reason, question, due_at, topic=topic, counts=True)


async def _typed(
    attempt: Attempt,
    path: str,
    reason: str,
    text: str,
    asked: Asked,
    as_type: Any,
    *,
    topic: str | None = None,
    **details: Any,
) -> Any:
    """Decode the answer as its type. The schema was checked, but a type can require more: then the question is asked
    once more."""
    again, said = 0, text
    while True:
        place = f"{path}?{again}" if again else path
        answer = await _ask(attempt, place, reason, said, asked, topic=topic if not again else None, **details)
        if answer.get("expired") and not asked.has_default:
            raise TimedOut(f"{text!r} was not answered in time", kept="the task goes on")
        try:
            return codec.decode(codec.encode(answer["value"]), as_type)
        except Exception as problem:
            again += 1
            said = f"{text} (the answer {answer['value']!r} does not fit: {str(problem).splitlines()[0]})"


def _default_as(default: Any, as_type: Any) -> Any:
    """The default as an answer. A default that no answer could be is refused before the question is asked."""
    plain = codec.decode(codec.encode(default, as_type))
    try:
        codec.decode(codec.encode(plain), as_type)
    except Exception as problem:
        raise InvalidInput(f"the default {default!r} is none of {as_type}: {str(problem).splitlines()[0]}") from None
    return plain


async def _wait_until(attempt: Attempt, path: str, due_at: int, text: str) -> Any:
    asked = Asked(kind="wait", due_at=due_at)
    return await _ask(attempt, path, "scheduled_wait", text, asked, until=moment(due_at))


async def _deadline(attempt: Attempt, expires: Duration | None) -> dict[str, Any]:
    """When a question expires, and when it is reminded of: half-way there."""
    limit = require_timedelta("expires", expires)
    if limit is None:
        return {}
    now, length = await attempt.store.wall_ms(), _ms(limit)
    return {"expires_at": now + length, "remind_at": now + length // 2}


def _moment(ms: int | None) -> datetime | None:
    return None if ms is None else moment(ms)


def _ms(length: timedelta) -> int:
    return length // timedelta(milliseconds=1)


# ── rate limits ──────────────────────────────────────────────────────────────────────────────────


def _reset(now: int, retry_after: float | Duration | None, reset_at: datetime | None) -> int | None:
    if retry_after is not None and reset_at is not None:
        raise InvalidInput("a rate limit takes either retry_after or reset_at, not both")
    if retry_after is not None:
        is_plain = isinstance(retry_after, str) and retry_after.strip().isdecimal()  # as the header has it
        seconds = float(retry_after) if is_plain else require_seconds("retry_after", retry_after)  # type: ignore[arg-type]
        if not seconds <= LONGEST_WAIT.total_seconds():
            raise InvalidInput(f"retry_after is {retry_after!r}", do="give the seconds that the provider has named")
        return now + int(max(seconds, 0) * 1000)
    return None if reset_at is None else to_ms(reset_at)


async def _patience(attempt: Attempt, provider: str, reset: int | None, now: int) -> int:
    """Until when to wait: as we were told, as another task was told, or longer each time."""
    params = {
        "namespace": attempt.store.namespace,
        "provider": provider,
        "reset_at": reset,
        "at": now,
        "quiet_ms": QUIET_MS,
    }
    row = await attempt.store.verb("note_rate_limit", attempt.uid, params, key=attempt.task_id)
    _, streak, known = row or (1, 1, reset)
    if known is not None and known > now:
        return int(known)
    return now if reset is not None else now + min(FIRST_WAIT_MS << min(streak - 1, 20), LONGEST_WAIT_MS)


def _limit_text(provider: str) -> str:
    return f"{provider or 'a provider'} to take requests again"
