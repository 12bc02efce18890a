"""Make, list, rotate and revoke the API keys of the server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from perdure.cli.base import Invocation, VerbGroup, length
from perdure.cli.output import Cell, Table, line

if TYPE_CHECKING:
    from perdure.server import ApiKey, ApiKeys


@click.group(cls=VerbGroup)
def command() -> None:
    """Make, list, rotate and revoke the API keys that programs use with the server.

    A key belongs to the namespace that --namespace names. The keys that seal records are another thing: `perdure keys`.
    """


@asynccontextmanager
async def _keys(call: Invocation) -> AsyncIterator[ApiKeys]:
    from perdure.server import ApiKeys, Vault

    call.require_store()
    vault = Vault(call.app)
    try:
        yield ApiKeys(vault)
    finally:
        await vault.close()


@command.command("make")
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    metavar="SCOPE",
    help="viewer, agent, operator, admin, or one scope such as tasks:read; repeatable.",
)
@click.option("--for", "lasts", type=length, metavar="30d", help="How long the key is good (default: until revoked).")
@click.pass_obj
async def make(call: Invocation, name: str, scopes: tuple[str, ...], lasts: timedelta | None) -> None:
    """Make a key and print it, once. perdure keeps its SHA-256 only."""
    async with _keys(call) as keys:
        until = None if lasts is None else call.store.clock.now_ms() + int(lasts.total_seconds() * 1000)
        made = await keys.make(name, scopes, call.namespace, until)
    call.answer({**_told(made.key), "key": made.text}, line(made.text))
    call.note("perdure does not show this key again; send it as `Authorization: Bearer …`")


@command.command("list")
@click.pass_obj
async def list_(call: Invocation) -> None:
    """List the keys of the namespace, without their secrets."""
    async with _keys(call) as keys:
        found, uses = await keys.all(call.namespace), await keys.last_uses()
    items = [{**_told(kept.value), "used_at": _moment(uses.get(kept.key))} for kept in found]
    now = call.store.clock.now_ms()
    rows = [
        (
            Cell(kept.key, "strong"),
            kept.value.name,
            " ".join(kept.value.scopes),
            _state(kept.value, now),
        )
        for kept in found
    ]
    table = Table(("key", "name", "scopes", ""), rows) if rows else line("there is no API key in this namespace")
    call.answer_items(items, table)


@command.command("rotate")
@click.argument("id")
@click.option(
    "--overlap",
    type=length,
    default="24h",
    show_default=True,
    metavar="24h",
    help="How long the old secret stays good.",
)
@click.pass_obj
async def rotate(call: Invocation, id: str, overlap: timedelta) -> None:
    """Give a key a new secret and print it, once."""
    async with _keys(call) as keys:
        made = await keys.rotate(await keys.get(id, call.namespace), overlap)
    call.answer({**_told(made.key), "key": made.text}, line(made.text))


@command.command("revoke")
@click.argument("id")
@click.pass_obj
async def revoke(call: Invocation, id: str) -> None:
    """End a key at once and for good."""
    async with _keys(call) as keys:
        kept = await keys.get(id, call.namespace)
        await keys.revoke(kept)
    call.answer({"id": id, "revoked": True}, line(f"key {id} ({kept.value.name}) is revoked"))


def _told(key: ApiKey) -> dict[str, Any]:
    return {
        "id": key.id,
        "name": key.name,
        "namespace": key.namespace,
        "scopes": list(key.scopes),
        "made_at": _moment(key.made_at),
        "until": _moment(key.until),
        "revoked_at": _moment(key.revoked_at),
    }


def _moment(at: int | None) -> Any:
    from perdure._ground.clock import moment

    return None if at is None else moment(at)


def _state(key: ApiKey, now_ms: int) -> Cell:
    if key.revoked_at is not None:
        return Cell("revoked", "failed")
    return Cell("" if key.is_good(now_ms) else "expired", "faint")
