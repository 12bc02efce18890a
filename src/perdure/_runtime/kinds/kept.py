"""What the keeper holds for a task (shells, services, sessions, files, …), as part of a save and of a restore.

A save notes each of them with its recipe. A restore finds those that live and leaves them alone; a service that is
gone is made anew from its recipe; whatever else is gone is lost, by name. Looking starts no keeper.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from perdure._model import Verdict
from perdure._runtime import client as clients
from perdure._runtime.kinds import session_facts
from perdure._runtime.secrets import Secret
from perdure._runtime.unit_types import Place, UnitType
from perdure._runtime.units import Owner, Record, opened
from perdure._runtime.verdicts import verdict_of
from perdure.errors import SecretMissing

# What can be made anew without asking: nothing is in it but its process.
_REBUILT = frozenset({"service"})
CONNECTIONS = frozenset({"session", "request", "listener"})


@dataclass
class KeptHere:
    """A unit of the keeper that was found, or made by this restore."""

    record: Record
    verdict: Verdict
    was_made: bool


class KeptType(UnitType):
    kind = "kept"

    async def capture(self, live: Record, place: Place) -> Any:
        about = await session_facts.facts_of(live) if live.kind == "session" else {}
        return {
            **about,
            "kind": live.kind,
            "name": live.name,
            "uid": live.uid,
            "recipe": dict(live.recipe),
            "limits": dict(live.limits),
            "pid": live.pid,
            "host": place.host,
        }

    async def validate(self, recipe: Any, place: Place) -> Verdict:
        record = await find(recipe, place)
        if record is not None and record.is_alive and not place.fresh:
            return await found(record)
        gone = verdict_of(record, False, False).reason if record is not None else _nowhere(recipe, place)
        if recipe["kind"] not in _REBUILT:
            return Verdict("lost", gone, options=(f"{_opened_by(recipe)} makes a new one",))
        missing = _missing(recipe)
        if missing:
            return Verdict("lost", f"{gone}; it is not made anew without {', '.join(missing)}")
        return Verdict("rebuilt", f"{gone}; a new one is made from its recipe")

    async def restore(self, recipe: Any, place: Place) -> KeptHere:
        record = await find(recipe, place)
        if record is not None and record.is_alive and not place.fresh:
            return KeptHere(record, await found(record), False)
        place.context.need("run", f"starting {recipe['name']}")
        secrets = {name: Secret.parse(told).value() for name, told in recipe["recipe"].get("secret_env", {}).items()}
        record, was_made, _ = await opened(
            clients.client_for(place.keeper_home),
            _owner(place),
            recipe["kind"],
            recipe["name"],
            recipe["recipe"],
            secrets=secrets,
            rebuild="auto",
            limits=recipe["limits"],
        )
        verdict = Verdict("rebuilt", "its process was gone; a new one was made from its recipe")
        return KeptHere(record, verdict, was_made or record.uid != recipe["uid"])

    async def rollback(self, live: KeptHere, place: Place) -> None:
        if live.was_made:
            await clients.client_for(place.keeper_home).ask("end", unit=live.record.uid)


async def found(record: Record) -> Verdict:
    """How a unit of the keeper comes back that is there."""
    told = await session_facts.verdict_on(record) if record.kind == "session" and record.is_alive else None
    return told or verdict_of(record, False, "instead_of" in record.facts)


async def find(recipe: Any, place: Place) -> Record | None:
    """The unit as the keeper knows it now; None without a keeper, or if it knows no such unit."""
    for record in await all_of(place):
        if (record.kind, record.name) == (recipe["kind"], recipe["name"]):
            return record
    return None


async def all_of(place: Place) -> list[Record]:
    """Everything the keeper holds for the task; no keeper is started for it."""
    client = clients.find(place.keeper_home)
    if client is None:
        return []
    return [Record.read(told) for told in (await client.ask("units", task_uid=place.uid)).args["units"]]


def _opened_by(recipe: Any) -> str:
    kind, name = recipe["kind"], recipe["name"]
    if kind == "session":
        kind, _, name = name.partition(":")
    return f"rt.{kind}({name!r}, …)"


def _owner(place: Place) -> Owner:
    return Owner(place.namespace, place.task_id, place.uid)


def _nowhere(recipe: Any, place: Place) -> str:
    if recipe["host"] != place.host:
        return f"it was on {recipe['host']}"
    return "the keeper does not know it any more"


def _missing(recipe: Any) -> list[str]:
    found = []
    for name, reference in recipe["recipe"].get("secret_env", {}).items():
        try:
            Secret.parse(reference).value()
        except SecretMissing:
            found.append(name)
    return found
