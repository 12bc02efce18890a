"""The command `perdure`: parse the arguments, run the command, print the answer, return the exit code.

Each command is one file in commands/ with the command's name and an object `command`. The first line of its docstring
is its line in `perdure --help`. It is imported when it is called, so `--help` opens no store and imports no engine.

Owns the walk from arguments to exit code. base/ has the class of all commands, their arguments, the invocation and the
errors; output/ prints values; processes/ has the terminal, the worker and the supervisor.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that the arguments name; returns the exit code."""
    args = list(sys.argv[1:] if argv is None else argv)
    try:
        _cope_with_any_terminal()
        return _run(args)
    except BrokenPipeError:
        # `perdure tasks | head -1`: the command is done, and the reader has closed the pipe.
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
        from perdure.cli.base import complete

        complete(args, invocation)
    try:
        code = root.run(args, invocation)
    except BaseException as error:
        try:
            if type(error).__name__ == "NotFound":  # if the store itself is missing, say that instead
                invocation.require_store()
        finally:
            invocation.close(after=error)
        raise
    invocation.close()
    if sys.stdout is not None:
        sys.stdout.flush()
    return code


def _cope_with_any_terminal() -> None:
    """Print a character that the terminal lacks as its number, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _leave_stdout() -> None:
    """Discard output that cannot be written, or the interpreter tries again when it exits and complains."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
