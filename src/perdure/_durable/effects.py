"""`@effect`: a call that touches the world, and is never repeated silently.

Its intent is on disk before it starts. If its outcome is not known, because the process died or because
the body raised or was cancelled, it is uncertain, and it is settled: by a probe (`verify`), by a retry with
the same key (`keyed`), or by a person. Never by guessing.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import inspect
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from datetime import timedelta
from typing import Any, Generic, Literal, ParamSpec, TypeVar, overload

from perdure._durable.functions import Call, cut, in_body, never, poison
from perdure._durable.pauses import ask_person
from perdure._durable.retry import Retry
from perdure._durable.run import Run
from perdure._durable.scopes import current
from perdure._durable.values import decode_error
from perdure._ground import codec, crash
from perdure._model import Entry, name_of
from perdure._replay import Cut, Diverged, Recorded, Uncertain
from perdure.errors import EffectUncertain, InvalidInput, NoTask

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")


class Happened(Generic[T]):
    """A probe's answer: the effect happened, and this was its result."""

    def __init__(self, value: T) -> None:
        self.value = value


class _Answer:
    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


DID_NOT_HAPPEN = _Answer("DID_NOT_HAPPEN")
UNKNOWN = _Answer("UNKNOWN")


class DidNotHappen(Exception):
    """Raised in an effect's body: it was definitely not done."""


_key: ContextVar[str] = ContextVar("perdure_key")


def idempotency_key() -> str:
    """The key of the effect that is running: the same over retries and restarts, for the target to know it by."""
    try:
        return _key.get()
    except LookupError:
        raise NoTask("idempotency_key()") from None


def key_of(uid: str, line: int, path: str, asked: bytes, number: int = 0) -> str:
    """The key of an effect: computed once, stored in its intent, and read from there for ever."""
    parts = (uid.encode(), str(line).encode(), path.encode(), asked, str(number).encode())
    whole = b"".join(len(part).to_bytes(4) + part for part in parts)
    return "prd-" + hashlib.sha256(whole).hexdigest()[:40]


class EffectCall(Call):
    def __init__(
        self,
        function: Callable[..., Any],
        *,
        verify: Callable[..., Any] | None = None,
        keyed: bool = False,
        on_uncertain: Literal["ask", "fail"] = "ask",
        undo: Callable[..., Any] | None = None,
        failed_on: Sequence[type[BaseException]] = (),
        timeout: timedelta = timedelta(minutes=10),
        **options: Any,
    ) -> None:
        super().__init__(function, timeout=timeout, **options)
        if on_uncertain not in ("ask", "fail"):
            raise InvalidInput(f"on_uncertain is {on_uncertain!r}", do="choose ask or fail")
        self.verify, self.keyed, self.on_uncertain, self.undo = verify, keyed, on_uncertain, undo
        self.failed_on: tuple[type[BaseException], ...] = (DidNotHappen, *failed_on)
        self.raises = (DidNotHappen, *self.raises)


