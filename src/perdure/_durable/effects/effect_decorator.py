"""`@effect`: a call that touches the world, and is never repeated silently.

Its intent is on disk before it starts. If its outcome is not known, because the process died or because
the body raised or was cancelled, it is uncertain, and it is settled: by a probe (`verify`), by a retry with
the same key (`keyed`), or by a person. Never by guessing.

A gap remains: a request that is still in the network when its sender has died. A probe that looks before it arrives
reports that it did not happen. `not_after` bounds how long a sender may still be sending, not the network.

Owns the decorator and the question what the journal says about a call. The way from intent to outcome is in
effect_walk.py, what to do about an uncertain one in settlement.py.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from asyncio import CancelledError
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Concatenate, Generic, Literal, ParamSpec, TypeVar, overload

from perdure._durable.attempt import (
    Retry,
    Scope,
    current,
    never,
    on_another_loop,
    running_effect,
    walk_here,
    watch_coroutines_of,
)
from perdure._durable.effects.declaration import LONGEST, Bare, EffectCall, EffectOutcome, key_of, remember
from perdure._durable.effects.effect_walk import EffectWalk, Walk, intent_of, take_turn
from perdure._ground.durations import Duration
from perdure._model import Entry
from perdure._replay import Cut, Diverged, Fresh, Recorded, plain_digest
from perdure.errors import InvalidInput, NoTask, PerdureError

P = ParamSpec("P")
Q = ParamSpec("Q")  # those after the instance
S = TypeVar("S")  # the instance of a method
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
_scope_here, _effect_here = current.get, running_effect.get


@overload
def effect(function: Callable[P, R], /) -> Effect[P, R]: ...
@overload
def effect(
    *,
    name: str = "",
    verify: Callable[..., Any] | None = None,
    keyed: bool = False,
    on_uncertain: Literal["ask", "fail", "tell"] = "ask",
    undo: Callable[..., Any] | None = None,
    retry: Retry | None = None,
    timeout: Duration = LONGEST,
    failed_on: Sequence[type[BaseException]] = (),
    identity: Callable[..., Any] | None = None,
    raises: Sequence[type[BaseException]] = (),
) -> Callable[[Callable[P, R]], Effect[P, R]]: ...
def effect(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str = "",
    verify: Callable[..., Any] | None = None,
    keyed: bool = False,
    on_uncertain: Literal["ask", "fail", "tell"] = "ask",
    undo: Callable[..., Any] | None = None,
    retry: Retry | None = None,
    timeout: Duration = LONGEST,
    failed_on: Sequence[type[BaseException]] = (),
    identity: Callable[..., Any] | None = None,
    raises: Sequence[type[BaseException]] = (),
) -> Any:
    """A call that touches the world: its intent is on disk before it starts, and it is never repeated silently.

    verify         verify(*same args) finds out: Happened(value), DID_NOT_HAPPEN or UNKNOWN; may be async
    keyed          the target honours idempotency_key(), so the same call may be sent again
    failed_on      exceptions that mean: definitely not done; every other one leaves it uncertain
    retry          tries again after definite failures (and, if keyed, after others, with the same key)
    on_uncertain   "ask" pauses the task for a person, "fail" raises EffectUncertain, "tell" returns a MayHaveHappened
    undo           undo(result, *same args) takes it back; it is an effect itself, with its own key
    timeout        how long the body may take; after it the effect is uncertain. A plain `def` is not cut off

    For a method, `verify` gets the instance too; `undo` does not, as it can run in a process that has none.
    """

    def decorate(function: Callable[..., Any]) -> Effect[..., Any]:
        call = EffectCall(
            function,
            name=name,
            verify=verify,
            keyed=keyed,
            on_uncertain=on_uncertain,
            undo=undo,
            retry=retry,
            timeout=timeout,
            failed_on=failed_on,
            identity=identity,
            raises=raises,
        )
        remember(call)
        return Effect(call)

    return decorate if function is None else decorate(function)


class Effect(Generic[P, R_co]):
    """The object that `@effect` makes of a function."""

    def __init__(self, call: EffectCall) -> None:
        functools.update_wrapper(self, call.function)
        self.call = call
        self._called = _called_on_loop(call) if call.is_async else _called_here(call)
        if call.is_async and sys.version_info >= (3, 12):
            inspect.markcoroutinefunction(self)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        return self._called(*args, **kwargs)  # type: ignore[no-any-return]

    def plain(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Run it bare: no task, no record, no guarantee; its key is a new one each time."""
        if self.call.is_async:
            return _plain(self.call, args, kwargs)  # type: ignore[return-value]
        with _any_key():
            result: R_co = self.call.function(*args, **kwargs)
            return result

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Any: ...
    @overload
    def __get__(self: Effect[Concatenate[S, Q], R_co], instance: S, owner: type | None = None) -> Effect[Q, R_co]: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Any: ...  # of a class or static method
    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else _Bound(self, instance)


