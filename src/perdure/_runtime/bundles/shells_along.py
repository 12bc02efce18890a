"""Put what is in a task's shells into its bundle, if that is sealed.

What was saved of a shell is older than the shell: the keeper is asked at the export. It goes into the rows that are
written, and not into the store that the task leaves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perdure._runtime.keeper_client import Record
from perdure._runtime.keeper_client import client as clients
from perdure._runtime.keeper_client import keeper_place as places
from perdure._runtime.units import Contents, contents_of, is_note, with_contents
from perdure._store import Store
from perdure._tasks import Task, payload, store_of
from perdure.errors import PerdureError

# What is in one shell is mostly some kilobytes; a bundle takes no more of it along.
_MOST = 4 << 20


async def contents_of_shells(task: Task) -> tuple[dict[str, Contents], list[str]]:
    """What is in the task's shells here, by the keys of their notes, and what cannot be taken along, in words."""
    store, found, notes = store_of(task), dict[str, Contents](), list[str]()
    client = clients.find(places.home_of(store.address), store.ring)
    if client is None:
        return found, notes
    try:
        units = [Record.read(told) for told in (await client.ask("units", task_uid=task.uid)).args["units"]]
    except PerdureError as error:
        return found, [f"the keeper does not say what is in the shells, so it does not travel: {error.what}"]
    for record in units:
        if record.kind != "shell" or not record.recipe.get("is_shell"):
            continue
        try:
            contents = await contents_of(client, record, store.presence.process.host)
        except PerdureError as error:
            notes.append(f"what is in shell {record.name!r} does not travel: {error.what}")
            continue
        if contents is None:
            notes.append(f"what is in shell {record.name!r} is not known to its keeper, so it does not travel")
        else:
            found[f"shell {record.name}"] = contents
            if record.about.get("running"):
                notes.append(f"shell {record.name!r} runs {record.about['running']!r}: that does not travel")
    return found, notes


def put_along(store: Store, uid: str, rows: Mapping[str, list[dict[str, Any]]], shells: Mapping[str, Contents]) -> None:
    """Put what is in shells into the notes of units among these rows."""
    for row in rows["shelf"]:
        if is_note(row["kind"]) and (contents := shells.get(row["key"])) is not None:
            sealed = with_contents(store, uid, payload(row["value"]), contents)
            if len(sealed) <= _MOST:
                row["value"] = f"\\x{sealed.hex()}"
