"""Check tasks and code for mistakes that hurt after a crash."""

from __future__ import annotations

from pathlib import Path

import click

from perdure.cli.base import Invocation, Verb
from perdure.cli.output import Block, Cell, line


@click.command(cls=Verb)
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--resume",
    metavar="MODULE:FUNCTION",
    help="Also let this function try to continue each task, in a fresh process (default: not tried).",
)
@click.option("--code-only", is_flag=True, help="Check only files; do not open a store.")
@click.pass_obj
async def command(call: Invocation, paths: tuple[Path, ...], resume: str | None, code_only: bool) -> None:
    """Check tasks and code for mistakes that hurt after a crash.

    In the store, lint finds ids that say nothing, gaps of more than 10 minutes between checkpoints, secrets in a state,
    tasks that ended more than 7 days ago, and, with --resume, states that are not enough to continue from.

    In PATHS (files or folders, which lint reads and never runs), it finds effects without key or verify, ids that say
    nothing, create() where open() is meant, unrecorded time and randomness, calls that block an async function
    (time.sleep, requests, subprocess.run, sqlite3), and sockets, child processes, threads and signals in a durable
    function outside a step.

    lint changes nothing. Exit code 1 when there is a finding.
    """
    from perdure.cli.lint import check_files, check_tasks

    findings, files = check_files(paths)
    tasks = 0
    if not code_only:
        of_tasks, tasks = await check_tasks(call.tasks, call.now, resume)
        findings += of_tasks
    blocks: list[Block] = []
    for found in findings:
        blocks.append(line(Cell(found.rule, "failed"), " ", Cell(found.where, "strong"), f": {found.what}"))
        blocks.append(line(Cell("  do: ", "faint"), found.do))
    blocks.append(line(f"{_of(len(findings), 'finding')} in {_of(files, 'file')} and {_of(tasks, 'task')}"))
    call.answer({"items": findings, "files": files, "tasks": tasks}, *blocks)
    if findings:
        raise click.exceptions.Exit(1)


def _of(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
