"""Inside a durable function: stop for a typed reason, and go on with the answer.

The same as perdure.pause, without await. Written by tools/make_sync.py.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal, TypeVar, overload

from perdure import pause as _pause
from perdure._durable import as_async, waited
from perdure._ground.durations import Duration
from perdure.pause import Approval, Rejected

Json = Any
T = TypeVar("T")
__all__ = [
    "Approval",
    "Rejected",
    "approval",
    "callback",
    "input",
    "poll",
    "rate_limit",
    "task",
    "until",
    "wait",
    "yield_now",
]


def approval(
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
    return waited(_pause.approval(question, expires=expires, default=default, editable=editable))


@overload
def callback(
    what: str,
    type: type[T],
    *,
    link: str = "",
    expires: Duration | None = None,
    announce: Callable[[str], None] | None = None,
) -> T: ...


@overload
def callback(
    what: str, *, link: str = "", expires: Duration | None = None, announce: Callable[[str], None] | None = None
) -> Any: ...


def callback(
    what: str,
    type: Any = Any,
    *,
    link: str = "",
    expires: Duration | None = None,
    announce: Callable[[str], None] | None = None,
) -> Any:
    """Wait for another system, which answers by a token that `announce` gives to it. `link` shows people where to look.

    `announce` is called before the question is open: an early answer is kept. If the process dies in between, it is
    called again with another token, and both tokens are valid.

    Raises:
        TimedOut: nothing came in time.
    """
    return waited(_pause.callback(what, type, link=link, expires=expires, announce=as_async(announce)))


def input(question: str, type: type[T], *, expires: Duration | None = None, default: T | None = None) -> T:
    """A person's answer, as this type. One that does not fit is refused, and the task stays paused.

    Raises:
        TimedOut: no answer arrived in time, and there is no default.
    """
    return waited(_pause.input(question, type, expires=expires, default=default))


def poll(
    check: Callable[[], T | None],
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
    return waited(_pause.poll(as_async(check), every=every, backoff=backoff, limit=limit, what=what))


def rate_limit(
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
    waited(_pause.rate_limit(retry_after=retry_after, reset_at=reset_at, provider=provider, max_wait=max_wait))


def task(id: str, *, on_failure: Literal["raise", "return"] = "raise") -> Json:
    """Wait for another task, which need not exist yet, and get its result. If it fails or is cancelled,
    TaskFailed is raised, or its id, status and error are returned."""
    return waited(_pause.task(id, on_failure=on_failure))


def until(moment: datetime) -> None:
    """Continue at this moment, or as soon as possible after it. The moment that was given first counts."""
    waited(_pause.until(moment))


def wait(
    length: Duration = "0s", /, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
) -> None:
    """Let so much time pass, by the clock on the wall; later if the machine was off. `wait("36h")`,
    `wait(timedelta(days=1.5))` and `wait(days=1, hours=12)` are the same; a length and units add up."""
    waited(_pause.wait(length, days=days, hours=hours, minutes=minutes, seconds=seconds))


def yield_now() -> None:
    """Let others have this worker's slot; go on when it is this task's turn again."""
    waited(_pause.yield_now())
