"""Forget the workspace cuts that no checkpoint names any more, and give back their space; which keys cuts still need.

A cut is noted as its task's before the checkpoint that names it is written. It stays while any checkpoint of one of its
tasks names it, while one of those cannot be read, and for an hour in any case: a save may be under way.
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

from perdure._ground.bridge import Call
from perdure._runtime.restore import CAUSE, PART, from_data, home_of
from perdure._runtime.workspace import Objects
from perdure._store import Store
from perdure._tasks import all_carried
from perdure.errors import KeyMissing, RecordDamaged

_AT_LEAST_SECONDS = 3600.0


async def keys_of_cuts(store: Store) -> Counter[str]:
    """The number of cuts that each key seals; '' stands for no key."""
    return Counter((await Call(lambda: Objects(home_of(store)).keys())).values())


async def tidy_cuts(store: Store, *, dry_run: bool = False) -> list[str]:
    """The cuts that were forgotten, or would be."""
    objects = Objects(home_of(store))
    owners = await Call(lambda: _owners(objects))
    kept: set[str] = set()
    for uid in {uid for uids in owners.values() for uid in uids}:
        named = await _named_by(store, uid)
        kept |= {cut for cut, uids in owners.items() if uid in uids and (named is None or cut in named)}
    gone = [cut for cut in owners if cut not in kept]
    if gone and not dry_run:
        await Call(lambda: _forget(objects, gone))
    return gone


def _owners(objects: Objects) -> dict[str, set[str]]:
    """The cuts that may go, with the tasks they were made for."""
    now = time.time()
    found: dict[str, set[str]] = {}
    for cut in objects.cuts():
        note = _note(objects.home, cut)
        if note.exists() and now - note.stat().st_mtime > _AT_LEAST_SECONDS:
            found[cut] = set(note.read_text(encoding="utf-8").split())
    return found


async def _named_by(store: Store, uid: str) -> set[str] | None:
    """The cuts a task's checkpoints name; None when one of them cannot be read."""
    try:
        saves = [from_data(data, uid) async for data in all_carried(store, uid, PART, cause=CAUSE)]
    except (KeyMissing, RecordDamaged):
        return None
    return {unit.recipe["cut"] for saved in saves for unit in saved.units if unit.kind == "workspace"}


def _forget(objects: Objects, gone: list[str]) -> None:
    objects.keep_only({cut for cut in objects.cuts() if cut not in gone})
    for cut in gone:
        _note(objects.home, cut).unlink(missing_ok=True)


def _note(home: Path, cut: str) -> Path:
    return home / "owners" / cut
