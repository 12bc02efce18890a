"""Calls on a task's memory inside a durable function: a replay gets the recorded answers, and nothing is written twice.

A memory call is a journal entry with its result and with every answer its layers got while it ran: values from the
store, the time, a file's content. A replay runs the layers' code again with those answers, so that a layer gets to the
same state. The result itself comes from the journal.

A value that a layer writes into the task's own store is committed together with its entry. So an interrupted call
continues after its last write, and a turn counts once, whenever the process dies. When a layer stores its values
elsewhere, the answers are on disk before the write, and a repeated write has the same value.

Owns the record of such a call. perdure/memory has the layers and their callers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from perdure._durable.attempt import Policy, RecordedCall, Scope, current, walk
from perdure._durable.attempt import now as recorded_now
from perdure._durable.memory.memory_tape import OP, WRITE, Answer, MemoryCall
from perdure._durable.values import declared_here, decode_error
from perdure._ground import crash_points as crash
from perdure._ground.encoding import codec
from perdure._model import Entry, scope_of
from perdure._replay import Cut, Recorded, digest
from perdure.errors import InvalidInput, LeaseLost, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from perdure._durable.attempt import Attempt

T = TypeVar("T")
_active: ContextVar[MemoryCall | None] = ContextVar("perdure_memory_call", default=None)


def is_on_record() -> bool:
    """True if the running layers get all their answers from the journal, because the call has ended before."""
    call = _active.get()
    return call is not None and call.is_whole


# ── a call ───────────────────────────────────────────────────────────────────────────────────────


class _InSteps:
    """Memory calls made by steps of earlier attempts: a recorded step does not run again, and neither do its calls."""

    def __init__(self, attempt: Attempt) -> None:
        self._are_some = any(entry.op == OP and _is_in_step(entry.path) for _, entry in attempt.entries)
        self._loaded: set[str] = set()

    def is_behind(self, layer: str) -> bool:
        """True if steps of an earlier attempt may have changed the layer's values; True at most once per layer."""
        if not self._are_some or layer in self._loaded:
            return False
        self._loaded.add(layer)
        return True


def _is_in_step(path: str) -> bool:
    _, first, *inner = path.split("|")
    return bool(inner) and not first.startswith("memory.")


async def memory_call(
    name: str,
    arguments: Any,
    body: Callable[[], Awaitable[T]],
    as_type: Any = None,
    *,
    lost: Callable[[set[str]], None] = lambda layers: None,
    gives_its_own: bool = False,
    flush: bool = False,
) -> T:
    """The result of `body`, which uses layers of memory. Inside a durable function it is recorded.

    `lost` is called with the layers that acted differently in the replay: their values must be loaded again. With
    `gives_its_own` the result is always the body's own object, also in a replay: something that cannot be stored. With
    `flush` the entry is on disk when this returns.
    """
    scope = current.get()
    if scope is None or _active.get() is not None:
        return await body()
    attempt: Attempt = scope.attempt
    attempt.check()
    if _is_older(scope):
        with _as_before():
            return await body()
    call = _LayersCall(scope, name, _told(arguments), as_type, body, lost, gives_its_own, flush)
    given: T = await walk(call)
    return given


class _Written:
    """Which version of perdure has written the journal."""

    def __init__(self, attempt: Attempt) -> None:
        self.may_be_older = bool(attempt.entries) and all(entry.op != OP for _, entry in attempt.entries)
        self.is_older = False


def _is_older(scope: Scope) -> bool:
    """True if this journal was written before memory calls were recorded: its task continues without recording them.

    In such a journal a memory call would be the first on record while recorded results are still waiting.
    """
    written = scope.attempt.part(_Written)
    if written.may_be_older and not written.is_older and not scope.is_body:
        written.is_older = scope.track.first_unasked() is not None
        written.may_be_older = written.is_older
    return written.is_older


_unrecorded: ContextVar[bool] = ContextVar("perdure_memory_unrecorded", default=False)


@contextmanager
def _as_before() -> Iterator[None]:
    token = _unrecorded.set(True)
    try:
        yield
    finally:
        _unrecorded.reset(token)


def _told(arguments: Any) -> bytes:
    try:
        return digest((arguments,), {})
    except (TypeError, RecursionError):
        return b""  # the body refuses such arguments


