"""Procedures: ordered steps with conditions, in versions. A run keeps the version it began with.

A published version never changes. A task begins a run with the newest version, or the named one. The run keeps that
version through crashes and later publications. Conditions are data, not code: the result of an earlier step, compared
with a value.

    release = Procedure("release", 1, [
        ProcedureStep("test", "Run the tests"),
        ProcedureStep("ship", "Ship it", when=When("test", "==", "green")),
    ])
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal

from perdure._runtime import redact
from perdure._tasks import Tasks, store_of
from perdure._tasks import memory_values as memories
from perdure.errors import Conflict, InvalidInput, NotFound, OutOfOrder
from perdure.memory.layer import Block, Budget, LayerContext, Scope, Slot
from perdure.memory.layers.reducer_layer import ReducedState
from perdure.memory.prompt import Tool, cut, takes
from perdure.memory.recorded import recorded
from perdure.memory.task_state_events import plain_values

Comparison = Literal["==", "!=", ">", ">=", "<", "<=", "in"]
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "in": lambda value, among: value in among,
}


@dataclass(frozen=True, slots=True)
class When:
    """A condition: a comparison with the result of an earlier step. A skipped step has no result, so every condition on
    it is false."""

    step: str
    is_: Comparison
    value: Any

    def holds(self, results: Mapping[str, Any]) -> bool:
        if self.step not in results:
            return False
        try:
            return bool(_COMPARE[self.is_](results[self.step], self.value))
        except TypeError:
            return False


@dataclass(frozen=True, slots=True)
class ProcedureStep:
    name: str
    text: str = ""
    when: When | None = None


@dataclass(frozen=True, slots=True)
class Procedure:
    """One version of a procedure.

    Raises:
        InvalidInput: two steps have one name, or a condition looks at a step that does not come before it.
    """

    name: str
    version: int
    steps: Sequence[ProcedureStep]

    def __post_init__(self) -> None:
        before: set[str] = set()
        for step in self.steps:
            if not step.name or step.name in before:
                raise InvalidInput(
                    f"the procedure {self.name!r} has two steps called {step.name!r}, or a step without a name"
                )
            if step.when is not None and (step.when.step not in before or step.when.is_ not in _COMPARE):
                raise InvalidInput(f"the step {step.name!r} asks for {step.when.step!r}, which does not come before it")
            before.add(step.name)
        if not self.steps or self.version < 1:
            raise InvalidInput(f"the procedure {self.name!r} needs at least one step, and a version of 1 or more")


# ── publishing ───────────────────────────────────────────────────────────────────────────────────


async def publish(tasks: Tasks, procedure: Procedure) -> None:
    """Make a version available to all users of this store. Publishing the same version again is not an error.

    Raises:
        Conflict: this version was published with other contents; it was not changed.
    """
    plain = asdict(procedure)
    plain["steps"] = list(plain["steps"])
    key = _key(procedure.name, procedure.version)
    if await memories.put(store_of(tasks), key, plain, seen=0) is not None:
        return
    found = await memories.get(store_of(tasks), key)
    if found is None or found.value != plain:
        raise Conflict(
            f"version {procedure.version} of {procedure.name!r} was published with other contents",
            do=f"publish the change as version {procedure.version + 1}",
        )


async def published(tasks: Tasks, name: str, version: int | None = None) -> Procedure:
    """A version; without a number, the newest.

    Raises:
        NotFound: there is none.
    """
    key = _key(name, version) if version is not None else None
    if key is None:
        keys = await memories.keys(store_of(tasks), _key(name))
        key = keys[-1] if keys else _key(name, 0)
    found = await memories.get(store_of(tasks), key)
    if found is None:
        raise NotFound(
            "procedure", name if version is None else f"{name} {version}", store_of(tasks).place, do="publish it"
        )
    return _procedure(found.value)


def _procedure(plain: Mapping[str, Any]) -> Procedure:
    steps = [
        ProcedureStep(one["name"], one["text"], When(**one["when"]) if one["when"] else None) for one in plain["steps"]
    ]
    return Procedure(plain["name"], plain["version"], steps)


def _key(name: str, version: int | None = None) -> str:
    escaped = name.replace("%", "%25").replace("/", "%2F")
    return f"global//procedures/{escaped}/" + (f"{version:08d}" if version is not None else "")


# ── a run, pure ──────────────────────────────────────────────────────────────────────────────────


def follow(state: dict[str, Any], event: dict[str, Any]) -> tuple[dict[str, Any], Sequence[Any]]:
    """The state of a run after an event: begun, done, or skipped."""
    if event["kind"] == "begun":
        return {"version": event["version"], "results": {}, "left_out": {}}, ()
    if event["kind"] == "done":
        return {**state, "results": {**state["results"], event["step"]: event["result"]}}, ()
    return {**state, "left_out": {**state["left_out"], event["step"]: event["why"]}}, ()


def next_step(procedure: Procedure, state: Mapping[str, Any]) -> tuple[ProcedureStep | None, list[str]]:
    """The next step, and the names of earlier ones whose condition does not hold."""
    passed: list[str] = []
    for step in procedure.steps:
        if step.name in state["results"] or step.name in state["left_out"]:
            continue
        if step.when is None or step.when.holds(state["results"]):
            return step, passed
        passed.append(step.name)
    return None, passed


class ProcedureLayer:
    """A layer: a task's run through a procedure, which is named or given; a given one is published first."""

    scope: Scope = "execution"

    def __init__(self, procedure: Procedure | str, *, version: int | None = None) -> None:
        self._given = procedure if isinstance(procedure, Procedure) else None
        self._name = procedure.name if isinstance(procedure, Procedure) else procedure
        self._wanted = procedure.version if isinstance(procedure, Procedure) else version
        self.id: str = f"procedure {self._name}"
        self.slot: int = Slot.PLAN - 10
        self.budget: Budget = Budget(0, 300)
        self._log: ReducedState[dict[str, Any]] = ReducedState(follow, {}, id=self.id)
        self._context: LayerContext | None = None
        self._procedure: Procedure | None = None

    async def init(self, context: LayerContext) -> None:
        self._context = context
        if self._given is not None:
            await context.once("publish", partial(publish, context.tasks, self._given))
        await self._log.init(context)
        if not self._log.events:
            newest = await self._published(context, self._wanted)
            await self._log.send({"kind": "begun", "version": newest.version})
        # If another process has begun the run, its first event names the version.
        self._procedure = await self._published(context, self._log.events[0]["version"])

    async def _published(self, context: LayerContext, version: int | None) -> Procedure:
        async def read() -> dict[str, Any]:
            return asdict(await published(context.tasks, self._name, version))

        return _procedure(await context.once("published", read))

    @property
    def procedure(self) -> Procedure:
        if self._procedure is None:
            raise InvalidInput("this layer is not in use", do="async with app.memory(task_id, [layer]):")
        return self._procedure

    @property
    def results(self) -> dict[str, Any]:
        return dict(self._log.state["results"])

    def next(self) -> ProcedureStep | None:
        """The next step; None when the procedure is finished."""
        return next_step(self.procedure, self._log.state)[0]

    async def done(self, step: str, result: Any = None) -> ProcedureStep | None:
        """Note that a step is done, with its result; returns the next step. Noting it twice changes nothing.

        Raises:
            OutOfOrder: another step comes first.
            InvalidInput: the procedure does not have this step.
        """
        await self._done(step, result)
        return self.next()

    @recorded()
    async def _done(self, step: str, result: Any) -> None:
        if step in self._log.state["results"]:
            return
        now, passed = next_step(self.procedure, self._log.state)
        if all(one.name != step for one in self.procedure.steps):
            raise InvalidInput(f"the procedure {self._name!r} has no step {step!r}")
        if now is None or now.name != step:
            raise OutOfOrder(step, now.name if now is not None else "(the end)")
        plain = plain_values({"result": result})["result"]
        for name in passed:
            await self._log.send({"kind": "left out", "step": name, "why": "its condition does not hold"})
        await self._log.send({"kind": "done", "step": step, "result": plain})

    async def recall(self, budget: int) -> Block | None:
        assert self._context is not None
        now = self.next()
        done = ", ".join(self._log.state["results"]) or "nothing yet"
        then = f"Next: {now.name}: {now.text}" if now is not None else "All steps are done."
        text = redact(f"{self._name}, version {self.procedure.version}. Done: {done}. {then}").replace("<", "‹")
        short = cut(f"<procedure>\n{text}\n</procedure>", budget, self._context.count)
        return None if short is None else Block("developer", short)

    def tools(self) -> list[Tool]:
        step = {"type": "string", "description": "Its name."}
        result = {"description": "The result of the step; later steps can depend on it.", "optional": True}
        about = f"Note that a step of the procedure {self._name!r} is done."
        return [Tool("procedure_step_done", about, takes(step=step, result=result), self._done_by_model)]

    async def _done_by_model(self, step: str, result: Any = None) -> dict[str, Any]:
        now = await self.done(step, result)
        return {"next": now.name if now is not None else None}
