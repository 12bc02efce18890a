"""Before a task is carried on again: is the world still the one it was saved in?"""

from __future__ import annotations

from perdure._runtime import fingerprints
from perdure._runtime.continuity import context_of
from perdure._runtime.save import CAUSE, PART
from perdure._runtime.saved import from_data
from perdure._tasks import Task, carried


async def pause_in_a_changed_world(task: Task) -> bool:
    """Pause the task and say why, if a fingerprint of its newest save refuses; whether it did.

    Only what this process can look at counts: a function that nobody gave here is left to `rt.restore`.
    """
    found = await carried(task, PART, cause=CAUSE)
    if found is None:
        return False
    saved = from_data(found[1], found[0].id)
    here = context_of(task._store, task.uid).fingerprints.values()
    findings = await fingerprints.check(saved.fingerprints, list(here))
    changed = [f"{finding.name}: {finding.why}" for finding in findings if finding.refuses and finding.looked]
    if not changed:
        return False
    await task.pause(
        f"The world has changed since the last save. {'; '.join(changed)}. Put it right, then resume.",
        reason="human_input",
        question="Is the world as the task needs it?",
    )
    return True