@contextmanager
def _running(scope: Scope, call: MemoryCall) -> Iterator[None]:
    """Calls inside the block are not numbered, as in a step's body."""
    token = current.set(Scope(call.attempt, call.path, True, asyncio.current_task()))
    active = _active.set(call)
    try:
        yield
    finally:
        _active.reset(active)
        current.reset(token)


@contextmanager
def unrecorded() -> Iterator[None]:
    """Calls inside the block are not numbered: they belong to this process, not to the function."""
    scope = current.get()
    token = None if scope is None else current.set(Scope(scope.attempt, f"{scope.path}|unrecorded", True, scope.task))
    try:
        yield
    finally:
        if token is not None:
            current.reset(token)


_Kept = tuple[bytes | None, dict[str, list[Answer]]]


class _LayersCall(RecordedCall):
    """A call that uses layers of memory: their code runs in a replay too, with the answers that it got before."""

    op = OP
    policy = Policy(counts=False)

    def __init__(
        self,
        scope: Scope,
        name: str,
        asked: bytes,
        as_type: Any,
        body: Callable[[], Awaitable[Any]],
        lost: Callable[[set[str]], None],
        gives_its_own: bool,
        flush: bool,
    ) -> None:
        super().__init__(scope, name.replace("|", "/").replace("#", "%"), asked)
        self.as_type, self.is_in_step = as_type, scope.is_body
        self._body, self._lost, self._gives_its_own, self._flush = body, lost, gives_its_own, flush

    def declared(self) -> Sequence[type[BaseException]]:
        return declared_here()

    # ── in a replay ─────────────────────────────────────────────────────────────────────────────

    async def take_turn(self, found: Recorded) -> None:
        await super().take_turn(found)
        if not self.is_in_step:
            self.attempt.replayed += 1
        self.value = await self._again(found.entry)

    async def wait_for_cancellation(self, found: Cut) -> None:
        await self._again(None)
        await super().wait_for_cancellation(found)

    async def _again(self, entry: Entry | None) -> Any:
        """Run the layers' code with the answers it got when the call was recorded."""
        tails = {} if entry is None or entry.value is None else codec.decode(entry.value, _Kept)[1]
        call = MemoryCall(self.attempt, self.path, self.asked, tails, is_whole=True, is_in_step=self.is_in_step)
        with _running(self.scope, call):
            try:
                return await self._body()
            except Exception:
                return None  # the journal has the outcome
            finally:
                if call.lost:
                    self._lost(call.lost)

    def read(self, entry: Entry) -> Any:
        return self.value if self._gives_its_own and entry.error is None else _result(entry, self.as_type)

    # ── the first time ──────────────────────────────────────────────────────────────────────────

    async def make(self) -> Any:
        self.attempt.fresh += 1
        self._call = MemoryCall(self.attempt, self.path, self.asked, {}, is_whole=False, is_in_step=self.is_in_step)
        with _running(self.scope, self._call):
            return await self._body()

    def keep(self) -> None:
        pass  # it is kept together with the answers, also beside an error

    def fail(self, raised: BaseException) -> None:
        if isinstance(raised, LeaseLost):
            raise raised
        super().fail(raised)

    def entry(self) -> Entry:
        self.attempt.fence.check()
        is_kept = not self._gives_its_own and self.error is None
        result = codec.encode(self.value, self.as_type) if is_kept else None
        # The answers are kept beside an error too: the layers got that far.
        self.data = codec.encode((result, self._call.new_answers()), _Kept)
        crash.place("memory.before_entry")
        self._entry = super().entry()
        return self._entry

    def is_waited_for(self) -> bool:
        return self._flush

    def after_record(self, position: int, entry: Entry) -> None:
        crash.place("memory.recorded")

    def give(self) -> Any:
        given = self.read(self._entry)
        if self._call.lost:
            self._lost(self._call.lost)
        return given


def _result(entry: Entry, as_type: Any) -> Any:
    if entry.error is not None:
        raise decode_error(entry.error, declared_here())
    assert entry.value is not None
    data = codec.decode(entry.value, _Kept)[0]
    return None if data is None else codec.decode(data, as_type)


# ── what a layer asks ────────────────────────────────────────────────────────────────────────────


