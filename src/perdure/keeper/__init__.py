"""The daemon that holds units for tasks, and the anchor, the small process under it.

This door gives its users: how the keeper is started, its wire protocol, the channel by which small programs hand it
descriptors, and how a statement on a kept session names the call it belongs to.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from perdure.keeper import pgproxy
from perdure.keeper.core import (
    AT_ONCE,
    REAL_URL,
    VERSIONS,
    BadFrame,
    Channel,
    ChannelRefused,
    Decoder,
    Message,
    News,
    Refusal,
    Reply,
    Request,
    encode,
    receive,
    send,
)
from perdure.keeper.process import TOKEN_FD, processes
from perdure.keeper.process import is_taken as is_port_taken
from perdure.keeper.session import StatementCall, commit_outcome, digest_of

__all__ = [
    "ANCHOR",
    "AT_ONCE",
    "REAL_URL",
    "TOKEN_FD",
    "VERSIONS",
    "BadFrame",
    "Channel",
    "ChannelRefused",
    "Decoder",
    "Message",
    "News",
    "Refusal",
    "Reply",
    "Request",
    "StatementCall",
    "commit_outcome",
    "digest_of",
    "encode",
    "is_port_taken",
    "is_same_program",
    "keeper_argv",
    "list_processes",
    "pgproxy",
    "receive",
    "send",
]

# The file the anchor is started from.
ANCHOR = str(Path(__file__).with_name("anchor.py"))
_START = "import sys; sys.path.insert(0, sys.argv[1]); from perdure.keeper.daemon import main; main(sys.orig_argv)"


def keeper_argv(python: str) -> list[str]:
    """The command that starts this perdure's keeper; the anchor adds its arguments."""
    return [python, "-I", "-c", _START, str(Path(__file__).parents[2])]


def list_processes(pid: int, uid: str, anchor: int) -> list[tuple[int, list[str]]]:
    """Every process of a unit on this machine, with its command line."""
    return [(one, processes.command_of(one)) for one in processes.of_unit(pid, uid, anchor)]


def is_same_program(one: Sequence[str], other: Sequence[str]) -> bool:
    """True if two keepers, as `keeper_argv` starts them, are the same: `python` and `python3` in one place are."""
    return len(one) == len(other) and _identity(one) == _identity(other)


def _identity(argv: Sequence[str]) -> list[str]:
    """The interpreter's own file, its virtual environment, and the folder perdure is read from."""
    python, *rest, source = argv
    return [os.path.realpath(python), _environment_of(python), *rest, os.path.realpath(source)]


def _environment_of(python: str) -> str:
    """Environments link to one interpreter; what tells them apart is the file `pyvenv.cfg` that Python looks for."""
    beside = os.path.dirname(os.path.abspath(python))
    for folder in (beside, os.path.dirname(beside)):
        if os.path.exists(os.path.join(folder, "pyvenv.cfg")):
            return os.path.realpath(folder)
    return ""
