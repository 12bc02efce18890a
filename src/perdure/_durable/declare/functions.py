"""`@step` and `@durable`: plain Python functions whose recorded calls are never run again.

A step cut off half-way runs again. So can a step that took less than about a millisecond, when the process dies within
some milliseconds of it. A step is for work that may be repeated.
"""

from __future__ import annotations

import functools
import inspect
import logging
import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

from msgspec import Struct
from msgspec.structs import replace

from perdure._durable.attempt import Call, Retry, async_step, current, refuse_generator, sync_step, whole_name
from perdure._durable.declare.code_places import module_of
from perdure._durable.values import Signature, is_async, refuse_no_function, refuse_no_name
from perdure._ground.durations import Duration, require_timedelta
from perdure._ground.encoding import codec
from perdure._model import Budget, Config, Policy
from perdure.errors import InvalidInput

log = logging.getLogger("perdure.durable")
P = ParamSpec("P")
Q = ParamSpec("Q")  # those after the instance
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
S = TypeVar("S")  # the instance of a method


@overload
def step(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def step(
    *,
    name: str = "",
    retry: Retry | None = None,
    timeout: Duration | None = None,
    flush: bool | None = None,
    identity: Callable[..., Any] | None = None,
    raises: Sequence[type[BaseException]] = (),
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def step(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str = "",
    retry: Retry | None = None,
    timeout: Duration | None = None,
    flush: bool | None = None,
    identity: Callable[..., Any] | None = None,
    raises: Sequence[type[BaseException]] = (),
) -> Any:
    """A call whose result is kept: once recorded, it never runs again. Cut off half-way, it runs again, and so can one
    that took less than about a millisecond when the process dies within some milliseconds of it. It is for work that
    may be repeated.

    Without a task it just runs. `flush=True` puts its result on disk before the code continues, `flush=False` never
    waits for that; by default only results of longer steps are waited for. `identity(*args)` returns the part of the
    arguments that tells calls apart.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        call = Call(function, name=name, retry=retry, timeout=timeout, flush=flush, identity=identity, raises=raises)
        return async_step(call) if call.is_async else sync_step(call)

    return decorate if function is None else decorate(function)


class ToolFunction(Protocol[R_co]):
    """The common type of steps, effects, durable functions and plain functions, for a table of tools.

    tools: dict[str, ToolFunction[Awaitable[str]]] = {"search": search, "send": send}
    """

    def __call__(self, *args: Any, **kwargs: Any) -> R_co: ...


# ── durable functions ────────────────────────────────────────────────────────────────────────────


class Options(Struct, frozen=True):
    queue: str = "default"
    priority: int = 0
    key: str = ""
    timeout: timedelta | None = None
    budget: Budget | None = None
    depends_on: Sequence[str] = ()
    dependency_policy: Policy = "wait"
    debounce: timedelta | None = None  # it begins so long after the last start with its id, with those arguments
    singleton: bool = False  # starting it again while it is under way gives the existing task
    config: Config | None = None  # what follows a failure: max_retries, on_failure
    part_of: str = ""  # the id of the task that this one is a hidden part of
    task_name: str = ""  # of the task; its function's name otherwise


class DurableFunction(Generic[P, R_co]):
    """A function whose task carries on after its process dies."""

    # It also has the attributes of the function it wraps. Its own are in slots, so they are found at once and cannot be
    # hidden.
    __slots__ = (
        "__dict__", "__weakref__", "alike", "chosen", "compensate", "function", "is_async", "is_named", "keep_result",
        "module", "name", "namesakes", "signature", "upgrade", "version",
    )  # fmt: skip
    alike: tuple[str, int, str, str, int, str] | None
    chosen: Options
    compensate: bool
    function: Callable[..., Any]
    is_async: bool
    is_named: bool
    keep_result: Callable[[Any], tuple[bytes, Any] | None]
    module: str
    name: str
    signature: Signature
    upgrade: Callable[..., Any] | None
    version: int

    def __init__(
        self,
        function: Callable[..., Any],
        name: str = "",
        version: int = 1,
        upgrade: Callable[..., Any] | None = None,
        options: Options | None = None,
        compensate: bool = False,
    ) -> None:
        if type(version) is not int or version < 1:
            raise InvalidInput(f"version is {version!r}", do="count versions from 1")
        refuse_no_function(function)
        refuse_generator(function)
        refuse_no_name(name)
        if is_async(upgrade):
            raise InvalidInput("upgrade= is an async function", do="make it a plain def: it only makes new arguments")
        functools.update_wrapper(self, function)
        self.function = function
        self.name, self.module = name or whole_name(function), module_of(function)
        self.is_named = False  # whether the name was given by `name=`
        self.namesakes: Sequence[DurableFunction[..., Any]] = ()
        self.version, self.upgrade, self.compensate = version, upgrade, compensate
        self.signature = Signature(function)
        self.keep_result = codec.keeper_of(self.signature.returns)
        self.is_async = is_async(function)
        self.chosen = chosen = options or Options()
        # The first entry data of its tasks, as far as they do not depend on when and as which task they begin. By
        # value: a method is another function object each time it is looked up, and so is a function with options.
        how = chosen.queue, chosen.priority, chosen.key
        self.alike = (
            (self.name, version, self.module, *how) if chosen == Options(*how, singleton=chosen.singleton) else None
        )
        if self.is_async and sys.version_info >= (3, 12):
            inspect.markcoroutinefunction(self)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Awaitable[R_co]:
        """Call it as a part of the durable function that is running; without one it just runs, and says so once."""
        _tell_if_outside(self.name)
        made: Awaitable[R_co] = self.function(*args, **kwargs)
        return made

    def options(
        self,
        *,
        queue: str | None = None,
        priority: int | None = None,
        key: str | None = None,
        timeout: Duration | None = None,
        budget: Budget | None = None,
        depends_on: Sequence[str] | None = None,
        dependency_policy: Policy | None = None,
        debounce: Duration | None = None,
        singleton: bool | None = None,
        config: Config | None = None,
        part_of: str | None = None,
        task_name: str | None = None,
    ) -> DurableFunction[P, R_co]:
        """The same function, started with these options; those that were chosen before stay.

        With `part_of`, the id of another task, its task is a hidden child of that one: lists, counts and the dashboard
        leave it out unless they are asked for hidden ones, its questions are in the inbox, and it is deleted together
        with that task. `task_name` is shown as the task's name.
        """
        if part_of and (depends_on or self.chosen.depends_on):
            raise InvalidInput("a hidden task cannot depend on others", do="leave out part_of, or depends_on")
        given: dict[str, Any] = {
            "queue": queue,
            "priority": priority,
            "key": key,
            "timeout": require_timedelta("timeout", timeout, is_positive=True),
            "budget": budget,
            "depends_on": depends_on,
            "dependency_policy": dependency_policy,
            "debounce": require_timedelta("debounce", debounce),
            "singleton": singleton,
            "config": config,
            "part_of": part_of,
            "task_name": task_name,
        }
        chosen = replace(self.chosen, **{name: value for name, value in given.items() if value is not None})
        made: DurableFunction[P, R_co] = self._like(self.function, chosen)
        return made

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Any: ...
    @overload
    def __get__(
        self: DurableFunction[Concatenate[S, Q], R_co], instance: S, owner: type | None = None
    ) -> DurableFunction[Q, R_co]: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Any: ...  # of a class or static method
    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """A method: the instance is not recorded; who carries the task on calls the method of their own."""
        return self if instance is None else self._like(self.function.__get__(instance, owner), self.chosen)

    def among(self, namesakes: Sequence[DurableFunction[..., Any]]) -> DurableFunction[P, R_co]:
        """One of several functions of the same name, when it is not known yet which is meant."""
        made: DurableFunction[P, R_co] = self._like(self.function, self.chosen)
        made.namesakes = namesakes
        return made

    def _like(self, function: Callable[..., Any], options: Options) -> Any:
        return type(self)(function, self.name, self.version, self.upgrade, options, self.compensate)


_told_of: set[str] = set()


def _tell_if_outside(name: str) -> None:
    if current.get() is None and name not in _told_of:
        _told_of.add(name)
        log.warning("%s is called without a task: nothing of it is kept; app.run(id, %s, …) carries it out", name, name)


Durable = DurableFunction  # the name for annotations


class SyncDurableFunction(DurableFunction[P, R_co]):
    """A durable function that is a plain `def`: it runs in its own thread, where its steps may block."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:  # type: ignore[override]
        _tell_if_outside(self.name)
        made: R_co = self.function(*args, **kwargs)
        return made

    if TYPE_CHECKING:  # a plain method is called without await, too

        @overload
        def __get__(self, instance: None, owner: type | None = None) -> Any: ...
        @overload
        def __get__(
            self: SyncDurableFunction[Concatenate[S, Q], R_co], instance: S, owner: type | None = None
        ) -> SyncDurableFunction[Q, R_co]: ...
        @overload
        def __get__(self, instance: object, owner: type | None = None) -> Any: ...  # of a class or static method
        def __get__(self, instance: object, owner: type | None = None) -> Any: ...
