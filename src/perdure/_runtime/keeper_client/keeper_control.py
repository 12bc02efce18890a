"""Inspect, replace and stop the keeper of a store."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perdure._ground import ids
from perdure._ground.bridge import Call
from perdure._runtime.keeper_client import client
from perdure._runtime.keeper_client import keeper_place as places
from perdure._runtime.keeper_client import other_versions as forcing
from perdure._runtime.keeper_client.unit_record import Record
from perdure._store import Store
from perdure.errors import KeeperUnavailable
from perdure.keeper import is_same_program, keeper_argv


@dataclass(frozen=True)
class Keeping:
    """A keeper that lives."""

    home: str
    live: str
    pid: int
    anchor: int
    versions: Sequence[int]
    kinds: Sequence[str]
    alive: int
    ended: int
    memory: int
    unreadable: Sequence[str]
    ends_with: str  # what would end it
    is_safe: bool  # nothing but what ends the machine, or the container, does
    is_other: bool  # it runs another perdure than this one


async def status(store: Store) -> Keeping | None:
    """The state of a store's keeper; None when no keeper lives."""
    here = find(store)
    if here is None:
        return None
    told = (await here.ask("status")).args
    return Keeping(
        home=told["home"],
        live=(places.anchor_of(here.home) or {}).get("live", ""),
        pid=told["pid"],
        anchor=told["anchor"],
        versions=told["versions"],
        kinds=told["kinds"],
        alive=told["alive"],
        ended=told["ended"],
        memory=sum(told["memory"].values()),
        unreadable=told["unreadable"],
        ends_with=(ends_with := what_would_end(told["anchor"])),
        is_safe="the end of " not in ends_with and "logout" not in ends_with,
        is_other=not is_same_program(told["program"], keeper_argv(sys.executable)),
    )


def has_home(store: Store) -> bool:
    """True if there ever was a keeper for this store."""
    return places.home_of(store.address).is_dir()


def socket_of(store: Store) -> str:
    """The path of the socket of a living keeper."""
    return os.path.join((places.anchor_of(places.home_of(store.address)) or {}).get("live", ""), "sock")


def find(store: Store) -> client.Client | None:
    return client.find(places.home_of(store.address), store.ring)


async def units(store: Store) -> list[Record]:
    """All units of all tasks, the newest last, including those that have outlived their keeper."""
    here = find(store)
    if here is None and await Call(lambda: has_orphans(store)):
        here = client.client_for(places.home_of(store.address), store.ring)
    if here is None:
        return []
    reply = await here.ask("units")
    return sorted((Record.read(told) for told in reply.args["units"]), key=lambda one: one.uid)


def has_orphans(store: Store) -> bool:
    """True if processes of units live on whose keeper and anchor have died."""
    return any(map(_is_orphan, places.home_of(store.address).glob("units/*/unit.json")))


def _is_orphan(record: Path) -> bool:
    try:
        told = json.loads(record.read_text(encoding="utf-8"))
        process = ids.Process("", told["boot"], told["pid_ns"], int(told["pid"]), int(told["start"]))
        return told["ended"] is None and ids.is_alive_here(process)
    except (OSError, ValueError, KeyError, TypeError):
        return False


async def replace(store: Store) -> bool:
    """Replace the keeper, of any version, by this perdure's; units notice nothing. False when no keeper lives."""
    here = find(store)
    if here is None:
        return False
    argv = keeper_argv(sys.executable)
    here.close()
    await Call(lambda: forcing.replace(here.home, argv))
    return True


async def stop(store: Store, *, units_too: bool) -> bool:
    """End the keeper, and with `units_too` its units. False when no keeper lives.

    Raises:
        Conflict: units live, and `units_too` is not set.
    """
    here = find(store)
    if here is None and units_too and await Call(lambda: has_orphans(store)):
        here = client.client_for(places.home_of(store.address), store.ring)  # the next keeper takes them up
        await here.ask("status")
    if here is None:
        return False
    here.close()
    try:
        await Call(lambda: forcing.ask(here.home, "stop", units_too=units_too))
    except OSError as error:
        raise KeeperUnavailable(
            f"the keeper in {here.home} does not answer: {error}", do="`perdure keep restart` replaces one that hangs"
        ) from None
    return True


async def forget(store: Store, records: Sequence[Record]) -> None:
    """Remove the records and output of units that have ended."""
    here = find(store)
    for record in records if here is not None else ():
        if not record.is_alive and here is not None:
            await here.ask("forget", unit=record.uid)


async def end(store: Store, records: Sequence[Record]) -> None:
    """End these units and every process they have started."""
    here = find(store)
    for record in records if here is not None else ():
        if here is not None:
            await here.ask("end", unit=record.uid)


async def release(store: Store, records: Sequence[Record]) -> None:
    """End these units for good: their marks are forgotten, and the next open under their names makes new units."""
    here = find(store)
    for record in records if here is not None else ():
        if here is not None:
            await here.ask("let go", unit=record.uid, wait=True)


# ── what would end it ────────────────────────────────────────────────────────────────────────────


def what_would_end(anchor: int, proc: Path = Path("/proc")) -> str:
    """A sentence, derived from the anchor's cgroup and the first process of the machine or container."""
    try:
        groups = (proc / str(anchor) / "cgroup").read_text(encoding="utf-8")
        first = (proc / "1" / "comm").read_text(encoding="utf-8").strip()
    except OSError:
        return "a restart of the machine, or the end of the login session on systems that end all of it"
    unit = groups.strip().rpartition("/")[2]
    if first == "systemd":
        return _under_systemd(unit, groups)
    return f"a restart of the machine, or of the container: it lives as long as its first process ({first}) does"


def _under_systemd(unit: str, groups: str) -> str:
    if unit.endswith(".scope") and unit.startswith(("run-", "perdure")):
        if "user.slice" in groups and not _lingers():
            return "a restart of the machine, or the user's last logout: `loginctl enable-linger` keeps it beyond that"
        return "a restart of the machine"
    return f"a restart of the machine, or the end of {unit}, to which it belongs"


def _lingers() -> bool:
    from perdure._ground.ids import user_name

    return os.path.exists(f"/var/lib/systemd/linger/{user_name()}")


def can_scope() -> bool:
    """True if a keeper started now would get its own systemd scope."""
    return os.path.isdir("/run/systemd/system") and shutil.which("systemd-run") is not None


def shown(record: Record) -> dict[str, Any]:
    """A unit for `perdure units --json`."""
    return {
        "task": record.owner["task"],
        "namespace": record.owner["namespace"],
        "name": record.name,
        "kind": record.kind,
        "uid": record.uid,
        "pid": record.pid,
        "is_alive": record.is_alive,
        "ended": record.ended,
        "epoch": record.epoch,
        "writer": record.writer or None,
        "limits": dict(record.limits),
        "about": dict(record.about),
        "argv": record.recipe.get("argv"),
        "cwd": record.recipe.get("cwd"),
        "why": record.facts.get("why"),
    }
