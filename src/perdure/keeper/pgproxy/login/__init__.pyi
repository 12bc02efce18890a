"""The way to the server: options, TLS, credentials, and our own queries on that connection.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.keeper.pgproxy.login.upstream import LoginFailed, Upstream
from perdure.keeper.pgproxy.login import server_queries
from perdure.keeper.pgproxy.login import upstream
__all__ = [
    "LoginFailed",
    "Upstream",
    "server_queries",
    "upstream",
]
