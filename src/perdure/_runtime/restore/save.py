"""Save the surroundings of a task as part of a checkpoint.

Everything is captured first, then one checkpoint is written: a save that fails has stored nothing, and a save that
returned can be restored by another process. No secret is stored in clear: kinds store references, and before
anything is written it is searched for values that this process knows to be secret.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from perdure._durable import stacks_now, where
from perdure._ground.config import Address
from perdure._runtime.context import Context, Held, Place, record
from perdure._runtime.keeper_client import keeper_place as places
from perdure._runtime.kinds import CONNECTIONS, all_of, type_of
from perdure._runtime.restore.cut import Cut, Saved, SavedUnit, cut_of, to_data
from perdure._runtime.secrets import redaction
from perdure._runtime.workspace import CUTS
from perdure._store import Store
from perdure._tasks import Task, carry, store_of, tasks_of
from perdure.errors import NotStorable

CAUSE, PART = "save", "runtime"
# What every save captures of the context itself, in the order it comes back in.
_MOST_FRAMES, _LONGEST_CALL = 200, 500  # of a call stack
SURROUNDINGS = ("environment", "directory", "variables")


async def save(task: Task, context: Context, *, label: str = "") -> Cut:
    """A checkpoint of the task's state and of all it has around it.

    Raises:
        NotStorable: something would not come back as it was, or holds a secret in clear; nothing was written.
        LeaseHeld, LeaseLost, InvalidTransition: as for any checkpoint.
    """
    place = place_for(task, context)
    around = [Held(name, name, context) for name in SURROUNDINGS]
    held_by_keeper = [Held(f"{live.kind} {live.name}", "kept", live) for live in await all_of(place) if live.is_alive]
    units = [await _capture(held, place) for held in [*around, *context.units.values(), *held_by_keeper]]
    saved = Saved(
        host=place.host,
        user=store_of(task).presence.user,
        units=units,
        fingerprints=await record(list(context.fingerprints.values())),
        call_stack=await call_stack(task),
        partial_results=context.partial_results,
        permissions=None if context.permissions is None else sorted(context.permissions),
        is_root=os.geteuid() == 0,
    )
    data = to_data(saved)
    if not place.can_seal:
        _refuse_secrets(data)
    return cut_of(await carry(task, PART, data, label=label, cause=CAUSE, kind="saved"), saved)


async def _capture(held: Held, place: Place) -> SavedUnit:
    unit_type = type_of(held.kind)
    if unit_type is None:  # as was said when it was held; a restore says it again
        return SavedUnit(held.name, held.kind, None, held.after)
    recipe = await unit_type.capture(held.live, place)
    is_connection = unit_type.is_connection or (held.kind == "kept" and recipe["kind"] in CONNECTIONS)
    return SavedUnit(held.name, held.kind, recipe, held.after, is_connection)


def _refuse_secrets(data: Mapping[str, Any]) -> None:
    """A known secret that stands in clear is refused, with the part it stands in."""
    for unit in data["units"]:
        _refuse_in(unit["recipe"], f"units.{unit['name']}")
    for name in ("partial_results", "call_stack"):
        _refuse_in(data[name], name)


def _refuse_in(value: Any, path: str) -> None:
    try:
        found = redaction.known_in(msgspec.json.encode(value))
    except (TypeError, UnicodeEncodeError, msgspec.MsgspecError):
        found = redaction.known_in(repr(value).encode(errors="backslashreplace"))
    if found:
        raise NotStorable(
            path,
            f"it holds the value of {', '.join(found)} in clear",
            do="keep the reference instead, or give the store a key (PERDURE_KEY), which seals what is saved",
        )


async def call_stack(task: Task) -> list[dict[str, Any]]:
    """The position of the task, outermost first: its function with its arguments, then the calls under way."""
    found = await where(tasks_of(task), task.id)
    if found.function is None:
        return []
    base = {"function": found.function, "arguments": found.arguments, "returned": found.done, "last": found.last}
    base["results"] = list(found.returned)
    stacks = stacks_now()
    base["stack"] = stacks.pop("", [])
    frames = [
        {
            "name": frame.name,
            "scope": frame.scope,
            "path": frame.path,
            "call": frame.call[:_LONGEST_CALL],
            "state": frame.state,
            "note": frame.note[:_LONGEST_CALL],
            "stack": list(frame.stack),
            "results": list(frame.returned),
        }
        for frame in found.frames[:_MOST_FRAMES]
    ]
    told = {frame.scope for frame in found.frames if frame.stack}
    frames += [
        {"name": scope.rpartition("/")[2], "scope": scope, "state": "under way", "stack": stack}
        for scope, stack in list(stacks.items())[:_MOST_FRAMES]
        if scope not in told
    ]
    return [redaction.redact_value(frame) for frame in [base, *frames]]


# ── where ────────────────────────────────────────────────────────────────────────────────────────


def place_for(task: Task, context: Context) -> Place:
    store = store_of(task)
    return Place(
        task_id=task.id,
        uid=task.uid,
        host=store.presence.process.host,
        now_ms=store.clock.now_ms(),
        context=context,
        home=home_of(store),
        keeper_home=places.home_of(store.address),
        namespace=store.namespace,
        ring=store.ring,
    )


def home_of(store: Store) -> Path:
    """The private folder beside the store where large things are kept."""
    address: Address = store.address
    if address.engine == "sqlite":
        file = Path(os.path.realpath(address.target))
        return file.with_name(f"{file.name}{CUTS}")
    if address.engine == "postgres":
        parts = urlsplit(address.target)
        server = f"{parts.hostname or 'localhost'}:{parts.port or 5432}{parts.path or '/'}"
        return Path.home() / ".local" / "state" / "perdure" / f"cuts-{hashlib.sha256(server.encode()).hexdigest()[:12]}"
    return Path(tempfile.gettempdir()) / f"perdure-{os.getuid()}-cuts-{address.target}-{os.getpid()}"