async def _plain(call: EffectCall, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    with _any_key():
        return await call.function(*args, **kwargs)


@contextmanager
def _any_key() -> Iterator[None]:
    token = running_effect.set(Bare(f"prd-{os.urandom(20).hex()}"))
    try:
        yield
    finally:
        running_effect.reset(token)


class _Bound:
    """An effect that is a method, with its instance."""

    def __init__(self, made: Effect[..., Any], instance: object) -> None:
        self.call, self._made, self._instance = made.call, made, instance

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._made(self._instance, *args, **kwargs)

    def plain(self, *args: Any, **kwargs: Any) -> Any:
        return self._made.plain(self._instance, *args, **kwargs)


# ── what the journal says ────────────────────────────────────────────────────────────────────────


def _called_on_loop(call: EffectCall) -> Callable[..., Any]:
    """An async effect: a hot loop, whose slow twin is `walk(EffectWalk(…))`. Both write the same entries."""
    name, digest, told_plainly = call.name, call.digest, call.told_plainly

    async def effected(*args: Any, **kwargs: Any) -> Any:
        scope = _scope_here()
        if scope is None or _effect_here(None) is not None:
            raise _refusal(call, scope)
        attempt, is_body = scope.attempt, scope.is_body
        if attempt.fence.closed is not None or attempt.unwinding.has_begun or attempt.is_over:
            attempt.check()
        attempt.effects[name] = call
        spelled = plain_digest(args) if told_plainly and not kwargs else None
        asked = spelled or digest(args, kwargs)
        answer = (scope.made_track or scope.track).ask(name, asked, is_body)
        intent: Entry | None = None
        if type(answer) is not Fresh:
            if type(answer) is Recorded:
                attempt.replayed += 1
                if not is_body:
                    await take_turn(attempt, answer)
                return call.read(answer.entry)
            if type(answer) is Diverged:
                raise attempt.poison(attempt.diverged(answer))
            if type(answer) is Cut and not is_body:
                return await never(attempt, answer.position)
            intent = intent_of(attempt, answer)
        if attempt.is_elsewhere():
            raise on_another_loop(name)
        path = answer.path
        key = key_of(attempt.uid, attempt.line, path, asked)
        walk = Walk(
            call, attempt, path, asked, args, kwargs, key, spelled is not None and not call.has_secrets, is_body
        )
        try:
            outcome = await walk.run(intent)
            if outcome is None:
                kept = walk.keep()
                if kept is not None:
                    return kept[1]
                outcome = EffectOutcome(walk.value)
            return await walk.ended(outcome)
        except CancelledError:
            await walk.cancelled()
            raise

    watch_coroutines_of(effected)
    effected.__name__ = effected.__qualname__ = name  # by which a task of its own is named
    return effected


def _called_here(call: EffectCall) -> Callable[..., Any]:
    """A plain `def`: made where it is called, which holds an event loop up as any plain call does."""

    def effected(*args: Any, **kwargs: Any) -> Any:
        scope = _scope_here()
        if scope is None or _effect_here(None) is not None:
            raise _refusal(call, scope)
        attempt = scope.attempt
        attempt.check()
        attempt.effects[call.name] = call
        spelled = plain_digest(args) if call.told_plainly and not kwargs else None
        asked = spelled or call.digest(args, kwargs)
        is_spelled = spelled is not None and not call.has_secrets
        return walk_here(EffectWalk(scope, call, asked, args, kwargs, is_spelled=is_spelled))

    return effected


def _refusal(call: EffectCall, scope: Scope | None) -> PerdureError:
    if scope is None:
        return NoTask(call.name, is_effect=True)
    return InvalidInput(
        f"the effect {call.name} is called inside another effect",
        kept="it did not run",
        do="call it beside the other one, or as a plain function: .plain(…)",
    )
