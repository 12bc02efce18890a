"""What a save tells of a database session, and how one that lives would come back; its process is asked.

No credential is in it: the address is told without its password, and the code gives it again when it opens the session.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perdure._ground.bridge import Call
from perdure._model import Verdict
from perdure._runtime.keeper_client import Record
from perdure._runtime.secrets import redaction
from perdure._runtime.sessions import ask, postgres_verdicts
from perdure.errors import SessionUnavailable


async def facts_of(record: Record) -> dict[str, Any]:
    """Its type, where it leads, and how it stands."""
    state = await state_of(record.recipe)
    config = record.recipe["config"]
    if state is None:
        return {"type": record.recipe["program"]}
    if record.recipe["program"] == "postgres":
        found = {
            "type": "postgres",
            "url": f"postgresql://{state['user']}@{state['route']['host']}/{state['database']}",
            "session_state": {name: state[name] for name in ("pid", "transaction", "parameters", "hold_seconds")},
        }
    else:
        found = {"type": "sqlite", "url": f"sqlite://{config.get('path', '')}", "session_state": state}
    told: dict[str, Any] = redaction.redact_value(found)
    return told


async def verdict_on(record: Record) -> Verdict | None:
    """How it comes back, by what its process says; None if that says nothing of it."""
    state = await state_of(record.recipe)
    if state is None or record.recipe["program"] != "postgres":
        return None
    return postgres_verdicts.kept(state) if state["gone"] is None else Verdict("lost", state["gone"])


async def state_of(recipe: Mapping[str, Any]) -> dict[str, Any] | None:
    folder = recipe["config"].get("folder")
    try:
        return await Call(lambda: ask(Path(folder), {"ask": "state"}, 2.0)) if folder else None
    except SessionUnavailable:
        return None
