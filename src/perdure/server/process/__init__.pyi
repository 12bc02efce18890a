"""The server as a process: sockets, connections with deadlines, starting and stopping. Needs uvicorn.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.server.process.access_log import log_to_stderr
from perdure.server.process.hook_duties import HookDuties
from perdure.server.process.listener import (
    Listener,
    bind,
    bind_unix,
    has_uvicorn,
    refuse_open_door,
    require_uvicorn,
    serve,
)
from perdure.server.process.running_servers import RunningServer, RunningServers, Vitals
__all__ = [
    "log_to_stderr",
    "HookDuties",
    "Listener",
    "bind",
    "bind_unix",
    "has_uvicorn",
    "refuse_open_door",
    "require_uvicorn",
    "serve",
    "RunningServer",
    "RunningServers",
    "Vitals",
]
