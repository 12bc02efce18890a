"""Look over tasks and code for what will hurt after a crash."""

from __future__ import annotations

from pathlib import Path

import click

from perdure.cli.base import Invocation, Verb
from perdure.cli.output import Block, Cell, line


@click.command(cls=Verb)
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--resume", metavar="MODULE:FUNCTION", help="Have this try to go on with each task, in a clean process.")
@click.option("--code-only", is_flag=True, help="Only the files; open no store.")
@click.pass_obj
async def command(call: Invocation, paths: tuple[Path, ...], resume: str | None, code_only: bool) -> None:
    """Look over tasks and code for what will hurt after a crash.

    In the store: ids that say nothing, long gaps between checkpoints, secrets in a state, tasks that can be cleaned
    up, and, with --resume, states that are not enough to go on with. In PATHS (files or folders, read and never
    run): effects without key or verify, ids, create() where open() is meant, unrecorded time and randomness, calls
    that block an async function (time.sleep, requests, subprocess.run, sqlite3), and sockets, child processes,
    threads and signals in a durable function outside a step.
    Changes nothing. Exit code 1 when there is a finding.
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
    blocks.append(line(f"{len(findings)} findings in {files} files and {tasks} tasks"))
    call.answer({"items": findings, "files": files, "tasks": tasks}, *blocks)
    if findings:
        raise click.exceptions.Exit(1)
