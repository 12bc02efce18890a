"""The daemon that holds live things for tasks, and the small process under it: processes of their own.

What others may know of it: how it is started, what is spoken with it, and how small programs put descriptors into
its keeping.
"""

from pathlib import Path

from perdure.keeper.channel import Channel, ChannelRefused
from perdure.keeper.spawn import TOKEN_FD
from perdure.keeper.wire import (
    AT_ONCE,
    VERSIONS,
    BadFrame,
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

__all__ = [
    "ANCHOR",
    "AT_ONCE",
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
    "encode",
    "keeper_argv",
    "receive",
    "send",
]

# The file the anchor is started from.
ANCHOR = str(Path(__file__).with_name("anchor.py"))
_START = "import sys; sys.path.insert(0, sys.argv[1]); from perdure.keeper.daemon import main; main(sys.orig_argv)"


def keeper_argv(python: str) -> list[str]:
    """How the keeper of this perdure is started; the anchor adds the rest."""
    return [python, "-I", "-c", _START, str(Path(__file__).parents[2])]
