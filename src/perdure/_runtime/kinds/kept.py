"""The units that the keeper holds for a task (shells, services, sessions, files, …), as part of a save and of a
restore.

A save notes each of them with its recipe. A restore finds those that live and leaves them alone; a service that is
gone is made anew from its recipe; whatever else is gone is lost, by name. Looking starts no keeper.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import Any

from perdure._ground.bridge import Call
from perdure._model import Verdict
from perdure._runtime.context import Place, UnitType
from perdure._runtime.keeper_client import Record
from perdure._runtime.keeper_client import client as clients
from perdure._runtime.kinds import session_facts
from perdure._runtime.secrets import Secret, environment
from perdure._runtime.units import (
    MADE_ANEW,
    Contents,
    Instead,
    Owner,
    made_here,
    opened,
    problem_of,
    restarted,
    verdict_of,
)
from perdure.errors import InvalidInput, SecretMissing
from perdure.keeper import is_port_taken

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
            "recipe": await _whole_recipe(live, place) if live.kind in MADE_ANEW else dict(live.recipe),
            "limits": dict(live.limits),
            "pid": live.pid,
            "start": live.start,
            "host": place.host,
        }

    async def validate(self, recipe: Any, place: Place) -> Verdict:
        record = await find(recipe, place)
        if record is not None and record.is_alive and not place.fresh:
            return await found(record, recipe)
        gone = verdict_of(record, False, False).reason if record is not None else _nowhere(recipe, place)
        options = (f"{_opened_by(recipe)} makes a new one",)
        if recipe["kind"] == "shell" and "contents" in recipe and record is None:
            return _from_contents(recipe, gone, place)
        if recipe["kind"] not in MADE_ANEW:
            return Verdict("lost", gone, options=options)
        missing = _missing(recipe)
        if missing:
            return Verdict("lost", f"{gone}; it is not made anew without {', '.join(missing)}")
        if record is None and recipe["recipe"].get("hides_argv"):
            why = "its command line has a secret in it, which was not written down"
            return Verdict("lost", f"{gone}; {why}", options=options)
        is_there = record is not None and record.is_alive  # a fingerprint wants another one in its place
        if not is_there and (hindrance := _hindrance(recipe["recipe"], place)):
            return Verdict("lost", f"{gone}; it cannot be started here: {hindrance}", options=options)
        return Verdict("rebuilt", f"{gone}; a new one is made from its recipe")

    async def restore(self, recipe: Any, place: Place) -> KeptHere:
        record = await find(recipe, place)
        if record is not None and record.is_alive and not place.fresh:
            return KeptHere(record, await found(record, recipe), False)
        place.context.need("run", f"starting {recipe['name']}")
        if record is None and recipe["kind"] == "shell":
            return await _make_shell(recipe, place)
        whole = _as_here(recipe["recipe"], place)
        secrets = {name: Secret.parse(told).value() for name, told in whole["secret_env"].items()}
        client = clients.client_for(place.keeper_home, place.ring)
        if record is not None and record.is_alive:
            await client.ask("end", unit=record.uid, wait=True)
        record, was_made, _ = await opened(
            client,
            _owner(place),
            recipe["kind"],
            recipe["name"],
            whole,
            secrets=secrets,
            rebuild="auto",
            limits=recipe["limits"],
        )
        verdict = Verdict(
            "rebuilt",
            f"its process was gone; a new one ({record.pid}) was made from its recipe",
            do_not_assume=("that it is ready: rt.service(…, ready=…) waits until it is",),
        )
        return KeptHere(record, verdict, was_made or record.uid != recipe["uid"])

    async def rollback(self, live: KeptHere, place: Place) -> None:
        if live.was_made:
            await clients.client_for(place.keeper_home, place.ring).ask("end", unit=live.record.uid)


def _from_contents(recipe: Any, gone: str, place: Place) -> Verdict:
    """The verdict on a shell whose contents a bundle has brought. A folder that is not here is told once it is made."""
    if hindrance := _hindrance({**recipe["contents"]["recipe"], "cwd": "/"}, place):
        return Verdict("lost", f"{gone}; it cannot be started here: {hindrance}")
    return Verdict("rebuilt", f"{gone}; a new one is made as it was at its last prompt there")


async def _make_shell(recipe: Any, place: Place) -> KeptHere:
    rules = place.context.rules
    around = environment.capture(environment.inherited(place.context.env, rules), rules)
    contents = Contents(**recipe["contents"])
    instead = await Call(lambda: made_here(contents, recipe["note"], around.values, str(place.context.cwd)))

    async def before() -> Instead:
        return instead

    record, was_made, is_rebuilt = await opened(
        clients.client_for(place.keeper_home, place.ring),
        _owner(place),
        "shell",
        recipe["name"],
        dict(instead.recipe),
        rebuild="ask",
        limits=recipe["limits"],
        before=before,
    )
    return KeptHere(record, verdict_of(record, was_made, is_rebuilt), was_made)


async def found(record: Record, saved: Any = None) -> Verdict:
    """The verdict for a unit that the keeper holds; `saved` names its process at the time of the save."""
    told = await session_facts.verdict_on(record) if record.kind == "session" and record.is_alive else None
    if record.kind == "file" and record.is_alive and (problem := await Call(lambda: problem_of(record))):
        return Verdict("lost", problem, do_not_assume=("that it holds what you wrote or read",))
    if told is None and saved is not None and record.is_alive and record.kind in MADE_ANEW:
        before = [saved["pid"], saved.get("start") or record.start]  # an older save has its pid alone
        if saved["uid"] == record.uid and before != [record.pid, record.start]:
            return restarted(record, before)
    is_another = saved is not None and saved["uid"] != record.uid and "instead_of" in record.facts
    return told or verdict_of(record, False, is_another or bool(record.about.get("is_rebuilt")))


async def find(recipe: Any, place: Place) -> Record | None:
    """The unit as the keeper knows it now; None without a keeper, or if it knows no such unit."""
    for record in await all_of(place):
        if (record.kind, record.name) == (recipe["kind"], recipe["name"]):
            return record
    return None


async def all_of(place: Place) -> list[Record]:
    """Everything the keeper holds for the task; no keeper is started for it."""
    client = clients.find(place.keeper_home, place.ring)
    if client is None:
        return []
    return [Record.read(told) for told in (await client.ask("units", task_uid=place.uid)).args["units"]]


async def _whole_recipe(live: Record, place: Place) -> dict[str, Any]:
    """All it was made with, its environment too; that is not shown in lists."""
    try:
        told = await clients.client_for(place.keeper_home, place.ring).ask("recipe", unit=live.uid)
    except InvalidInput:
        return dict(live.recipe)  # its keeper is an older one, which does not tell: see _as_here
    return dict(told.args["recipe"])


def _as_here(recipe: Any, place: Place) -> dict[str, Any]:
    """The recipe with an environment: its own, or, from a save that has none, the one the task had then."""
    env, secret_env = recipe.get("env"), recipe.get("secret_env", {})
    if env is None:
        rules = place.context.rules
        captured = environment.capture(environment.inherited(place.context.env, rules), rules)
        env, secret_env = captured.values, {**captured.secrets, **secret_env}
    gone = environment.OF_THE_HOST if place.has_moved else frozenset()
    return {
        **recipe,
        "env": {name: value for name, value in env.items() if name not in gone},
        "secret_env": {name: reference for name, reference in secret_env.items() if name not in gone},
    }


def _hindrance(recipe: Any, place: Place) -> str:
    """Why this command cannot be started on this machine, as far as that can be seen without starting it."""
    folder, program, port = recipe["cwd"], recipe["argv"][0], recipe.get("port")
    if port and is_port_taken(port):
        return f"port {port} is another program's"
    if not _is_there(folder, place) and not os.path.isdir(folder):
        return f"there is no folder {folder}"
    program = os.path.join(folder, program) if "/" in program else program
    path = (recipe.get("env") or place.context.env).get("PATH", os.defpath)
    if not _is_there(program, place) and shutil.which(program, path=path) is None:
        return f"there is no program {program}"
    return ""


def _is_there(path: str, place: Place) -> bool:
    """True if it lies in a folder that a workspace puts back first."""
    return any(path == root or path.startswith(f"{root}/") for root in place.coming)


def _opened_by(recipe: Any) -> str:
    kind, name = recipe["kind"], recipe["name"]
    if kind == "session":
        kind, _, name = name.partition(":")
    return f"rt.{kind}({name!r}, …)"


def _owner(place: Place) -> Owner:
    return Owner(place.namespace, place.task_id, place.uid, place.context.epoch)


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
