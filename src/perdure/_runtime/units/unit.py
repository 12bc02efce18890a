"""The agent's side of every unit: a name, a level, a verdict, and the write lease.

To add a kind, derive from Unit, open it with `opened`, and ask it by `self.ask(verb, …)` and `self.write(verb, …)`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from perdure import keeper
from perdure._ground.secrets.secret_forms import hide_in_command
from perdure._model import Level, Rebuild, Verdict
from perdure._runtime.keeper_client import Ask, Client, Record
from perdure._runtime.secrets import Secret, redaction
from perdure._runtime.units.shell_contents import Instead
from perdure.errors import SecretMissing, UnitEnded, UnitHeld

U = TypeVar("U", bound="Unit")
# More of a recipe, and beside it what must not be written down.
Rest = Callable[[], tuple[dict[str, Any], Mapping[str, str]]]


@dataclass
class Owner:
    """The task units are kept for, as an attempt of it asks for them."""

    namespace: str
    task: str
    uid: str
    epoch: int = 0  # of the attempt; 0 without one
    store: str = ""  # where the keeper can have the task looked up

    def told(self) -> dict[str, str]:
        return {"namespace": self.namespace, "task": self.task, "uid": self.uid}


class Unit:
    """One live thing; `level` says how it came back, `verdict` what that means."""

    name: str
    level: Level
    verdict: Verdict
    record: Record

    def __init__(self, client: Client, owner: Owner, record: Record, verdict: Verdict) -> None:
        self._client, self._owner, self.record = client, owner, record
        self.name, self.level, self.verdict = record.name, verdict.level, verdict
        self.was_made = False  # by this very call
        self.is_rebuilt = False  # in place of a former one that this keeper had
        self._epoch = 0

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} {self.level}>"

    @property
    def uid(self) -> str:
        return self.record.uid

    async def refresh(self) -> Record:
        """Its record, asked of the keeper now."""
        reply = await self._client.ask("units", task_uid=self._owner.uid)
        for told in reply.args["units"]:
            if told["uid"] == self.uid:
                self.record = Record.read(told)
                return self.record
        raise UnitEnded(self.name, "the keeper does not know it any more")

    async def end(self) -> None:
        """End it and every process it has started. It is no longer alive when this returns."""
        if not self.uid:  # another keeper's
            return
        await self._client.ask("end", unit=self.uid, wait=True)

    # ── for kinds ───────────────────────────────────────────────────────────────────────────────

    def ask(self, verb: str, body: bytes = b"", **args: Any) -> Ask:
        self._check()
        return self._client.do(self.record.uid, verb, body, **args)

    async def write(self, verb: str, body: bytes = b"", **args: Any) -> keeper.Reply:
        """Ask a question that needs the write lease; takes the lease if it is free.

        Raises:
            UnitHeld: another process writes to it; nothing was written.
        """
        self._check()
        for _ in range(20):
            if not self._epoch:
                await self._claim()
            try:
                return await self._client.do(self.record.uid, verb, body, epoch=self._epoch, **args)
            except UnitHeld:  # or only connected anew, and the lease has to be claimed again
                await self._claim()
        raise UnitHeld(self.name, 0)

    async def take(self) -> None:
        """Take the write lease from its holder, whose later writes are refused."""
        await self._claim(take=True)

    async def release(self) -> None:
        """Let others write."""
        if self._epoch:
            self._epoch = 0
            await self._client.ask("release", unit=self.uid)

    async def _claim(self, *, take: bool = False) -> None:
        reply = await self._client.ask(
            "claim", unit=self.uid, epoch=self._epoch, task_epoch=self._owner.epoch, take=take
        )
        self._epoch = reply.args["epoch"]

    def _check(self) -> None:
        if self.level == "lost":
            raise UnitEnded(self.name, self.verdict.reason)


async def opened(
    client: Client,
    owner: Owner,
    kind: str,
    name: str,
    recipe: dict[str, Any],
    *,
    rebuild: Rebuild,
    secrets: Mapping[str, str] = {},
    rest: Rest | None = None,
    limits: Mapping[str, float] | None = None,
    body: bytes = b"",
    fds: tuple[int, ...] = (),
    before: Callable[[], Awaitable[Instead | None]] | None = None,
) -> tuple[Record, bool, bool]:
    """The task's unit of this name: its record, whether it was made now, and whether in place of a former one.

    What `rest` adds to the recipe, and its secrets, are only asked for if the unit has to be made; `before` is called
    just before a keeper that does not know it makes it, and says in place of what.
    """
    who: dict[str, Any] = {
        "kind": kind,
        "name": name,
        "owner": owner.told(),
        "store": owner.store,
        "epoch": owner.epoch,
    }
    recipe, hidden = _without_secrets(recipe)
    is_looked_for = rest is not None or before is not None
    reply = await client.ask("open", **who, recipe=recipe, find=True) if is_looked_for else None
    if reply is None or reply.args["unit"] is None:
        instead = await before() if before is not None else None
        if rest is not None:
            more, secrets = rest()
            recipe = {**recipe, **more}
        if instead is not None:
            who["elsewhere"], recipe = instead.told, {**recipe, **instead.recipe}
            secrets = secrets if instead.secrets is None else instead.secrets
        reply = await client.ask(
            "open", body, fds, **who, **hidden, recipe=recipe, secrets=dict(secrets), limits=dict(limits or {})
        )
    record, was_made = Record.read(reply.args["unit"]), bool(reply.args["made"])
    if record.is_alive or not (rebuild == "auto" or record.facts.get("released")):
        return record, was_made, bool(record.about.get("is_rebuilt"))
    again: Mapping[str, str]
    again, missing = secrets_of(record)
    fresh: dict[str, Any] = {}
    if record.facts.get("aside"):  # its record was damaged: what is asked for now is all there is to go by
        more, again = rest() if rest is not None else ({}, dict(secrets))
        fresh, missing = {**recipe, **more}, []
    elif record.recipe.get("argv") != recipe.get("argv"):
        if kind == "service":  # it has ended, and another command is asked for: that one, in its environment
            fresh = {"hides_argv": False, **recipe}
        else:
            hidden = {}  # another command's secrets are no use to it
    told = {"secrets": dict(again), "missing": missing, "limits": dict(record.limits), "epoch": owner.epoch, **hidden}
    reply = await client.ask("rebuild", b"", fds, unit=record.uid, fresh=fresh, **told)
    return Record.read(reply.args["unit"]), bool(reply.args["made"]), True


def _without_secrets(recipe: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A recipe as it may be written down; and beside it the command line, if that has secrets in it."""
    argv = recipe.get("argv")
    if not argv or (shown := hide_in_command(argv)) == list(argv):
        return recipe, {}
    for part, clear in zip(argv, shown, strict=True):
        if part != clear:
            redaction.know(part.partition("=")[2] if clear.endswith(f"={redaction.HIDDEN}") else part)
    return {**recipe, "argv": shown, "hides_argv": True}, {"argv": list(argv)}


def secrets_of(record: Record) -> tuple[dict[str, str], list[str]]:
    """The secrets of a unit's environment, by the references in its recipe, and the names of those that are gone."""
    found, missing = {}, []
    for name, reference in record.recipe.get("secret_env", {}).items():
        try:
            found[name] = Secret.parse(reference).value()
        except SecretMissing:
            missing.append(name)
    return found, missing
