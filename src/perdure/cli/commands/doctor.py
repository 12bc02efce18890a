"""Look for what is wrong, and say what to do about it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from perdure._ground.bridge import Call
from perdure.cli.base import Invocation, Verb
from perdure.cli.output import Block, Cell, line
from perdure.errors import InvalidInput

if TYPE_CHECKING:
    from perdure._store import Store
    from perdure._tasks import Finding

_STYLES = {"ok": "completed", "note": "paused", "problem": "failed"}


@click.command(cls=Verb)
@click.option("--quiet", is_flag=True, help="Only what is not as it should be.")
@click.option(
    "--adopt-copy",
    is_flag=True,
    help="First make the page checksums of a SQLite file that another program has copied (VACUUM INTO, .backup).",
)
@click.pass_obj
async def command(call: Invocation, quiet: bool, adopt_copy: bool) -> None:
    """Look for what is wrong, and say what to do about it.

    Reads everything and, without --adopt-copy, changes nothing. Exit code 1 when there is a problem; notes mend
    themselves, or are mended by what they say.
    """
    from perdure._tasks import examine

    store = call.store
    if adopt_copy:
        await _adopt(store)
    looked_at = [*await examine(store), *await _live(call)]
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


async def _adopt(store: Store) -> None:
    adopt = getattr(store.engine, "adopt_copy", None)
    if adopt is None:
        raise InvalidInput(
            f"{store.place} is not a SQLite file", kept="the store as it is", do="leave out --adopt-copy"
        )
    await Call(adopt)


async def _live(call: Invocation) -> Sequence[Finding]:
    """What is to be said of live things, where there are such."""
    if sys.platform == "win32":
        return []
    from perdure._runtime import keeper_checkup as checkup

    return await checkup.examine(call.store)
