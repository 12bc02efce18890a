"""Print an exception as three lines on stderr, and choose the exit code.

    perdure: no task 'x' in /srv/agent/.perdure/perdure.db
      kept: nothing was changed
      do:   `perdure tasks` lists the tasks; PERDURE_URL or --store chooses another store

With --json the error is one JSON object instead, also on stderr, so that stdout stays clean for pipes. A traceback is
printed only when PERDURE_DEBUG is set.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import click

from perdure._ground.exception_text import in_one_line
from perdure.cli.output import safe
from perdure.errors import PerdureError

USAGE, INTERRUPTED = 2, 130
# As in sysexits.h, so that a script can tell a defect of perdure or a full disk from a failed task.
DEFECT, NOT_WRITTEN = 70, 74
_ACKNOWLEDGED = "every write that was acknowledged before"


class Failure(NamedTuple):
    """An error, as a person or a script gets it."""

    type: str
    what: str
    kept: str
    do: str
    exit_code: int
    values: dict[str, Any]


def report(error: BaseException, args: Sequence[str]) -> int:
    """Write the error to stderr, as text or as JSON; returns the exit code."""
    if os.environ.get("PERDURE_DEBUG"):
        import traceback

        traceback.print_exception(error)
    failure = explain(error, args)
    if wants_json(args):
        from perdure._ground.encoding.json_values import as_json

        known = {"type": failure.type, "what": failure.what, "kept": failure.kept, "do": failure.do}
        text = as_json({"error": {**known, "exit_code": failure.exit_code, **failure.values}}, ascii=True)
    else:
        what, kept, do = map(in_one_line, (failure.what, failure.kept, failure.do))
        text = "\n".join(map(safe, (f"perdure: {what}", f"  kept: {kept}", f"  do:   {do}")))
    if sys.stderr is not None:  # print(file=None) would write to stdout
        print(text, file=sys.stderr)
    return failure.exit_code


def explain(error: BaseException, args: Sequence[str] = ()) -> Failure:
    """Say what happened, what was kept and what to do, for any exception."""
    kind = type(error).__name__
    if isinstance(error, PerdureError):
        values = {name: value for name, value in vars(error).items() if name not in ("what", "kept", "do")}
        values = {name: value for name, value in values.items() if not name.startswith("_")}
        kept = error.kept or _ACKNOWLEDGED
        return Failure(kind, error.what, kept, _in_shell_words(error.do) or _help(args), error.exit_code, values)
    if isinstance(error, click.ClickException):
        do = _help(args, getattr(error, "ctx", None))
        if isinstance(error, click.NoSuchOption):
            do += "; put an id or a text that starts with - after --"
        return Failure("Usage", _sentence(error.format_message()), "nothing was changed", do, USAGE, {})
    if isinstance(error, KeyboardInterrupt | click.Abort):
        kept = f"{_ACKNOWLEDGED}; the last write was done completely or not at all"
        return Failure(
            "Interrupted", "interrupted", kept, "`perdure show` shows the state of the task", INTERRUPTED, {}
        )
    if isinstance(error, OSError) and error.filename is None:  # stdout is written by its number
        what = f"cannot write the answer: {error.strerror or error}"
        do = "free some space, or write the output elsewhere; `perdure show` shows the state of the task"
        return Failure(kind, what, _ACKNOWLEDGED, do, NOT_WRITTEN, {})
    return Failure(
        kind,
        f"this is a defect of perdure: {kind}: {error}",
        _ACKNOWLEDGED,
        "set PERDURE_DEBUG=1 to print the traceback, and report it",
        DEFECT,
        {},
    )


def wants_json(args: Sequence[str]) -> bool:
    """True if --json is given, even if the arguments cannot be parsed."""
    words = list(args)
    return "--json" in (words[: words.index("--")] if "--" in words else words)


def _help(args: Sequence[str], context: click.Context | None = None) -> str:
    path = context.command_path if context is not None else "perdure"
    if context is None:
        path = " ".join(["perdure", *(word for word in args[:1] if word.isidentifier())])
    shown = "lists the commands" if path == "perdure" else "shows the arguments and options"
    return f"`{path} --help` {shown}"


def _sentence(text: str) -> str:
    """A message of click in our form: no capital, no full stop, one line."""
    line = " ".join(text.split()).removesuffix(".")
    return line[:1].lower() + line[1:] if line[1:2].islower() else line


# errors.py gives advice in Python; in a shell the same advice is a command.
_SHELL_WORDS = (
    ("open() attaches to it", "`perdure open` attaches to it"),
    ("open(again=True)", "`perdure open --again`"),
    ("delete(force=True)", "`perdure delete --force`"),
    ("PERDURE_URL or Perdure(url)", "PERDURE_URL or --store"),
    ("Perdure('postgresql://…')", "--store postgresql://…"),
)


def _in_shell_words(hint: str) -> str:
    for python, shell in _SHELL_WORDS:
        hint = hint.replace(python, shell)
    return hint
