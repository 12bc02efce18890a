"""Sessions whose processes the keeper starts, and starts again when they die."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perdure._runtime.keeper_client import Client
from perdure._runtime.keeper_client import keeper_place as places
from perdure._runtime.sessions.session_processes import SessionPlace
from perdure._runtime.units import Owner
from perdure.errors import InvalidInput, KeeperUnavailable

_FOR_TESTS = "PERDURE_TEST_CLOCK"
# Credentials, and whatever else only the process itself is to know.
_UNWRITTEN = frozenset({"options", "secret", "recipe"})


def place_of(client: Client, owner: Owner, elsewhere: Mapping[str, Any] = {}) -> SessionPlace:
    """The place of a task's sessions; starts the keeper if there is none. Blocks. `elsewhere` says which note has the
    session that is opened as another keeper's: a new one has that on its record."""
    client.ask("units", task_uid=owner.uid).block()
    anchor = places.anchor_of(client.home)
    if anchor is None:
        raise KeeperUnavailable("the keeper does not say where it lives", do="`perdure keep restart` replaces it")
    launcher = _Launcher(client, owner, elsewhere)
    return SessionPlace(Path(anchor["live"]), launch=launcher, task=f"{owner.namespace}/{owner.uid}")


def refuse_own_store(home: Path, path: Path) -> None:
    """A session on the store's own file would hold up every task; the keeper's home is beside that file."""
    stem, is_beside, _ = home.name.rpartition(".keeper-")
    if is_beside and os.path.realpath(path) == os.path.realpath(home.with_name(stem)):
        raise InvalidInput(
            f"{path} is the store itself", do="keep your own data in a file of its own", kept="nothing was opened"
        )


class _Launcher:
    def __init__(self, client: Client, owner: Owner, elsewhere: Mapping[str, Any]) -> None:
        self._client, self._owner = client, owner
        self._told = {"elsewhere": dict(elsewhere)} if elsewhere else {}

    def __call__(self, program: str, config: dict[str, Any], folder: Path) -> dict[str, Any]:
        """Start or find the session's process and return its first answer."""
        kept = {name: value for name, value in config.items() if name not in _UNWRITTEN}
        env = {_FOR_TESTS: os.environ[_FOR_TESTS]} if _FOR_TESTS in os.environ else {}
        recipe = {"program": program, "config": kept, "env": env}
        while True:
            said, was_made = self._have(program, config, recipe)
            if "error" not in said or was_made or _is_only_for_parked(program, config):
                return said
            time.sleep(0.01)  # it failed for an earlier client, and is about to end

    def _have(self, program: str, config: dict[str, Any], recipe: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        body = json.dumps(config).encode()
        asked: dict[str, Any] = {"kind": "session", "name": f"{program}:{config['label']}", **self._told}
        reply = self._client.ask("open", body, owner=self._owner.told(), recipe=recipe, **asked).block()
        unit, lost = reply.args["unit"], ""
        if unit["ended"] is not None:
            facts = unit["facts"]
            if facts.get("is_ready") and (unit["ended"] or "why" in facts):  # else it was ended on purpose
                lost = str(facts.get("why") or "its process has ended")
            if _is_only_for_parked(program, config):
                return {"error": lost, "kind": "lost"}, False
            if lost and config.get("rebuild") == "auto" and not config["recipe"]:
                left = self._client.do(unit["uid"], "answer").block().args["said"]
                body = json.dumps({**config, "recipe": left.get("recipe", "")}).encode()
            reply = self._client.ask("rebuild", body, unit=unit["uid"], fresh=recipe).block()
        said: dict[str, Any] = self._client.do(reply.args["unit"]["uid"], "answer").block().args["said"]
        if not reply.args["made"] and "how" in said:
            said = {**said, "how": "kept"}
        return {**said, "lost": said.get("lost") or lost}, bool(reply.args["made"])


def _is_only_for_parked(program: str, config: dict[str, Any]) -> bool:
    return program == "postgres" and config.get("options") is None