@overload
def effect(function: Callable[P, R], /) -> Effect[P, R]: ...
@overload
def effect(
    *,
    name: str = "",
    verify: Callable[..., Any] | None = None,
    keyed: bool = False,
    on_uncertain: Literal["ask", "fail"] = "ask",
    undo: Callable[..., Any] | None = None,
    retry: Retry | None = None,
    timeout: timedelta = timedelta(minutes=10),
    failed_on: Sequence[type[BaseException]] = (),
    identity: Callable[..., Any] | None = None,
    raises: Sequence[type[BaseException]] = (),
) -> Callable[[Callable[P, R]], Effect[P, R]]: ...
def effect(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """A call that touches the world: its intent is on disk before it starts, and it is never repeated silently."""

    def decorate(function: Callable[..., Any]) -> Effect[..., Any]:
        return Effect(EffectCall(function, **options))

    return decorate if function is None else decorate(function)


class Effect(Generic[P, R_co]):
    """What `@effect` makes of a function."""

    def __init__(self, call: EffectCall) -> None:
        functools.update_wrapper(self, call.function)
        self._call = call

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        return _effected(self._call, args, kwargs)  # type: ignore[return-value]

    def plain(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Run it bare: no task, no record, no guarantee."""
        result: R_co = self._call.function(*args, **kwargs)
        return result

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self.__call__, instance)  # type: ignore[arg-type]


async def _effected(call: EffectCall, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    scope = current.get()
    if scope is None:
        raise NoTask(call.name)
    if _key.get(None) is not None:
        raise InvalidInput(f"the effect {call.name} is called inside another effect", do="call it beside the other one")
    run = scope.run
    run.fence.check()
    asked = call.digest(args, kwargs)
    answer = run.cursor.ask(scope.path, call.name, asked, in_body=scope.is_body)
    if type(answer) is Recorded:
        run.replayed += 1
        if not scope.is_body:
            await run.hand_out(answer.position)
        return call.read(answer.entry)
    if isinstance(answer, Diverged):
        raise poison(run, run.diverged(answer))
    if type(answer) is Cut:
        return await never(run, answer.position)
    walk = _Walk(call, run, answer.path, asked, args, kwargs, is_gated=not scope.is_body)
    if type(answer) is Uncertain:
        return await walk.settle(answer.intent)
    return await walk.begin()


class _Walk:
    """One effect on its way from intent to outcome."""

    def __init__(
        self,
        call: EffectCall,
        run: Run,
        path: str,
        asked: bytes,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        is_gated: bool,
    ) -> None:
        self.call, self.run, self.path, self.asked = call, run, path, asked
        self.args, self.kwargs, self.is_gated = args, kwargs, is_gated
        self.key, self.tries, self.number = key_of(run.uid, run.line, path, asked), 0, 0

    async def begin(self) -> Any:
        """Intent, then the body; a definite failure may be tried again."""
        while True:
            await self._intend()
            began = time.perf_counter()
            try:
                value = await self._body()
            except asyncio.CancelledError:
                cut(self.run, "effect", self.path, self.asked)
                raise
            except Exception as error:
                self.run.fence.check()
                if not isinstance(error, self.call.failed_on):
                    return await self._settle_now(error)
                if not await self._try_again(error):
                    return await self._ended(None, error, began)
            else:
                crash.place("effect.done")
                return await self._ended(value, None, began)

    async def _intend(self) -> None:
        run = self.run
        await run.may_start()
        self.tries += 1
        now = run.store.clock.now_ms()
        assert self.call.timeout is not None
        note: dict[str, str | int | float | None] = {
            "key": self.key,
            "tries": self.tries,
            "number": self.number,
            "not_after": now + int(self.call.timeout.total_seconds() * 1000),
        }
        crash.place("effect.before_intent")
        _, write = run.record(
            Entry("intent", "effect", self.path, self.asked, at=now, epoch=run.epoch, note=note), urgent=True
        )
        await write
        run.fence.check()
        run.fresh += 1
        crash.place("effect.intended")

    async def _body(self) -> Any:
        token = _key.set(self.key)
        try:
            return await in_body(self.run, self.path, _without_retry(self.call), self.args, self.kwargs)
        finally:
            _key.reset(token)

    async def _try_again(self, error: Exception) -> bool:
        retry = self.call.retry
        if retry is None or not retry.wants_more(self.tries, error):
            return False
        if retry.new_key:
            self.number += 1
            self.key = key_of(self.run.uid, self.run.line, self.path, self.asked, self.number)
        await asyncio.sleep(retry.delay(self.tries).total_seconds())
        return True

    async def _ended(self, value: Any, error: Exception | None, began: float) -> Any:
        """Record the outcome; it is flushed at once, and nobody waits for it before the next intent."""
        call, run = self.call, self.run
        data, trouble, copy = call.end(value, error)
        took = int((time.perf_counter() - began) * 1000)
        note: dict[str, str | int | float | None] = {"key": self.key, "tries": self.tries}
        now = run.store.clock.now_ms()
        position, _ = run.record(
            Entry("result", "effect", self.path, self.asked, data, trouble, now, took, run.epoch, note), urgent=True
        )
        crash.place("effect.recorded")
        if self.is_gated:
            if run.scopes > 1:
                run.gate.expect(position)
            await run.hand_out(position)
        if trouble is not None:
            raise decode_error(trouble, call.raises) from error
        return copy

    # ── settling ────────────────────────────────────────────────────────────────────────────────

    async def settle(self, intent: Entry) -> Any:
        """An earlier attempt left an intent without an outcome."""
        note = intent.note or {}
        self.key, self.tries = str(note.get("key", self.key)), int(note.get("tries") or 1)
        self.number = int(note.get("number") or 0)
        await self.run.may_settle(intent.epoch, int(note.get("not_after") or 0))
        return await self._settle_now(None)

    async def _settle_now(self, error: Exception | None) -> Any:
        began = time.perf_counter()
        verdict = await self._probe()
        if isinstance(verdict, Happened):
            return await self._ended(verdict.value, None, began)
        if verdict is DID_NOT_HAPPEN or self.call.keyed:
            if error is None or verdict is DID_NOT_HAPPEN:
                return await self.begin()
            if await self._try_again(error):
                return await self.begin()
        if self.call.on_uncertain == "fail":
            return await self._ended(None, EffectUncertain(name_of(self.path), str(error or "the process died")), began)
        return await self._ask(error, began)

    async def _probe(self) -> Any:
        if self.call.verify is None:
            return UNKNOWN
        token = _key.set(self.key)
        try:
            found = self.call.verify(*self.args, **self.kwargs)
            found = await found if inspect.isawaitable(found) else found
        except Exception:
            return UNKNOWN  # a probe that fails has not answered
        finally:
            _key.reset(token)
        if found is DID_NOT_HAPPEN or found is UNKNOWN or isinstance(found, Happened):
            return found
        raise InvalidInput(
            f"the probe of {self.call.name} answered {found!r}", do="answer Happened(…), DID_NOT_HAPPEN or UNKNOWN"
        )

    async def _ask(self, error: Exception | None, began: float) -> Any:
        """A person settles it: done (with a value), retry, or fail."""
        shown = ", ".join([*map(repr, self.args), *(f"{k}={v!r}" for k, v in self.kwargs.items())])
        answer = await ask_person(
            self.run,
            f"{self.path}?{self.tries}",
            f"outcome unknown: {self.call.name}({shown[:200]})",
            {"effect": self.path, "key": self.key, "error": str(error) if error else None},
        )
        if answer["choice"] == "retry":
            return await self.begin()
        if answer["choice"] == "done":
            value = answer.get("value")
            return await self._ended(codec.decode(codec.encode(value), self.call.signature.returns), None, began)
        return await self._ended(None, EffectUncertain(self.call.name, "a person said that it failed"), began)


def _without_retry(call: EffectCall) -> Call:
    """Retries of an effect go through its intents, so its body is run once each time."""
    plain = Call.__new__(Call)
    plain.__dict__.update(call.__dict__, retry=None)
    return plain