class LayerRecord:
    """The questions of one layer of a task's memory, recorded when a durable function calls it."""

    layer: str

    def __init__(self, layer: str) -> None:
        self.layer = layer.replace("|", "/").replace("#", "%")
        self._opened_in: str | None = None  # the step in which the layer was loaded first; '' for none

    def has_to_load(self, *, is_loaded: bool) -> bool:
        """True if the layer must load its values before this call uses it; True at most once per call.

        Raises:
            InvalidInput: it was loaded outside the step that uses it now. A replay does not run the step, so the layer
                would show something else then.
        """
        call = _active.get()
        if call is None:
            return not is_loaded
        step = scope_of(call.path) if call.is_in_step else ""
        if is_loaded and step not in ("", self._opened_in):
            raise InvalidInput(
                f"{self.layer}: this memory is used in a step, but was opened outside of it",
                kept="nothing was changed",
                do="call it between steps, or open app.memory(…) inside the step",
            )
        if not is_loaded:
            self._opened_in = step
            return True
        in_steps = call.attempt.part(_InSteps)
        return call.tape(self.layer).is_marked("load anew", lambda: in_steps.is_behind(self.layer))

    async def answer(self, what: str, read: Callable[[], Awaitable[T]], as_type: Any = Any) -> T:
        """The result of `read`; in a replay, the recorded one. `read` must be safe to repeat."""
        call = _active.get()
        if call is None:
            if current.get() is None or _unrecorded.get():
                return await read()
            again = partial(self.answer, what, read, as_type)
            return await memory_call(f"memory.{self.layer}.{what}", None, again, as_type)
        tape = call.tape(self.layer)
        found = tape.take(what)
        if found is not None:
            given: T = _given(found, as_type)
            return given
        try:
            value = await read()
        except StoreUnavailable as error:
            raise call.attempt.poison(error) from None  # not an answer: the next attempt asks again
        except LeaseLost:
            raise
        except Exception as error:
            tape.add_error(what, error)
            raise
        tape.new.append((what, codec.encode(value, as_type), None))
        return value

    def draw(self, what: str, make: Callable[[], T]) -> T:
        """The same for a value that is available at once."""
        call = _active.get()
        if call is None:
            return make()
        tape = call.tape(self.layer)
        found = tape.take(what)
        if found is not None:
            given: T = _given(found, Any)
            return given
        value = make()
        tape.add(what, value)
        return value

    def now(self, make: Callable[[], datetime]) -> datetime:
        """The time. Between two calls of a durable function it is recorded like `recorded.now()`."""
        scope = current.get()
        if _active.get() is None and scope is not None and not scope.is_body and not _is_older(scope):
            return recorded_now()
        return self.draw("now", make)

    async def write(
        self,
        key: str,
        seen: int | None,
        prepare: Callable[[], dict[str, Any] | None],
        elsewhere: Callable[[bool], Awaitable[int | None]],
    ) -> int | None:
        """Store a value. Returns the new version, or None when the stored version was no longer `seen`.

        `prepare` returns the parameters of the verb for a value in the durable function's own store. For another store
        it returns None, and `elsewhere` stores the value; its argument says whether a dead attempt may have stored it.
        """
        call = _active.get()
        if call is None:
            if current.get() is None or _unrecorded.get():
                return await elsewhere(False)
            again = partial(self.write, key, seen, prepare, elsewhere)
            return await memory_call(f"memory.{self.layer}.write", key, again, int | None)
        tape = call.tape(self.layer)
        found = tape.take(WRITE)
        if found is not None:
            version: int | None = _given(found, Any)
            return version
        try:
            params = prepare()
            if params is not None:
                return await tape.write(params, seen)
            await tape.save()
            version = await elsewhere(call.attempt.epoch > 1 and not tape.has_written)
        except (StoreUnavailable, LeaseLost):
            raise
        except Exception as error:
            tape.add_error(WRITE, error)
            raise
        tape.add(WRITE, version)
        tape.has_written = True
        return version


def own_store(committer: object) -> bool:
    """True if the running durable function has its journal in the store of this committer."""
    scope = current.get()
    return scope is not None and scope.attempt.store.committer is committer


def _given(found: Answer, as_type: Any) -> Any:
    _, data, error = found
    if error is not None:
        raise decode_error(error, declared_here())
    assert data is not None
    return codec.decode(data, as_type)


def has_answers(layer: str) -> bool:
    """True if the layer got any answers in the call that is being replayed."""
    call = _active.get()
    return call is not None and not call.tape(layer).is_empty
