"""How an effect is declared: its function, how it is settled, its key, and the words a probe answers with."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from hashlib import blake2b
from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct

from perdure._durable.attempt import Call, running_effect
from perdure._durable.values import declare, decode_error, refuse_misfit, refuse_no_exceptions
from perdure._ground.durations import Duration, require_timedelta
from perdure._model import Entry
from perdure.errors import Conflict, EffectUncertain, InvalidInput, NoTask, NotStorable, ResultNotStorable

T = TypeVar("T")

# An effect that says nothing else is given this long, and is uncertain when it has taken longer.
LONGEST = timedelta(minutes=10)


class Happened(Generic[T]):
    """A probe's answer: the effect happened, and this was its result."""

    def __init__(self, value: T) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"Happened({self.value!r})"


class _Answer:
    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


DID_NOT_HAPPEN = _Answer("DID_NOT_HAPPEN")
UNKNOWN = _Answer("UNKNOWN")


class MayHaveHappened(Struct, frozen=True):
    """What an effect with on_uncertain="tell" returns instead of its result when its outcome is unknown."""

    name: str
    key: str
    why: str

    def __str__(self) -> str:
        return f"{self.name} may have happened ({self.why}). Look at its target before you do it again; key {self.key}"


class DidNotHappen(Exception):
    """Raised in an effect's body: it was definitely not done."""


class EffectOutcome(Struct, frozen=True):
    """How an effect ended; `is_open` while that is not known for certain."""

    value: Any = None
    error: BaseException | None = None
    is_known: bool = True
    is_open: bool = False
    settled: str = ""  # by what: verify, person
    may_retry: bool = False
    again: str = ""  # why to run it once more: not done, same key, a person decided so


# ── the key ──────────────────────────────────────────────────────────────────────────────────────


class Bare(Struct, frozen=True):
    """An effect that is run without a task."""

    key: str


def idempotency_key() -> str:
    """The key of the effect that is running: the same over retries and restarts, for the target to know it by.

    Raises:
        NoTask: no effect is running here.
    """
    try:
        return running_effect.get().key
    except LookupError:
        raise NoTask("idempotency_key()", where="an effect") from None


def idempotency_headers() -> dict[str, str]:
    """The key as HTTP targets take it: `client.post(url, headers=idempotency_headers())`."""
    return {"Idempotency-Key": idempotency_key()}


def key_of(uid: str, line: int, path: str, asked: bytes, number: int = 0) -> str:
    """The key of an effect: computed once, stored in its intent, and always read from there."""
    # No part can be mistaken for a piece of another: a uid has no colon, and the length of the path precedes it.
    whole = f"{uid}:{line}:{number}:{len(path)}:{path}".encode() + asked
    return "prd-" + blake2b(whole, digest_size=20).hexdigest()


# ── the call ─────────────────────────────────────────────────────────────────────────────────────


