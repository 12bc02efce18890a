"""Run the layers of a task: load them, collect their blocks for the model, let them store what is new.

Any agent loop can drive it: `prompt_blocks` before a model call, `after_turn` after it. Blocks are in the order of
slots. A layer that raises, hangs or exceeds its budget is noted and left out; the others continue.

Owns the order of the layers and their isolation from each other. budgets.py shares the tokens, hooks.py calls a hook.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from perdure._durable import LayerRecord, has_answers, is_on_record, memory_call, unrecorded
from perdure._ground.clock import moment
from perdure._ground.ids import check_id
from perdure._tasks import Tasks, store_of
from perdure.errors import InvalidInput
from perdure.memory.layer import OUTCOMES, Block, LayerContext, Outcome, Turn, budget_of, check, timeouts_of
from perdure.memory.prompt import hooks
from perdure.memory.prompt.budgets import allocate
from perdure.memory.prompt.tokens import Counter, cut, estimate
from perdure.memory.prompt.tools import Tool, with_own_names
from perdure.memory.prompt.tools import call as call_tool
from perdure.memory.storage import AppStorage, ScopedStorage, StorageAdapter

T = TypeVar("T")
log: logging.Logger = logging.getLogger("perdure.memory")
_MOST_NOTES = 100
_DEFAULT_ROLE = "developer"
MOST_DEPTH = 1 << 31


@dataclass(frozen=True, slots=True)
class Note:
    """A failure of a layer; the run continued without it."""

    layer: str
    hook: str
    what: str
    at: datetime


class Memory:
    """The layers of one task, in use. Made by `app.memory`."""

    task_id: str
    layers: tuple[Any, ...]

    def __init__(
        self,
        tasks: Tasks,
        task_id: str,
        layers: Iterable[Any],
        *,
        storage: StorageAdapter | None = None,
        count: Counter = estimate,
        thread: str | None = None,
        resource: str | None = None,
    ) -> None:
        self.task_id = check_id(task_id)
        self.layers = tuple(sorted(_checked(layers), key=lambda layer: layer.slot))
        self.notes: deque[Note] = deque(maxlen=_MOST_NOTES)
        self._tasks, self._count = tasks, count
        self._store = store_of(tasks)
        self._storage = storage or AppStorage(self._store)
        self._owners = {"execution": task_id, "thread": thread, "resource": resource, "global": ""}
        self._ready: set[str] = set()
        self._records = {layer.id: LayerRecord(f"{task_id} {layer.id}") for layer in self.layers}
        self._lost: set[str] = set()  # layers that a replay could not restore
        for layer in self.layers:
            self._owner(layer)

    async def __aenter__(self) -> Memory:
        await self._recorded("begin", None, self._begin, None, gives_its_own=True)
        return self

    async def __aexit__(self, *_: object) -> None:
        with unrecorded():
            await self._each(self.layers, "dispose", within="complete")

    def layer(self, id: str) -> Any:
        """The layer with this id.

        Raises:
            InvalidInput: there is none.
        """
        found = next((layer for layer in self.layers if layer.id == id), None)
        if found is None:
            raise InvalidInput(f"no layer {id!r} is in use", do=f"one of {', '.join(one.id for one in self.layers)}")
        return found

    # ── the turns of an agent ───────────────────────────────────────────────────────────────────

    async def prompt_blocks(self, *, budget: int) -> Sequence[Block]:
        """The context for the model: one block or more per layer, in the order of slots, within the budget."""
        if not isinstance(budget, int):
            raise InvalidInput(f"a budget is a number of tokens, not {budget!r}")
        act = partial(self._prompt_blocks, budget)
        return await self._recorded("prompt_blocks", budget, act, list[Block], flush=True)

    async def _prompt_blocks(self, budget: int) -> list[Block]:
        layers = await self._begin()
        shares = allocate([budget_of(layer) for layer in layers], budget)
        for layer, share in zip(layers, shares, strict=True):
            if share == 0 and budget_of(layer).min > 0:
                self._note(layer, "budget", f"its minimum of {budget_of(layer).min} tokens does not fit any more")
        asked = [(layer, share) for layer, share in zip(layers, shares, strict=True) if share > 0]
        if is_on_record():  # the recalled text is in the journal, but a layer can change its own state in recall
            asked = [(layer, share) for layer, share in asked if has_answers(self._records[layer.id].layer)]
        found = await self._side_by_side([self._recall(layer, share) for layer, share in asked])
        return [block for blocks in found for block in blocks]

    async def after_turn(self, *, depth: int = 0) -> None:
        """End a turn: every layer stores what changed, all at once.

        Raises:
            LeaseLost: another attempt works on the task now; stop.
        """
        if type(depth) is not int or not 0 <= depth <= MOST_DEPTH:
            raise InvalidInput(f"the depth of a turn is a whole number of 0 or more, not {depth!r}")
        await self._recorded("after_turn", depth, partial(self._after_turn, depth))

    async def _after_turn(self, depth: int) -> None:
        layers, now = await self._begin(), self._now()

        def turn_of(layer: Any) -> Turn:  # the time-out is for each layer; each records it beside its own values
            return Turn(depth, self._records[layer.id].draw("turn", lambda: now))

        await self._each(layers, "store", turn_of, within="store")

    async def complete(self, outcome: Outcome) -> None:
        """Tell the layers that the agent regards the task as ended; the task's status does not change."""
        if outcome not in OUTCOMES:
            raise InvalidInput(f"{outcome!r} is not an outcome", do=f"one of {', '.join(OUTCOMES)}")
        await self._recorded("complete", outcome, partial(self._complete, outcome))

    async def _complete(self, outcome: Outcome) -> None:
        await self._each(await self._begin(), "on_complete", lambda _: outcome, within="complete")

    # ── children ────────────────────────────────────────────────────────────────────────────────

    async def spawn(self, child_task_id: str) -> Memory:
        """The memory of a child. A new child begins with a copy of this memory; one that exists keeps its own state."""
        return await self._recorded("spawn", child_task_id, partial(self._spawn, child_task_id), gives_its_own=True)

    async def _spawn(self, child_task_id: str) -> Memory:
        layers = []
        for layer in await self._begin():
            made = await self._call(layer, "on_spawn", child_task_id, within="spawn")
            layers += [made.value] if made.value is not None else []
        child = Memory(
            self._tasks,
            child_task_id,
            layers,
            storage=self._storage,
            count=self._count,
            thread=self._owners["thread"],
            resource=self._owners["resource"],
        )
        await child._begin()
        return child

    async def returned(self, child: Memory) -> None:
        """End a child: each layer takes over the values of the child's layer with the same id. A second call changes
        nothing."""
        if child.task_id == self.task_id:
            raise InvalidInput(f"{self.task_id!r} cannot be its own child", do="pass the memory that spawn() returned")
        await self._recorded("returned", child.task_id, partial(self._returned, child))

    async def _returned(self, child: Memory) -> None:
        theirs = {layer.id: layer for layer in await child._begin()}
        ours = [layer for layer in await self._begin() if layer.id in theirs]
        await self._side_by_side([self._call(one, "on_return", theirs[one.id], within="store") for one in ours])

    # ── tools ───────────────────────────────────────────────────────────────────────────────────

    def tools(self) -> list[dict[str, Any]]:
        """The tools the layers offer a model: name, description, parameters as JSON schema."""
        return [tool.describe() for tool in self._tools()]

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Carry out the model's call of a tool; its change is stored when this returns.

        Raises:
            InvalidInput: the call cannot be carried out; the message is written for the model.
        """
        return await self._recorded("call_tool", (name, arguments), partial(self._call_tool, name, arguments), Any)

    async def _call_tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        await self._begin()
        return await call_tool(self._tools(), name, arguments)

    def _tools(self) -> list[Tool]:
        offering = [layer for layer in self.layers if hasattr(layer, "tools")]
        return with_own_names((layer.id, tool) for layer in offering for tool in layer.tools())

    # ── inside a durable function ───────────────────────────────────────────────────────────────

    async def _recorded(
        self,
        verb: str,
        arguments: Any,
        act: Callable[[], Awaitable[T]],
        as_type: Any = None,
        *,
        gives_its_own: bool = False,
        flush: bool = False,
    ) -> T:
        return await memory_call(
            f"memory.{verb}", arguments, act, as_type, lost=self._lose, gives_its_own=gives_its_own, flush=flush
        )

    def _lose(self, records: set[str]) -> None:
        """Mark layers that did something else in a replay than before; their values are loaded anew after it."""
        lost = {one.id for one in self.layers if self._records[one.id].layer in records}
        self._lost |= lost
        self._ready -= lost

    async def _side_by_side(self, calls: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
        if is_on_record():  # without an await, so that no other part of the function runs in between
            return [await call for call in calls]
        return await asyncio.gather(*calls)

    # ── one layer ───────────────────────────────────────────────────────────────────────────────

    async def _begin(self) -> list[Any]:
        """Load the layers that are not loaded yet, and return those that are now. A layer that cannot be loaded is not
        used, so that it does not overwrite data it has not read."""
        ready = self._ready
        waiting = [one for one in self.layers if self._records[one.id].has_to_load(is_loaded=one.id in ready)]
        ready -= {layer.id for layer in waiting}
        if is_on_record():
            waiting = [layer for layer in waiting if layer.id not in self._lost]
        if waiting:
            await self._side_by_side([self._init(layer) for layer in waiting])
        return [layer for layer in self.layers if layer.id in self._ready]

    async def _init(self, layer: Any) -> None:
        record = self._records[layer.id]
        context = LayerContext(
            task_id=self.task_id,
            storage=ScopedStorage(self._storage, layer.scope, self._owner(layer), layer.id, record),
            tasks=self._tasks,
            now=partial(record.now, self._now),
            record=record,
            begin=self._begin,
            count=self._count,
            base_dir=next((Path(one.base_dir) for one in self.layers if getattr(one, "base_dir", None)), None),
            note=lambda text: self._note(layer, "", text),
        )
        if not (await self._call(layer, "init", context, within="init")).trouble:
            self._ready.add(layer.id)
            self._lost.discard(layer.id)

    def _owner(self, layer: Any) -> str:
        """The owner of a layer's memory."""
        own = getattr(layer, "owner", None)
        owner = own if own is not None else self._owners[layer.scope]
        if owner is None:
            raise InvalidInput(
                f"the layer {layer.id!r} keeps the memory of a {layer.scope}, but app.memory was not told which",
                do=f"give {layer.scope}= to app.memory",
            )
        return self.task_id if layer.scope == "execution" else str(owner)

    async def _recall(self, layer: Any, share: int) -> list[Block]:
        given = (await self._call(layer, "recall", share, within="recall")).value
        try:
            blocks = _blocks(given)
        except InvalidInput as error:
            self._note(layer, "recall", error.what)
            return []
        taken = self._cut(blocks, share)
        if taken != blocks:
            said = sum(len(block.text) for block in blocks)
            self._note(layer, "recall", f"gave {said:,} characters for a budget of {share} tokens; it was cut")
        return taken

    def _cut(self, blocks: list[Block], share: int) -> list[Block]:
        taken: list[Block] = []
        for block in blocks:
            text = cut(block.text, share, self._count)
            if text is None:
                break
            taken.append(Block(block.role, text))
            share -= self._count(text)
        return taken

    async def _each(
        self, layers: Iterable[Any], name: str, given: Callable[[Any], Any] | None = None, *, within: str
    ) -> None:
        """Call a hook of all layers at once, and wait for all of them, also when one says to stop. `given` returns the
        argument for a layer's hook."""
        calls = [
            self._call(layer, name, *(() if given is None else (given(layer),)), within=within)
            for layer in layers
            if hasattr(layer, name)
        ]
        if is_on_record():
            await self._side_by_side(calls)
            return
        for outcome in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    async def _call(self, layer: Any, name: str, *args: Any, within: str) -> hooks.Outcome:
        limit: timedelta = getattr(timeouts_of(layer), within)
        outcome = await hooks.call(layer, name, *args, timeout=limit)
        if outcome.trouble:
            self._note(layer, name, outcome.trouble)
        return outcome

    def _note(self, layer: Any, hook: str, what: str) -> None:
        self.notes.append(Note(layer.id, hook, what, self._now()))
        if is_on_record():  # logged the first time already
            return
        log.warning("memory of %s, layer %s%s: %s", self.task_id, layer.id, f", {hook}" if hook else "", what)

    def _now(self) -> datetime:
        return moment(self._store.clock.now_ms())


def _checked(layers: Iterable[Any]) -> list[Any]:
    found = list(layers)
    for layer in found:
        check(layer)
    ids = [layer.id for layer in found]
    twice = next((one for one in ids if ids.count(one) > 1), None)
    if twice is not None:
        raise InvalidInput(f"two layers have the id {twice!r}", do="layers are kept by their ids: give each its own")
    return found


def _blocks(given: Any) -> list[Block]:
    if given is None or given == "":
        return []
    if isinstance(given, str):
        return [Block(_DEFAULT_ROLE, given)]
    if isinstance(given, Block):
        return [given] if given.text else []
    if isinstance(given, Sequence):
        return [block for one in given for block in _blocks(one)]
    raise InvalidInput(f"recall gave {type(given).__name__}; text or Block was expected")
