"""Retry: how often a failed call is tried again, and how long to wait before each try."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import force_setattr

from perdure._durable.values import refuse_no_exceptions
from perdure._ground.bridge import Nap
from perdure._ground.clock import Clock
from perdure._ground.durations import Duration, require_timedelta
from perdure._ground.exception_text import in_one_line, message_of, name_and_message, printable
from perdure._ground.secrets.known_secrets import redact
from perdure._ground.traceback_text import trace_of
from perdure.errors import InvalidInput

log = logging.getLogger("perdure.durable")
_LONGEST_MESSAGE = 500  # characters, in the record of a failed try


class _Attempts(Struct, frozen=True):
    """The one argument that can be given by position."""

    attempts: int = 5


class Retry(_Attempts, frozen=True, kw_only=True):
    """Up to `attempts` tries, waiting `wait`, then `factor` times as long, at most `cap`.

    `on` names the exceptions worth another try; without it every Exception is. `new_key` gives an effect
    that definitely failed a new idempotency key.
    """

    wait: timedelta = timedelta(seconds=1)
    factor: float = 2.0
    cap: timedelta = timedelta(minutes=5)
    on: Sequence[type[BaseException]] = ()
    new_key: bool = False

    if TYPE_CHECKING:  # a wait can be given as text

        def __init__(
            self,
            attempts: int = 5,
            *,
            wait: Duration = ...,
            factor: float = 2.0,
            cap: Duration = ...,
            on: Sequence[type[BaseException]] = (),
            new_key: bool = False,
        ) -> None: ...

    def __post_init__(self) -> None:
        force_setattr(self, "wait", require_timedelta("wait", self.wait))
        force_setattr(self, "cap", require_timedelta("cap", self.cap))
        refuse_no_exceptions(on=self.on)
        if self.attempts < 1 or self.factor < 1:
            raise InvalidInput("a Retry has at least one attempt and a factor of 1 or more")
        force_setattr(self, "on", tuple(self.on))

    def delay(self, tries: int) -> timedelta:
        """How long to wait after the `tries`th try."""
        try:
            return min(self.wait * self.factor ** (tries - 1), self.cap)
        except OverflowError:  # longer than any time can be told
            return self.cap

    def wants_more(self, tries: int, error: BaseException) -> bool:
        return tries < self.attempts and (not self.on or isinstance(error, tuple(self.on)))


async def wait_until(clock: Clock, due_ms: int, longest: timedelta) -> None:
    """Wait for a moment that is at most `longest` away. If it seems further away, the wall clock was set back. The wall
    clock is read once: setting it meanwhile makes the wait neither longer nor shorter."""
    end = clock.boottime() + min((due_ms - clock.now_ms()) / 1000, longest.total_seconds())
    while (left := end - clock.boottime()) > 0:
        await Nap(min(left, 0.05))


def failed_try(shown: str, tries: int, retry: Retry, error: BaseException) -> dict[str, str | int | float | None]:
    """Log that a call has failed and is made again; what its record keeps of that."""
    trace = trace_of(error)
    wait = retry.delay(tries).total_seconds()
    what = redact(f"{shown} failed, try {tries} of {retry.attempts}: {in_one_line(name_and_message(error))}")
    log.warning("%s; it is tried again in %g s%s", printable(what), wait, f"\n{trace}" if trace else "")
    message = redact(message_of(error))[:_LONGEST_MESSAGE]
    return {"error": type(error).__name__, "message": message, "traceback": trace}
