"""How a shell is started, and what is written down of it at each prompt, to make it again.

The shell writes all it knows of itself into the live folder, which is in memory; here that becomes a recipe on
disk, without secrets, and is removed.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

from perdure.keeper import recipes, untrusted

# A shell's own dump is some hundred kilobytes; what is larger is not read, and the recipe of the prompt before stays.
_MOST_STATE, _MOST_NAMES, _MOST_TYPED = 8 << 20, 64 << 10, 4096
_RC = Path(__file__).with_name("shell.bash")


class ShellState:
    """One shell's start files and recipe: `place` is in memory, `folder` on disk, `facts` the unit's own."""

    def __init__(self, place: Path, folder: Path, facts: dict[str, Any]) -> None:
        self._place, self._folder, self._facts = place, folder, facts

    def write_start(self, recipe: dict[str, Any], nonce: str) -> None:
        """What the shell reads at its start; of one that is made again, also what the old one was."""
        for folder in (self._place, self._place / "begun"):
            untrusted.make_folder(folder)
        text = _RC.read_text().replace("@PLACE@", str(self._place)).replace("@NONCE@", nonce)
        untrusted.write(self._place / "rc", text.encode())
        restore = recipe.get("restore")
        if restore:
            untrusted.write(self._place / "restore", str(restore).encode(errors="replace"))
            untrusted.write(self._place / "history", str(recipe.get("history", "")).encode(errors="replace"))

    def last_typed(self) -> str:
        return _text(self._place / "history").rstrip("\n").rpartition("\n")[2][:_MOST_TYPED]

    def learn(self, state: str) -> None:
        """The recipe of the shell as it is now, to disk; the dump it was made of goes."""
        dump, history = _text(self._place / f"state.{state}"), _text(self._place / "history")
        was_secret = bool(self._facts.pop("secret_given", False))
        found = recipes.recipe_of(
            dump,
            history,
            tainted=self._facts.get("tainted", ()),
            only_known=_text(self._folder / "restore") if was_secret else None,
        )
        with contextlib.suppress(OSError):
            (self._place / f"state.{state}").unlink()
        if found is None:
            return
        if was_secret:
            self._facts["tainted"] = sorted({*self._facts.get("tainted", ()), *found.withheld})
        if sum(map(len, (found.directory, *found.exported, *found.withheld))) > _MOST_NAMES:
            return  # the record of a unit is no place for so many names
        untrusted.write(self._folder / "restore", found.script.encode(errors="replace"))
        history = "\n".join([*recipes.kept_history(history), ""])
        untrusted.write(self._folder / "history", history.encode(errors="replace"))
        self._facts["recipe"] = {
            "directory": found.directory,
            "exported": sorted(found.exported),
            "withheld": list(found.withheld),
            **found.counts,
        }


def recipe_again(recipe: dict[str, Any], facts: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The recipe of a new shell in place of one that was made by `recipe` and has ended."""
    made, learnt = dict(recipe), facts.get("recipe")
    if not (made.get("is_shell") and learnt):
        return made
    if os.path.isdir(learnt["directory"]):
        made["cwd"] = learnt["directory"]
    made["restore"], made["history"] = _text(folder / "restore"), _text(folder / "history")
    exported = set(learnt["exported"])
    made["env"] = {name: value for name, value in made["env"].items() if name in exported}
    return made


def _text(file: Path) -> str:
    try:
        return untrusted.read_text(file, _MOST_STATE)
    except OSError:
        return ""
