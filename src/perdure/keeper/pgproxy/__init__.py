"""A sticky PostgreSQL proxy: one process that holds one server session while its clients come and go.

    client ── unix socket ── proxy ── one upstream connection, always the same

A client that dies leaves its transaction, temp tables, settings, cursors and locks behind, alive. The next client
continues inside them. Run as `python -m perdure.keeper.pgproxy`, with its configuration as JSON on standard input.

    protocol/      messages as bytes, both ways, and what can be read off them; pure
    login/         the way to the server: sockets, TLS, credentials, our own queries
    session/       what goes to the server, what goes to the client, what is kept; pure but for the recipe's file
    recovery/      what outlives this process, and how the next one takes the session up
    session_start  a session: taken up, made, or made again
    loop           the loop that moves the bytes; client_link and poller are its parts
    control_socket what the session's owner asks of the proxy
    process        the program
"""

from typing import Any

from perdure.keeper.pgproxy.protocol import ANOTHER, FENCED, NOT_KEPT, UNCERTAIN, UNWRITTEN, give, message, note, undo

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
    """The outcome of a COMMIT of which only the note is left: committed, rolled back or uncertain, and the reason.

    Raises:
        ConnectionError: the server refuses us, stays away, or the connection broke.
    """
    from perdure.keeper.pgproxy.login import upstream as login  # seldom needed, and it would import all of TLS
    from perdure.keeper.pgproxy.recovery import postmortem  # seldom needed, and it would import all of TLS

    try:
        return postmortem.outcome_of_commit(options, note, is_over=is_over)
    except (login.LoginFailed, OSError) as problem:
        raise ConnectionError(str(problem)) from None
