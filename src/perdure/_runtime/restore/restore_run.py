"""Restore the surroundings of a task: checked first, all or nothing, and reported as it went.

    the lease → the plan → refused? → each unit in order → the report on disk → what was replaced is let go

Nothing is touched before the plan has passed. If a unit cannot be brought back, or the report cannot be written, the
units before it are undone in reverse order; the context and the world are then as before.
"""

from __future__ import annotations

import dataclasses
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from perdure._durable import carry_on_here
from perdure._ground import crash_points as crash
from perdure._ground.bridge import Call
from perdure._model import Verdict
from perdure._runtime.context import Context, Held, Place, UnitType, narrowed
from perdure._runtime.kinds import type_of
from perdure._runtime.restore import report as reports
from perdure._runtime.restore.cut import Cut, SavedUnit, cut_of
from perdure._runtime.restore.report import RestoreReport, UnitLine
from perdure._runtime.restore.restore_plan import HARMLESS, WAITS, Prepared, as_here, prepare
from perdure._runtime.restore.save import CAUSE as SAVE
from perdure._runtime.restore.save import PART as SAVED
from perdure._runtime.restore.save import SURROUNDINGS, home_of, place_for
from perdure._runtime.workspace import swap as workspace_swap
from perdure._tasks import Task, agent_of, carried, carry, store_of, take_lease, tasks_of
from perdure.errors import CredentialRefused, Incompatible, PerdureError, RestoreFailed, SecretMissing

log = logging.getLogger("perdure.runtime")
CAUSE, PART = "restore", "report"
Missing = Literal["ask", "leave"]


@dataclass(frozen=True, slots=True)
class Restored:
    """A restored context and its report; `resume` continues the task."""

    task: Task
    context: Context
    cut: Cut
    report: RestoreReport

    async def resume(self) -> Any:
        """Carry the task on in this process: the result of its durable function, or the task itself."""
        return await carry_on_here(tasks_of(self.task), self.task)


@dataclass(frozen=True, slots=True)
class _Back:
    unit: SavedUnit
    unit_type: UnitType
    live: Any


async def restore(
    task: Task, context: Context, at: str | None = None, *, missing: Missing = "ask", trust: bool = False
) -> Restored:
    """Fill `context` from a checkpoint (the newest that was saved, if none is named).

    A secret that cannot be fetched pauses the task for human_input. With missing="leave" the units that need it are
    lost instead.

    Raises:
        Incompatible: a fingerprint with policy `refuse` differs; nothing was touched.
        SecretMissing, CredentialRefused: the task is paused and asks for it; everything is as before.
        RestoreFailed: a unit could not be brought back; everything is as it was.
        LeaseHeld, InvalidTransition: this process may not work on the task; nothing was touched.
    """
    hold = await take_lease(store_of(task), task.id, task.uid, agent_of(task))
    await clear_up(task)
    prepared = await prepare(task, context, at, trust=trust)
    plan = prepared.plan
    if plan.refusals:
        raise Incompatible(plan.checkpoint, [(finding.name, finding.why) for finding in plan.refusals])
    if plan.missing and missing == "ask":
        error = SecretMissing(*plan.missing[0])
        await ask(task, error, [reference for reference, _ in plan.missing])
        raise error
    try:
        back = await carry_out(task, context, prepared)
    except (SecretMissing, CredentialRefused) as error:
        await ask(task, error, [])
        raise
    context.partial_results = dict(prepared.saved.partial_results)
    context.epoch = hold.fence.epoch
    return back


async def clear_up(task: Task) -> None:
    """Undo the restore of a process that died in the middle of it."""
    home = home_of(store_of(task))
    await Call(lambda: workspace_swap.recover(home))


async def carry_out(task: Task, context: Context, prepared: Prepared) -> Restored:
    before = context.permissions
    context.permissions = narrowed(prepared.saved.permissions, before)
    back: list[_Back] = []
    lines: list[UnitLine] = []
    doing = ""
    try:
        for unit, line in zip(prepared.units, prepared.plan.units, strict=True):
            doing = unit.name
            stays = line.level == "lost" or line.verdict.reason == WAITS
            lines.append(line if stays else await _bring_back(unit, line, prepared.place, back))
            crash.place("restore.unit")
        doing = "the report"
        report = _report(prepared, lines, task)
        levels = dict(Counter(line.level for line in lines))
        noted = {"levels": levels, "changed": reports.changed(report)}
        await carry(task, PART, reports.to_data(report), cause=CAUSE, kind="restored", told=noted)
    except BaseException as error:
        context.permissions = before
        left = await _take_back(back, prepared.place)
        if isinstance(error, SecretMissing | CredentialRefused) or not isinstance(error, Exception):
            raise
        told = error.what if isinstance(error, PerdureError) else f"{type(error).__name__}: {error}"
        raise RestoreFailed(doing, told, left) from error
    for one in back:
        await _let_go(one, prepared.place)
    context.lost = {line.name: line.verdict.reason for line in lines if line.level == "lost"}
    context.waiting = {unit.name: unit for unit in prepared.units if unit.name in _waiting(lines)}
    context.units.update({b.unit.name: Held(b.unit.name, b.unit.kind, b.live, b.unit.after) for b in _outer(back)})
    return Restored(task, context, cut_of(prepared.checkpoint, prepared.saved), report)


