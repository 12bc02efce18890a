"""The class of all commands: a click command that may be async and has the options of every command.

    @click.command(cls=Verb)
    @click.argument("id")
    @click.pass_obj
    async def command(call: Invocation, id: str) -> None:

`--store`, `--namespace`, `--json` and `--no-color` may stand before or after the command's name. A command with
subcommands (`perdure keys list`) is a `VerbGroup`.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

import click

from perdure.cli.base.invocation import Invocation

_COMMANDS = os.path.join(os.path.dirname(os.path.dirname(__file__)), "commands")
# The order of `perdure --help`: every command, once. A test compares it with the files in commands/.
SECTIONS = {
    "Look": (
        "tasks",
        "inbox",
        "show",
        "where",
        "checkpoints",
        "diff",
        "events",
        "journal",
        "effects",
        "history",
        "frames",
        "memory",
        "units",
    ),
    "Work on a task": ("open", "create", "checkpoint", "progress", "complete", "fail", "run", "attach"),
    "Steer": ("pause", "resume", "approve", "reject", "answer", "signal", "take", "cancel", "rollback", "fork"),
    "Wait and stop": ("wait", "callback", "kill-switch"),
    "Maintain": ("pin", "archive", "delete", "gc", "export", "import", "keys", "audit", "doctor", "lint"),
    "Serve": (
        "up",
        "serve",
        "mcp",
        "link",
        "api-keys",
        "webhooks",
        "worker",
        "workers",
        "drain",
        "keep",
        "schedule",
        "trigger",
        "event",
        "handlers",
    ),
    "More": ("demo", "bench"),
}


# ── the options of every command ─────────────────────────────────────────────────────────────────


def _everywhere() -> list[click.Parameter]:
    def note(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        # An absent option must not overwrite one given before the command's name.
        if value not in (None, False) and isinstance(context.obj, Invocation) and parameter.name:
            setattr(context.obj, parameter.name, value)

    def option(*names: str, **how: Any) -> click.Option:
        return click.Option(names, expose_value=False, is_eager=True, callback=note, **how)

    return [
        option(
            "--store",
            "store_url",
            metavar="URL",
            help="The store: a path, sqlite:///… or postgresql://… (default: PERDURE_URL, else the nearest .perdure/).",
        ),
        option("--namespace", metavar="NAME", help="The namespace of the tasks (default: default)."),
        option("--json", "json", is_flag=True, help="Print one JSON document."),
        option("--no-color", "no_color", is_flag=True, help="Print plain text without colours, as with NO_COLOR set."),
    ]


class Verb(click.Command):
    """A command. An async one is driven without an event loop."""

    def __init__(self, *args: Any, **how: Any) -> None:
        super().__init__(*args, **how)
        self._own = len(self.params)
        self.params.extend(_everywhere())

    def invoke(self, ctx: click.Context) -> Any:
        result = super().invoke(ctx)
        if inspect.iscoroutine(result):
            from perdure._ground.bridge import drive

            return drive(result)
        return result

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        helps = self.get_params(ctx)
        own, shared = [*self.params[: self._own], *helps[len(self.params) :]], self.params[self._own :]
        _write_options(formatter, ctx, "Options", own)
        _write_options(formatter, ctx, "Options of every command", shared)


def _write_options(
    formatter: click.HelpFormatter, ctx: click.Context, title: str, options: Iterable[click.Parameter]
) -> None:
    records = [option.get_help_record(ctx) for option in options if isinstance(option, click.Option)]
    rows = [record for record in records if record is not None]
    if rows:
        with formatter.section(title):
            formatter.write_dl(rows)


class VerbGroup(click.Group):
    """A command with subcommands: `@command.command("list")` adds one."""

    command_class = Verb

    def __init__(self, *args: Any, **how: Any) -> None:
        # `perdure keys` alone is a usage error of three lines, not a help page.
        super().__init__(*args, **{"no_args_is_help": False, **how})
        self.params.extend(_everywhere())


# ── `perdure` itself ─────────────────────────────────────────────────────────────────────────────


class Root(VerbGroup):
    """All commands. Each is imported from its file when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_files())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        file = _files().get(cmd_name)
        if file is None:
            return None
        command: click.Command = import_module(f"perdure.cli.commands.{file}").command
        command.name = cmd_name
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in _files() and not args[0].startswith("-") and not ctx.resilient_parsing:
            import difflib

            close = difflib.get_close_matches(args[0], _files(), n=1)
            meant = f"; did you mean `perdure {close[0]}`?" if close else ""
            raise click.UsageError(f"there is no command {args[0]!r}{meant}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        files = _files()
        for title, names in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, _first_line(files[name])) for name in names], col_max=14)

    def run(self, args: list[str], invocation: Invocation) -> int:
        """Parse the arguments and run the command. All errors are raised."""
        try:
            with self.make_context("perdure", [*args], obj=invocation) as context:
                self.invoke(context)
        except click.exceptions.Exit as end:
            return end.exit_code
        return 0


def _files() -> dict[str, str]:
    """Each command's name and its module; `import_.py` is the command `import`."""
    modules = [name[:-3] for name in os.listdir(_COMMANDS) if name.endswith(".py") and name[:2] != "__"]
    return {module.rstrip("_").replace("_", "-"): module for module in modules}


def _first_line(module: str) -> str:
    """The first line of a module's docstring, read without importing it."""
    with open(os.path.join(_COMMANDS, f"{module}.py"), encoding="utf-8") as file:
        return file.readline().strip().strip('"').rstrip(".")


def _print_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        import perdure

        click.echo(f"perdure {perdure.__version__} ({', '.join(_engines())})")
        context.exit()


def _engines() -> Iterator[str]:
    """The environment to name in a fault report, beside our version."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    import apsw

    yield f"SQLite {apsw.sqlite_lib_version()} of apsw {version('apsw')}"
    try:
        yield f"PostgreSQL by psycopg {version('psycopg')}"
    except PackageNotFoundError:
        yield "PostgreSQL not installed"
    yield f"Python {platform.python_version()}"


_EXIT_CODES = """\b
Exit codes: 0 ok, 1 task failed, 2 usage, 3 not found, 4 conflict or stale,
5 not allowed, 6 timed out waiting, 7 store unavailable, 130 interrupted
"""


@click.group(
    cls=Root,
    invoke_without_command=True,
    subcommand_metavar="COMMAND …",
    epilog=_EXIT_CODES,
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Print the versions of perdure, its engines and Python.",
)
@click.pass_context
def root(context: click.Context) -> None:
    """Keep long-running agents going through crashes.

    The store is the nearest .perdure/ in this folder or above it, as with git. PERDURE_URL or --store names another.
    `perdure COMMAND --help` explains a command.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
