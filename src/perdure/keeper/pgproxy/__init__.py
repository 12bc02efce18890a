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

from perdure.keeper.pgproxy.calls import ANOTHER, NOT_KEPT, UNCERTAIN, UNWRITTEN, give, note, undo
from perdure.keeper.pgproxy.wire import message

__all__ = ["ANOTHER", "NOT_KEPT", "UNCERTAIN", "UNWRITTEN", "give", "message", "note", "undo"]
