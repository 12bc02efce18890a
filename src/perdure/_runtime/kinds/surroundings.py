"""The surroundings of a task's processes: environment and umask, working directory, chosen variables and messages.

Their live thing is the context itself. Restoring one changes the context and keeps what was there for `rollback`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from perdure._model import Verdict
from perdure._runtime.context import Context, Place, UnitType
from perdure._runtime.secrets import Environment, environment
from perdure.errors import Incompatible


class EnvironmentType(UnitType):
    """Environment variables, the active virtual environment, the umask."""

    kind = "environment"

    async def capture(self, live: Context, place: Place) -> Any:
        captured = environment.capture(live.env, live.rules)
        return {**msgspec.to_builtins(captured), "umask": live.umask}

    async def validate(self, recipe: Any, place: Place) -> Verdict:
        captured = _environment(recipe)
        gone = environment.missing(captured)
        if "VIRTUAL_ENV" in gone and captured.virtualenv is not None:
            raise Incompatible("", [("the virtual environment", gone["VIRTUAL_ENV"])])
        if gone:
            names = tuple(f"{name} is missing: {why}" for name, why in gone.items())
            return Verdict("rebuilt", "from the checkpoint, but for what is missing", differs=names)
        return Verdict("rebuilt", f"{len(captured.values) + len(captured.secrets)} variables from the checkpoint")

    async def restore(self, recipe: Any, place: Place) -> Any:
        context, captured = place.context, _environment(recipe)
        there = environment.missing(captured)
        gone = environment.OF_THE_HOST if place.has_moved else frozenset()
        whole = Environment(
            {name: value for name, value in captured.values.items() if name not in gone},
            {name: reference for name, reference in captured.secrets.items() if name not in there},
            captured.virtualenv,
        )
        before = (context.env, context.umask)
        # A umask is a permission too: never wider than before, never wider than here.
        context.env, context.umask = environment.rebuild(whole), recipe["umask"] | context.umask
        return before

    async def rollback(self, live: Any, place: Place) -> None:
        place.context.env, place.context.umask = live


def _environment(recipe: Any) -> Environment:
    return msgspec.convert({name: recipe[name] for name in ("values", "secrets", "virtualenv")}, Environment)


class DirectoryType(UnitType):
    """The working directory and the one before it."""

    kind = "directory"

    async def capture(self, live: Context, place: Place) -> Any:
        return {"cwd": str(live.cwd), "previous": str(live.previous_cwd) if live.previous_cwd else None}

    async def validate(self, recipe: Any, place: Place) -> Verdict:
        cwd = recipe["cwd"]
        if not _is_there(cwd, place):
            raise Incompatible("", [("the working directory", f"{cwd} is not there")])
        return Verdict("rebuilt", cwd)

    async def restore(self, recipe: Any, place: Place) -> Any:
        context = place.context
        before = (context.folder, context.previous_cwd)
        context.cwd = Path(recipe["cwd"])
        context.previous_cwd = Path(recipe["previous"]) if recipe["previous"] else None
        return before

    async def rollback(self, live: Any, place: Place) -> None:
        place.context.folder, place.context.previous_cwd = live


def _is_there(cwd: str, place: Place) -> bool:
    """True if the folder is there, or a workspace that will be put back holds it."""
    return os.path.isdir(cwd) or any(os.path.commonpath([cwd, root]) == root for root in place.coming)


class VariablesType(UnitType):
    """The variables and messages an agent chose to keep."""

    kind = "variables"

    async def capture(self, live: Context, place: Place) -> Any:
        return {"variables": live.variables, "messages": live.messages}

    async def restore(self, recipe: Any, place: Place) -> Any:
        context = place.context
        before = (context.variables, context.messages)
        context.variables, context.messages = dict(recipe["variables"]), recipe["messages"]
        return before

    async def rollback(self, live: Any, place: Place) -> None:
        place.context.variables, place.context.messages = live
