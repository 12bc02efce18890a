"""Programs behind commands: a terminal, a supervisor, a worker, a server.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.cli.processes.serve_options import server_options
from perdure.cli.processes.server_process import Serving, ServerChoice
from perdure.cli.processes.supervisor import ServerCommand, Supervisor, worker_argv
from perdure.cli.processes.terminal import Attached
from perdure.cli.processes.worker_process import work
__all__ = [
    "server_options",
    "Serving",
    "ServerChoice",
    "ServerCommand",
    "Supervisor",
    "worker_argv",
    "Attached",
    "work",
]
