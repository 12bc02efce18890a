"""Start a shell, and turn its report at each prompt into the recipe to make it again.

The shell writes its whole state into a folder of its own, which is in memory. This module turns it into a recipe on
disk, without secrets, and removes it. Any process of the unit can write into that folder, so its files are read as
untrusted (untrusted.py). If a report cannot be used, the recipe of the prompt before stays.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from pathlib import Path
from typing import Any

from perdure.keeper.core import Records, Registry, Unit, untrusted
from perdure.keeper.kinds.shell import recipes
from perdure.keeper.kinds.shell.recipes import Recipe

# A shell's own dump is some hundred kilobytes; what is larger is not read, and the recipe of the prompt before stays.
_MOST_STATE, _MOST_NAMES, _MOST_TYPED = 8 << 20, 64 << 10, 4096
# In the folder of the keeper: one of an earlier version that still runs reads it from there.
_RC = Path(__file__).parents[2] / "shell.bash"
_NUMBER = re.compile("[0-9]{1,18}")


class ShellState:
    """One shell's start files and recipe: `place` is in memory and its own, `folder` on disk, `facts` the unit's."""

    def __init__(self, place: Path, folder: Path, facts: dict[str, Any], records: Records) -> None:
        self._place, self._folder, self._facts, self._records = place, folder, facts, records

    def write_start(self, state: dict[str, Any] | None, history: str) -> dict[str, str]:
        """Write the shell's start file; for one that is made again, with the state of the old one. Returns the
        environment it needs."""
        for folder in (self._place, self._place / "begun"):
            untrusted.make_folder(folder)
        untrusted.write(
            self._place / "rc", _RC.read_text(encoding="utf-8").replace("@PLACE@", str(self._place)).encode()
        )
        recipe = _recipe(state)
        if recipe is None:
            return {}
        untrusted.write(self._place / "restore", recipes.fields(recipe))
        untrusted.write(self._place / "history", history.encode(errors="replace"))
        self._write(recipe, history)
        self._facts["is_first_prompt"] = True
        return recipes.definitions(recipe)

    def last_typed(self) -> str:
        return self._history().rstrip("\n").rpartition("\n")[2][:_MOST_TYPED]

    def _history(self) -> str:
        return _text(self._place / "history")

    def learn(self, state: str) -> None:
        """Write the present recipe of the shell to disk, and delete the dump it was made of."""
        if not _NUMBER.fullmatch(state):
            return
        file, dump = self._place / f"state.{state}", b""
        with contextlib.suppress(OSError):  # it is not there, or not a file: the recipe of the prompt before stays
            dump = untrusted.read(file, _MOST_STATE)
            untrusted.remove(file)
        was_secret, before = bool(self._facts.pop("secret_given", False)), None
        if was_secret or self._facts.get("is_first_prompt"):
            before = _recipe(_json(self._folder / "state", self._records)) or Recipe()
        found = recipes.recipe_of(dump, tainted=self._facts.get("tainted", ()), before=before if was_secret else None)
        if found is None:
            return
        if was_secret:
            self._facts["tainted"] = sorted({*self._facts.get("tainted", ()), *found.withheld})
        if sum(map(len, (found.directory, *found.exported, *found.withheld, *found.not_rebuilt))) > _MOST_NAMES:
            return  # the record of a unit is no place for so many names
        if self._facts.pop("is_first_prompt", False) and before is not None:
            self._facts["not_rebuilt"] = [*before.not_rebuilt, *recipes.differences(before, found)]
        self._write(found, self._history())

    def _write(self, found: Recipe, history: str) -> None:
        kept = recipes.kept_history(history)
        self._records.write(self._folder / "state", json.dumps(found.as_json()).encode())
        self._records.write(self._folder / "history", "\n".join([*kept, ""]).encode(errors="replace"))
        self._facts["recipe"] = {
            "directory": found.directory,
            "exported": sorted(found.exported),
            "withheld": list(found.withheld),
            "not_rebuilt": list(found.not_rebuilt),
            "variables": len(found.variables),
            "functions": len(found.functions),
            "history": len(kept),
        }


def recipe_again(old: Unit, units: Registry, *, is_elsewhere: bool = False) -> dict[str, Any]:
    """The recipe of a new shell in place of one that has ended; on another machine its folder is looked for there."""
    made, learnt = dict(old.recipe), old.facts.get("recipe")
    if not (made.get("is_shell") and learnt):
        return made
    folder, records = units.folder(old), units.records
    with contextlib.suppress(OSError, ValueError):
        made["history"] = records.read(folder / "history", _MOST_STATE).decode(errors="replace")
    found = _recipe(_json(folder / "state", records))
    if found is not None:
        made["state"] = found.as_json()
        if found.umask:
            made["umask"] = int(found.umask, 8)
    folders = (str(learnt["directory"]), made["cwd"], made["env"].get("HOME", "/"))
    made["cwd"] = folders[0] if is_elsewhere else _nearest(*folders)
    exported = set(learnt["exported"])
    made["env"] = {name: value for name, value in made["env"].items() if name in exported}
    return made


def _nearest(*folders: str) -> str:
    """The first of these that is there."""
    return next((one for one in folders if os.path.isabs(one) and "\0" not in one and os.path.isdir(one)), "/")


def _recipe(told: Any) -> Recipe | None:
    try:
        return None if told is None else Recipe.read(told)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _json(file: Path, records: Records) -> Any:
    try:
        return untrusted.json_of(records.read(file, 2 * _MOST_STATE))
    except (OSError, ValueError):
        return None


def _text(file: Path) -> str:
    try:
        return untrusted.read_text(file, _MOST_STATE)
    except OSError:
        return ""
