"""Start a proxy: its configuration is one line of JSON on standard input, its answer one on standard output.

    name      the session's; under it its connection is parked
    folder    of this session alone, for its sockets; no longer than 90 characters
    options   of the connection, as libpq names them; left out: only a parked connection will do
    hold      seconds
    secret    that clients give as their password; optional
    channel   the keeper's socket, if the keeper has started it: its anchor is the parking
    parking   else, the socket of a parking process; optional

The answer is {"how": "kept" | "new", "lost": why the one before is lost} or {"error": …, "kind": …}.
"""

from __future__ import annotations

from perdure.keeper.pgproxy.process import main
from perdure.keeper.session import read_config

if __name__ == "__main__":
    main(read_config())
