"""Restore the surroundings of a claimed task, after checking that the world is still the one it was saved in.

    claim → the newest save → fingerprints → units, in order → the report → replay

Every claim of a task that was at work before passes here, by a worker as well as by `app.run`. The journal has the
work done since the save, so only the rest is restored: the environment, the directory and the units. Variables and
messages are restored when the replay passes the save that stored them.

Some parts need the user's code: a function that looks at the world, or one that renews a token. They wait in the
context until the replayed code reaches them (`unlooked`, `waiting`).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from perdure._durable import stand_still
from perdure._runtime.context import (
    Context,
    Finding,
    Fingerprint,
    Held,
    context_of,
    fingerprints,
    keep_context,
)
from perdure._runtime.kinds import type_of
from perdure._runtime.restore import restore_run as restores
from perdure._runtime.restore.cut import SavedUnit
from perdure._runtime.restore.restore_plan import Prepared, prepare
from perdure._runtime.restore.save import place_for
from perdure._tasks import Task, store_of
from perdure.errors import CredentialRefused, Incompatible, PerdureError

log = logging.getLogger("perdure.runtime")


async def come_back(task: Task, epoch: int) -> None:
    """Check and restore the surroundings of a claimed task from its newest save.

    A process that worked on the task just before still has them: there only the world is checked.

    Raises:
        Incompatible: a fingerprint with policy `refuse` differs; nothing was touched.
        CredentialRefused, RestoreFailed: they could not be restored; everything is as before.
    """
    known = context_of(store_of(task), task.uid)
    if known.epoch == epoch:
        return
    await restores.clear_up(task)
    context = known.anew(epoch)
    prepared = await prepare(task, context, is_claim=True)
    refuse(prepared.plan.checkpoint, [found for found in prepared.plan.findings if found.looked])
    if known.epoch == epoch - 1 and not prepared.place.fresh:
        return
    back = await restores.carry_out(task, context, prepared)
    context.unlooked = _unlooked(prepared)
    context.brought = set(context.units)
    keep_context(store_of(task), task.uid, context)
    log.info("task %s came back from checkpoint %s: lost %s", task.id, back.cut.id, back.report.lost or "nothing")


def refuse(checkpoint: str, findings: Sequence[Finding]) -> None:
    """
    Raises:
        Incompatible: one of them refuses.
    """
    changed = [(found.name, found.why) for found in findings if found.refuses]
    if changed:
        raise Incompatible(checkpoint, changed)


def _unlooked(prepared: Prepared) -> dict[tuple[str, str], Any]:
    names = {found.name for found in prepared.plan.findings if not found.looked}
    return {(one.kind, one.name): one for one in prepared.saved.fingerprints if one.name in names}


# ── what waited for the code ─────────────────────────────────────────────────────────────────────


async def look_now(task: Task, context: Context, given: Sequence[Fingerprint]) -> None:
    """Check the fingerprints that had to wait for the user's code.

    Raises:
        Incompatible: one refuses. A durable function's task is paused first, and waits to be resumed.
    """
    recorded = [context.unlooked.pop((one.kind, one.name), None) for one in given]
    try:
        refuse("", await fingerprints.check([one for one in recorded if one is not None], given))
    except Incompatible as error:
        await _wait_for_a_person(task, error)
        raise


async def bring_back_now(task: Task, context: Context, name: str) -> None:
    """A unit only the code can bring back, now that it has said how.

    Raises:
        CredentialRefused: a durable function's task is paused first, and waits to be resumed.
    """
    unit: SavedUnit = context.waiting[name]
    unit_type = type_of(unit.kind)
    assert unit_type is not None
    try:
        live = await unit_type.restore(unit.recipe, place_for(task, context))
    except CredentialRefused as error:
        await _wait_for_a_person(task, error)
        raise
    context.units[name] = Held(name, unit.kind, live, unit.after)
    del context.waiting[name]


async def _wait_for_a_person(task: Task, error: PerdureError) -> None:
    log.warning("task %s waits: %s", task.id, error.what)
    await restores.ask(task, error, [])
    await stand_still()
