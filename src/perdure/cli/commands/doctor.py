"""Look for problems, and say how to solve them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from perdure._ground.bridge import Call
from perdure.cli.base import Invocation, Verb
from perdure.cli.output import Block, Cell, line
from perdure.errors import InvalidInput, PerdureError

if TYPE_CHECKING:
    from perdure._store import Store
    from perdure._tasks import Finding

_STYLES = {"ok": "completed", "note": "paused", "problem": "failed"}


@click.command(cls=Verb)
@click.option("--quiet", is_flag=True, help="Show only problems and notes.")
@click.option(
    "--adopt-copy",
    is_flag=True,
    help="First compute the page checksums of a SQLite file that another program copied (VACUUM INTO, .backup).",
)
@click.pass_obj
async def command(call: Invocation, quiet: bool, adopt_copy: bool) -> None:
    """Look for problems in the store and its keeper, and say how to solve them.

    doctor reads everything and changes nothing (except with --adopt-copy). Exit code 1 when there is a problem. A note
    is not a problem: perdure solves it by itself, or you can with the command that the note names.
    """
    looked_at = await _through_a_server(call)
    if looked_at is None:
        from perdure._tasks import examine

        if adopt_copy:
            await _adopt(call.store)
        looked_at = [*await examine(call.store), *await _live(call), *await _served(call)]
    findings = [found for found in looked_at if not quiet or found.level != "ok"]
    problems = sum(found.level == "problem" for found in findings)
    blocks: list[Block] = []
    for found in findings:
        blocks.append(
            line(Cell(f"{found.level:8}", _STYLES[found.level]), Cell(found.subject, "strong"), f": {found.what}")
        )
        if found.do:
            blocks.append(line(Cell(f"{'':8}do: ", "faint"), found.do))
    blocks.append(line(f"{problems} problems" if problems != 1 else "1 problem"))
    call.answer({"items": findings, "problems": problems}, *blocks)
    if problems:
        raise click.exceptions.Exit(1)


async def _through_a_server(call: Invocation) -> list[Finding] | None:
    """The findings of the server's doctor; None when the store itself is here."""
    told = await call.job("/v1/store/doctor")
    if told is None:
        return None
    from perdure._tasks import Finding

    return [Finding(**one) for one in told["items"]]


async def _adopt(store: Store) -> None:
    adopt = getattr(store.engine, "adopt_copy", None)
    if adopt is None:
        raise InvalidInput(
            f"{store.place} is not a SQLite file", kept="the store as it is", do="leave out --adopt-copy"
        )
    await Call(adopt)


async def _served(call: Invocation) -> Sequence[Finding]:
    """The findings about servers, API keys and webhooks."""
    from perdure.server import examine_server

    with suppress(PerdureError):  # the store cannot be used, as was said above
        return await examine_server(call.app)
    return []


async def _live(call: Invocation) -> Sequence[Finding]:
    """The findings about live units, if there are any."""
    if sys.platform == "win32":
        return []
    from perdure._runtime import keeper_checkup as checkup

    return await checkup.examine(call.store)
