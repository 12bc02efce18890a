"""The command `perdure`: read what was typed, do it, say how it went, and give the exit code.

A command is one file in commands/, named as it is typed, with a `command` in it; the first line of its
docstring is its line in `perdure --help`. It is imported when it is called, so that `--help` opens no store
and loads none of what a store needs.

Owns the walk from arguments to exit code. What a command is, is in verbs.py; what an invocation has at hand in
invocation.py; how values are read and shown in inputs.py, values.py and drawing.py; errors in failing.py.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the arguments say; the exit code is the process's answer, the output is already written."""
    args = list(sys.argv[1:] if argv is None else argv)
    try:
        _cope_with_any_terminal()
        return _run(args)
    except BrokenPipeError:
        # `perdure tasks | head -1`: all was done, and the reader has seen enough.
        _leave_stdout()
        return 0
    except (Exception, KeyboardInterrupt) as error:
        from perdure.cli.base import error_output as failing

        code = failing.report(error, args)
        _leave_stdout()
        return code


def _run(args: list[str]) -> int:
    from perdure.cli.base import Invocation, root

    invocation = Invocation()
    if "_PERDURE_COMPLETE" in os.environ:
        root.main(args, prog_name="perdure", obj=invocation)
    try:
        code = root.run(args, invocation)
    except BaseException as error:
        try:
            if type(error).__name__ == "NotFound":  # in a store that is not there, that is what to tell
                invocation.require_store()
        finally:
            invocation.close(after=error)
        raise
    invocation.close()
    if sys.stdout is not None:
        sys.stdout.flush()
    return code


def _cope_with_any_terminal() -> None:
    """A character the terminal does not have is shown as its number, and is no reason to fail."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _leave_stdout() -> None:
    """What cannot be written now cannot be written later: else the interpreter tries at its end, and complains."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
