"""Take what is in a shell to another machine, and make the shell there as it was at its last prompt.

A keeper can make a shell of its own again. Another machine's keeper knows nothing of it, so a sealed bundle carries
its contents in the note of the unit: its folder, variables, functions, aliases, options, umask and traps, and which
commands it was asked for. What may be secret is not among them: its name is, or the reference by which it is found.

They are used only if a trusted key has signed the bundle. Nothing of them is run: values are assigned, and functions
and traps defined.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from perdure._runtime.keeper_client import Client, Record
from perdure._runtime.secrets import Secret, environment
from perdure.errors import SecretMissing

# Of the machine or of bash itself: the shell there has its own.
_OF_THE_MACHINE = environment.OF_THE_HOST | {"HOSTTYPE", "MACHTYPE", "OSTYPE"}


class Contents(Struct, frozen=True):
    """The contents of a shell at the time of the export."""

    host: str
    recipe: dict[str, Any]  # as its keeper would make it again
    learnt: dict[str, Any]  # the same in short, for its verdict


@dataclass(frozen=True)
class Instead:
    """The data to make a unit from, in place of one that another keeper had."""

    told: dict[str, Any]  # for its record
    recipe: dict[str, Any] = field(default_factory=dict)  # more of it, or other values
    secrets: dict[str, str] | None = None  # None: those of this process


async def contents_of(client: Client, record: Record, host: str) -> Contents | None:
    """The present contents of a shell; None if its keeper cannot tell."""
    told = (await client.ask("recipe", unit=record.uid, elsewhere=True)).args
    if not told.get("learnt") or "state" not in told["recipe"]:
        return None
    return Contents(host, told["recipe"], told["learnt"])


def made_here(contents: Contents, note: int, around: Mapping[str, str], folder: str) -> Instead:
    """What the shell is made of on this machine; `note` is the version of the note that has its contents. Its paths are
    those of here already; `around` is the environment of here, and `folder` the one to be in if its own is not here."""
    recipe = dict(contents.recipe)
    state = dict(recipe["state"])
    state["variables"] = [one for one in state["variables"] if one[0] not in _OF_THE_MACHINE]
    references = {name: told for name, told in recipe.get("secret_env", {}).items() if name not in _OF_THE_MACHINE}
    secrets, missing = {}, []
    for name, reference in references.items():
        try:
            secrets[name] = Secret.parse(reference).value()
        except SecretMissing:
            missing.append(name)
    own = {name: value for name, value in recipe["env"].items() if name not in _OF_THE_MACHINE}
    of_here = {name: value for name, value in around.items() if name in _OF_THE_MACHINE}
    recipe |= {"state": state, "env": {**of_here, **own}, "secret_env": references}
    recipe["cwd"] = next((one for one in (recipe["cwd"], folder) if os.path.isdir(one)), "/")
    return Instead(
        {"host": contents.host, "note": note, "learnt": contents.learnt, "missing": missing}, recipe, secrets
    )
