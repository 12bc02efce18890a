"""List the units of a task without starting or changing anything."""

from __future__ import annotations

import contextlib
import shlex
from dataclasses import dataclass

from perdure._ground.config import Address
from perdure._runtime.keeper_client import Record
from perdure._runtime.keeper_client import client as clients
from perdure._runtime.keeper_client import keeper_place as places
from perdure._runtime.units.verdicts import verdict_of
from perdure._store import Store
from perdure.errors import PerdureError

_PROGRAMS = ("command", "piped", "pipes", "service", "shell")
_MOST_SHOWN = 100
_WAITS = {"secret": "waits for a secret at a prompt that does not echo", "prompt": "waits at its prompt"}


@dataclass(frozen=True)
class Kept:
    """One unit of a task, as it is now."""

    kind: str
    name: str
    is_alive: bool
    waiting: str  # "secret", "prompt" or ""
    state: str  # in words


def end_keeper(address: Address) -> None:
    """End all units of a store with their keeper, if one lives. For those who made a store of their own to try."""
    client = clients.find(places.home_of(address))
    if client is not None:
        with contextlib.suppress(PerdureError):
            client.ask("stop", units_too=True).block()
        client.close()


async def kept_for(store: Store, uid: str) -> list[Kept]:
    """The units of a task; empty when no keeper lives."""
    client = clients.find(places.home_of(store.address))
    if client is None:
        return []
    told = (await client.ask("units", task_uid=uid)).args["units"]
    return [await _kept(client, Record.read(one)) for one in told]


async def _kept(client: clients.Client, record: Record) -> Kept:
    waiting = ""
    if record.is_alive and record.kind == "shell":
        try:
            waiting = str((await client.do(record.uid, "state")).args["waiting"] or "")
        except PerdureError:
            waiting = ""  # it has ended in between
    state = _WAITS.get(waiting) or (_living(record) if record.is_alive else verdict_of(record, False, False).reason)
    return Kept(record.kind, record.name, record.is_alive, waiting, state)


def _living(record: Record) -> str:
    argv = record.recipe.get("argv") or ()
    running = record.about.get("running") or (shlex.join(map(str, argv)) if record.kind in _PROGRAMS else "")
    return f"alive: {running[:_MOST_SHOWN]}" if running else "alive"
