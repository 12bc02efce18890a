"""The folder a task works in, as a unit: cut at every save, and put back where it is missing or as asked.

By default a folder that is there is left as it is: since the save the task has gone on, and its journal with it. What
differs is told. `back="always"` puts the files back as they were, after the present ones were cut too.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from perdure._ground.bridge import Call
from perdure._model import Verdict
from perdure._runtime.context import Place, UnitType
from perdure._runtime.workspace import Workspace, oid_at, walk
from perdure._runtime.workspace import swap as swaps
from perdure.errors import NotFound

Back = Literal["missing", "always", "never"]


@dataclass
class KeptWorkspace:
    """A workspace, and when a restore puts it back."""

    workspace: Workspace
    back: Back = "missing"
    swap: swaps.Swap | None = None
    replaced: str | None = None  # the cut of what stood there before
    verdict: Verdict | None = None


class WorkspaceType(UnitType):
    kind = "workspace"

    async def capture(self, live: KeptWorkspace, place: Place) -> Any:
        workspace = live.workspace
        cut = await Call(workspace.cut)
        await Call(lambda: workspace.objects.note_owner(cut.id, place.uid))
        return {
            "cut": cut.id,
            "root": str(workspace.root),
            "host": place.host,
            "files": cut.files,
            "size": cut.size,
            "left_out": list(cut.left_out),
            "ignored": workspace.ignored,
            "repositories": workspace.repositories,
            "back": live.back,
        }

    async def validate(self, recipe: Any, place: Place) -> Verdict:
        workspace = _workspace(recipe, place)
        is_there = workspace.root.is_dir() and any(workspace.root.iterdir())
        try:
            changes = await Call(lambda: _changes(workspace, recipe["cut"])) if is_there else None
        except NotFound:
            if is_there:
                return Verdict("kept", "the folder is there; the cut of it is not here, so it was not compared")
            return Verdict("lost", f"the folder is gone, and its cut is on {recipe['host']}")
        if not is_there:
            if not workspace.objects.has(recipe["cut"]):
                return Verdict("lost", f"the folder is gone, and its cut is on {recipe['host']}")
            return Verdict("rebuilt", f"the folder was gone: {recipe['files']} files are put back")
        if not changes:
            return Verdict("kept", "the folder is as it was at the checkpoint", same=("every file",))
        if recipe["back"] == "always":
            return Verdict("rebuilt", f"{changes} things are put back as they were at the checkpoint")
        return Verdict("kept", "the folder as it stands", differs=(f"{changes} things changed since the checkpoint",))

    async def restore(self, recipe: Any, place: Place) -> KeptWorkspace:
        workspace = _workspace(recipe, place)
        kept = KeptWorkspace(workspace, recipe["back"])
        verdict = await self.validate(recipe, place)
        if verdict.level == "rebuilt":
            place.context.need("write", f"putting files back into {workspace.root}")
            if workspace.root.is_dir():
                kept.replaced = await Call(lambda: _cut_aside(workspace, place.uid))
            kept.swap = await Call(lambda: workspace.restore(recipe["cut"]))
        return kept

    async def rollback(self, live: KeptWorkspace, place: Place) -> None:
        if live.swap is not None:
            await Call(live.swap.undo)

    async def commit(self, live: KeptWorkspace, place: Place) -> None:
        if live.swap is not None:
            await Call(live.swap.done)


def _cut_aside(workspace: Workspace, uid: str) -> str:
    """Keep the present contents for a while, in case they were wanted after all."""
    cut = workspace.cut().id
    workspace.objects.note_owner(cut, uid)
    return cut


def _workspace(recipe: Any, place: Place) -> Workspace:
    return Workspace(
        Path(recipe["root"]),
        place.home,
        ignored=recipe["ignored"],
        repositories=recipe["repositories"],
        ring=place.ring,
    )


def _changes(workspace: Workspace, cut: str) -> int:
    manifest, files = workspace.read(cut)
    now = walk(workspace.root, ignored=workspace.ignored, repositories=workspace.repositories, home=workspace.home)
    sealer = workspace.objects.sealer_of(cut)
    steps = swaps.steps_to(manifest, files, now, lambda found: oid_at(workspace.root, found, sealer))
    return sum(step.act != "settle" or step.before != step.after for step in steps)
