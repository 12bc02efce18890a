"""Serve shells and notes to a coding agent (MCP), or install that."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from pathlib import Path

import click

from perdure.cli.base import Invocation, VerbGroup
from perdure.cli.output import line


@click.group(cls=VerbGroup, invoke_without_command=True)
@click.option("--task", metavar="ID", help="The task of this agent (default: PERDURE_TASK, else agent).")
@click.pass_context
def command(context: click.Context, task: str | None) -> None:
    """Serve shells, services and notes to a coding agent, over MCP on stdin and stdout.

    They outlive the agent and this server. A client starts this command by itself: `perdure mcp install claude` writes
    its configuration. Over HTTP, `perdure serve` answers at /mcp.
    """
    call: Invocation = context.obj
    if context.invoked_subcommand is None:
        from perdure.mcp import require_mcp, serve_stdio

        require_mcp()
        asyncio.run(serve_stdio(lambda: call.app, task or os.environ.get("PERDURE_TASK") or "agent"))


@command.command("install")
@click.argument("client", type=click.Choice(["claude", "codex", "cursor"]))
@click.option("--yes", is_flag=True, help="Write without asking.")
@click.option("--print", "only_print", is_flag=True, help="Print what would be written, and write nothing.")
@click.pass_obj
def install(call: Invocation, client: str, yes: bool, only_print: bool) -> None:
    """Write the configuration of a client, so that it starts `perdure mcp`.

    claude writes .mcp.json and cursor .cursor/mcp.json in this folder, codex writes ~/.codex/config.toml. install asks
    first, keeps a copy of the file beside it, and leaves everything else in it as it is.
    """
    from perdure.mcp import plan_change

    change = plan_change(client, _own_command(call, client), folder=Path.cwd(), home=Path.home())
    if only_print:
        click.echo(change.after, nl=False)
        return
    if not change.is_needed:
        call.answer({"path": str(change.path), "changed": False}, line(f"{change.path} says it already"))
        return
    if not yes and not _agreed(call, change.path, change.after):
        raise click.Abort
    backup = _write(change.path, change.before, change.after)
    kept = f"; the former file is {backup}" if backup else ""
    call.answer(
        {"path": str(change.path), "changed": True, "backup": str(backup) if backup else None},
        line(f"wrote {change.path}{kept}"),
    )
    call.note(f"restart {client}; its first call may be where_was_i")


def _own_command(call: Invocation, client: str) -> list[str]:
    """The command that starts this program: its name where a client finds it, else its path.

    A client that is not started from this virtual environment finds no name in it. The file of codex belongs to one
    person, so it gets the path; those of a project are shared, so they keep the name.
    """
    found = shutil.which("perdure")
    is_hidden = found is not None and sys.prefix != sys.base_prefix and Path(found).is_relative_to(sys.prefix)
    program = "perdure" if found is not None else str(Path(sys.argv[0]).absolute())
    if is_hidden and client == "codex":
        program = str(found)
    elif is_hidden:
        call.note(f"perdure is in a virtual environment: start {client} from it, or write {found} as the command")
    url = call.store_url
    if not url:
        return [program, "mcp"]
    return [program, "mcp", "--store", url if "://" in url else str(Path(url).absolute())]


def _agreed(call: Invocation, path: Path, after: str) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        raise click.UsageError("cannot ask without a terminal: --yes writes without asking, --print only shows it")
    click.echo(f"{path} will say:\n\n{after}", err=True)
    return click.confirm("Write it?", err=True)


def _write(path: Path, before: str | None, after: str) -> Path | None:
    """Put the file in place of the former one, of which a copy is kept; the copy's path."""
    from perdure.memory.storage import replace_file

    backup = None
    if before is not None:
        backup = next(name for name in _backups(path) if not name.exists())
        shutil.copy2(path, backup)
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.stat().st_mode & 0o777 if before is not None else 0o644
    replace_file(path, after.encode())
    path.chmod(mode)
    return backup


def _backups(path: Path) -> list[Path]:
    return [path.with_name(f"{path.name}.before-perdure{'' if n == 0 else f'-{n}'}") for n in range(1000)]
