"""A sticky PostgreSQL proxy: one process that holds one server session while its clients come and go.

    client ── unix socket ── proxy ── one upstream connection, for ever the same

A client that dies leaves its transaction, temp tables, settings, cursors and locks behind, alive; the next one
goes on inside them. Run as `python -m perdure.keeper.pgproxy`, with its configuration as JSON on standard input.

    wire      messages as bytes, both ways; pure
    scram     the password's part of a login; pure
    session   what goes to the server, what to the client, what is kept; pure
    resync    finding the end of what a dead proxy has half read; pure
    endings   which statements may end a transaction; pure
    recipe    what it takes to build a session anew; pure but for its file
    notebook  facts that outlive the process, in shared memory
    parking   descriptors that outlive the process, in another one
    trace     what is left of a session when all that held it has died, in a file
    witness   notes a transaction's number before its COMMIT goes out
    login     the way to the server: sockets, TLS, credentials
    questions what is asked of the server beside what clients ask
    postmortem  what became of a session that is lost, asked of the server
    rebuild   a session made anew from its recipe
    process   the loop that moves the bytes
"""

from typing import Any

from perdure.keeper.pgproxy.calls import ANOTHER, FENCED, NOT_KEPT, UNCERTAIN, UNWRITTEN, give, note, undo
from perdure.keeper.pgproxy.wire import message

__all__ = [
    "ANOTHER",
    "FENCED",
    "NOT_KEPT",
    "UNCERTAIN",
    "UNWRITTEN",
    "give",
    "message",
    "note",
    "outcome_of_commit",
    "undo",
]


def outcome_of_commit(options: dict[str, str], note: dict[str, Any], *, is_over: bool) -> tuple[str, str]:
    """How a COMMIT ended of which nothing is left but its note: committed, rolled back or uncertain, and why that.

    Raises:
        ConnectionError: the server refuses us, stays away, or the connection broke.
    """
    from perdure.keeper.pgproxy import login, postmortem  # seldom needed, and all of TLS comes with them

    try:
        return postmortem.outcome_of_commit(options, note, is_over=is_over)
    except (login.LoginFailed, OSError) as problem:
        raise ConnectionError(str(problem)) from None
