"""Programs behind commands: a terminal, a supervisor, a worker.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.cli.processes.supervisor import Supervisor, worker_argv
from perdure.cli.processes.terminal import Attached
from perdure.cli.processes.worker_process import work
__all__ = [
    "Supervisor",
    "worker_argv",
    "Attached",
    "work",
]
