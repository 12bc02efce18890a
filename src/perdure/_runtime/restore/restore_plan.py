"""Plan a restore: every unit's verdict, every fingerprint, every missing secret. Touches nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from perdure._durable import CallFrame, Where, where
from perdure._model import FINISHED, Checkpoint, Verdict
from perdure._runtime.context import Context, Finding, Place, fingerprints, mapped
from perdure._runtime.kinds import all_of, found, type_of, unknown_kind
from perdure._runtime.restore.cut import Saved, SavedUnit, from_data, in_order
from perdure._runtime.restore.report import RestorePlan, UnitLine
from perdure._runtime.restore.save import CAUSE, PART, place_for
from perdure._runtime.secrets import Secret, redaction, references_in
from perdure._runtime.units import Contents, Owner, note_that_came
from perdure._store import ChildRow, Store
from perdure._tasks import Task, arrival, carried, store_of, task_by_uid, tasks_of
from perdure.errors import Incompatible, NotFound, PerdureError, SecretMissing

# Units of `perdure run` itself: its own rule says whether the command starts again or runs on.
_OF_RUNS = frozenset({"command", "piped", "recorder"})
# Kinds that neither start a process nor touch a file, whatever their recipe says.
HARMLESS = frozenset({"variables", "directory", "blob", "rate_limits"})
_MOST_FRAMES, _LONGEST_CALL = 20, 200
WAITS = "when the code reaches it: only the code knows how"
_UNSIGNED = "the task was imported from an unsigned bundle: whatever its recipe would start or change is left to you"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A plan, and what carrying it out needs."""

    plan: RestorePlan
    checkpoint: Checkpoint
    saved: Saved
    units: Sequence[SavedUnit]  # in the order they come back
    place: Place


async def prepare(
    task: Task, context: Context, at: str | None = None, *, trust: bool = False, is_claim: bool = False
) -> Prepared:
    """Look at everything a restore of a checkpoint needs (the newest that was saved, if none is named).

    Of a task from an unsigned bundle, only what is harmless is restored, and nothing is looked at
    but what this process itself has named, unless it is trusted: a look contacts whom its recipe names. At a claim
    the task goes on from its journal's end, not from the save: see `_as_claimed`.

    Raises:
        NotFound: nothing was saved.
        RecordDamaged: the named checkpoint cannot be read.
    """
    found = await carried(task, PART, cause=CAUSE, at=at)
    if found is None:
        raise NotFound(
            "saved runtime of task", task.id, store_of(task).place, do="`await rt.save()` makes a checkpoint with one"
        )
    checkpoint, data, damaged = found
    saved, is_trusted = await as_here(task, checkpoint.id, data)
    is_trusted = is_trusted or trust
    given = list(context.fingerprints.values())
    findings = await fingerprints.check(saved.fingerprints, given, is_trusted=is_trusted)
    findings += _who(saved)
    is_fresh = any(finding.policy == "rebuild" and not finding.same for finding in findings)
    units = in_order(_as_claimed(saved.units) if is_claim else saved.units)
    if is_trusted:
        units = [await _with_contents(task, unit) for unit in units]
    coming = tuple(unit.recipe["root"] for unit in units if unit.kind == "workspace")
    place = replace(
        place_for(task, context), fresh=is_fresh, coming=coming, from_host=saved.host, is_trusted=is_trusted
    )
    lines: list[UnitLine] = []
    for unit in units:
        lost = {line.name for line in lines if line.level == "lost"}
        line, refusal = await _judge(unit, place, lost, is_claim=is_claim)
        lines.append(line)
        findings += refusal
    stands = await where(tasks_of(task), task.id)
    plan = RestorePlan(
        task_id=task.id,
        checkpoint=checkpoint.id,
        units=lines,
        findings=findings,
        skipped=stands.done,
        rerun=_cut_off(stands),
        then=_then(stands),
        missing=_missing(units) if is_trusted else [],
        damaged=damaged,
    )
    return Prepared(plan, checkpoint, saved, units, place)


async def plan_for(task: Task, at: str | None = None) -> RestorePlan:
    """Plan a resume in a new process, from the saved units and those that the keeper holds besides."""
    context = Context()
    others = await _held_for(task, context)
    try:
        plan = (await prepare(task, context, at, is_claim=at is None and await _is_function(task))).plan
    except NotFound:
        if at is not None:
            raise
        stands = await where(tasks_of(task), task.id)
        return RestorePlan(
            task_id=task.id,
            checkpoint="",
            units=others,
            skipped=stands.done,
            rerun=_cut_off(stands),
            then=_then(stands),
        )
    saved = {line.name for line in plan.units}
    return replace(plan, units=[*plan.units, *(line for line in others if line.name not in saved)])


async def _held_for(task: Task, context: Context, before: str = "") -> list[UnitLine]:
    """The units that the keeper holds for a task, and for the tasks it has started: a command's durable functions."""
    held = [
        UnitLine(f"{before}{record.kind} {record.name}", "kept", await found(record))
        for record in await all_of(place_for(task, context))
        if record.kind not in _OF_RUNS
    ]
    for child in await store_of(task).rows(ChildRow, "children_of", uid=task.uid):
        if child.status not in FINISHED:
            held += await _held_for(await task_by_uid(tasks_of(task), child.uid), context, f"{before}{child.id}: ")
    return held


async def _is_function(task: Task) -> bool:
    return bool(await store_of(task).query("get_call", uid=task.uid))


def _cut_off(stands: Where) -> list[str]:
    return [frame.name for frame in stands.frames if frame.state in ("under way", "cut off", "uncertain")]


