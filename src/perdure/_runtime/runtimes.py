"""The live things of one task: create the first time, reattach by name afterwards."""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from perdure._durable import inside
from perdure._ground.ids import check_id
from perdure._model import Rebuild
from perdure._runtime import environment, places
from perdure._runtime.client import Client, client_for
from perdure._runtime.secrets import Secret
from perdure._runtime.shell import Shell
from perdure._runtime.units import Owner, Record, Unit, opened
from perdure._runtime.verdicts import verdict_of
from perdure._store import Store
from perdure.errors import NoTask

# What the keeper told the process that asks, and means nothing to another one.
_OF_ANOTHER = frozenset({"PERDURE_TASK", "PERDURE_UNIT"})


class Runtime:
    """What is kept alive for a task, beside its record."""

    env: dict[str, str]

    def __init__(self, client: Client, owner: Owner) -> None:
        self._client, self._owner = client, owner
        self.env = dict(os.environ)

    async def shell(
        self,
        name: str,
        argv: Sequence[str] | None = None,
        *,
        cwd: str | Path | None = None,
        env: Mapping[str, str] = {},
        rebuild: Rebuild = "ask",
    ) -> Shell:
        """The task's shell of this name; made the first time, the same one afterwards.

        `argv` for any other program on a terminal: a REPL, ssh, psql.
        """
        check_id(name, "name of a unit")
        command = list(argv) if argv else [shutil.which("bash") or "/bin/sh"]
        recipe, secrets = self._recipe(command, cwd, env)
        recipe["is_shell"] = argv is None
        record, was_made, is_rebuilt = await opened(
            self._client, self._owner, "shell", name, recipe, secrets=secrets, rebuild=rebuild
        )
        return Shell(self._client, self._owner, record, verdict_of(record, was_made, is_rebuilt))

    async def units(self) -> Sequence[Unit]:
        """All that is kept for the task, and what has ended and was not forgotten."""
        reply = await self._client.ask("units", task_uid=self._owner.uid)
        found = [Record.read(told) for told in reply.args["units"]]
        return [
            Unit(self._client, self._owner, record, verdict_of(record, False, "instead_of" in record.facts))
            for record in found
        ]

    def _recipe(
        self, argv: list[str], cwd: str | Path | None, env: Mapping[str, str]
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """All that a process is made with, and beside it what must not be written down."""
        whole = {name: value for name, value in {**self.env, **env}.items() if name not in _OF_ANOTHER}
        captured = environment.capture(whole)
        recipe = {
            "argv": argv,
            "cwd": str(Path(cwd or ".").absolute()),
            "env": captured.values,
            "secret_env": captured.secrets,
            "umask": environment.umask_now(),
            "most_files": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        }
        return recipe, {name: _value(whole[name]) for name in captured.secrets}


def _value(text: str) -> str:
    return Secret.parse(text).value() if text.startswith("secret://") else text


class runtime:
    """Inside a durable function: what is kept alive for its task."""

    @staticmethod
    async def open() -> Runtime:
        """This task's runtime; finds the keeper, or starts it.

        Raises:
            NoTask: no durable function is running here; use app.runtime(task_id).
        """
        here = inside()
        if here is None:
            raise NoTask("runtime.open()")
        return runtime_of(here.store, here.task_id, here.uid, here.epoch)


def runtime_of(store: Store, task_id: str, uid: str, epoch: int = 0) -> Runtime:
    """A task's runtime. Nothing is started before something is asked of it."""
    client = client_for(places.home_of(store.address))
    return Runtime(client, Owner(store.namespace, task_id, uid, epoch))
