"""The layer of a task's plan: written early, ticked off, and shown to the model again until nothing is left.

The plan is kept in the store and, where there is a folder, as a `plan.md` that people and models read and edit. Boxes
ticked and lines added in the file are taken over. Lines that vanish from it are restored: a file that was cut off must
not shorten the plan. Skipping an open item is recorded.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from perdure._runtime import redact
from perdure.errors import Conflict, InvalidInput, OutOfOrder, PathRefused, RecordDamaged
from perdure.memory.artifacts import task_files as artifacts
from perdure.memory.layer import Block, Budget, LayerContext, Scope, Slot, Turn
from perdure.memory.prompt import Tool, cut, in_thread, takes
from perdure.memory.recorded import recorded
from perdure.memory.task_state_events import iso

_NAME, _FILE = "plan", "plan.md"
_LINE = re.compile(r"^\s*[-*]\s*\[( |x|X)\]\s*(.*?)\s*$")
MOST_ITEMS, MOST_LENGTH = 2_000, 500
_TRIES = 100


@dataclass(frozen=True, slots=True)
class Item:
    """One line of the plan."""

    text: str
    is_done: bool = False
    at: str = ""  # when it was ticked
    note: str = ""  # why it was ticked out of order, or its result

    @property
    def line(self) -> str:
        return f"- [{'x' if self.is_done else ' '}] {self.text}" + (f" ({self.note})" if self.note else "")


Plan = tuple[Item, ...]


# ── deciding, pure ───────────────────────────────────────────────────────────────────────────────


def find(plan: Plan, item: int | str) -> int:
    """The place of an item, named by its number from 1, or by its text.

    Raises:
        InvalidInput: no item has this number or text, or several items have the text.
    """
    if isinstance(item, int) and not isinstance(item, bool):
        if not 1 <= item <= len(plan):
            raise InvalidInput(f"the plan has {len(plan)} items, and no number {item}")
        return item - 1
    places = [place for place, one in enumerate(plan) if one.text == str(item).strip()]
    if len(places) != 1:
        raise InvalidInput(f"{len(places) or 'no'} items of the plan read {item!r}", do="name it by its number")
    return places[0]


def tick(plan: Plan, item: int | str, at: str, note: str = "", why_now: str = "") -> Plan:
    """The plan with one item ticked; an item that is already ticked is not changed.

    Raises:
        OutOfOrder: earlier items are open, and `why_now` gives no reason.
    """
    place = find(plan, item)
    if plan[place].is_done:
        return plan
    waiting = [one.text for one in plan[:place] if not one.is_done]
    if waiting and not why_now:
        raise OutOfOrder(plan[place].text, waiting[0])
    said = "; ".join(filter(None, (note, f"before {len(waiting)} open: {why_now}" if waiting else "")))
    done = replace(plan[place], is_done=True, at=at, note=_one_line(said))
    return (*plan[:place], done, *plan[place + 1 :])


def take_over(plan: Plan, file: Sequence[tuple[str, bool]], at: str) -> Plan:
    """The plan with the edits in its file: boxes ticked, lines added. Missing lines stay."""
    found = {item.line[6:]: place for place, item in enumerate(plan)} | {item.text: n for n, item in enumerate(plan)}
    items = list(plan)
    for text, is_done in file:
        place = found.get(text)
        if place is None:
            found[text] = len(items)
            items.append(Item(text, is_done, at if is_done else "", "added in the file"))
        elif is_done and not items[place].is_done:
            waits = any(not one.is_done for one in items[:place])
            note = "ticked in the file" + (", out of order" if waits else "")
            items[place] = replace(items[place], is_done=True, at=at, note=note)
    return tuple(items[:MOST_ITEMS])


def parse(text: str) -> list[tuple[str, bool]]:
    """The boxes of a file: each text, and True if its box is ticked."""
    found = [_LINE.match(line) for line in text.splitlines()]
    return [(one[2][:MOST_LENGTH], one[1] in "xX") for one in found if one and one[2]]


def written(plan: Plan) -> str:
    return "# Plan\n\n" + "".join(f"{item.line}\n" for item in plan)


async def _from_stored(value: Any) -> Plan:
    try:
        return msgspec.convert(value, Plan)
    except msgspec.ValidationError as error:
        raise RecordDamaged("the stored plan of a task", str(error)) from None


def _one_line(text: str) -> str:
    return " ".join(text.split())[:MOST_LENGTH]


# ── the layer ────────────────────────────────────────────────────────────────────────────────────


class PlanLayer:
    """A layer: the plan of a task. `folder` is where its plan.md is; without one, another layer's folder."""

    id = "plan"
    scope: Scope = "execution"

    def __init__(self, *, folder: str | Path | None = None) -> None:
        self.slot: int = Slot.PLAN
        self.budget: Budget = Budget(40, 600)
        self._folder = Path(folder).absolute() if folder is not None else None
        self._context: LayerContext | None = None
        self._plan: Plan = ()
        self._version = 0
        self._file = ""  # as last read
        self._turn = asyncio.Lock()

    @property
    def items(self) -> Sequence[Item]:
        return self._plan

    # ── hooks ───────────────────────────────────────────────────────────────────────────────────

    async def init(self, context: LayerContext) -> None:
        self._context = context
        self._folder = self._folder or context.base_dir
        await self._load()
        await self._meet_file()

    async def recall(self, budget: int) -> Block | None:
        assert self._context is not None
        await self._meet_file()
        if not self._plan:
            return None
        done = sum(item.is_done for item in self._plan)
        left = [f"{place}. {item.text}" for place, item in enumerate(self._plan, 1) if not item.is_done]
        head = f"{done} of {len(self._plan)} done." + (" Left, in this order:" if left else " Nothing is left.")
        text = "<plan>\n" + redact("\n".join([head, *left])).replace("<", "‹") + "\n</plan>"
        short = cut(text, budget, self._context.count)
        return None if short is None else Block("developer", short)

    async def store(self, turn: Turn) -> None:
        await self._meet_file()

    # ── writing and ticking ─────────────────────────────────────────────────────────────────────

    @recorded()
    async def author(self, items: Sequence[str], *, revise: bool = False) -> None:
        """Write the plan once. With `revise`, ticked items stay and these replace the rest.

        Raises:
            Conflict: there is another plan already; it was not changed.
            InvalidInput: an item is empty, or there are too many.
        """
        texts = [_one_line(str(item)) for item in items]
        if not all(texts) or not 0 < len(texts) <= MOST_ITEMS:
            raise InvalidInput(f"a plan has 1 to {MOST_ITEMS:,} items, each with a text")

        def write(plan: Plan) -> Plan:
            if plan and not revise:
                if [item.text for item in plan[: len(texts)]] == texts:
                    return plan  # a restarted process writes the same plan again
                raise Conflict("the task has a plan already", kept="that plan", do="tick it off, or revise it")
            done = tuple(item for item in plan if item.is_done)
            known = {item.text for item in done}
            return (*done, *(Item(text) for text in texts if text not in known))

        await self._change(write)

    @recorded()
    async def tick(self, item: int | str, *, note: str = "", why_now: str = "") -> None:
        """Tick an item off, by its number or text; stored when this returns. An item that is already ticked is not
        changed.

        Raises:
            OutOfOrder: items before it are open; pass `why_now` to tick it all the same, and the reason is recorded.
        """
        assert self._context is not None
        at = iso(self._context.now())
        await self._change(lambda plan: tick(plan, item, at, note, why_now))

    @asynccontextmanager
    async def doing(self, item: int | str) -> AsyncIterator[None]:
        """Bind an item to a block: it is ticked when the block ends well, and only then.

        Around a step of a durable function it holds through a crash: a step that is recorded is not run again,
        and its item is ticked.
        """
        find(self._plan, item)
        yield
        await self.tick(item)

    def tools(self) -> list[Tool]:
        items = {"type": "array", "items": {"type": "string"}, "description": "The steps, in their order."}
        revise = {"type": "boolean", "description": "Replace the open items of the present plan.", "optional": True}
        item = {"type": "integer", "description": "Its number, from 1."}
        note = {"type": "string", "description": "The result of the item.", "optional": True}
        why = {"type": "string", "description": "Why it is done before open items.", "optional": True}
        return [
            Tool(
                "write_plan",
                "Write down the plan for this task, before you begin.",
                takes(items=items, revise=revise),
                self._author_by_model,
            ),
            Tool(
                "tick_plan",
                "Tick an item of the plan off, when it is done.",
                takes(item=item, note=note, why_now=why),
                self._tick_by_model,
            ),
        ]

    async def _author_by_model(self, items: Sequence[str], revise: bool = False) -> dict[str, Any]:
        await self.author(items, revise=revise)
        return {"left": sum(not item.is_done for item in self._plan)}

    async def _tick_by_model(self, item: int, note: str = "", why_now: str = "") -> dict[str, Any]:
        await self.tick(item, note=note, why_now=why_now)
        return {"left": sum(not one.is_done for one in self._plan)}

    # ── keeping ─────────────────────────────────────────────────────────────────────────────────

    async def _load(self) -> None:
        assert self._context is not None
        plan, self._version = await self._context.storage.load_good(_NAME, _from_stored, self._context.note)
        self._plan = plan or ()

    async def _change(self, change: Any) -> None:
        """Apply a change to the stored plan, also when another process has just written it."""
        if self._context is None:
            raise InvalidInput("this layer is not in use", do="async with app.memory(task_id, [layer]):")
        async with self._turn:
            for _ in range(_TRIES):
                plan: Plan = change(self._plan)
                if plan == self._plan:
                    return
                value = [{"text": one.text, "is_done": one.is_done, "at": one.at, "note": one.note} for one in plan]
                version = await self._context.storage.swap(_NAME, value, self._version)
                if version is not None:
                    self._plan, self._version = plan, version or 1
                    await self._write_file()
                    return
                await self._load()
        raise Conflict("gave up saving the plan: other processes kept changing it")

    async def _meet_file(self) -> None:
        """Take over the edits in the file, and write the plan to it."""
        folder, context = self._folder, self._context
        if folder is None or context is None:
            return

        async def read() -> str | None:
            try:
                found = (await in_thread(lambda: artifacts.read(folder, _FILE))).decode(errors="replace")
            except PathRefused:
                found = ""
            return None if found == self._file else found

        changed = await context.once("plan.md", read)
        text = self._file = self._file if changed is None else changed
        at = iso(context.now())
        await self._change(lambda plan: take_over(plan, parse(text), at))
        if self._plan and text != written(self._plan):
            await self._write_file()

    async def _write_file(self) -> None:
        folder, text = self._folder, written(self._plan)
        if folder is None or self._context is None:
            return

        async def write() -> str:
            try:
                await in_thread(lambda: artifacts.write(folder, _FILE, text.encode()))
            except (OSError, PathRefused) as error:
                return str(error)
            return ""

        trouble = await self._context.once("write plan.md", write)
        if trouble:
            self._context.note(f"plan.md was not written: {trouble}")
