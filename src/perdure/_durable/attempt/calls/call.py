"""The parts every recorded call shares: its name, its types, the digest of its arguments, how it is cancelled."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from itertools import chain, repeat
from typing import Any

from perdure._durable.attempt.attempt import Attempt
from perdure._durable.attempt.calls.retry import Retry
from perdure._durable.attempt.scopes import short_name
from perdure._durable.values import (
    Signature,
    declare,
    decode_error,
    encode_error,
    is_async,
    reader_for,
    refuse_no_exceptions,
    refuse_no_function,
    refuse_no_name,
)
from perdure._ground.durations import Duration, require_timedelta
from perdure._ground.encoding import codec
from perdure._ground.exception_text import without_breaks
from perdure._ground.secrets.secret_forms import HIDDEN, is_telling
from perdure._model import Entry
from perdure._replay import digest
from perdure.errors import InvalidInput, NotStorable

Note = dict[str, str | int | float | None]
_SHOWN = 200  # characters of a call's arguments


class Call:
    """A function whose calls are recorded."""

    name: str
    identity: Callable[..., Any] | None
    raises: Sequence[type[BaseException]]
    retry: Retry | None
    timeout: timedelta | None
    flush: bool | None
    signature: Signature
    is_async: bool
    is_plain: bool
    told_plainly: bool
    has_secrets: bool
    plainly: Callable[[Any], tuple[bytes, Any] | None]

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str = "",
        identity: Callable[..., Any] | None = None,
        raises: Sequence[type[BaseException]] = (),
        retry: Retry | None = None,
        timeout: Duration | None = None,
        flush: bool | None = None,
    ) -> None:
        refuse_no_function(function)
        refuse_generator(function)
        refuse_no_name(name)
        limit = require_timedelta("timeout", timeout, is_positive=True)
        refuse_no_exceptions(raises=raises)
        if retry is not None and not isinstance(retry, Retry):
            raise InvalidInput(f"retry is {retry!r}", do=f"give a Retry: retry=Retry({retry!r})")
        self.function = function
        self.name = name or short_name(function)
        self.identity, self.raises, self.retry, self.timeout, self.flush = identity, raises, retry, limit, flush
        self.signature = Signature(function)
        self.is_async = is_async(function)
        self.is_plain = retry is None and limit is None
        # Whether positional arguments can be compared just as they are, because no parameter has a default.
        self.told_plainly = identity is None and not self.signature.is_method and self.signature.is_spelled_one_way
        # Whether a parameter's name says that its value is secret. Such a value is not shown.
        self.has_secrets = any(is_telling(name) for name in self.signature.names)
        declare(raises)
        self._read = reader_for(self.signature.returns)
        self.plainly = codec.keeper_of(self.signature.returns)
        if "|" in self.name or "#" in self.name:
            raise InvalidInput(f"the name {self.name!r} has a | or #, which divide paths")

    def digest(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """Digest of the arguments: tells this call from others of the same name.

        Raises:
            InvalidInput: an argument cannot be recorded, such as a function or a generator.
        """
        try:
            if self.identity is not None:
                return digest((self.identity(*args, **kwargs),), {})
            signature = self.signature
            if kwargs or len(args) > signature.plain:
                return digest(*signature.spelled(args, kwargs))
            return digest(args[1:] if signature.is_method else args, kwargs)
        except TypeError as problem:
            raise InvalidInput(
                f"{self.name} cannot be recorded: {problem}",
                do="pass data instead, or say by identity= which part of the arguments counts",
                kept="nothing ran",
            ) from None

    def shown(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """The call as a person reads it, without the instance of a method; the beginning of one that is long."""
        given = args[1:] if self.signature.is_method else args
        parts: Iterable[str] = map(_repr, given)
        if self.has_secrets:
            names = chain(self.signature.names, repeat(""))
            parts = (_repr(value, name) for name, value in zip(names, given, strict=False))
        if kwargs:
            parts = chain(parts, (f"{name}={_repr(value, name)}" for name, value in kwargs.items()))
        return without_breaks(f"{self.name}({', '.join(parts)[:_SHOWN]})")

    def read(self, entry: Entry) -> Any:
        """The outcome of a recorded call: its value, or its exception raised again."""
        if entry.error is not None:
            raise decode_error(entry.error, self.raises)
        assert entry.value is not None
        return self._read(entry.value)

    def end(self, value: Any, error: BaseException | None) -> tuple[bytes | None, bytes | None, Any]:
        """Value and error as bytes, and the value as the caller gets it."""
        if error is not None:
            return None, encode_error(error, self.raises), None
        data, copy = codec.round_trip(value, self.signature.returns)
        return data, None, copy

    def end_or_refuse(self, value: Any, error: BaseException | None) -> tuple[bytes | None, bytes | None, Any]:
        """The same; a result that cannot be kept is an error of the call, now as in replay."""
        try:
            return self.end(value, error)
        except NotStorable as problem:
            path = f"result of {self.name}" + (f", {problem.path}" if problem.path else "")
            return self.end(None, NotStorable(path, problem.problem, do=problem.do))


def _repr(value: Any, name: str = "") -> str:
    if name and isinstance(value, str | bytes) and is_telling(name):
        return HIDDEN
    try:
        return repr(value)
    except Exception:  # the user's own __repr__
        return f"<{type(value).__name__}>"


def refuse_generator(function: Callable[..., Any]) -> None:
    """Refuse a generator as a result: it cannot be stored, and its body has not run when the call returns.

    Raises:
        InvalidInput: the function yields.
    """
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidInput(
            f"{short_name(function)} yields, and what it gives bit by bit cannot be kept as one result",
            do="return a list; text that comes bit by bit is read through perdure.stream(name, produce)",
        )


def on_another_loop(name: str) -> InvalidInput:
    """Why an async call is refused that plain code has awaited by a loop of its own."""
    return InvalidInput(
        f"{name} is awaited on another event loop than that of its durable function",
        kept="it did not run",
        do=f"make the durable function async and await {name} in it, or make {name} a plain def and call it",
    )


# ── calls that were cut ──────────────────────────────────────────────────────────────────────────


def cut(attempt: Attempt, op: str, path: str, asked: bytes, note: Note | None = None) -> tuple[int, Entry] | None:
    """Record that a call was ended by the code's own cancellation; not by the end of the attempt."""
    if attempt.is_ending:
        return None
    entry = Entry("cut", op, path, asked, at=attempt.store.clock.now_ms(), epoch=attempt.epoch, note=note)
    position, _ = attempt.record(entry, urgent=note is not None)
    return position, entry


async def cut_off(
    attempt: Attempt, op: str, path: str, asked: bytes, *, note: Note | None = None, in_body: bool = False
) -> None:
    """The same, and return when it is the cancellation's turn to reach the code; inside a step there are no turns."""
    found = cut(attempt, op, path, asked, note)
    if found is None:
        return
    if in_body:
        attempt.cursor.learn(*found)
    elif attempt.activity.ordered > 1 or attempt.always_replay:
        await attempt.hand_out(found[0])


async def never(attempt: Attempt, position: int) -> Any:
    """A call that was cut: wait for the code's own cancellation, and for its turn."""
    ever = attempt.loop.create_future()
    attempt.gate.wait_for_ever(ever)
    try:
        await ever
    except asyncio.CancelledError:
        if attempt.activity.ordered > 1 and not attempt.is_ending:
            await attempt.gate.turn(position)
        raise
    finally:
        attempt.passed(position)
