"""The part of `perdure doctor` about live things: where the keeper lives, what would end it, what was left behind."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from perdure._model import FINISHED
from perdure._runtime.keeper_client import keeper_control as keeping
from perdure._runtime.keeper_client import keeper_place as places
from perdure._runtime.keeper_client import keeper_start as starting
from perdure._runtime.keeper_client.unit_record import Record
from perdure._store import Store
from perdure._tasks import Finding, Tasks
from perdure.errors import PerdureError

_ELSEWHERE = (
    "not Linux: exits of orphans are not seen, a kill of the keeper may lose the bytes it was moving, what has left a "
    "unit's session is not found, units cannot be isolated, and what would end the keeper is not known"
)

_SHARED = (
    "they share with the rest of this machine: files outside of the keeper's folders and the store, the network with "
    "its abstract sockets, the kernel's keyrings, the clock and control groups"
)


async def examine(store: Store) -> list[Finding]:
    """Findings about the keeper of a store; nothing is started and nothing ended."""
    try:
        return [finding async for finding in _examine(store)]
    except PerdureError as error:
        return [Finding("problem", "keeper", error.what, error.do)]


async def _examine(store: Store) -> AsyncIterator[Finding]:
    home = places.home_of(store.address)
    if sys.platform != "linux":
        yield Finding("note", "keeper", _ELSEWHERE)
    if not home.is_dir():
        yield Finding("ok", "keeper", f"none was needed yet; it would live until {_until_what()}")
        return
    if not starting.is_anchored(home):
        yield Finding("ok", "keeper", f"none lives; the next shell or service starts one in {home}")
        for finding in _orphans(home, []):
            yield finding
        return
    found = await keeping.status(store)
    assert found is not None
    told = f"process {found.pid} under anchor {found.anchor}, in {found.home}; {found.alive} units"
    yield Finding("ok" if found.is_safe else "note", "keeper", f"{told}; what would end it: {found.ends_with}")
    if found.is_other:
        yield Finding("note", "keeper", "it runs another perdure than this one", "`perdure keep restart` replaces it")
    for name in found.unreadable:
        do = "open the store with its key (PERDURE_KEY)" if "sealed" in name else f"look into {found.home}/units"
        yield Finding("problem", "unit", f"its record cannot be read: {name}", do)
    records = await keeping.units(store)
    if isolated := sum(bool(record.is_alive and record.recipe.get("isolate")) for record in records):
        yield Finding("note", "isolation", f"{isolated} isolated units; {_SHARED}")
    for finding in _orphans(home, records):
        yield finding
    for record in await finished(store, records):
        what = f"{record.name!r} of {record.owner['task']!r} lives, and its task has ended"
        yield Finding("note", "unit", what, "nothing: it ends after its grace; `perdure units --sweep` ends it now")


def _until_what() -> str:
    return keeping.what_would_end(os.getpid()) if not keeping.can_scope() else "the machine is restarted"


async def finished(store: Store, records: list[Record]) -> list[Record]:
    """Units that live although their task has ended, or is not there any more."""
    left = []
    for record in records:
        if record.is_alive and record.owner["namespace"] == store.namespace:
            task = await Tasks(store).get(record.owner["task"])
            if task is None or task.uid != record.owner["uid"] or task.status in FINISHED:
                left.append(record)
    return left


def _orphans(home: Path, records: list[Record]) -> Iterator[Finding]:
    """Processes that carry the cookie of a unit of this keeper which has ended."""
    alive = {record.uid for record in records if record.is_alive}
    known = {folder.name for folder in (home / "units").iterdir()} if (home / "units").is_dir() else set()
    for pid, cookie in _cookies():
        if cookie in known - alive:
            what = f"process {pid} was started by unit {cookie}, which has ended"
            yield Finding("note", "orphan", what, f"if it should not run, end it: kill {pid}")


def _cookies() -> Iterator[tuple[int, str]]:
    mark = b"PERDURE_UNIT="
    for entry in os.scandir("/proc") if os.path.isdir("/proc") else ():
        if entry.name.isdigit():
            try:
                with open(f"/proc/{entry.name}/environ", "rb") as file:
                    found = next((part for part in file.read().split(b"\0") if part.startswith(mark)), None)
            except OSError:
                continue
            if found is not None:
                yield int(entry.name), found[len(mark) :].decode(errors="replace")
