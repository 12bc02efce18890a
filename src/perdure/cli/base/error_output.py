"""From an exception to three lines on stderr and an exit code.

    perdure: no task 'x' in /srv/agent/.perdure/perdure.db
      kept: nothing was changed
      do:   `perdure tasks` lists what is there; PERDURE_URL or --store chooses another store

With --json it is one JSON object instead, also on stderr, so that stdout stays clean for pipes. A traceback
is shown only when PERDURE_DEBUG is set.
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
# As in sysexits.h: a script never takes a defect of perdure, or a full disk, for a task that failed.
DEFECT, NOT_WRITTEN = 70, 74


class Failure(NamedTuple):
    """What a person or a script is told."""

    type: str
    what: str
    kept: str
    do: str
    exit_code: int
    values: dict[str, Any]


def report(error: BaseException, args: Sequence[str]) -> int:
    """Write the error to stderr, in the form the arguments asked for; returns the exit code."""
    if os.environ.get("PERDURE_DEBUG"):
        import traceback

        traceback.print_exception(error)
    failure = explain(error, args)
    if wants_json(args):
        from perdure.cli.output import as_json

        known = {"type": failure.type, "what": failure.what, "kept": failure.kept, "do": failure.do}
        text = as_json({"error": {**known, "exit_code": failure.exit_code, **failure.values}}, ascii=True)
    else:
        what, kept, do = map(in_one_line, (failure.what, failure.kept, failure.do))
        text = "\n".join(map(safe, (f"perdure: {what}", f"  kept: {kept}", f"  do:   {do}")))
    if sys.stderr is not None:  # print(file=None) would write to stdout
        print(text, file=sys.stderr)
    return failure.exit_code


def explain(error: BaseException, args: Sequence[str] = ()) -> Failure:
    """What happened, what was kept, what to do: for every kind of exception."""
    kind = type(error).__name__
    if isinstance(error, PerdureError):
        values = {name: value for name, value in vars(error).items() if name not in ("what", "kept", "do")}
        values = {name: value for name, value in values.items() if not name.startswith("_")}
        kept = error.kept or "all that was acknowledged before"
        return Failure(kind, error.what, kept, _in_shell_words(error.do) or _help(args), error.exit_code, values)
    if isinstance(error, click.ClickException):
        do = _help(args, getattr(error, "ctx", None))
        if isinstance(error, click.NoSuchOption):
            do += "; an id or a text that begins with - goes after --"
        return Failure("Usage", _sentence(error.format_message()), "nothing was done", do, USAGE, {})
    if isinstance(error, KeyboardInterrupt | click.Abort):
        kept = "all that was acknowledged before; a write under way is in as a whole or not at all"
        return Failure("Interrupted", "interrupted", kept, "look with `perdure show`, then go on", INTERRUPTED, {})
    if isinstance(error, OSError) and error.filename is None:  # stdout is written by its number
        what = f"the answer could not be written: {error.strerror or error}"
        do = "make room, or send the output elsewhere; `perdure show` tells where the task stands"
        return Failure(kind, what, "all that was acknowledged before", do, NOT_WRITTEN, {})
    return Failure(
        kind,
        f"perdure itself went wrong: {kind}: {error}",
        "all that was acknowledged before",
        "PERDURE_DEBUG=1 shows where; please report it with that",
        DEFECT,
        {},
    )


def wants_json(args: Sequence[str]) -> bool:
    """Whether --json is among the options, also when they could not be parsed."""
    words = list(args)
    return "--json" in (words[: words.index("--")] if "--" in words else words)


def _help(args: Sequence[str], context: click.Context | None = None) -> str:
    path = context.command_path if context is not None else "perdure"
    if context is None:
        path = " ".join(["perdure", *(word for word in args[:1] if word.isidentifier())])
    return f"`{path} --help` shows how it is called"


def _sentence(text: str) -> str:
    """A message of click's in the way of ours: no capital, no full stop, one line."""
    line = " ".join(text.split()).removesuffix(".")
    return line[:1].lower() + line[1:] if line[1:2].islower() else line


# The hints of errors.py speak Python; at a prompt the same advice is a command.
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