def _then(stands: Where) -> list[str]:
    """The steps of the next attempt, in order; bounded, because a person reads them."""
    if stands.function is None:
        return [stands.next] if stands.next else []
    told = [_fate(frame) for frame in stands.frames[:_MOST_FRAMES]]
    if len(stands.frames) > _MOST_FRAMES:
        told.append(f"and {len(stands.frames) - _MOST_FRAMES} calls more")
    after = f"after {stands.last_path}" if stands.last_path else "from its beginning"
    told.append(f"{stands.function} goes on {after}")
    return [*told, stands.next] if stands.next and not stands.next.startswith("the next attempt") else told


def _fate(frame: CallFrame) -> str:
    call = redaction.redact(frame.call or frame.path)[:_LONGEST_CALL]
    if frame.state == "uncertain":
        return (
            f"{call} is uncertain: whether it happened is settled first, by its verify, by its key if it is keyed, "
            f"or by a person (`perdure answer`)"
        )
    if frame.state == "waiting":
        return f"{call} waits: {redaction.redact(frame.note)[:_LONGEST_CALL]}"
    return f"{call} was cut off, and runs again"


async def as_here(task: Task, checkpoint: str, data: Any) -> tuple[Saved, bool]:
    """The saved units, with the paths of this machine, and True if a store that this one trusts wrote them."""
    came = await arrival(store_of(task), task.uid) or {}
    is_trusted = bool(came.get("trusted", came.get("signed", True)))
    return _as_here(from_data(data, checkpoint), came.get("paths") or {}), is_trusted


async def contents_as_here(store: Store, uid: str, contents: Contents) -> Contents | None:
    """The contents of a shell, with the paths of this machine; None unless a trusted bundle has brought it."""
    came = await arrival(store, uid)
    if came is None or not came.get("trusted", came.get("signed", False)):
        return None
    return msgspec.structs.replace(contents, recipe=mapped(contents.recipe, came.get("paths") or {}))


async def _with_contents(task: Task, unit: SavedUnit) -> SavedUnit:
    """A shell with what was in it when a bundle took it along: newer than what was saved of it."""
    if unit.kind != "kept" or unit.recipe.get("kind") != "shell":
        return unit
    store, owner = store_of(task), Owner(store_of(task).namespace, task.id, task.uid)
    came = await note_that_came(store, owner, f"shell {unit.recipe['name']}")
    if came is None or came.value.contents is None:
        return unit
    contents = await contents_as_here(store, task.uid, came.value.contents)
    if contents is None:
        return unit
    more = {"contents": msgspec.structs.asdict(contents), "note": came.version}
    return msgspec.structs.replace(unit, recipe={**unit.recipe, **more})


def _as_here(saved: Saved, paths: Mapping[str, str]) -> Saved:
    """The same with its paths as they are on this machine, if the task came from another."""
    if not paths:
        return saved
    units = [msgspec.structs.replace(unit, recipe=mapped(unit.recipe, paths)) for unit in saved.units]
    marks = [msgspec.structs.replace(one, about=mapped(one.about, paths)) for one in saved.fingerprints]
    return msgspec.structs.replace(saved, units=units, fingerprints=marks)


def _as_claimed(units: Sequence[SavedUnit]) -> list[SavedUnit]:
    """What a claim brings back: replaying the code gives the variables, and what it did to its files stays done."""
    return [
        msgspec.structs.replace(unit, recipe={**unit.recipe, "back": "missing"})
        if unit.kind == "workspace" and unit.recipe["back"] == "always"
        else unit
        for unit in units
        if unit.kind != "variables"
    ]


async def _judge(
    unit: SavedUnit, place: Place, lost: set[str], *, is_claim: bool = False
) -> tuple[UnitLine, list[Finding]]:
    refusals: list[Finding] = []
    unit_type = type_of(unit.kind)
    gone = [name for name in unit.after if name in lost]
    if unit_type is None:
        verdict = unknown_kind(unit.kind)
    elif not place.is_trusted and unit.kind not in HARMLESS:
        verdict = Verdict("lost", _UNSIGNED, options=("rt.restore(trust=True) brings it back",))
    elif gone:
        verdict = Verdict("lost", f"it needs {', '.join(gone)}, which is lost")
    elif is_claim and unit_type.waits(unit.recipe, place):
        verdict = Verdict("rebuilt", WAITS)
    else:
        try:
            verdict = await unit_type.validate(unit.recipe, place)
        except Incompatible as error:
            verdict = Verdict("lost", "; ".join(why for _, why in error.changed))
            refusals = [Finding(name, "refuse", False, why) for name, why in error.changed]
        except PerdureError as error:
            verdict = Verdict("lost", error.what)
        except Exception as error:
            verdict = Verdict("lost", f"it cannot be looked at: {type(error).__name__}: {error}")
    return UnitLine(unit.name, unit.kind, verdict), refusals


def _who(saved: Saved) -> list[Finding]:
    """A run of an ordinary user is not resumed as root: that would be more than it had."""
    if os.geteuid() == 0 and not saved.is_root:
        return [Finding("the user", "refuse", False, f"it ran as {saved.user}, and this process is root")]
    return []


def _missing(units: Sequence[SavedUnit]) -> list[tuple[str, str]]:
    """The secrets that cannot be had here. A command is only asked whether it may be run."""
    found: dict[str, str] = {}
    references: list[Any] = [reference for unit in units for reference in references_in(unit.recipe)]
    for reference in references:
        try:
            Secret.parse(reference).value()
        except SecretMissing as error:
            found[reference] = error.problem
    return sorted(found.items())