async def surround_again(task: Task, context: Context, at: str) -> None:
    """The variables, messages and partial results of a save that a replay has come past; directory and environment
    too."""
    found = await carried(task, SAVED, cause=SAVE, at=at)
    if found is None:
        return
    saved, is_trusted = await as_here(task, found[0].id, found[1])
    place = dataclasses.replace(place_for(task, context), from_host=saved.host)
    for kind in SURROUNDINGS:
        unit_type, recipe = type_of(kind), saved.recipe(kind)
        if unit_type is not None and recipe is not None and (is_trusted or kind in HARMLESS):
            await unit_type.restore(recipe, place)
    context.partial_results = dict(saved.partial_results)


async def _bring_back(unit: SavedUnit, line: UnitLine, place: Place, back: list[_Back]) -> UnitLine:
    unit_type = type_of(unit.kind)
    assert unit_type is not None  # or the plan would have called it lost
    live = await unit_type.restore(unit.recipe, place)
    back.append(_Back(unit, unit_type, live))
    verdict = getattr(live, "verdict", None)
    return UnitLine(unit.name, unit.kind, verdict if isinstance(verdict, Verdict) else line.verdict)


async def _take_back(back: Sequence[_Back], place: Place) -> list[str]:
    """Undo in reverse; what could not be undone is named, and does not keep the others from it."""
    left = []
    for one in reversed(back):
        try:
            await one.unit_type.rollback(one.live, place)
        except Exception as error:
            log.warning("unit %s could not be taken back: %s", one.unit.name, error)
            left.append(one.unit.name)
    return left


async def _let_go(one: _Back, place: Place) -> None:
    try:
        await one.unit_type.commit(one.live, place)
    except Exception as error:  # it stands; only what it replaced may still lie about
        log.warning("unit %s came back, but what it replaced is still there: %s", one.unit.name, error)


def _waiting(lines: Sequence[UnitLine]) -> set[str]:
    return {line.name for line in lines if line.verdict.reason == WAITS}


def _outer(back: Sequence[_Back]) -> list[_Back]:
    """The units a user holds; the surroundings are the context itself, and the keeper holds its own."""
    return [one for one in back if one.unit.kind not in (*SURROUNDINGS, "kept")]


def _report(prepared: Prepared, lines: Sequence[UnitLine], task: Task) -> RestoreReport:
    place = prepared.place
    planned = {line.name: line.level for line in prepared.plan.units}
    differs = [f"{line.name} came back as {line.level}, planned was {planned[line.name]}" for line in lines]
    warnings = [text for text, line in zip(differs, lines, strict=True) if line.level != planned[line.name]]
    warnings += [f"{f.name}: {f.why}" for f in prepared.plan.findings if not f.same and f.policy == "warn"]
    return RestoreReport(
        plan=reports.with_units(prepared.plan, lines),
        host=place.host,
        at_ms=store_of(task).clock.now_ms(),
        from_host=prepared.saved.host,
        credentials=[f"{reference} is not here" for reference, _ in prepared.plan.missing],
        warnings=warnings,
    )


async def last_report(task: Task) -> RestoreReport | None:
    """The report of the task's last restore; None if there was none."""
    found = await carried(task, PART, cause=CAUSE)
    return reports.from_data(found[1]) if found is not None and found[1] is not None else None


async def ask(task: Task, error: PerdureError, references: Sequence[str]) -> None:
    """Ask a person to put the credential in its place. The answer carries no secret, because answers are stored."""
    names = ", ".join(references) if references else error.what
    await task.pause(
        f"A credential is needed to continue: {names}. Put it in its place on this machine, then resume.",
        reason="human_input",
        question=error.what,
        credential=list(references) or [error.what],
    )
