"""Check that the recorded events were not changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from perdure.cli.base import Invocation, VerbGroup, parse_json
from perdure.cli.output import Block, Cell, Table, line


def heads(path: str) -> dict[str, Any]:
    """A file that `perdure audit export` wrote."""
    try:
        found = parse_json(Path(path).read_bytes())
    except (OSError, ValueError) as problem:
        raise click.BadParameter(f"cannot read {path}: {problem}") from None
    if not isinstance(found, dict):
        raise click.BadParameter(f"{path} was not written by `perdure audit export`")
    return found


@click.group(cls=VerbGroup)
def command() -> None:
    """Check that the recorded events were not changed.

    The events of a task form a chain of hashes. A program that can write to the store can forge a whole chain, so
    export the chain heads regularly, keep them where the agent cannot write, and verify against them.
    """


@command.command("verify")
@click.argument("ids", metavar="[ID]…", nargs=-1)
@click.option(
    "--heads",
    type=heads,
    metavar="FILE",
    help="Compare with this file from `perdure audit export` (default: check the chains alone).",
)
@click.pass_obj
async def verify(call: Invocation, ids: tuple[str, ...], heads: dict[str, Any] | None) -> None:
    """Check the events of the tasks ID, or of all tasks. Exit code 1 when an event was changed."""
    from perdure._tasks import verify as check

    answer = await call.job("/v1/audit/verify", {"tasks": list(ids) or None, "heads": heads})
    if answer is None:
        found = await check(call.store, ids or None, heads=heads)
        answer = {
            "is_whole": found.is_whole,
            "tasks": found.tasks,
            "events": found.events,
            "tombstones": found.tombstones,
            "heads_compared": found.compared,
            "broken": [broken._asdict() for broken in found.broken],
            "unseen": found.unseen,
        }
    said = f"{answer['events']:,} events of {answer['tasks']:,} tasks, {answer['tombstones']:,} tombstones"
    blocks: list[Block] = [
        line(Cell("whole", "completed"), f": {said}")
        if answer["is_whole"]
        else line(Cell("changed", "failed"), f": {said}")
    ]
    if answer["broken"]:
        rows = [(Cell(broken["task_id"], "strong"), broken["problem"]) for broken in answer["broken"]]
        blocks.append(Table(("task", "first record that does not match"), rows, "changed"))
    blocks += [line(Cell("not checked: ", "faint"), unseen) for unseen in answer["unseen"]]
    call.answer(answer, *blocks)
    if not answer["is_whole"]:
        raise click.exceptions.Exit(1)


@command.command("export")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, writable=True),
    metavar="FILE",
    help="Write to this file (default: standard output).",
)
@click.pass_obj
async def export(call: Invocation, out: str | None) -> None:
    """Write the head of every task's event chain as JSON. Keep it outside the store."""
    from perdure._ground.encoding.json_values import as_json
    from perdure._tasks import export_heads

    if call.server is not None:
        exported = (await call.server.get("/v1/audit/heads")).value
    else:
        exported = await export_heads(call.store)
    if out is None:
        call.json = True
        call.answer(exported)
        return
    _write(out, as_json(exported, indent=2))
    count = len(exported["tasks"])
    call.answer({"file": out, "tasks": count}, line(f"{count:,} heads written to {out}"))


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"cannot write {path}: {error.strerror}") from None