class EffectCall(Call):
    """A function that touches the world, and how to find out whether it has."""

    limit_seconds: float
    home: str
    limit_ms: int
    verify: Callable[..., Any] | None
    keyed: bool
    raises: Sequence[type[BaseException]]
    undo: EffectCall | None

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        verify: Callable[..., Any] | None = None,
        keyed: bool = False,
        on_uncertain: Literal["ask", "fail", "tell"] = "ask",
        undo: Callable[..., Any] | None = None,
        failed_on: Sequence[type[BaseException]] = (),
        timeout: Duration = LONGEST,
        home: str = "",
        **options: Any,
    ) -> None:
        super().__init__(function, timeout=timeout, **options)
        limit = require_timedelta("timeout", timeout)
        refuse_no_exceptions(failed_on=failed_on)
        if on_uncertain not in ("ask", "fail", "tell"):
            raise InvalidInput(f"on_uncertain is {on_uncertain!r}", do="choose ask, fail or tell")
        self.limit_seconds, self.home = limit.total_seconds(), home or home_of(function)
        self.limit_ms = int(self.limit_seconds * 1000)
        self.verify = getattr(verify, "plain", verify)  # an effect as a probe is run bare: it only looks
        self.keyed, self.on_uncertain = keyed, on_uncertain
        self.failed_on: tuple[type[BaseException], ...] = (DidNotHappen, *failed_on)
        declare(self.failed_on)
        self.raises = (*self.failed_on, EffectUncertain, ResultNotStorable, *self.raises)
        refuse_misfit(f"the verify= of {self.name}", verify, function)
        known = getattr(undo, "call", None)  # undo=refund, where refund is an @effect itself
        own: EffectCall | None = known if isinstance(known, EffectCall) else None
        refuse_misfit(f"the undo= of {self.name}", undo if own is None else own.function, function, before="result")
        self.undo = EffectCall(undo) if own is None and undo is not None else own
        # What an intent stores for finding the effect again: another process may have to undo it, or look for it.
        self.found_by: dict[str, str | int | float | None] = {}
        if self.undo is not None:
            self.found_by = {"undo": self.undo.name, "home": self.home}
        elif self.verify is not None:
            self.found_by = {"home": self.home}

    def read(self, entry: Entry) -> Any:
        if entry.error is not None and self.on_uncertain == "tell" and (entry.note or {}).get("open"):
            return self.told(entry.error, str((entry.note or {}).get("key", "")))
        return super().read(entry)

    def told(self, error: bytes, key: str) -> MayHaveHappened:
        """The value for code that wants to be told that the outcome is unknown."""
        found = decode_error(error, self.raises)
        return MayHaveHappened(self.name, key, found.why if isinstance(found, EffectUncertain) else str(found))

    def is_definite(self, error: BaseException, *, is_sent_again: bool = False) -> bool:
        """True if this exception proves that the effect was not done. If the call was sent before, and may have
        happened then, `failed_on` speaks for this sending alone."""
        return isinstance(error, DidNotHappen if is_sent_again else self.failed_on)

    def keep(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes | None:
        """Encode the arguments for the intent: a probe or an undo may need them in another process.

        Raises:
            NotStorable: it has an undo, which could not be called later; nothing ran.
        """
        if self.undo is None and self.verify is None:
            return None
        try:
            return self.signature.encode_arguments((None, *args[1:]) if self.signature.is_method else args, kwargs)
        except NotStorable as problem:
            if self.undo is None:
                return None
            raise NotStorable(problem.path, f"{problem.problem}, and the undo will need it", do=problem.do) from None

    def kept(self, data: bytes) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments that an intent has kept, as callable_check.py says that they are handed on."""
        args, kwargs = self.signature.in_order(*self.signature.decode_arguments(data))
        return (args[1:] if self.signature.is_method else args), kwargs


def is_own_coroutine(function: Callable[..., Any], value: Any) -> bool:
    """True if a plain function has only made the coroutine of the async def it wraps, which has not begun."""
    return inspect.iscoroutine(value) and value.cr_code is getattr(inspect.unwrap(function), "__code__", None)


def not_awaited(name: str) -> InvalidInput:
    """Why a plain function that gave a coroutine was not done."""
    return InvalidInput(
        f"{name} returned a coroutine that was not awaited",
        kept="that it was not done",
        do="make it an async def; a decorator between it and @effect has to give an async def too",
    )


# ── effects by name ──────────────────────────────────────────────────────────────────────────────

_known: dict[str, list[EffectCall]] = {}


def remember(call: EffectCall) -> None:
    """Known by name, so that a process that never ran the task can undo what it did."""
    # Of one place, the newest: a cell that was run again, a module loaded again, a factory called again.
    others = [other for other in _known.get(call.name, ()) if other.home != call.home]
    _known[call.name] = [*others, call]


def known_effect(name: str, home: str | None) -> EffectCall | None:
    """The effect of this name in this process; of several, the one from that place. An effect recorded without a place
    has neither probe nor undo: if there are several of its name, the result is None.

    Raises:
        Conflict: there are two, and calling the wrong one cannot be undone.
    """
    found = _known.get(name, [])
    if len(found) > 1 and home is None:
        return None
    if len(found) > 1:
        found = [call for call in found if call.home == home]
        if len(found) != 1:
            homes = " and ".join(call.home for call in _known[name])
            raise Conflict(
                f"two effects are called {name!r}, in {homes}; the one that ran was in {home or 'an unknown file'}",
                kept="the task as it stands; nothing was undone",
                do="give one of them another name: @effect(name=…)",
            )
    return found[0] if found else None


def home_of(function: Callable[..., Any]) -> str:
    """The file of a function, without its folder, which differs from host to host; and the enclosing functions, because
    two of them can each make one of the same name."""
    code = getattr(function, "__code__", None)
    file = os.path.basename(code.co_filename) if code is not None else ""
    inside = getattr(function, "__qualname__", "").rpartition(".<locals>.")[0]
    return f"{file}:{inside.replace('<locals>.', '')}" if inside else file
